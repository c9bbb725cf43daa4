"""Fences of resources in a database, in the user's own transaction.

A table has a row for each resource, with the largest fence seen. Entering is one conditional
upsert, which locks that row until the transaction ends: PostgreSQL waits for whoever is at it and
then looks at what they have committed (READ COMMITTED), or fails with a serialisation error (the
stricter levels); SQLite has one writer at a time. So the check and whatever the transaction writes
are one step, and an `enter` waits for the writes that were let in before it.

Needs `INSERT ... ON CONFLICT`: PostgreSQL, SQLite since 3.24, and those that speak like them.
"""

import inspect
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Protocol

from ..errors import BadInput, FencedOff
from . import fence as fences
from .paramstyle import bind, known, paramstyle_of

TABLE = "holdfast_fences"

_CREATE = "CREATE TABLE IF NOT EXISTS {table} (resource text PRIMARY KEY, fence bigint NOT NULL)"
_ENTER = (
    "INSERT INTO {table} AS kept (resource, fence) VALUES ({{resource}}, {{fence}})"
    " ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence"
    " WHERE kept.fence <= excluded.fence"
)
_LAST = "SELECT fence FROM {table} WHERE resource = {{resource}}"

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)?", re.ASCII)

_IDLE = 0
"""What psycopg's transaction_status is outside of a transaction (libpq's PQTRANS_IDLE)."""


class Connection(Protocol):
    """A connection of any DB-API 2 driver, as far as fences are concerned."""

    def cursor(self) -> Any:
        """Return a new cursor."""


class SqlFences:
    """Check fences in a database, with a DB-API 2 connection and inside its transaction.

    It never commits and never rolls back: the check counts when the user's transaction does. Make
    one for a connection whenever you like, it costs nothing. `paramstyle` is found out where the
    connection's class is the driver's own; say it for wrapped connections. `table` may have a
    schema's name in front.
    """

    def __init__(
        self, connection: Connection, *, paramstyle: str | None = None, table: str = TABLE
    ) -> None:
        if not hasattr(connection, "cursor"):
            raise BadInput(f"{type(connection).__name__} is no DB-API 2 connection")
        if inspect.iscoroutinefunction(getattr(connection, "commit", None)):
            # Otherwise a refusal would be a coroutine that nobody looks at.
            raise BadInput(f"{type(connection).__name__} is an asyncio connection")
        if not _IDENTIFIER.fullmatch(table):
            raise BadInput(f"{table!r} is not a table's name, or needs quotes")
        self._connection = connection
        self._style = paramstyle_of(connection) if paramstyle is None else known(paramstyle)
        self._table = table

    def create_table(self) -> None:
        """Create the table if it is not there, in the user's transaction."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(_CREATE.format(table=self._table))

    def enter(self, resource: str, fence: int) -> None:
        """Write your fence before you read: accept iff fence >= last, until the transaction ends.

        Call it first in every transaction that reads or writes the resource. Then no transaction
        with a lower fence changes it any more, and none is under way. Waits for the transaction
        that has entered the same resource, if there is one. Raises `FencedOff` if the resource has
        seen a later fence: roll back. Raises `BadInput` if the driver says that the connection
        commits by itself after every statement: then the check would not cover the write.
        """
        fences.check(resource, fence)
        with closing(self._connection.cursor()) as cursor:
            self._execute(cursor, _ENTER, resource=resource, fence=fence)
            if cursor.rowcount != 1:  # refused, or the driver does not count
                last = self._last(cursor, resource)
                if last > fence:
                    raise FencedOff(resource, fence, last)
        if _is_idle(self._connection):
            raise BadInput(
                "the check and the write must be one transaction, and none is open;"
                " hint: begin one, or turn autocommit off"
            )

    def _last(self, cursor: Any, resource: str) -> int:
        """Return the resource's last fence; the upsert has locked its row, refused or not."""
        self._execute(cursor, _LAST, resource=resource)
        row = cursor.fetchone()
        (last,) = row.values() if isinstance(row, Mapping) else row
        return int(last)

    def _execute(self, cursor: Any, template: str, **values: object) -> None:
        cursor.execute(*bind(self._style, template.format(table=self._table), values))


def _is_idle(connection: Any) -> bool:
    """True if the driver says that no transaction is open; sqlite3, psycopg and psycopg2 do."""
    if getattr(connection, "in_transaction", None) is False:
        return True
    status = getattr(getattr(connection, "info", None), "transaction_status", None)
    return bool(status == _IDLE)
