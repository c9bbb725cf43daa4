"""The model of the server, command by command, against a real one."""

from typing import Any

import hiredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from truth import Real, equal, same

from holdfast.testing.lua import machine
from holdfast.testing.server import Server
from holdfast.testing.store import Status, Store

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

SCORES = [b"0", b"1", b"1", b"007", b"-3", b"+5", b"2.0", b"1e3", b"1.7672256001235e+15"]
LARGE = [b"1767225600000000", b"1767225600000001", b"%d" % 2**53, b"%d" % (2**53 + 1)]
BAD_SCORES = [b"x", b"", b"nan", b" 1", b"1 ", b"1_0", b"1e", b"--1"]
RANKS = [b"0", b"1", b"2", b"5", b"-1", b"-2", b"-4", b"-9", b"9223372036854775807"]
BAD_RANKS = [b"x", b"", b"+1", b"01", b"-0", b"1.5", b"1_0", b" 1", b"9223372036854775808"]

member = st.sampled_from([b"m", b"n", b"M", b"mm", b"", b"\x00", b"\xff"])
score = st.sampled_from(SCORES * 2 + LARGE * 2 + BAD_SCORES)
rank = st.sampled_from(RANKS * 4 + BAD_RANKS)
range_options = st.sampled_from(
    [(), (), (b"WITHSCORES",), (b"withscores",), (b"WITHSCORES", b"WITHSCORES"), (b"BAD",)]
)
of_sorted_sets = st.one_of(
    st.tuples(st.just(b"ZADD"), key, score, member),
    st.tuples(st.just(b"ZADD"), key, st.sampled_from(SCORES + LARGE), member),
    st.tuples(st.just(b"ZADD"), key, score, member, score, member),
    st.tuples(st.just(b"ZADD"), key, score, member, score),
    st.tuples(st.just(b"ZREM"), key, member),
    st.tuples(st.just(b"ZREM"), key, member, member, member),
    st.tuples(st.just(b"ZSCORE"), key, member),
    st.tuples(st.just(b"ZRANK"), key, member),
    st.tuples(st.just(b"ZCARD"), key),
    st.builds(lambda k, i, j, o: (b"ZRANGE", k, i, j, *o), key, rank, rank, range_options),
)

command = st.one_of(
    of_sorted_sets,
    st.tuples(st.just(b"GET"), key),
    st.builds(lambda k, v, o: (b"SET", k, v, *o), key, value, set_options),
    st.tuples(st.just(b"DEL"), key),
    st.tuples(st.just(b"DEL"), key, key),
    st.tuples(st.just(b"EXISTS"), key),
    st.tuples(st.just(b"EXISTS"), key, key),
    st.tuples(st.just(b"PEXPIRE"), key, st.sampled_from([b"100000", b"0", b"-5", b"x", b"+1"])),
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
    st.tuples(st.just(b"PUBLISH"), key, value),
)
miscounted = st.one_of(
    st.sampled_from([(b"GET",), (b"SET", b"a"), (b"DEL",), (b"PTTL",), (b"PEXPIRE", b"a")]),
    st.sampled_from([(b"HGET", b"a"), (b"HMGET", b"a"), (b"HSET", b"a", b"f"), (b"HGETALL",)]),
    st.sampled_from([(b"ZADD", b"a", b"1"), (b"ZREM", b"a"), (b"ZSCORE", b"a"), (b"ZCARD",)]),
    st.sampled_from([(b"ZRANK", b"a"), (b"ZRANGE", b"a", b"0"), (b"EXISTS",), (b"PUBLISH", b"a")]),
)


@given(st.lists(st.one_of(command, command, miscounted), max_size=25))
@settings(max_examples=300, deadline=None)
def test_every_command_answers_as_a_real_server_does(
    real: Real, commands: list[tuple[bytes, ...]]
) -> None:
    real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000_000)
    for words in commands:
        ours, theirs = store.call(*words), real.call(*words)
        alike = same if words[0] == b"PTTL" else equal
        assert alike(ours, theirs), f"{words}: {ours!r}, really {theirs!r}"


AS_LUA_SEES_IT = "local reply = redis.pcall(unpack(ARGV)) return {type(reply), reply}"
lasting = st.one_of(
    st.sampled_from([b"EXISTS", b"PTTL", b"TYPE", b"DEL"]).flatmap(
        lambda name: st.tuples(st.just(name), key)
    ),
    st.tuples(st.just(b"PEXPIRE"), key, st.sampled_from([b"100000", b"0"])),
    st.tuples(st.sampled_from([b"SET", b"RPUSH"]), key, value),
)


@given(st.lists(st.one_of(of_sorted_sets, of_sorted_sets, lasting), max_size=40))
@settings(max_examples=300, deadline=None)
def test_sorted_sets_look_to_scripts_as_on_real_servers(
    any_real: Real, commands: list[tuple[bytes, ...]]
) -> None:
    any_real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000_000)
    for words in commands:
        ours = machine().run(AS_LUA_SEES_IT, [], list(words), store)
        theirs = any_real.call(b"EVAL", AS_LUA_SEES_IT.encode(), b"0", *words)
        alike = same if words[0] == b"PTTL" else equal
        assert alike(ours, theirs), f"{words}: {ours!r}, really {theirs!r}"
        for each in KEYS:
            everything = (b"ZRANGE", each, b"0", b"-1", b"WITHSCORES")
            assert equal(store.call(*everything), any_real.call(*everything))


CONVERSIONS = [
    "return 3.9", "return -3.9", "return true", "return false", "return nil", "return 'x'",
    "return {1, 2, nil, 4}", "return {1, 'x', {2, false}}", "return {err='MY error'}",
    "return {ok='fine'}", "return redis.pcall('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 12345678901234)", "return redis.call('GET', KEYS[1])",
    "return type(redis.call('GET', 'nothing'))", "return tonumber(ARGV[1]) + 1",
    "redis.call('ZADD', KEYS[1], 1767225600123456, 'm') return redis.call('ZSCORE', KEYS[1], 'm')",
    "redis.call('ZADD', KEYS[1], tostring(1767225600123456), 'm')"
    " return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "return {type(redis.call('ZSCORE', KEYS[1], 'm')), type(redis.call('ZRANK', KEYS[1], 'm'))}",
    "return redis.call('PUBLISH', 'channel', 12)",
]  # fmt: skip


@pytest.mark.parametrize("text", CONVERSIONS)
def test_values_are_converted_as_a_real_server_does(real: Real, text: str) -> None:
    real.call(b"FLUSHALL")
    store = Store(lambda: 1_000_000_000)
    ours = machine().run(text, [b"k"], [b"41"], store)
    theirs = real.call(b"EVAL", text.encode(), b"1", b"k", b"41")
    assert equal(ours, theirs), f"{ours!r}, really {theirs!r}"


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


def test_a_copied_sorted_set_is_on_its_own() -> None:
    store = Store(lambda: 0)
    store.call(b"ZADD", b"z", b"2", b"m")
    copy = store.copy()
    store.call(b"ZADD", b"z", b"1", b"n", b"3", b"m")
    copy.call(b"ZADD", b"z", b"9", b"o")
    everything = (b"ZRANGE", b"z", b"0", b"-1", b"WITHSCORES")
    assert store.call(*everything) == [b"n", b"1", b"m", b"3"]
    assert copy.call(*everything) == [b"m", b"2", b"o", b"9"]
    assert [copy.call(b"ZRANK", b"z", each) for each in (b"m", b"o", b"n")] == [0, 1, None]


UNSURE_SCORES = [
    b"0.1",
    b"-0",
    b"1e-7",
    b"inf",
    b"-Infinity",
    b"0x10",
    b"1e17",
    b"%d" % (2**53 + 2),
]


@pytest.mark.parametrize("text", UNSURE_SCORES)
def test_scores_that_servers_write_differently_are_errors_of_the_model(text: bytes) -> None:
    with pytest.raises(NotImplementedError):
        Store(lambda: 0).call(b"ZADD", b"z", text, b"m")


@pytest.mark.parametrize(
    "words",
    [(b"ZADD", b"z", b"nx", b"1", b"m"), (b"ZRANGE", b"z", b"0", b"9", b"WITHSCORES", b"REV")],
)
def test_unknown_options_are_errors_of_the_model(words: tuple[bytes, ...]) -> None:
    with pytest.raises(NotImplementedError):
        Store(lambda: 0).call(*words)


PUBLISHING = "return redis.call('PUBLISH', KEYS[1], ARGV[1])"


def test_what_scripts_publish_is_told_to_the_hook() -> None:
    heard: list[tuple[bytes, bytes]] = []

    def listen(channel: bytes, payload: bytes) -> int:
        heard.append((channel, payload))
        return 2

    store = Store(lambda: 0, on_publish=listen)
    assert machine().run(PUBLISHING, [b"c"], [b"one"], store) == 2
    assert store.copy().call(b"PUBLISH", b"c", b"two") == 2
    assert isinstance(store.call(b"PUBLISH", b"c"), hiredis.ReplyError)
    assert heard == [(b"c", b"one"), (b"c", b"two")]


def test_whoever_listens_to_a_server_hears_it_whatever_its_memory() -> None:
    server, heard = Server(lambda: 0), list[bytes]()
    backup = server.store.copy()

    def publishes(payload: bytes) -> Any:
        return server.store.call(b"PUBLISH", b"c", payload)

    def listen(_: bytes, payload: bytes) -> int:
        heard.append(payload)
        return 1

    assert publishes(b"to nobody") == 0
    server.on_publish = listen
    assert publishes(b"as it was") == 1
    server.restart()
    assert publishes(b"restarted") == 1
    server.restart(memory=backup)
    assert publishes(b"from before") == 1
    away = server.swap(server.empty_store())
    assert publishes(b"swapped") == 1
    server.follow(away)
    assert publishes(b"promoted") == 1
    server.fail_over(None, away.copy())
    server.flush()
    assert publishes(b"flushed") == 1
    assert heard == [
        b"as it was", b"restarted", b"from before", b"swapped", b"promoted", b"flushed"
    ]  # fmt: skip


def test_a_hook_that_fails_is_not_taken_for_a_bad_command() -> None:
    def fail(_: bytes, __: bytes) -> int:
        raise TypeError("a bug of the listener")

    with pytest.raises(TypeError, match="listener"):
        Store(lambda: 0, on_publish=fail).call(b"PUBLISH", b"c", b"x")


def test_time_is_the_clock_in_two_parts() -> None:
    assert Store(lambda: 1_700_000_000_123_456).call(b"TIME") == [b"1700000000", b"123456"]


def test_statuses_are_told_from_strings() -> None:
    assert isinstance(Store(lambda: 0).call(b"SET", b"a", b"x"), Status)


def test_an_unknown_command_is_an_error_of_the_model() -> None:
    with pytest.raises(NotImplementedError):
        Store(lambda: 0).call(b"LPUSH", b"a", b"x")
