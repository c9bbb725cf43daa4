"""A node's memory: a small model of the server commands that the scripts use.

Only what the shipped Lua needs, and what it takes to get in its way (other types, a flush). Every
command here is compared with a real server, reply by reply, in the tests. Expiry follows the clock
that the store is given, in whole milliseconds, as servers do; that clock shows microseconds.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import hiredis

from .zsets import SortedSet, read_score

Reply = int | bytes | None | hiredis.ReplyError | list[bytes | None]


class Status(bytes):
    """A simple string such as OK: Lua sees it as a table, unlike other strings."""


OK = Status(b"OK")
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
SYNTAX = "ERR syntax error"
NOT_AN_INTEGER = "ERR value is not an integer or out of range"
NOT_A_FLOAT = "ERR value is not a valid float"

_ZADD_OPTIONS = {b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"}
_ZRANGE_OPTIONS = {b"BYSCORE", b"BYLEX", b"REV", b"LIMIT"}


def nobody_listens(_: bytes, __: bytes) -> int:
    """Receive no message: what servers do with one that nobody has subscribed to."""
    return 0


@dataclass(slots=True)
class Entry:
    """A key's value, and when it ends in server milliseconds, if it does."""

    value: bytes | list[bytes] | dict[bytes, bytes] | SortedSet
    ends_ms: int | None = None


class Store:
    """Keys and values, under a clock."""

    def __init__(
        self,
        now_us: Callable[[], int],
        info: Callable[[str], str] = lambda _: "",
        on_publish: Callable[[bytes, bytes], int] = nobody_listens,
    ) -> None:
        """Be empty. `info` is what the server says of itself, by section.

        `on_publish` gets a channel and a payload, in the midst of a script, and returns how many
        have received it. All three are the server's, not the memory's: copies keep them.
        """
        self._now_us = now_us
        self._info = info
        self._on_publish = on_publish
        self._entries: dict[bytes, Entry] = {}
        self._commands: dict[bytes, Callable[..., Reply]] = {
            b"DEL": self._del,
            b"EXISTS": self._exists,
            b"FLUSHALL": self._flushall,
            b"GET": self._get,
            b"HGET": self._hget,
            b"HGETALL": self._hgetall,
            b"HMGET": self._hmget,
            b"HSET": self._hset,
            b"HSETNX": self._hsetnx,
            b"INFO": self._info_,
            b"PEXPIRE": self._pexpire,
            b"PTTL": self._pttl,
            b"PUBLISH": self._publish,
            b"RPUSH": self._rpush,
            b"SET": self._set,
            b"TIME": self._time,
            b"TYPE": self._type,
            b"ZADD": self._zadd,
            b"ZCARD": self._zcard,
            b"ZRANGE": self._zrange,
            b"ZRANK": self._zrank,
            b"ZREM": self._zrem,
            b"ZSCORE": self._zscore,
        }

    def call(self, *words: bytes) -> Reply:
        """Execute one command. Errors are returned, as a connection would."""
        name, *arguments = words
        command = self._commands.get(name.upper())
        if command is None:
            raise NotImplementedError(f"the model has no command {name.decode()}")
        try:
            return command(*arguments)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from within: no matter of how many arguments there were
            return _miscounted(name)

    def keys(self) -> list[bytes]:
        """List the keys that are alive."""
        return [key for key in list(self._entries) if self._entry(key) is not None]

    def value(self, key: bytes) -> bytes | None:
        """Return a string key's value, None if there is none."""
        entry = self._entry(key)
        return entry.value if entry is not None and isinstance(entry.value, bytes) else None

    def values(self) -> list[bytes]:
        """List the values of all string keys."""
        return [value for key in self.keys() if (value := self.value(key)) is not None]

    def scores(self, key: bytes) -> dict[bytes, int]:
        """Return a sorted set's members and their scores, in order."""
        ranked = self._sorted(key)
        return {} if ranked is None else {each: score for score, each in ranked.range(0, -1)}

    def members(self) -> list[bytes]:
        """List the members of all sorted sets."""
        return [member for key in self.keys() for member in self.scores(key)]

    def copy(self) -> "Store":
        """Return a store with the same contents: a backup, or a replica."""
        other = Store(self._now_us, self._info, self._on_publish)
        other._entries = {
            key: Entry(copy(entry.value), entry.ends_ms) for key, entry in self._entries.items()
        }
        return other

    def purge(self) -> None:
        """Delete whatever has ended, as servers do by and by. It matters before a clock is set."""
        for key in list(self._entries):
            self._entry(key)

    def _now_ms(self) -> int:
        return self._now_us() // 1000

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
            if word.upper() in (b"NX", b"XX", b"GET"):
                flags.add(word.upper())
            elif word.upper() == b"PX" and (ttl := next(words, None)) is not None:
                pass
            else:
                return hiredis.ReplyError(SYNTAX)
        if {b"NX", b"XX"} <= flags:
            return hiredis.ReplyError(SYNTAX)
        milliseconds = None if ttl is None else _integer(ttl)
        if ttl is not None and milliseconds is None:
            return hiredis.ReplyError(NOT_AN_INTEGER)
        if milliseconds is not None and milliseconds <= 0:
            return hiredis.ReplyError("ERR invalid expire time in 'set' command")
        exists = self._entry(key) is not None
        before = self._get(key) if b"GET" in flags else None
        if isinstance(before, hiredis.ReplyError):
            return before
        if (b"NX" in flags and exists) or (b"XX" in flags and not exists):
            return before
        ends_ms = None if milliseconds is None else self._now_ms() + milliseconds
        self._entries[key] = Entry(value, ends_ms)
        return before if b"GET" in flags else OK

    def _del(self, key: bytes, *more: bytes) -> Reply:
        found = [each for each in (key, *more) if self._entry(each) is not None]
        for each in found:
            self._entries.pop(each, None)
        return len(set(found))

    def _exists(self, key: bytes, *more: bytes) -> Reply:
        return sum(self._entry(each) is not None for each in (key, *more))

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
        kinds = {bytes: b"string", dict: b"hash", list: b"list", SortedSet: b"zset"}
        return Status(kinds[type(entry.value)])

    def _rpush(self, key: bytes, value: bytes, *more: bytes) -> Reply:
        entry = self._entry(key)
        if entry is None:
            entry = self._entries[key] = Entry([])
        if not isinstance(entry.value, list):
            return hiredis.ReplyError(WRONG_TYPE)
        entry.value += [value, *more]
        return len(entry.value)

    # -- hashes -----------------------------------------------------------------------------------

    def _hash(self, key: bytes) -> dict[bytes, bytes] | None:
        """Return a key's hash, an empty one if there is none, None if it is something else."""
        entry = self._entry(key)
        if entry is None:
            return {}
        return entry.value if isinstance(entry.value, dict) else None

    def _hget(self, key: bytes, field: bytes) -> Reply:
        found = self._hash(key)
        return hiredis.ReplyError(WRONG_TYPE) if found is None else found.get(field)

    def _hmget(self, key: bytes, field: bytes, *more: bytes) -> Reply:
        found = self._hash(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        return [found.get(each) for each in (field, *more)]

    def _hgetall(self, key: bytes) -> Reply:
        found = self._hash(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        return [word for pair in found.items() for word in pair]

    def _hset(self, key: bytes, field: bytes, value: bytes, *more: bytes) -> Reply:
        if len(more) % 2:
            return _miscounted(b"HSET")
        found = self._hash(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        before, words = len(found), (field, value, *more)
        found.update(zip(words[::2], words[1::2], strict=True))
        if self._entry(key) is None:
            self._entries[key] = Entry(found)
        return len(found) - before

    def _hsetnx(self, key: bytes, field: bytes, value: bytes) -> Reply:
        found = self._hash(key)
        if found is not None and field in found:
            return 0
        return self._hset(key, field, value)

    # -- sorted sets ------------------------------------------------------------------------------

    def _sorted(self, key: bytes) -> SortedSet | None:
        """Return a key's sorted set, an empty one if there is none, None if it is another type."""
        entry = self._entry(key)
        if entry is None:
            return SortedSet()
        return entry.value if isinstance(entry.value, SortedSet) else None

    def _zadd(self, key: bytes, score: bytes, member: bytes, *more: bytes) -> Reply:
        _refuse(_ZADD_OPTIONS, (score,))
        if len(more) % 2:
            return hiredis.ReplyError(SYNTAX)
        scores, members = [], (member, *more[1::2])
        for text in (score, *more[::2]):  # all of them before the key is looked at, as servers do
            if (number := read_score(text)) is None:
                return hiredis.ReplyError(NOT_A_FLOAT)
            scores.append(number)
        found = self._sorted(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        if not found:
            self._entries[key] = Entry(found)
        return sum(map(found.put, members, scores))

    def _zrem(self, key: bytes, member: bytes, *more: bytes) -> Reply:
        found = self._sorted(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        removed = sum(found.remove(each) for each in (member, *more))
        if not found:
            self._entries.pop(key, None)
        return removed

    def _zcard(self, key: bytes) -> Reply:
        found = self._sorted(key)
        return hiredis.ReplyError(WRONG_TYPE) if found is None else len(found)

    def _zscore(self, key: bytes, member: bytes) -> Reply:
        found = self._sorted(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        score = found.score(member)
        return None if score is None else b"%d" % score

    def _zrank(self, key: bytes, member: bytes) -> Reply:
        found = self._sorted(key)
        return hiredis.ReplyError(WRONG_TYPE) if found is None else found.rank(member)

    def _zrange(self, key: bytes, start: bytes, stop: bytes, *options: bytes) -> Reply:
        _refuse(_ZRANGE_OPTIONS, options)
        if any(word.upper() != b"WITHSCORES" for word in options):
            return hiredis.ReplyError(SYNTAX)
        first, last = _integer(start), _integer(stop)
        if first is None or last is None:
            return hiredis.ReplyError(NOT_AN_INTEGER)
        found = self._sorted(key)
        if found is None:
            return hiredis.ReplyError(WRONG_TYPE)
        if not options:
            return [member for _, member in found.range(first, last)]
        return [
            word for score, member in found.range(first, last) for word in (member, b"%d" % score)
        ]

    # -- the server itself ------------------------------------------------------------------------

    def _time(self) -> Reply:
        seconds, rest = divmod(self._now_us(), 1_000_000)
        return [b"%d" % seconds, b"%d" % rest]

    def _info_(self, section: bytes) -> Reply:
        return self._info(section.decode()).encode()

    def _publish(self, channel: bytes, payload: bytes) -> Reply:
        return self._on_publish(channel, payload)

    def _flushall(self) -> Reply:
        self._entries.clear()
        return OK


def _integer(text: bytes) -> int | None:
    """Read a number of 64 bits that is written as servers would: no sign or zero too many."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if b"%d" % number == text and -(2**63) <= number < 2**63 else None


def _refuse(options: set[bytes], words: tuple[bytes, ...]) -> None:
    for word in words:
        if word.upper() in options:
            raise NotImplementedError(f"the model has no option {word.decode()}")


def _miscounted(name: bytes) -> hiredis.ReplyError:
    return hiredis.ReplyError(
        f"ERR wrong number of arguments for '{name.decode().lower()}' command"
    )
