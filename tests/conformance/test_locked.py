"""`@locked`: each call of a function runs under a lock named after its arguments."""

from types import SimpleNamespace

import pytest

import holdfast
from rig.actor import Actor


def test_a_call_runs_under_its_lock(actor: Actor, rival: Actor, name: str) -> None:
    @actor.locked(name + ":{user}", ttl=10)
    def build(user: int, *, depth: int = 1) -> tuple[int, int, bool]:
        """Build a report."""
        return user, depth, rival.try_acquire(f"{name}:{user}") is None

    assert build(7) == (7, 1, True)
    assert build(user=8, depth=2) == (8, 2, True)
    assert build.__name__ == "build"
    assert build.__doc__ == "Build a report."
    free = rival.try_acquire(f"{name}:7")
    assert free is not None
    free.release()


def test_fields_may_be_defaults_attributes_and_items(actor: Actor, rival: Actor, name: str) -> None:
    class Report:
        id = 5

        @actor.locked(name + ":{self.id}:{order.owner.name}:{parts[0]}:{size:03d}")
        def build(self, order: object, parts: list[str], size: int = 7) -> bool:
            return rival.try_acquire(f"{name}:5:ann:x:007") is None

    assert Report().build(SimpleNamespace(owner=SimpleNamespace(name="ann")), ["x"])


def test_a_busy_lock_keeps_the_function_from_being_called(
    actor: Actor, rival: Actor, name: str
) -> None:
    @actor.locked(name, wait=0)
    def build() -> None:
        pytest.fail("called")

    lease = rival.acquire(name)
    with pytest.raises(holdfast.Busy):
        build()
    lease.release()


def test_its_exception_goes_through_and_the_lock_is_free(
    actor: Actor, rival: Actor, name: str
) -> None:
    @actor.locked(name)
    def build() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        build()
    lease = rival.acquire(name, wait=5)
    lease.release()
