"""The keeper renews while it can, gives up when it must, and brings nothing back."""

import time
from collections.abc import Callable

import pytest

import holdfast
from holdfast.drivers import clock
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, pttl, renewed, threads, urls
from rig.actor import ACTORS
from rig.servers import Park, holders, token_on
from rig.tap import Tap
from rig.waiting import pass_time, until

Make = Callable[..., Party]


def test_leases_outlive_many_ttls(park: Park, party: Make, name: str) -> None:
    """All colours over 1, 3 and 5 nodes, at the same time."""
    ttl, held = 0.5, []
    for colour in ACTORS:
        for count in (1, 3, 5):
            nodes = park.nodes("valkey", count)
            holder = party(colour, *urls(nodes))
            held.append((holder, nodes, holder.acquire(f"{name}:{colour}:{count}", ttl=ttl)))
    end = time.monotonic() + 4.5 * ttl
    while time.monotonic() < end:
        for _, nodes, lease in held:
            assert lease.is_held
            fresh = [pttl(node, lease.name) for node in nodes]
            assert sum(left > 0 for left in fresh) > len(nodes) // 2, fresh
    for holder, nodes, lease in held:
        assert holder.client.stats().renewals >= 5
        assert lease.release() is holdfast.Released.FREED
        until(lambda nodes=nodes, lease=lease: holders(nodes, lease.name) == [])


def test_every_node_keeps_a_fresh_key(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    holder = party("blocking", *urls(healthy))
    lease = holder.acquire(name, ttl=1.2)
    seen: list[int] = []
    until(lambda: seen.append(min(pttl(node, name) for node in healthy)) or len(seen) >= 5)
    while len(seen) < 5000 and holder.client.stats().renewals < 3:
        seen.append(min(pttl(node, name) for node in healthy))
    assert lease.is_held
    assert max(seen[len(seen) // 2 :]) > 900, "renewed to the full ttl, on all nodes"
    assert min(seen) > 0
    lease.release()


def test_one_thread_however_many_locks(
    healthy: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    until(lambda: not threads())
    holder = party(colour, *urls(healthy))
    assert threads() == [], "none before there is something to keep"
    leases = [holder.acquire(f"{name}:{number}", ttl=2) for number in range(50)]
    assert len(threads("holdfast-keeper")) == 1
    for lease in leases:
        lease.release()
    assert len(threads()) == 1
    holder.client.lock(name)


def test_each_client_has_its_own(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    until(lambda: not threads())
    for colour in (*ACTORS, *ACTORS):
        holder = party(colour, *urls(healthy))
        holder.acquire(f"{name}:{len(threads())}").release()
    assert len(threads("holdfast-keeper")) == 4


def test_renew_false_simply_ends(
    healthy: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(healthy))
    lease = holder.acquire(name, ttl=0.3, renew=False)
    assert holder.wait_lost(lease) is holdfast.LossReason.EXPIRED
    assert not lease.is_held
    assert holder.client.stats().renewals == 0
    until(lambda: holders(healthy, name) == [])


def test_renew_false_may_be_the_clients_default(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    holder = party("blocking", *urls(healthy), renew=False, ttl=0.3)
    lease = holder.acquire(name)
    kept = holder.acquire(f"{name}:kept", renew=True)
    assert holder.wait_lost(lease) is holdfast.LossReason.EXPIRED
    assert kept.is_held
    kept.release()


def test_a_majority_that_comes_back_in_time(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(three), node_timeout=0.1)
    lease = holder.acquire(name, ttl=3)
    for node in three[:2]:
        node.pause()
    until(lambda: holder.client.stats().failed >= 2)
    assert lease.is_held, "it holds until its old end"
    for node in three[:2]:
        node.resume()
    renewed(holder.client)
    assert lease.is_held
    assert lease.valid_for > 3 / 2
    assert holder.client.stats().lost == 0
    assert lease.release() is holdfast.Released.FREED


@pytest.mark.parametrize("guard", [False, True])
def test_a_majority_that_is_restarted_has_forgotten(
    three: list[ThrowawayNode], party: Make, name: str, guard: bool
) -> None:
    """They deny it, whether or not they abstain from anything new."""
    holder = party("blocking", *urls(three), guard=guard)
    lease = holder.acquire(name, ttl=3)
    until(lambda: len(holders(three, name)) == 3)
    for node in three[:2]:
        node.restart()
    assert holder.wait_lost(lease) is holdfast.LossReason.DELETED
    until(lambda: holders(three, name) == [])


def test_a_killed_majority_ends_it_at_valid_until(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(three))
    lease = holder.acquire(name, ttl=0.8)
    renewed(holder.client)
    for node in three[:2]:
        node.kill()
    end = clock.now() + lease.valid_for
    assert holder.wait_lost(lease) is holdfast.LossReason.UNREACHABLE
    late = clock.now() - end
    assert -0.05 < late < 0.25, "at the end by our own clock, neither before nor after"
    assert not lease.is_held
    assert lease.valid_for == 0
    assert holder.client.stats().failed >= 1
    with pytest.raises(holdfast.LeaseLost, match="unreachable"):
        lease.release()


def test_a_lost_majority_never_revives(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(three), node_timeout=0.1)
    lease = holder.acquire(name, ttl=0.8)
    for node in three[:2]:
        node.pause()
    assert holder.wait_lost(lease) is holdfast.LossReason.UNREACHABLE
    for node in three[:2]:
        node.resume()
    count = holder.client.stats().renewals
    until(lambda: holders(three, name) == [])
    pass_time(0.3)
    assert holders(three, name) == []
    assert not lease.is_held
    assert lease.lost.reason is holdfast.LossReason.UNREACHABLE
    assert holder.client.stats().renewals == count
    with pytest.raises(holdfast.LeaseLost):
        lease.renew()
    assert holders(three, name) == []


def test_a_minority_does_not_matter(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(three))
    lease = holder.acquire(name, ttl=0.8)
    three[0].kill()
    renewed(holder.client, 3)
    three[0].start()
    renewed(holder.client, 2)
    assert lease.is_held
    assert holder.client.stats().lost == 0
    assert lease.release() is holdfast.Released.FREED


def test_a_paused_minority_does_not_matter(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(three))
    lease = holder.acquire(name, ttl=0.8)
    three[2].pause()
    renewed(holder.client, 4)
    assert lease.is_held
    assert holder.client.stats().failed == 0, "a hung node costs a renewal nothing"
    three[2].resume()
    lease.release()
    until(lambda: holders(three, name) == [])


def test_a_stuck_keeper_does_not_lie(
    lone: ThrowawayNode, tap: Callable[[ThrowawayNode], Tap], party: Make, name: str, colour: str
) -> None:
    """The keeper's connection hangs, the workers' goes on: nobody believes for too long."""
    wire = tap(lone)
    holder = party(colour, wire.url)
    lease = holder.acquire(name, ttl=0.8)
    wire.hold_new()
    end = clock.now() + lease.valid_for
    until(lambda: not lease.is_held)
    assert -0.05 < clock.now() - end < 0.25
    assert lease.lost.is_set()
    assert holder.wait_lost(lease) is holdfast.LossReason.UNREACHABLE
    with pytest.raises(holdfast.LeaseLost):
        lease.ensure_held()
    again = holder.acquire(f"{name}:other", ttl=5)  # workers are not held
    again.release()
    wire.let_go()
    until(lambda: token_on(lone, name) == "")


def test_renewing_by_hand_helps_where_the_keeper_cannot(
    lone: ThrowawayNode, tap: Callable[[ThrowawayNode], Tap], party: Make, name: str
) -> None:
    wire = tap(lone)
    holder = party("asyncio", wire.url)
    lease = holder.acquire(name, ttl=0.8)
    wire.hold_new()
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        if lease.valid_for < 0.5:
            lease.renew()
        pass_time(0.02)
        assert lease.is_held
    assert holder.client.stats().renewals == 0
    lease.release()


def test_a_renewal_by_hand_while_the_keepers_last_one_is_under_way(
    lone: ThrowawayNode, tap: Callable[[ThrowawayNode], Tap], party: Make, name: str
) -> None:
    """The keeper asks until the old end; by then it is no end any more."""
    ttl, wire = 1.6, tap(lone)
    # Asked at 1/3 of the ttl and after every 18 % + 1/15 of it: the third goes on until the end.
    holder = party("blocking", wire.url, node_timeout=0.18 * ttl)
    lease = holder.acquire(name, ttl=ttl)
    wire.hold_new()
    until(lambda: holder.client.stats().failed >= 2)
    old = lease.valid_for
    until(lambda: lease.valid_for < ttl * 0.12)  # the third is under way
    lease.renew()
    assert lease.valid_for > old
    pass_time(ttl * 0.2)
    assert lease.lost.reason is None
    assert lease.is_held
    wire.let_go()
    renewed(holder.client)
    assert token_on(lone, name) == lease.token
    lease.release()


def test_a_connection_that_nothing_comes_back_on_is_made_anew(
    lone: ThrowawayNode, tap: Callable[[ThrowawayNode], Tap], party: Callable[..., Party], name: str
) -> None:
    """As after a router has forgotten it: new connections work, the old one is a hole."""
    wire = tap(lone)
    holder = party("blocking", wire.url)
    lease = holder.acquire(name, ttl=2)
    until(lambda: holder.client.stats().renewals)
    for line in set(wire.heard("renew", lease.token)):
        wire.hold(line)
    renewals = holder.client.stats().renewals
    until(lambda: holder.client.stats().renewals > renewals + 2)
    assert lease.is_held
    wire.let_go()
    lease.release()
