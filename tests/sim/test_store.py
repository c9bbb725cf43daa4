"""The model of the server, command by command and script by script, against a real one."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.embedded import ThrowawayNodes
from holdfast.testing.lua import machine
from holdfast.testing.store import Status, Store
from holdfast.wire.keys import NODE_KEY
from holdfast.wire.scripts import SCRIPTS

MARKER = NODE_KEY.encode()
EPOCH_US = 10**15
KEYS = [b"a", b"b"]
VALUES = [b"one", b"two", b""]
TTLS = [b"100000", b"1", b"0", b"-5", b"x", b"99999999"]

key = st.sampled_from(KEYS)
value = st.sampled_from(VALUES)
field = st.sampled_from([b"f", b"g"])
ttl = st.sampled_from(TTLS)
set_options = st.lists(
    st.one_of(
        st.sampled_from([(b"NX",), (b"XX",), (b"nx",), (b"GET",), (b"BAD",), (b"PX",)]),
        st.tuples(st.just(b"PX"), st.sampled_from([b"100000", b"0", b"-5", b"x"])),
    ),
    max_size=3,
).map(lambda groups: tuple(word for group in groups for word in group))

command = st.one_of(
    st.tuples(st.just(b"GET"), key),
    st.builds(lambda k, v, o: (b"SET", k, v, *o), key, value, set_options),
    st.tuples(st.just(b"DEL"), key),
    st.tuples(st.just(b"DEL"), key, key),
    st.tuples(st.just(b"EXISTS"), key),
    st.tuples(st.just(b"PEXPIRE"), key, st.sampled_from([b"100000", b"0", b"-5", b"x"])),
    st.tuples(st.just(b"PTTL"), key),
    st.tuples(st.just(b"TYPE"), key),
    st.tuples(st.just(b"RPUSH"), key, value),
    st.tuples(st.just(b"FLUSHALL")),
    st.tuples(st.just(b"HGET"), key, field),
    st.tuples(st.just(b"HMGET"), key, field, field),
    st.tuples(st.just(b"HGETALL"), key),
    st.tuples(st.just(b"HSET"), key, field, value),
    st.tuples(st.just(b"HSET"), key, field, value, field, value),
    st.tuples(st.just(b"HSETNX"), key, field, value),
    st.sampled_from([(b"GET",), (b"SET", b"a"), (b"DEL",), (b"PTTL",), (b"PEXPIRE", b"a")]),
    st.sampled_from([(b"HGET", b"a"), (b"HMGET", b"a"), (b"HSET", b"a", b"f"), (b"HGETALL",)]),
)


class Real:
    """A raw connection to a real server."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._reader = hiredis.Reader(notEnoughData=Ellipsis)

    def call(self, *words: bytes) -> Any:
        self._socket.sendall(hiredis.pack_command(words))
        while (reply := self._reader.gets()) is Ellipsis:
            self._reader.feed(self._socket.recv(65536))
        return reply

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def real() -> Iterator[Real]:
    with ThrowawayNodes(1) as nodes:
        connection = Real(str(nodes[0].socket))
        yield connection
        connection.close()


def same(ours: Any, theirs: Any) -> bool:
    """Compare replies: errors by their text, times within what passed meanwhile."""
    if isinstance(ours, hiredis.ReplyError):
        return isinstance(theirs, hiredis.ReplyError) and str(ours) == str(theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if (our_time := _time(ours)) is not None and (their_time := _time(theirs)) is not None:
        slack = 20_000_000 if our_time > EPOCH_US else 20_000
        return abs(our_time - their_time) <= slack
    return bool(ours == theirs)


def _time(value: Any) -> int | None:
    """Return a number that may be a time, in whatever unit."""
    if isinstance(value, bytes) and value.isdigit() and len(value) > 3:
        return int(value)
    return value if isinstance(value, int) and abs(value) > 1000 else None


@given(st.lists(command, max_size=25))
@settings(max_examples=300, deadline=None)
def test_every_command_answers_as_a_real_server_does(
    real: Real, commands: list[tuple[bytes, ...]]
) -> None:
    real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000_000)
    for words in commands:
        ours, theirs = store.call(*words), real.call(*words)
        assert same(ours, theirs), f"{words}: {ours!r}, really {theirs!r}"


tokens = st.sampled_from([b"mine", b"yours"])
max_ttl = st.sampled_from([b"0", b"60000"])
ahead = st.sampled_from([None, -1_000_000, 0, 1_000_000, 1_000_000_000])
late = st.sampled_from([None, None, -60_000, 60_000])
step = st.one_of(
    st.tuples(st.sampled_from(["request", "raise", "renew"]), key, tokens, max_ttl, ahead, late),
    st.tuples(st.just("release"), key, tokens, st.sampled_from([b"0", b"100000"])),
    st.tuples(st.sampled_from(["examine", "admit", "init", "drain", "suspect", "adopt"])),
    st.tuples(st.just("set"), key, tokens),
    st.tuples(st.just("list"), key, tokens),
    st.tuples(st.just("delete"), st.sampled_from([*KEYS, MARKER])),
)
TEXTS = {verb.value: script.text for verb, script in SCRIPTS.items()}
BY_HAND = {"set": b"SET", "list": b"RPUSH", "delete": b"DEL"}


@given(st.lists(step, max_size=20))
@settings(max_examples=200, deadline=None)
def test_every_script_answers_as_on_a_real_server(real: Real, steps: list[tuple[Any, ...]]) -> None:
    """Both see the same clock, and hear the same from INFO: there is one server to speak of."""
    real.call(b"FLUSHALL")
    store = Store(_now_us, lambda section: real.call(b"INFO", section.encode()).decode())
    for what, *rest in steps:
        if what in BY_HAND:
            words = (BY_HAND[what], *rest)
            ours, theirs = store.call(*words), real.call(*words)
        else:
            keys, argv = said(what, *rest)
            ours = machine().run(TEXTS[what], keys, argv, store)
            theirs = real.call(b"EVAL", TEXTS[what].encode(), b"%d" % len(keys), *keys, *argv)
            if what == "examine" and isinstance(theirs, list):  # then: how long ago, and uptime
                ours, theirs = ours[:4], theirs[:4]
        assert same(ours, theirs), f"{what} {rest}: {ours!r}, really {theirs!r}"
        for each in KEYS:
            assert same(store.call(b"GET", each), real.call(b"GET", each))
        ours, theirs = (_fields(where.call(b"HGETALL", MARKER)) for where in (store, real))
        assert ours.keys() == theirs.keys()
        assert all(same(ours[name], theirs[name]) for name in ours), f"{ours}, really {theirs}"


def said(what: str, *rest: Any) -> tuple[list[bytes], list[bytes]]:
    """Return the keys and arguments of what is said to a node."""
    if not rest:
        return [MARKER], [b"60000", b"1000000" if what == "suspect" else b"0", b"0", b"0"]
    lock, token, *rest = rest
    noted = lock + b":x:" + token
    if what == "release":
        return [lock, noted], [token, *rest]
    longest, ahead_us, late_ms = rest
    stamp = 0 if ahead_us is None else _now_us() + ahead_us
    not_after = 0 if late_ms is None else _now_us() // 1000 - late_ms
    keys = [lock, lock + b":f"] + [noted] * (what == "renew") + [MARKER]
    return keys, [b"50000", longest, b"0", token, b"%016d" % stamp, b"0", b"%013d" % not_after]


def _now_us() -> int:
    return time.time_ns() // 1000


def _fields(reply: Any) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else {}


CONVERSIONS = [
    "return 3.9", "return -3.9", "return true", "return false", "return nil", "return 'x'",
    "return {1, 2, nil, 4}", "return {1, 'x', {2, false}}", "return {err='MY error'}",
    "return {ok='fine'}", "return redis.pcall('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 12345678901234)", "return redis.call('GET', KEYS[1])",
    "return type(redis.call('GET', 'nothing'))", "return tonumber(ARGV[1]) + 1",
]  # fmt: skip


@pytest.mark.parametrize("text", CONVERSIONS)
def test_values_are_converted_as_a_real_server_does(real: Real, text: str) -> None:
    real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000_000)
    ours = machine().run(text, [b"k"], [b"41"], store)
    theirs = real.call(b"EVAL", text.encode(), b"1", b"k", b"41")
    assert same(ours, theirs), f"{ours!r}, really {theirs!r}"


@pytest.mark.parametrize("text", ["x = 1", "return undefined_name"])
def test_global_variables_are_refused_as_on_a_real_server(real: Real, text: str) -> None:
    assert isinstance(machine().run(text, [], [], Store(lambda: 0)), hiredis.ReplyError)
    assert isinstance(real.call(b"EVAL", text.encode(), b"0"), hiredis.ReplyError)


def test_keys_end_with_their_time() -> None:
    now = 1000
    store = Store(lambda: now * 1000)
    store.call(b"SET", b"a", b"x", b"PX", b"50")
    now = 1050
    assert store.call(b"PTTL", b"a") == 0
    assert store.call(b"GET", b"a") == b"x"
    now = 1051
    assert store.call(b"GET", b"a") is None
    assert store.call(b"PTTL", b"a") == -2
    assert store.keys() == []


def test_what_a_clock_ended_is_gone_when_it_is_set_back() -> None:
    now = 1000
    store = Store(lambda: now * 1000)
    store.call(b"SET", b"a", b"x", b"PX", b"50")
    store.call(b"SET", b"b", b"x", b"PX", b"5000")
    copy = store.copy()
    now = 2000
    store.purge()
    now = 1000
    assert store.keys() == [b"b"]
    assert copy.keys() == [b"a", b"b"]


def test_a_copy_is_on_its_own() -> None:
    store = Store(lambda: 0)
    store.call(b"HSET", b"h", b"f", b"x")
    copy = store.copy()
    store.call(b"HSET", b"h", b"f", b"y")
    assert copy.call(b"HGET", b"h", b"f") == b"x"


def test_time_is_the_clock_in_two_parts() -> None:
    assert Store(lambda: 1_700_000_000_123_456).call(b"TIME") == [b"1700000000", b"123456"]


def test_statuses_are_told_from_strings() -> None:
    assert isinstance(Store(lambda: 0).call(b"SET", b"a", b"x"), Status)


def test_an_unknown_command_is_an_error_of_the_model() -> None:
    with pytest.raises(NotImplementedError):
        Store(lambda: 0).call(b"LPUSH", b"a", b"x")
