"""Acquiring: who gets it, who does not, and what is said to those who do not."""

import time
from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import lock_key
from holdfast.wire.who import SECRET_DIGITS
from rig.actor import Actor
from rig.servers import holders, token_on
from rig.waiting import until


def test_acquire_gives_a_lease_that_is_held(actor: Actor, name: str) -> None:
    lease = actor.acquire(name, ttl=10)
    assert lease.is_held
    assert lease.name == name
    assert lease.ttl == 10
    assert 0 < lease.valid_for < 10
    lease.ensure_held()
    lease.release()
    assert not lease.is_held
    assert lease.valid_for == 0


def test_the_nodes_keep_the_token_with_a_ttl(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name, ttl=10)
    key = f"hf:{{{name}}}"
    for node in nodes:
        until(lambda node=node: node.call("GET", key) == lease.token)
        assert node.call("TYPE", key) == "string"
        assert node.call("STRLEN", key) == str(len(lease.token))
        left = int(node.call("PTTL", key) or 0)
        assert lease.valid_for * 1000 - 500 < left <= 10_000
    lease.release()
    for node in nodes:
        until(lambda node=node: node.call("EXISTS", key) == "0")


def test_a_token_is_never_used_twice(actor: Actor, name: str) -> None:
    tokens = set()
    for _ in range(20):
        with actor.holding(name) as lease:
            tokens.add(lease.token)
    assert len(tokens) == 20
    assert len({token[:SECRET_DIGITS] for token in tokens}) == 20
    assert all(len(bytes.fromhex(token[:SECRET_DIGITS])) >= 20 for token in tokens)


def test_what_is_held_is_busy_for_everybody(actor: Actor, rival: Actor, name: str) -> None:
    lease = actor.acquire(name)
    assert rival.try_acquire(name) is None
    assert actor.try_acquire(name) is None
    assert rival.try_lock(name) is None
    with pytest.raises(holdfast.Busy) as caught:
        rival.acquire(name, wait=0)
    assert caught.value.name == name
    assert any("held by somebody else" in report.answer for report in caught.value.reports)
    assert lease.is_held
    lease.release()
    again = rival.try_acquire(name)
    assert again is not None
    again.release()


def test_a_miss_leaves_nothing_behind(
    actor: Actor, rival: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name, ttl=60)
    assert rival.try_acquire(name, ttl=60) is None
    lease.release()
    until(lambda: holders(nodes, name) == [])


def test_waiting_ends_when_the_lock_is_released(
    actor: Actor, rival: Actor, name: str, in_thread: Callable
) -> None:
    lease = actor.acquire(name)
    waiting = in_thread(lambda: rival.acquire(name, wait=20))
    lease.release()
    waiting.result().release()


def test_a_wait_that_is_over_is_never_early_and_not_very_late(
    actor: Actor, rival: Actor, name: str
) -> None:
    lease = actor.acquire(name, ttl=30)
    begun = time.monotonic()
    with pytest.raises(holdfast.TimedOut) as caught:
        rival.acquire(name, wait=0.3)
    took = time.monotonic() - begun
    assert 0.3 <= took < 0.3 + 5
    assert 0.3 <= caught.value.waited <= took
    assert isinstance(caught.value, TimeoutError)
    lease.release()


def test_a_lease_that_is_not_renewed_ends_and_frees_the_lock(
    actor: Actor, rival: Actor, name: str
) -> None:
    lease = actor.acquire(name, ttl=0.5, renew=False)
    successor = rival.acquire(name, wait=20)
    assert not lease.is_held
    assert successor.is_held
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.ensure_held()
    assert caught.value.reason is holdfast.LossReason.EXPIRED
    successor.release()


def test_the_holder_stops_believing_before_the_nodes_let_others_in(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name, ttl=0.5, renew=False)
    until(lambda: not lease.is_held or holders(nodes, name) == [])
    assert not lease.is_held


def test_different_locks_do_not_meet(actor: Actor, name: str) -> None:
    with (
        actor.holding(name + "a") as first,
        actor.holding(name + "b") as second,
        actor.holding(name + "c") as third,
    ):
        assert first.is_held
        assert second.is_held
        assert third.is_held


ODD_NAMES = [
    "with spaces", "líne\nfeed\r\n", "{braces}", "{", "}", "}{", "%7B", "%7Bbraces%7D", "%257B",
    "ünï-çødé ✓", "\x00nul", "'quoted\"", "a" * 1024, ":", "hf:{x}", "$1\r\nx",
]  # fmt: skip


def own(odd: str, name: str) -> str:
    """Make an odd name this test's own: a server that two tests share may be a moment behind."""
    return odd[: 1024 - len(name)] + name


@pytest.mark.parametrize("odd", ODD_NAMES, ids=lambda odd: ascii(odd)[:20])
def test_odd_names_work_like_any_other(
    actor: Actor, rival: Actor, nodes: list[ThrowawayNode], odd: str, name: str
) -> None:
    odd = own(odd, name)
    with actor.holding(odd) as lease:
        assert rival.try_acquire(odd) is None
        assert any(token_on(node, odd) == lease.token for node in nodes)


def test_odd_names_never_share_a_key(actor: Actor, name: str) -> None:
    odd_names = [own(odd, name) for odd in ODD_NAMES]
    assert len({lock_key(odd) for odd in odd_names}) == len(odd_names)
    leases = [actor.try_acquire(odd) for odd in odd_names]
    for lease in leases:
        assert lease is not None
        lease.release()
