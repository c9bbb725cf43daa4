"""The bounds of a lease: `max_hold`, `grace`, very short and very long ttls."""

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.drivers import clock
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, pttl, renewed, urls
from rig.servers import holders
from rig.tap import Tap
from rig.waiting import pass_time, until

Make = Callable[..., Party]
Tapped = Callable[[ThrowawayNode], Tap]


def test_max_hold(healthy: list[ThrowawayNode], party: Make, name: str, colour: str) -> None:
    holder = party(colour, *urls(healthy))
    begun = clock.now()
    lease = holder.acquire(name, ttl=0.9, max_hold=1.2)
    warned: list[float] = []
    holder.listen(lease, endangered=lambda lease: warned.append(lease.valid_for))
    until(lambda: holder.client.stats().renewals)
    assert lease.lost.reason is None
    assert holder.wait_lost(lease) is holdfast.LossReason.MAX_HOLD
    end = clock.now()
    assert 1.2 <= end - begun < 1.2 + 0.3
    until(lambda: len(holders(healthy, name)) == 0, within=0.5)  # freed, and not lapsed
    until(lambda: warned)
    assert len(warned) == 1
    assert 0 < warned[0] <= 0.15 + 0.01
    with pytest.raises(holdfast.LeaseLost, match="too long"):
        lease.release()


def test_max_hold_below_the_ttl(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    holder = party("blocking", *urls(healthy))
    lease = holder.acquire(name, ttl=60, max_hold=0.3)
    assert lease.valid_for <= 0.3
    lease.renew()
    assert lease.valid_for <= 0.3
    assert holder.wait_lost(lease) is holdfast.LossReason.MAX_HOLD
    until(lambda: holders(healthy, name) == [])
    assert holder.client.stats().renewals == 0


def test_max_hold_as_short_as_can_be(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    holder = party("blocking", *urls(healthy))
    lease = holder.acquire(name, ttl=60, max_hold=0.02, grace=30)
    assert holder.wait_lost(lease) is holdfast.LossReason.MAX_HOLD
    until(lambda: holders(healthy, name) == [])


def test_max_hold_none_is_no_bound(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    holder = party("blocking", *urls(healthy), max_hold=0.3)
    lease = holder.acquire(name, ttl=0.6, max_hold=None)
    renewed(holder.client, 3)
    assert lease.is_held
    lease.release()


@pytest.mark.parametrize("wrong", [0, -1, 0.001, float("nan"), float("inf"), "1", True])
def test_max_hold_that_makes_no_sense(
    healthy: list[ThrowawayNode], party: Make, name: str, wrong: object
) -> None:
    with pytest.raises(holdfast.BadInput, match="max_hold"):
        party("blocking", *urls(healthy)).client.lock(name, max_hold=wrong)


@pytest.mark.parametrize("wrong", [-0.1, 5.1, float("nan"), "1", True])
def test_grace_that_makes_no_sense(
    healthy: list[ThrowawayNode], party: Make, name: str, wrong: object
) -> None:
    with pytest.raises(holdfast.BadInput, match="grace"):
        party("blocking", *urls(healthy)).client.lock(name, ttl=10, grace=wrong)


def stuck(lone: ThrowawayNode, tap: Tapped, party: Make, name: str, **options: Any) -> list[float]:
    """Let a lease end whose keeper gets no answers; return how much was left when warned."""
    patience = options.pop("node_timeout")
    wire = tap(lone)
    holder = party("blocking", wire.url, node_timeout=patience)
    lease = holder.acquire(name, **options)
    warned: list[float] = []
    lease.on_endangered(lambda lease: warned.append(lease.valid_for))
    wire.hold_new()
    assert holder.wait_lost(lease) is holdfast.LossReason.UNREACHABLE
    wire.let_go()
    return warned


def test_the_warning_comes_a_grace_before_the_end(
    lone: ThrowawayNode, tap: Tapped, party: Make, name: str, in_thread: Callable
) -> None:
    """However long rounds take, up to a quarter of the ttl: never later than the grace."""
    ttl = 1.2
    shares = (0.02, 0.05, 0.1, 0.13, 0.16, 0.18, 0.22, 0.25)
    running = {
        share: in_thread(
            stuck,
            lone,
            tap,
            party,
            f"{name}:{share}",
            ttl=ttl,
            owner=None,
            node_timeout=share * ttl,
        )
        for share in shares
    }
    for share, each in running.items():
        [left] = each.result()
        assert left > ttl / 6 - 0.06, share
        assert left < ttl / 6 + share * ttl + 0.02, share


def test_no_grace_is_no_warning(lone: ThrowawayNode, tap: Tapped, party: Make, name: str) -> None:
    warned = stuck(lone, tap, party, name, ttl=0.6, grace=0, node_timeout=0.01)
    assert warned == [] or max(warned) < 0.03


def test_half_the_ttl_of_grace(
    lone: ThrowawayNode, healthy: list[ThrowawayNode], tap: Tapped, party: Make, name: str
) -> None:
    holder = party("blocking", *urls(healthy))
    calm = holder.acquire(f"{name}:calm", ttl=1.2, grace=0.6)
    false: list[float] = []
    calm.on_endangered(lambda lease: false.append(lease.valid_for))
    [left] = stuck(lone, tap, party, name, ttl=1.2, grace=0.6, node_timeout=0.05)
    assert 0.5 < left <= 0.7
    assert false == [], "one that is renewed in time is in no danger"
    calm.release()


def test_a_warning_again_after_a_recovery(
    lone: ThrowawayNode, party: Make, name: str, colour: str
) -> None:
    holder = party(colour, lone.url, node_timeout=0.05)
    lease = holder.acquire(name, ttl=1.5, grace=0.75)
    warned: list[float] = []
    holder.listen(lease, endangered=lambda lease: warned.append(lease.valid_for))
    for count in (1, 2):
        lone.pause()
        until(lambda count=count: len(warned) == count)
        lone.resume()
        renewed(holder.client)
        assert lease.is_held
        assert len(warned) == count, "once each time"
    assert holder.client.stats().lost == 0
    lease.release()


def test_a_renewal_by_hand_is_no_danger(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    """Whoever renews by hand is not warned of an end that is none any more."""
    holder = party("blocking", *urls(healthy))
    lease = holder.acquire(name, ttl=1, renew=False)
    warned: list[float] = []
    lease.on_endangered(lambda lease: warned.append(lease.valid_for))
    until(lambda: lease.valid_for < 0.5)
    lease.renew()
    until(lambda: lease.valid_for < 0.3)
    assert warned == []
    holder.wait_lost(lease)
    until(lambda: warned)
    assert len(warned) == 1
    assert warned[0] <= 1 / 6


def test_a_tiny_ttl(healthy: list[ThrowawayNode], party: Make, name: str, colour: str) -> None:
    """It may be lost on a busy machine; it is never believed in for too long, and never stuck."""
    holder = party(colour, *urls(healthy[:1]))
    losses = 0
    for number in range(10):
        lease = holder.acquire(f"{name}:{number}", ttl=0.02)
        pass_time(0.05)
        if lease.is_held:
            assert pttl(healthy[0], lease.name) >= -2
        try:
            lease.release()
        except holdfast.LeaseLost:
            losses += 1
    assert holder.client.stats().renewals > 0
    assert holder.client.stats().held == 0
    assert holder.client.stats().lost == losses
    until(lambda: not any(holders(healthy, f"{name}:{number}") for number in range(10)))


def test_a_huge_ttl(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    holder = party("blocking", *urls(healthy), max_hold=None, guard=False)
    lease = holder.acquire(name, ttl=86_400, grace=43_200)
    short = holder.acquire(f"{name}:short", ttl=0.6)
    renewed(holder.client, 2)
    assert lease.is_held
    assert min(pttl(node, name) for node in healthy) > 86_000_000
    lease.release()
    short.release()
