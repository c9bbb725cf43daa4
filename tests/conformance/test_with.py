"""`with`: released on leaving, and the body's own exception is never replaced."""

from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import lock_key
from rig.actor import Actor
from rig.servers import holders
from rig.waiting import until


def test_leaving_releases(actor: Actor, rival: Actor, name: str) -> None:
    with actor.holding(name) as lease:
        assert lease.is_held
        assert rival.try_acquire(name) is None
    assert not lease.is_held
    other = rival.try_acquire(name)
    assert other is not None
    other.release()


def test_leaving_by_an_exception_releases_and_passes_it_on(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    with pytest.raises(KeyError) as caught, actor.holding(name, ttl=60):
        raise KeyError("mine")
    assert caught.value.args == ("mine",)
    assert not getattr(caught.value, "__notes__", [])
    until(lambda: holders(nodes, name) == [])


def test_leaving_after_a_release_is_fine(actor: Actor, name: str) -> None:
    with actor.holding(name) as lease:
        lease.release()


def test_leaving_a_lost_lease_raises(actor: Actor, nodes: list[ThrowawayNode], name: str) -> None:
    with (
        pytest.raises(holdfast.LeaseLost) as caught,
        actor.holding(name, ttl=0.4, renew=False) as lease,
    ):
        until(lambda: not lease.is_held)
    assert caught.value.reason is holdfast.LossReason.EXPIRED


def test_leaving_a_lost_lease_notes_it_on_the_bodys_exception(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    with pytest.raises(KeyError) as caught, actor.holding(name) as lease:  # noqa: PT012  # two acts
        for node in nodes:
            until(lambda node=node: node.call("DEL", lock_key(name)) == "1")
        raise KeyError("mine")
    [note] = caught.value.__notes__
    assert "lost" in note
    assert name in note
    assert not lease.is_held


def test_a_body_whose_lease_was_found_lost_cannot_leave_quietly(
    actor: Actor, nodes: list[ThrowawayNode], name: str
) -> None:
    with pytest.raises(holdfast.LeaseLost), actor.holding(name) as lease:  # noqa: PT012  # two acts
        for node in nodes:
            until(lambda node=node: node.call("DEL", lock_key(name)) == "1")
        with pytest.raises(holdfast.LeaseLost):
            lease.renew()


def test_a_block_may_be_left_elsewhere_than_it_was_entered(
    actor: Actor, rival: Actor, name: str, in_thread: Callable
) -> None:
    """Frameworks do that: enter on one thread or task of a pool, leave on another."""
    block = actor.holding(name, ttl=60)
    in_thread(block.__enter__).result()
    block.__exit__(None, None, None)
    other = rival.try_acquire(name)
    assert other is not None
    other.release()


def test_a_lock_may_be_used_again_and_again(actor: Actor, name: str) -> None:
    lock = actor.holding(name)
    for _ in range(3):
        with lock as lease:
            assert lease.is_held


def test_not_getting_it_raises_before_the_body(actor: Actor, rival: Actor, name: str) -> None:
    lease = actor.acquire(name)
    with pytest.raises(holdfast.Busy), rival.holding(name, wait=0):
        pytest.fail("the body ran")
    lease.release()
