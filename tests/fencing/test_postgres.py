"""Fences in PostgreSQL: transactions that meet."""

import random
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.fencing import FencedOff, SqlFences
from rig.waiting import until


@pytest.fixture
def connect(postgres: Callable[..., Any]) -> Callable[..., Any]:
    """Return what connects to a database that has the table and a resource, `report`."""
    with postgres() as connection:
        SqlFences(connection).create_table()
        connection.execute("CREATE TABLE report (number serial, line text)")
    return postgres


@pytest.fixture
def waits(connect: Callable[..., Any]) -> Callable[[Any], None]:
    """Return what waits until a connection waits for another one."""
    witness = connect(autocommit=True)

    def see(connection: Any) -> None:
        pid = connection.info.backend_pid
        until(lambda: witness.execute("SELECT pg_blocking_pids(%s)", [pid]).fetchone()[0])

    return see


def lines(connection: Any) -> list[str]:
    return [line for (line,) in connection.execute("SELECT line FROM report ORDER BY number")]


@pytest.fixture(params=[True, False], ids=["known", "new"])
def overtaken(
    request: pytest.FixtureRequest,
    connect: Callable[..., Any],
    in_thread: Callable[..., Any],
    waits: Callable[[Any], None],
) -> tuple[Any, Any, Any]:
    """Return a later one that has entered, an earlier one, and its entering, which waits."""
    later, earlier = connect(), connect()
    if request.param:
        with connect() as before:
            SqlFences(before).enter("report", 3)
    SqlFences(later).enter("report", 7)
    begun = in_thread(SqlFences(earlier).enter, "report", 5)
    waits(earlier)
    return later, earlier, begun


def test_the_later_one_first_and_the_other_waits_and_is_refused(
    overtaken: tuple[Any, Any, Any],
) -> None:
    later, earlier, begun = overtaken
    later.execute("INSERT INTO report (line) VALUES ('by 7')")
    later.commit()
    with pytest.raises(FencedOff) as caught:
        begun.result()
    assert caught.value.last == 7
    earlier.rollback()
    assert lines(earlier) == ["by 7"]


def test_the_earlier_one_first_and_the_later_reads_what_it_wrote(
    connect: Callable[..., Any], in_thread: Callable[..., Any], waits: Callable[[Any], None]
) -> None:
    earlier, later = connect(), connect()
    SqlFences(earlier).enter("report", 5)
    begun = in_thread(SqlFences(later).enter, "report", 7)
    waits(later)
    earlier.execute("INSERT INTO report (line) VALUES ('by 5')")
    earlier.commit()
    begun.result()
    assert lines(later) == ["by 5"]
    later.commit()
    with pytest.raises(FencedOff):
        SqlFences(earlier).enter("report", 5)


def test_a_transaction_that_is_rolled_back_has_not_entered(
    overtaken: tuple[Any, Any, Any],
) -> None:
    later, earlier, begun = overtaken
    later.rollback()
    begun.result()
    earlier.commit()


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_the_stricter_levels_fail_instead(
    connect: Callable[..., Any],
    in_thread: Callable[..., Any],
    waits: Callable[[Any], None],
    level: str,
) -> None:
    import psycopg

    with connect() as before:
        SqlFences(before).enter("report", 3)
    later, earlier = connect(), connect()
    earlier.isolation_level = psycopg.IsolationLevel[level]
    SqlFences(later).enter("report", 7)
    begun = in_thread(SqlFences(earlier).enter, "report", 5)
    waits(earlier)
    later.commit()
    with pytest.raises(psycopg.errors.SerializationFailure):
        begun.result()
    earlier.rollback()
    with pytest.raises(FencedOff):
        SqlFences(earlier).enter("report", 5)


def test_many_transactions_write_in_the_order_of_their_fences(
    connect: Callable[..., Any], in_thread: Callable[..., Any]
) -> None:
    def writer(seed: int) -> int:
        chance, refused, connection = random.Random(seed), 0, connect()
        for step in range(40):
            fence = step * 4 + chance.randrange(40)
            try:
                with connection.transaction():
                    SqlFences(connection).enter("report", fence)
                    connection.execute("INSERT INTO report (line) VALUES (%s)", [f"{fence:04}"])
            except FencedOff:
                refused += 1
        return refused

    refused = sum(each.result() for each in [in_thread(writer, seed) for seed in range(6)])
    written = lines(connect())
    assert len(written) + refused == 240
    assert written == sorted(written)


def test_a_connection_that_commits_by_itself_is_refused(connect: Callable[..., Any]) -> None:
    connection = connect(autocommit=True)
    with pytest.raises(holdfast.BadInput, match="one transaction"):
        SqlFences(connection).enter("report", 7)
    with connection.transaction():
        SqlFences(connection).enter("report", 7)


def test_in_a_pipeline(connect: Callable[..., Any]) -> None:
    connection = connect()
    with connection.pipeline():
        SqlFences(connection).enter("report", 7)
        with pytest.raises(FencedOff):
            SqlFences(connection).enter("report", 5)


def test_rows_and_tables_of_ones_own(connect: Callable[..., Any]) -> None:
    from psycopg.rows import dict_row

    connection = connect(row_factory=dict_row)
    connection.execute("CREATE SCHEMA app")
    fences = SqlFences(connection, table="app.marks")
    fences.create_table()
    fences.create_table()
    fences.enter("report", 2**53 - 1)
    with pytest.raises(FencedOff) as caught:
        fences.enter("report", 2**53 - 2)
    assert caught.value.last == 2**53 - 1


def test_an_asyncio_connection_is_refused(postgres: Callable[..., Any]) -> None:
    import psycopg

    with pytest.raises(holdfast.BadInput, match="asyncio"):
        SqlFences(psycopg.AsyncConnection.__new__(psycopg.AsyncConnection))
