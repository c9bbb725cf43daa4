"""A node's memory: a small model of the server commands that the scripts use.

Only what the shipped Lua needs, and what it takes to get in its way (other types, a flush). Every
command here is compared with a real server, reply by reply, in the tests. Expiry follows the clock
that the store is given, in whole milliseconds, as servers do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import hiredis

Reply = int | bytes | None | hiredis.ReplyError


class Status(bytes):
    """A simple string such as OK: Lua sees it as a table, unlike other strings."""


OK = Status(b"OK")
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
SYNTAX = "ERR syntax error"
NOT_AN_INTEGER = "ERR value is not an integer or out of range"


@dataclass(slots=True)
class Entry:
    """A key's value, and when it ends in server milliseconds, if it does."""

    value: bytes | list[bytes]
    ends_ms: int | None = None


class Store:
    """Keys and values, under a clock."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._entries: dict[bytes, Entry] = {}
        self._commands: dict[bytes, Callable[..., Reply]] = {
            b"DEL": self._del,
            b"EXISTS": self._exists,
            b"FLUSHALL": self._flushall,
            b"GET": self._get,
            b"PEXPIRE": self._pexpire,
            b"PTTL": self._pttl,
            b"RPUSH": self._rpush,
            b"SET": self._set,
            b"TYPE": self._type,
        }

    def call(self, *words: bytes) -> Reply:
        """Execute one command. Errors are returned, as a connection would."""
        name, *arguments = words
        command = self._commands.get(name.upper())
        if command is None:
            raise NotImplementedError(f"the model has no command {name.decode()}")
        try:
            return command(*arguments)
        except TypeError:
            return hiredis.ReplyError(
                f"ERR wrong number of arguments for '{name.decode().lower()}' command"
            )

    def keys(self) -> list[bytes]:
        """List the keys that are alive."""
        return [key for key in list(self._entries) if self._entry(key) is not None]

    def value(self, key: bytes) -> bytes | None:
        """Return a string key's value, None if there is none."""
        entry = self._entry(key)
        return entry.value if entry is not None and isinstance(entry.value, bytes) else None

    def _entry(self, key: bytes) -> Entry | None:
        entry = self._entries.get(key)
        if entry is not None and entry.ends_ms is not None and self._now_ms() > entry.ends_ms:
            del self._entries[key]
            return None
        return entry

    # -- the commands, named as they are on the wire ----------------------------------------------

    def _get(self, key: bytes) -> Reply:
        entry = self._entry(key)
        if entry is None:
            return None
        return entry.value if isinstance(entry.value, bytes) else hiredis.ReplyError(WRONG_TYPE)

    def _set(self, key: bytes, value: bytes, *options: bytes) -> Reply:
        flags, ttl = set[bytes](), None
        words = iter(options)
        for word in words:  # syntax first, values after: as servers do
            if word.upper() in (b"NX", b"XX"):
                flags.add(word.upper())
            elif word.upper() == b"PX" and (ttl := next(words, None)) is not None:
                pass
            else:
                return hiredis.ReplyError(SYNTAX)
        if len(flags) > 1:
            return hiredis.ReplyError(SYNTAX)
        milliseconds = None if ttl is None else _integer(ttl)
        if ttl is not None and milliseconds is None:
            return hiredis.ReplyError(NOT_AN_INTEGER)
        if milliseconds is not None and milliseconds <= 0:
            return hiredis.ReplyError("ERR invalid expire time in 'set' command")
        exists = self._entry(key) is not None
        if (b"NX" in flags and exists) or (b"XX" in flags and not exists):
            return None
        ends_ms = None if milliseconds is None else self._now_ms() + milliseconds
        self._entries[key] = Entry(value, ends_ms)
        return OK

    def _del(self, key: bytes, *more: bytes) -> Reply:
        found = [each for each in (key, *more) if self._entry(each) is not None]
        for each in found:
            self._entries.pop(each, None)
        return len(set(found))

    def _exists(self, key: bytes) -> Reply:
        return int(self._entry(key) is not None)

    def _pexpire(self, key: bytes, ttl: bytes) -> Reply:
        milliseconds = _integer(ttl)
        if milliseconds is None:
            return hiredis.ReplyError(NOT_AN_INTEGER)
        entry = self._entry(key)
        if entry is None:
            return 0
        entry.ends_ms = self._now_ms() + milliseconds
        if milliseconds <= 0:
            del self._entries[key]
        return 1

    def _pttl(self, key: bytes) -> Reply:
        entry = self._entry(key)
        if entry is None:
            return -2
        return -1 if entry.ends_ms is None else entry.ends_ms - self._now_ms()

    def _type(self, key: bytes) -> Reply:
        entry = self._entry(key)
        if entry is None:
            return Status(b"none")
        return Status(b"string" if isinstance(entry.value, bytes) else b"list")

    def _rpush(self, key: bytes, value: bytes, *more: bytes) -> Reply:
        entry = self._entry(key)
        if entry is None:
            entry = self._entries[key] = Entry([])
        if isinstance(entry.value, bytes):
            return hiredis.ReplyError(WRONG_TYPE)
        entry.value += [value, *more]
        return len(entry.value)

    def _flushall(self) -> Reply:
        self._entries.clear()
        return OK


def _integer(text: bytes) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
