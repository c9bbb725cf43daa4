"""Renewing: the full ttl again, for as long as the lease has not ended."""

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import lock_key
from rig.actor import Actor
from rig.servers import holders, token_on
from rig.waiting import until


def test_renew_gives_the_full_ttl_again(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name, ttl=10, renew=False)
    until(lambda: lease.valid_for < 9.5)
    lease.renew()
    assert lease.valid_for > 9.5
    quorum = len(nodes) // 2 + 1
    assert sum(int(node.call("PTTL", lock_key(name)) or 0) > 9_500 for node in nodes) >= quorum
    lease.release()


def test_a_renewed_lease_outlives_its_first_ttl(actor: Actor, rival: Actor, name: str) -> None:
    lease = actor.acquire(name, ttl=1.2, renew=False)
    left = lease.valid_for
    for _ in range(4):
        until(lambda: lease.valid_for < 0.7)
        lease.renew()
        assert rival.try_acquire(name) is None
    assert lease.is_held
    assert left < 1.2
    lease.release()


def test_renew_after_the_end_is_a_loss_and_revives_nothing(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name, ttl=0.4, renew=False)
    until(lambda: not lease.is_held)
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.renew()
    assert caught.value.reason is holdfast.LossReason.EXPIRED
    assert not lease.is_held
    until(lambda: holders(nodes, name) == [])


def test_renew_after_a_deletion_is_a_loss(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name)
    for node in nodes:
        until(lambda node=node: token_on(node, name) == lease.token)
        node.call("DEL", lock_key(name))
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.renew()
    assert caught.value.reason is holdfast.LossReason.DELETED
    assert not lease.is_held
    with pytest.raises(holdfast.LeaseLost):
        lease.release()


def test_renew_after_somebody_took_it_is_a_loss(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name)
    for node in nodes:
        until(lambda node=node: token_on(node, name) == lease.token)
        node.call("SET", lock_key(name), "a thief", "PX", "60000")
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.renew()
    assert caught.value.reason is holdfast.LossReason.TAKEN
    assert holders(nodes, name) == ["a thief"] * len(nodes)


def test_a_lost_lease_is_cleared_from_the_nodes_that_still_have_it(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name, ttl=60)
    majority = nodes[: len(nodes) // 2 + 1]
    for node in nodes:
        until(lambda node=node: token_on(node, name) == lease.token)
    for node in majority:
        node.call("DEL", lock_key(name))
    with pytest.raises(holdfast.LeaseLost):
        lease.renew()
    until(lambda: holders(nodes, name) == [])
