"""`try_lock` and `release_lock`: what a thread acquired, by name."""

from collections.abc import Callable

import pytest

import holdfast
from rig.actor import Actor
from rig.waiting import until


def test_release_by_name(actor: Actor, rival: Actor, name: str) -> None:
    lease = actor.try_lock(name)
    assert lease is not None
    actor.release_lock(name)
    assert not lease.is_held
    other = rival.try_lock(name)
    assert other is not None
    rival.release_lock(name)


def test_what_was_not_acquired_is_not_held(actor: Actor, name: str) -> None:
    with pytest.raises(holdfast.NotHeld):
        actor.release_lock(name)


def test_a_second_release_by_name_is_not_held(actor: Actor, name: str) -> None:
    actor.try_lock(name)
    actor.release_lock(name)
    with pytest.raises(holdfast.NotHeld):
        actor.release_lock(name)


def test_it_is_per_client(actor: Actor, rival: Actor, name: str) -> None:
    actor.try_lock(name)
    with pytest.raises(holdfast.NotHeld):
        rival.release_lock(name)
    actor.release_lock(name)


def test_it_is_per_thread(actor: Actor, name: str, in_thread: Callable) -> None:
    lease = actor.try_lock(name)
    assert lease is not None
    with pytest.raises(holdfast.NotHeld):
        in_thread(lambda: actor.release_lock(name)).result()
    assert lease.is_held
    actor.release_lock(name)


def test_a_lease_may_be_released_by_another_thread(
    actor: Actor, name: str, in_thread: Callable
) -> None:
    lease = actor.try_lock(name)
    assert lease is not None
    in_thread(lease.release).result()
    with pytest.raises(holdfast.NotHeld):
        actor.release_lock(name)


def test_what_has_ended_is_a_loss(actor: Actor, name: str) -> None:
    lease = actor.acquire(name, ttl=0.4, renew=False)
    until(lambda: not lease.is_held)
    with pytest.raises(holdfast.LeaseLost):
        actor.release_lock(name)
