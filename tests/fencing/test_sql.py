"""Fences in a database, with SQLite: what any DB-API driver gets."""

import contextlib
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.fencing import FencedOff, SqlFences
from holdfast.fencing.paramstyle import bind

TOP = 2**53 - 1


@pytest.fixture
def connect(database: Path, cleanup: contextlib.ExitStack) -> Callable[..., sqlite3.Connection]:
    """Return what connects to a database that has the table and a resource, `report`."""

    def make(**options: Any) -> sqlite3.Connection:
        options = {"timeout": 20, "check_same_thread": False} | options
        return cleanup.enter_context(contextlib.closing(sqlite3.connect(database, **options)))

    with make() as connection:
        SqlFences(connection).create_table()
        connection.execute("CREATE TABLE report (line text)")
    return make


def lines(connection: sqlite3.Connection) -> list[str]:
    return [line for (line,) in connection.execute("SELECT line FROM report ORDER BY rowid")]


def test_a_lower_fence_is_refused(connect: Callable[..., sqlite3.Connection]) -> None:
    connection = connect()
    fences = SqlFences(connection)
    for fence in (5, 5, 7, TOP - 1, TOP):
        fences.enter("report", fence)
    with pytest.raises(FencedOff) as caught:
        fences.enter("report", TOP - 1)
    error = caught.value
    assert (error.resource, error.fence, error.last) == ("report", TOP - 1, TOP)
    fences.enter("other", 1)


def test_it_counts_when_the_users_transaction_does(
    connect: Callable[..., sqlite3.Connection],
) -> None:
    one, other = connect(), connect()
    SqlFences(one).enter("report", 7)
    one.rollback()
    with other:
        SqlFences(other).enter("report", 5)
        other.execute("INSERT INTO report VALUES ('by 5')")
    with one:
        SqlFences(one).enter("report", 7)
        assert lines(one) == ["by 5"]
    with pytest.raises(FencedOff), other:
        SqlFences(other).enter("report", 5)
    assert not other.in_transaction


def test_the_later_one_first_and_the_other_waits_and_is_refused(
    connect: Callable[..., sqlite3.Connection], in_thread: Callable[..., Any]
) -> None:
    later, earlier = connect(), connect()
    SqlFences(later).enter("report", 7)
    begun = in_thread(SqlFences(earlier).enter, "report", 5)
    later.execute("INSERT INTO report VALUES ('by 7')")
    assert not begun.done()
    later.commit()
    with pytest.raises(FencedOff):
        begun.result()
    earlier.rollback()


def test_many_threads_write_in_the_order_of_their_fences(
    connect: Callable[..., sqlite3.Connection], in_thread: Callable[..., Any]
) -> None:
    def writer(seed: int) -> int:
        chance, refused = random.Random(seed), 0
        connection = connect()
        for step in range(25):
            try:
                with connection:
                    SqlFences(connection).enter("report", step * 4 + chance.randrange(40))
                    last = connection.execute("SELECT fence FROM holdfast_fences").fetchone()[0]
                    connection.execute("INSERT INTO report VALUES (?)", (f"{last:04}",))
            except FencedOff:
                refused += 1
        return refused

    refused = sum(each.result() for each in [in_thread(writer, seed) for seed in range(4)])
    written = lines(connect())
    assert len(written) + refused == 100
    assert written == sorted(written)


def test_a_fence_in_a_row_of_ones_own(connect: Callable[..., sqlite3.Connection]) -> None:
    """As the guide has it."""
    connection = connect()
    connection.execute("CREATE TABLE account (id integer PRIMARY KEY, total int, fence bigint)")
    connection.execute("INSERT INTO account VALUES (1, 10, 0)")
    update = "UPDATE account SET total = ?, fence = ? WHERE id = 1 AND fence <= ?"
    assert connection.execute(update, (11, 7, 7)).rowcount == 1
    assert connection.execute(update, (12, 5, 5)).rowcount == 0


# -- drivers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", ["qmark", "named", None])
def test_how_parameters_are_written(
    connect: Callable[..., sqlite3.Connection], style: str | None
) -> None:
    fences = SqlFences(connect(), paramstyle=style)
    fences.enter("it's", 7)
    with pytest.raises(FencedOff):
        fences.enter("it's", 5)


@pytest.mark.parametrize(
    ("style", "statement", "parameters"),
    [
        ("qmark", "x ? y ?", (1, 2)),
        ("numeric", "x :1 y :2", (1, 2)),
        ("format", "x %s y %s", (1, 2)),
        ("named", "x :a y :b", {"a": 1, "b": 2}),
        ("pyformat", "x %(a)s y %(b)s", {"a": 1, "b": 2}),
    ],
)
def test_all_the_ways_of_pep_249(style: str, statement: str, parameters: object) -> None:
    assert bind(style, "x {a} y {b}", {"a": 1, "b": 2}) == (statement, parameters)


def test_a_subclass_of_the_drivers_connection(database: Path) -> None:
    class Own(sqlite3.Connection):
        pass

    with contextlib.closing(sqlite3.connect(database, factory=Own)) as connection:
        fences = SqlFences(connection, table="main.marks")
        fences.create_table()
        fences.enter("report", 7)
        assert connection.execute("SELECT * FROM marks").fetchall() == [("report", 7)]


@pytest.mark.parametrize(
    "factory", [sqlite3.Row, lambda cursor, row: {"fence": row[0]}], ids=["Row", "dict"]
)
def test_rows_of_any_kind(connect: Callable[..., sqlite3.Connection], factory: Any) -> None:
    connection = connect()
    connection.row_factory = factory
    SqlFences(connection).enter("report", 7)
    with pytest.raises(FencedOff) as caught:
        SqlFences(connection).enter("report", 5)
    assert caught.value.last == 7


class Uncounted:
    """A connection whose cursors do not count, as PEP 249 allows."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def cursor(self) -> Any:
        return UncountedCursor(self._connection)


class UncountedCursor(sqlite3.Cursor):
    rowcount = -1


def test_a_driver_that_does_not_count(connect: Callable[..., sqlite3.Connection]) -> None:
    fences = SqlFences(Uncounted(connect()), paramstyle="qmark")
    fences.enter("report", 5)
    fences.enter("report", 7)
    with pytest.raises(FencedOff):
        fences.enter("report", 5)


def test_a_connection_that_commits_by_itself_is_refused(
    connect: Callable[..., sqlite3.Connection],
) -> None:
    connection = connect(isolation_level=None)
    with pytest.raises(holdfast.BadInput, match="one transaction"):
        SqlFences(connection).enter("report", 7)
    connection.execute("BEGIN")
    SqlFences(connection).enter("report", 7)


def test_what_is_no_connection(connect: Callable[..., sqlite3.Connection]) -> None:
    class Asynchronous:
        def cursor(self) -> None: ...
        async def commit(self) -> None: ...

    with pytest.raises(holdfast.BadInput, match="no DB-API"):
        SqlFences("postgresql://")
    with pytest.raises(holdfast.BadInput, match="asyncio"):
        SqlFences(Asynchronous())
    with pytest.raises(holdfast.BadInput, match="hint: paramstyle="):
        SqlFences(Uncounted(connect()))
    with pytest.raises(holdfast.BadInput, match="none of"):
        SqlFences(connect(), paramstyle="dollar")


@pytest.mark.parametrize("table", ["", "a b", "a;b", "a.b.c", "1a", 'a"b', "{resource}", "ä"])
def test_what_is_no_table(connect: Callable[..., sqlite3.Connection], table: str) -> None:
    with pytest.raises(holdfast.BadInput, match="table"):
        SqlFences(connect(), table=table)


@pytest.mark.parametrize("fence", [-1, 2**53, None, "5"])
def test_what_is_no_fence(connect: Callable[..., sqlite3.Connection], fence: Any) -> None:
    connection = connect()
    with pytest.raises(holdfast.BadInput):
        SqlFences(connection).enter("report", fence)
    assert not connection.in_transaction
