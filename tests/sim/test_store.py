"""The model of the server, command by command and script by script, against a real one."""

import socket
from collections.abc import Iterator
from typing import Any

import hiredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.embedded import ThrowawayNodes
from holdfast.testing.lua import machine
from holdfast.testing.store import Status, Store
from holdfast.wire.scripts import EXCLUSIVE

KEYS = [b"a", b"b"]
VALUES = [b"one", b"two", b""]
TTLS = [b"100000", b"1", b"0", b"-5", b"x", b"99999999"]

key = st.sampled_from(KEYS)
value = st.sampled_from(VALUES)
ttl = st.sampled_from(TTLS)
set_options = st.lists(
    st.one_of(
        st.sampled_from([(b"NX",), (b"XX",), (b"nx",), (b"BAD",), (b"PX",)]),
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
    st.sampled_from([(b"GET",), (b"SET", b"a"), (b"DEL",), (b"PTTL",), (b"PEXPIRE", b"a")]),
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
    """Compare replies: errors by their text, remaining times within what passed meanwhile."""
    if isinstance(ours, hiredis.ReplyError):
        return isinstance(theirs, hiredis.ReplyError) and str(ours) == str(theirs)
    if isinstance(ours, int) and isinstance(theirs, int) and ours > 1000:
        return 0 <= ours - theirs <= 20_000
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


@given(st.lists(command, max_size=25))
@settings(max_examples=300, deadline=None)
def test_every_command_answers_as_a_real_server_does(
    real: Real, commands: list[tuple[bytes, ...]]
) -> None:
    real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000)
    for words in commands:
        ours, theirs = store.call(*words), real.call(*words)
        assert same(ours, theirs), f"{words}: {ours!r}, really {theirs!r}"


tokens = st.sampled_from([b"mine", b"yours"])
step = st.one_of(
    st.tuples(st.just("request"), key, tokens, st.just(b"100000")),
    st.tuples(st.just("renew"), key, tokens, st.just(b"90000")),
    st.tuples(st.just("release"), key, tokens),
    st.tuples(st.just("set"), key, tokens),
    st.tuples(st.just("list"), key, tokens),
    st.tuples(st.just("delete"), key),
)
SCRIPTS = {verb.value: script.text for verb, script in EXCLUSIVE.items()}
BY_HAND = {"set": b"SET", "list": b"RPUSH", "delete": b"DEL"}


@given(st.lists(step, max_size=20))
@settings(max_examples=300, deadline=None)
def test_every_script_answers_as_on_a_real_server(real: Real, steps: list[tuple[Any, ...]]) -> None:
    real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000)
    for what, where, *rest in steps:
        if what in BY_HAND:
            words = (BY_HAND[what], where, *rest)
            ours, theirs = store.call(*words), real.call(*words)
        else:
            text = SCRIPTS[what]
            ours = machine().run(text, [where], rest, store)
            theirs = real.call(b"EVAL", text.encode(), b"1", where, *rest)
        assert same(ours, theirs), f"{what} {where!r}: {ours!r}, really {theirs!r}"
        assert same(store.call(b"GET", where), real.call(b"GET", where))


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
    store = Store(lambda: 1_000_000)
    ours = machine().run(text, [b"k"], [b"41"], store)
    theirs = real.call(b"EVAL", text.encode(), b"1", b"k", b"41")
    assert same(ours, theirs), f"{ours!r}, really {theirs!r}"


@pytest.mark.parametrize("text", ["x = 1", "return undefined_name"])
def test_global_variables_are_refused_as_on_a_real_server(real: Real, text: str) -> None:
    assert isinstance(machine().run(text, [], [], Store(lambda: 0)), hiredis.ReplyError)
    assert isinstance(real.call(b"EVAL", text.encode(), b"0"), hiredis.ReplyError)


def test_keys_end_with_their_time() -> None:
    now = 1000
    store = Store(lambda: now)
    store.call(b"SET", b"a", b"x", b"PX", b"50")
    now = 1050
    assert store.call(b"PTTL", b"a") == 0
    assert store.call(b"GET", b"a") == b"x"
    now = 1051
    assert store.call(b"GET", b"a") is None
    assert store.call(b"PTTL", b"a") == -2
    assert store.keys() == []


def test_statuses_are_told_from_strings() -> None:
    assert isinstance(Store(lambda: 0).call(b"SET", b"a", b"x"), Status)


def test_an_unknown_command_is_an_error_of_the_model() -> None:
    with pytest.raises(NotImplementedError):
        Store(lambda: 0).call(b"LPUSH", b"a", b"x")
