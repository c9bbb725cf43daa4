"""Releasing: only what is yours, once, and you hear if it was not yours any more."""

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import lock_key
from rig.actor import Actor
from rig.servers import holders, token_on
from rig.waiting import until


def test_release_frees_at_once(actor: Actor, rival: Actor, name: str) -> None:
    lease = actor.acquire(name, ttl=60)
    assert lease.release() is holdfast.Released.FREED
    other = rival.acquire(name, wait=5)
    other.release()


def test_a_second_release_is_not_held(actor: Actor, name: str) -> None:
    lease = actor.acquire(name)
    lease.release()
    with pytest.raises(holdfast.NotHeld):
        lease.release()
    with pytest.raises(holdfast.NotHeld):
        lease.renew()
    with pytest.raises(holdfast.NotHeld):
        lease.ensure_held()


def test_a_second_release_leaves_the_successor_alone(actor: Actor, rival: Actor, name: str) -> None:
    lease = actor.acquire(name)
    lease.release()
    successor = rival.acquire(name)
    with pytest.raises(holdfast.NotHeld):
        lease.release()
    successor.renew()
    successor.release()


def test_release_after_the_end_is_a_loss(actor: Actor, name: str) -> None:
    lease = actor.acquire(name, ttl=0.4, renew=False)
    until(lambda: not lease.is_held)
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.release()
    assert caught.value.reason is holdfast.LossReason.EXPIRED


def test_release_after_a_deletion_is_a_loss(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name)
    delete_everywhere(nodes, name, lease.token)
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.release()
    assert caught.value.reason is holdfast.LossReason.DELETED


def test_release_never_touches_what_somebody_else_has(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    lease = actor.acquire(name)
    for node in nodes:
        until(lambda node=node: token_on(node, name) == lease.token)
        node.call("SET", lock_key(name), "somebody else", "PX", "60000")
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.release()
    assert caught.value.reason is holdfast.LossReason.TAKEN
    assert holders(nodes, name) == ["somebody else"] * len(nodes)


def test_a_minority_that_forgot_does_not_matter(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    if len(nodes) == 1:
        return
    lease = actor.acquire(name)
    minority = nodes[: (len(nodes) - 1) // 2]
    delete_everywhere(minority, name, lease.token)
    lease.renew()
    lease.release()


def delete_everywhere(nodes: list[ThrowawayNode], name: str, token: str) -> None:
    """Delete the key from outside, at nodes that all have it already."""
    for node in nodes:
        until(lambda node=node: token_on(node, name) == token)
        node.call("DEL", lock_key(name))
