"""A lease that nobody can release any more is found out, and lapses."""

import contextlib
import gc
import threading
import warnings
from collections.abc import Callable, Iterator

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, urls
from rig.servers import holders
from rig.tasks import eventually
from rig.waiting import pass_time, until

TTL = 0.6

Make = Callable[..., Party]


@contextlib.contextmanager
def said_aloud() -> Iterator[list[str]]:
    """Write down the texts of warnings, and keep nothing else of them."""
    texts: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: texts.append(str(message))
        yield texts


def test_a_leaked_lease(healthy: list[ThrowawayNode], party: Make, name: str, colour: str) -> None:
    holder = party(colour, *urls(healthy))
    lease = holder.acquire(name, ttl=TTL)
    until(lambda: holder.client.stats().renewals)
    with said_aloud() as caught:
        del lease
        gc.collect()
    until(lambda: holders(healthy, name) == [], within=3)
    until(lambda: holder.client.stats().held == 0, within=3)
    assert len(caught) == 1
    assert name in caught[0]
    assert "hint" in caught[0]


def test_a_leaked_lease_lapses_while_its_warning_is_looked_at(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    """A recorded warning knows its source: that must not keep the lease going."""
    holder = party("blocking", *urls(healthy))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lease = holder.acquire(name, ttl=TTL)
        until(lambda: holder.client.stats().renewals)
        del lease
        until(lambda: holders(healthy, name) == [], within=1.2)
        assert len(caught) == 1


def test_a_leak_in_a_cycle(healthy: list[ThrowawayNode], party: Make, name: str) -> None:
    holder = party("blocking", *urls(healthy))
    cycle: list[object] = [holder.acquire(name, ttl=TTL)]
    cycle.append(cycle)
    with said_aloud() as caught:
        del cycle
        gc.collect()
    assert name in caught[0]
    until(lambda: holders(healthy, name) == [], within=3)


def test_no_warning_for_what_is_in_order(
    healthy: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    """All warnings are errors here."""
    holder = party(colour, *urls(healthy))
    holder.acquire(name, ttl=TTL).release()
    holder.acquire(f"{name}:ends", ttl=TTL, renew=False)
    lost = holder.acquire(f"{name}:lost", ttl=0.1, renew=False)
    holder.wait_lost(lost)
    del lost
    with holder.actor.holding(name, ttl=30):  # longer than the collector ever takes
        gc.collect()
    gc.collect()


def test_try_lock_is_kept_by_name(
    healthy: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(healthy))
    assert holder.actor.try_lock(name, ttl=TTL)
    gc.collect()
    pass_time(1.5 * TTL)
    assert holder.client.stats().held == 1
    holder.actor.release_lock(name)
    until(lambda: holders(healthy, name) == [])
    assert holder.client.stats().lost == 0


def test_try_lock_that_was_lost_is_forgotten_in_the_end(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    holder = party("blocking", *urls(healthy), guard=False)
    for number in range(200):
        holder.client.try_lock(f"{name}:{number}", ttl=0.2, renew=False)
    until(lambda: holder.client.stats().held == 0)
    assert len(leases_of(holder)) > 1
    for number in range(200, 600):
        with contextlib.suppress(holdfast.Unreachable):  # a busy machine may be too slow for it
            holder.client.try_lock(f"{name}:{number}", ttl=0.02, renew=False)
    until(lambda: holder.client.stats().held == 0)
    assert len(leases_of(holder)) < 400


def leases_of(holder: Party) -> list[holdfast.Lease]:
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, holdfast.Lease) and each._home is holder.client._home
    ]


def test_try_lock_that_was_lost_is_a_loss_by_name(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    holder = party("blocking", *urls(healthy))
    assert holder.client.try_lock(name, ttl=0.2, renew=False)
    until(lambda: holder.client.stats().lost == 1)
    with pytest.raises(holdfast.LeaseLost):
        holder.client.release_lock(name)


def test_a_thread_that_ends_with_a_lease_by_name(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    holder = party("blocking", *urls(healthy))
    with said_aloud() as caught:
        thread = threading.Thread(target=holder.client.try_lock, args=(name, TTL))
        thread.start()
        thread.join()
        gc.collect()
        assert name in caught[0]
    until(lambda: holders(healthy, name) == [], within=3)


async def test_a_task_that_ends_with_a_lease(healthy: list[ThrowawayNode], name: str) -> None:
    async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:

        async def work() -> None:
            await client.lock(name, ttl=TTL).acquire()

        with said_aloud() as caught:
            await work()
            gc.collect()
        assert name in caught[0]
        await eventually(lambda: holders(healthy, name) == [])
        assert client.stats().lost == 0


def test_a_block_whose_end_never_came_is_left_to_lapse(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    """As if an interruption had struck at the very end: the lock object goes, the lease stays."""
    holder = party("blocking", *urls(healthy))
    lock = holder.client.lock(name, ttl=TTL)
    lease = lock.__enter__()
    del lock
    gc.collect()
    assert lease.lost.reason is holdfast.LossReason.OWNER_DIED
    until(lambda: holders(healthy, name) == [])
