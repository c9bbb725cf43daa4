"""Running the shipped Lua over a store, under Redis' own conversion rules (Lua 5.1, by lupa)."""

import os
import threading
from functools import lru_cache
from typing import Any

import hiredis

try:
    from lupa import lua51
except ImportError as error:
    raise ImportError(
        "holdfast.testing runs the Lua scripts, and lupa is not installed;"
        ' hint: pip install "holdfast[testing]"'
    ) from error

from .store import Reply, Status, Store

_HARNESS = b"""
local pcall_, strict = ...
redis = {}
function redis.pcall(...) return pcall_(...) end
function redis.call(...)
  local reply = pcall_(...)
  if type(reply) == 'table' and reply.err then error(reply, 0) end
  return reply
end
-- Servers refuse global variables: a script must not leave anything behind.
setmetatable(_G, {
  __newindex = function(_, name) error('global variable ' .. tostring(name), 2) end,
  __index = function(_, name) error('undefined global ' .. tostring(name), 2) end,
})
"""


class Machine:
    """A Lua interpreter that can run scripts over any store, one at a time, for all threads."""

    def __init__(self) -> None:
        self._running = threading.RLock()
        self._lua = lua51.LuaRuntime(encoding=None, unpack_returned_tuples=True)
        self._store: Store | None = None
        self._lua.execute(_HARNESS, self._pcall)

    @lru_cache(maxsize=256)  # noqa: B019  # there is one machine per process, see `machine()`
    def _compile(self, text: str) -> Any:
        return self._lua.eval(b"function(KEYS, ARGV)\n" + text.encode() + b"\nend")

    def run(self, text: str, keys: list[bytes], argv: list[bytes], store: Store) -> Any:
        """Run a script; its reply as a connection would give it."""
        with self._running:
            function = self._compile(text)
            before, self._store = self._store, store  # a signal handler may come in between
            try:
                return _from_lua(function(self._lua.table(*keys), self._lua.table(*argv)))
            except lua51.LuaError as error:
                return hiredis.ReplyError(f"ERR {error}")
            finally:
                self._store = before

    def _pcall(self, *words: Any) -> Any:
        assert self._store is not None
        return self._to_lua(self._store.call(*(_word(word) for word in words)))

    def _to_lua(self, reply: Reply) -> Any:
        match reply:
            case None:
                return False
            case hiredis.ReplyError():
                return self._lua.table_from({b"err": str(reply).encode()})
            case Status():
                return self._lua.table_from({b"ok": bytes(reply)})
            case list():
                return self._lua.table(*(False if item is None else item for item in reply))
        return reply


def _word(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b"%.17g" % value


def _from_lua(value: Any) -> Any:
    """Convert a script's result: numbers lose their fraction, an array ends at its first nil."""
    if value is None or value is False:
        return None
    if value is True:
        return 1
    if isinstance(value, int | float):
        return int(value)
    if isinstance(value, bytes):
        return value
    if value[b"err"] is not None:
        return hiredis.ReplyError(value[b"err"].decode())
    if value[b"ok"] is not None:
        return Status(value[b"ok"])
    items: list[Any] = []
    while (item := value[len(items) + 1]) is not None:
        items.append(_from_lua(item))
    return items


@lru_cache(maxsize=1)
def machine() -> Machine:
    """Return the interpreter of this process: scripts are compiled once for all worlds."""
    return Machine()


if hasattr(os, "register_at_fork"):
    # Another thread of the parent may have been in the midst of a script.
    os.register_at_fork(after_in_child=machine.cache_clear)
