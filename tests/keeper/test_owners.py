"""A lease is renewed for the living: a thread, a task, or the whole process."""

import _thread
import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, pttl, renewed, threads, urls
from processes.test_fork import in_child
from rig.servers import holders
from rig.tasks import eventually
from rig.waiting import pass_time, until

TTL = 0.6

Make = Callable[..., Party]


@pytest.fixture
def holder(healthy: list[ThrowawayNode], party: Make) -> Party:
    return party("blocking", *urls(healthy))


@pytest.fixture
def client(healthy: list[ThrowawayNode]) -> holdfast.aio.AsyncClient:
    return holdfast.aio.connect(*urls(healthy), node_timeout=5)


def from_thread(work: Callable[[], Any]) -> Any:
    """Return what a thread returned that has ended by now."""
    result: Future[Any] = Future()
    thread = threading.Thread(target=lambda: result.set_result(work()))
    thread.start()
    thread.join()
    return result.result()


def test_a_thread_that_ends(holder: Party, healthy: list[ThrowawayNode], name: str) -> None:
    lease = from_thread(lambda: holder.acquire(name, ttl=1))
    assert lease.is_held
    assert holder.wait_lost(lease) is holdfast.LossReason.OWNER_DIED
    left = [pttl(node, name) for node in healthy]
    assert sum(each > 0 for each in left) >= 2, "it lapses, and is not released early"
    assert max(left) < 1000
    assert not lease.is_held
    until(lambda: holders(healthy, name) == [])
    with pytest.raises(holdfast.LeaseLost, match="owner died"):
        lease.release()


def test_a_thread_that_python_did_not_start(holder: Party, name: str) -> None:
    result: Future[Any] = Future()
    _thread.start_new_thread(lambda: result.set_result(holder.acquire(name, ttl=TTL)), ())
    lease = result.result(20)
    reason = holder.wait_lost(lease, 1)
    with contextlib.suppress(holdfast.LeaseError):
        lease.release()
    assert reason is holdfast.LossReason.OWNER_DIED


def test_transfer_to_another_thread(
    holder: Party, healthy: list[ThrowawayNode], name: str, in_thread: Callable[..., Future]
) -> None:
    lease = from_thread(lambda: holder.acquire(name, ttl=TTL))
    go_on = threading.Event()

    def work() -> None:
        lease.transfer()
        go_on.wait(20)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        pass_time(2 * TTL)
        assert lease.is_held
    finally:
        go_on.set()
        worker.join()
    assert holder.wait_lost(lease) is holdfast.LossReason.OWNER_DIED


def test_transfer_to_a_given_thread(holder: Party, name: str) -> None:
    lease = holder.acquire(name, ttl=TTL)
    go_on = threading.Event()
    worker = threading.Thread(target=go_on.wait, args=(20,))
    worker.start()
    lease.transfer(worker)
    renewed(holder.client)
    go_on.set()
    worker.join()
    assert holder.wait_lost(lease) is holdfast.LossReason.OWNER_DIED


def test_transfer_to_a_thread_that_is_not_started_yet(holder: Party, name: str) -> None:
    lease = holder.acquire(name, ttl=TTL)
    go_on = threading.Event()
    worker = threading.Thread(target=go_on.wait, args=(20,))
    lease.transfer(worker)
    pass_time(TTL)
    worker.start()
    try:
        assert lease.is_held
        lease.release()
    finally:
        go_on.set()
        worker.join()


def test_the_whole_process(holder: Party, name: str) -> None:
    given = from_thread(lambda: holder.acquire(name, ttl=TTL))
    given.transfer(None)
    made = from_thread(lambda: holder.acquire(f"{name}:made", ttl=TTL, owner=None))
    pass_time(2 * TTL)
    assert given.is_held
    assert made.is_held
    given.release()
    made.release()


@pytest.mark.filterwarnings("ignore:the lease of lock:ResourceWarning")
def test_a_transferred_lease_of_try_lock_is_still_known_by_name(holder: Party, name: str) -> None:
    holder.client.try_lock(name, ttl=5).transfer()
    holder.client.release_lock(name)


def test_what_makes_no_sense(holder: Party, name: str) -> None:
    lease = holder.acquire(name)
    for owner in ("caller", 1, object(), threading.current_thread):
        with pytest.raises(holdfast.BadInput, match="owner"):
            lease.transfer(owner)
    for owner in ("thread", 1, threading.current_thread(), True):
        with pytest.raises(holdfast.BadInput, match="owner"):
            holder.client.lock(name, owner=owner)
    assert lease.is_held
    lease.release()
    with pytest.raises(holdfast.NotHeld):
        lease.transfer()


def test_a_lost_lease_cannot_be_transferred(holder: Party, name: str) -> None:
    lease = holder.acquire(name, ttl=0.1, renew=False)
    holder.wait_lost(lease)
    with pytest.raises(holdfast.LeaseLost):
        lease.transfer(None)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_holds_and_renews_nothing(
    holder: Party, healthy: list[ThrowawayNode], name: str
) -> None:
    lease = holder.acquire(name, ttl=TTL)
    renewed(holder.client)

    def child() -> None:
        assert not lease.is_held
        assert threads() == []
        for act in (lease.transfer, lambda: lease.transfer(None), lease.release, lease.renew):
            with pytest.raises(holdfast.NotHeld):
                act()
        stats = holder.client.stats()
        assert (stats.held, stats.renewals) == (0, 0)
        mine = holder.acquire(f"{name}:child", ttl=TTL)
        renewed(holder.client, 2)
        assert holder.client.stats().held == 1
        assert mine.release() is holdfast.Released.FREED

    in_child(child)
    assert lease.is_held
    renewed(holder.client, 2)
    assert lease.release() is holdfast.Released.FREED
    until(lambda: holders(healthy, name) == [])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_keeps_none_of_the_keepers_sockets(holder: Party, name: str) -> None:
    before = sockets()
    lease = holder.acquire(name, ttl=TTL)
    renewed(holder.client)
    assert sockets() > before

    def child() -> None:
        assert sockets() <= before - 3  # without the workers' either

    in_child(child)
    lease.release()


def sockets() -> int:
    count = 0
    for each in os.listdir("/proc/self/fd"):  # noqa: PTH208  # a descriptor may be gone by now
        try:
            count += os.readlink(f"/proc/self/fd/{each}").startswith("socket:")  # noqa: PTH115  # as above
        except OSError:
            continue
    return count


# -- tasks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["done", "cancelled", "failed"])
async def test_a_task_that_ends(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str, how: str
) -> None:
    leases: list[holdfast.aio.AsyncLease] = []

    async def work() -> None:
        leases.append(await client.lock(name, ttl=1).acquire())
        if how == "cancelled":
            await asyncio.sleep(60)
        if how == "failed":
            raise ValueError

    async with client:
        task = asyncio.create_task(work())
        await eventually(lambda: leases)
        if how == "cancelled":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await leases[0].lost.wait(20) is holdfast.LossReason.OWNER_DIED
        assert len(holders(healthy, name)) >= 2, "it lapses, and is not released early"
        await eventually(lambda: holders(healthy, name) == [])


async def test_transfer_between_tasks(client: holdfast.aio.AsyncClient, name: str) -> None:
    async def take(number: int) -> holdfast.aio.AsyncLease:
        return await client.lock(f"{name}:{number}", ttl=TTL).acquire()

    async with client:
        taken, given, free = [await asyncio.create_task(take(number)) for number in range(3)]
        taken.transfer()
        free.transfer(None)
        stop = asyncio.Event()
        other = asyncio.create_task(stop.wait())
        given.transfer(other)
        await asyncio.sleep(2 * TTL)
        assert (taken.is_held, given.is_held, free.is_held) == (True, True, True)
        stop.set()
        await other
        assert await given.lost.wait(20) is holdfast.LossReason.OWNER_DIED
        assert taken.is_held
        assert free.is_held
        for owner in ("caller", threading.current_thread(), 1):
            with pytest.raises(holdfast.BadInput, match="owner"):
                taken.transfer(owner)
        await taken.release()
        await free.release()


async def test_the_whole_process_and_tasks_that_only_acquire(
    client: holdfast.aio.AsyncClient, name: str
) -> None:
    async def take() -> holdfast.aio.AsyncLease:
        return await client.lock(f"{name}:0", ttl=TTL, owner=None).acquire()

    async with client:
        leases = [await asyncio.create_task(take())]
        leases.append(await asyncio.wait_for(client.lock(f"{name}:1", ttl=TTL).acquire(), 20))
        leases += await asyncio.gather(
            client.lock(f"{name}:2", ttl=TTL).acquire(),
            client.lock(f"{name}:3", ttl=TTL).try_acquire(),
        )
        await asyncio.sleep(2 * TTL)
        assert [lease.is_held for lease in leases] == [True] * 4
        for lease in leases:
            await lease.release()


async def test_a_task_that_is_collected(client: holdfast.aio.AsyncClient, name: str) -> None:
    async with client:
        lease = await client.lock(name, ttl=TTL).acquire()
        task = asyncio.create_task(asyncio.sleep(0))
        lease.transfer(task)
        await task
        del task
        assert await lease.lost.wait(20) is holdfast.LossReason.OWNER_DIED


def test_who_has_ended_cannot_become_the_owner(holder: Party, name: str) -> None:
    lease = holder.acquire(name, ttl=5)
    ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    with pytest.raises(holdfast.BadInput, match="has ended"):
        lease.transfer(ended)
    lease.release()


def test_a_lease_that_is_not_renewed_needs_no_owner(holder: Party, name: str) -> None:
    lease = from_thread(lambda: holder.acquire(name, ttl=TTL, renew=False))
    assert holder.wait_lost(lease) is holdfast.LossReason.EXPIRED


def test_what_the_process_holds_any_thread_releases_by_name(holder: Party, name: str) -> None:
    from_thread(lambda: holder.client.try_lock(name, ttl=5, owner=None) is not None)
    holder.client.release_lock(name)
    lease = from_thread(lambda: holder.acquire(f"{name}:given", ttl=5))
    lease.transfer(None)
    holder.client.release_lock(f"{name}:given")
    assert not lease.is_held
