"""The shipped scripts over the model of the server, against a real one: word for word."""

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from truth import Real, equal, same

from holdfast.testing.lua import machine
from holdfast.testing.store import Store
from holdfast.wire.keys import NODE_KEY
from holdfast.wire.scripts import SCRIPTS

MARKER = NODE_KEY.encode()
KEYS = [b"a", b"b"]
ANYBODY = [b"%040x%s%d/1/sim/x" % (n, sign, n) for n, sign in enumerate((b"+", b"-", b"-", b"?"))]
TEXTS = {verb.value: script.text for verb, script in SCRIPTS.items()}
BY_HAND = {"set": b"SET", "list": b"RPUSH", "delete": b"DEL"}

key = st.sampled_from(KEYS)
tokens = st.sampled_from([*ANYBODY, b"a stranger's"])
max_ttl = st.sampled_from([b"0", b"60000"])
place = st.sampled_from([b"0", b"1", b"2", b"3", b"4"])
ahead = st.sampled_from([None, -1_000_000, 0, 1_000_000, 1_000_000_000])
late = st.sampled_from([None, None, -60_000, 60_000])
about_a_lock = ["request", "wait", "raise", "renew", "inspect"]
step = st.one_of(
    st.tuples(st.sampled_from(about_a_lock), key, tokens, max_ttl, place, ahead, late),
    st.tuples(st.sampled_from(["request", "wait"]), key, tokens, max_ttl, place, ahead, late),
    st.tuples(st.just("release"), key, tokens, max_ttl),
    st.tuples(st.sampled_from(["examine", "admit", "init", "drain", "suspect", "adopt"])),
    st.tuples(st.just("set"), key, tokens),
    st.tuples(st.just("list"), key, tokens),
    st.tuples(st.just("delete"), st.sampled_from([*KEYS, MARKER])),
)


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
            line = (b"ZRANGE", each + b":q", b"0", b"-1", b"WITHSCORES")
            assert equal(store.call(*line), real.call(*line))
            alive = (b"ZRANGE", each + b":w", b"0", b"-1", b"WITHSCORES")  # in any order
            assert alike(store.call(*alive), real.call(*alive))
        assert alike(store.call(b"HGETALL", MARKER), real.call(b"HGETALL", MARKER))


def alike(ours: Any, theirs: Any) -> bool:
    """Compare names and what is said of them."""
    ours, theirs = _fields(ours), _fields(theirs)
    return ours.keys() == theirs.keys() and all(same(ours[name], theirs[name]) for name in ours)


def said(what: str, *rest: Any) -> tuple[list[bytes], list[bytes]]:
    """Return the keys and arguments of what is said to a node."""
    if not rest:
        return [MARKER], [b"60000", b"1000000" if what == "suspect" else b"0", b"0", b"0"]
    lock, token, longest, *rest = rest
    where, ahead_us, late_ms = rest or (b"0", None, None)
    stamp = 0 if ahead_us is None else _now_us() + ahead_us
    not_after = 0 if late_ms is None else _now_us() // 1000 - late_ms
    keys = [lock, lock + b":f", lock + b":q", lock + b":w"]
    keys += [lock + b":x:" + token] * (what in ("renew", "release")) + [MARKER]
    words = [b"50000", longest, b"0", b"30000", where, token, b"%016d" % stamp, b"0"]
    return keys, [*words, b"%013d" % not_after]


def _now_us() -> int:
    return time.time_ns() // 1000


def _fields(reply: Any) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else {}
