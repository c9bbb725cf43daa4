"""Standing in line in memory: in order, called at once, whatever makes time pass."""

import asyncio
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import holdfast
from holdfast.testing import Memory
from rig.waiting import until

WAITERS = 5


@pytest.fixture(params=[1, 3, 5], ids=lambda count: f"memory-{count}")
def memory(request: pytest.FixtureRequest) -> Memory:
    """Return a universe in which whoever has a lease is at work for as long as it takes."""
    return Memory(request.param, grace=3600)


class Queue:
    """Threads that wait for a lock one behind the other, and what has become of them."""

    def __init__(self, memory: Memory, in_thread: Callable) -> None:
        self.got: list[int] = []
        self.times: list[float] = []
        self._memory = memory
        self._threads = [self._started(in_thread, number) for number in range(WAITERS)]

    def _started(self, in_thread: Callable, number: int) -> object:
        thread = in_thread(self._work, number)
        until(lambda: len(self._memory.client().lock("a").waiters()) == number + 1)
        return thread

    def _work(self, number: int) -> None:
        with self._memory.client(label=f"waiter {number}").lock("a", wait=1000):
            self.got.append(number)
            self.times.append(self._memory.now)

    def served(self) -> list[int]:
        """Wait until all of them had the lock; return in which order."""
        for thread in self._threads:
            thread.result()
        return self.got


def test_threads_are_served_in_order_and_at_once(memory: Memory, in_thread: Callable) -> None:
    with memory.client().lock("a"):
        queue = Queue(memory, in_thread)
    assert queue.served() == list(range(WAITERS))
    assert queue.times == [0.0] * WAITERS


async def stand_in_line(memory: Memory, count: int) -> None:
    """Let other tasks go on until so many wait."""
    lock = memory.async_client().lock("a")
    async with asyncio.timeout(20):
        while len(await lock.waiters()) < count:
            await asyncio.sleep(0)


def test_tasks_are_served_in_order_and_at_once(memory: Memory) -> None:
    got: list[int] = []

    async def work(number: int) -> None:
        async with memory.async_client().lock("a"):
            got.append(number)
            await asyncio.sleep(0)

    async def main() -> None:
        async with memory.async_client().lock("a"):
            tasks = [asyncio.create_task(work(number)) for number in range(WAITERS)]
            await stand_in_line(memory, WAITERS)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert got == list(range(WAITERS))
    assert memory.now == 0


def test_time_that_passes_in_one_go_costs_nobody_a_place(
    memory: Memory, in_thread: Callable
) -> None:
    with memory.client().lock("a"):
        queue = Queue(memory, in_thread)
        memory.advance(600)
    assert queue.served() == list(range(WAITERS))
    assert queue.times == [600.0] * WAITERS


def test_a_release_on_the_way_is_for_the_first(memory: Memory, in_thread: Callable) -> None:
    lease = memory.client().lock("a").acquire()
    queue = Queue(memory, in_thread)
    memory.after(5, lease.release)
    memory.advance(10)
    assert queue.served() == list(range(WAITERS))
    assert queue.times == [10.0] * WAITERS


def test_a_lease_that_ends_is_followed_by_the_first(memory: Memory, in_thread: Callable) -> None:
    lease = memory.client().lock("a", ttl=20, renew=False).acquire()
    queue = Queue(memory, in_thread)
    memory.advance(60)
    assert queue.served() == list(range(WAITERS))
    assert not lease.is_held


def test_nobody_comes_in_before_those_who_wait(memory: Memory, in_thread: Callable) -> None:
    client = memory.client()
    with client.lock("a"):
        queue = Queue(memory, in_thread)
    with client.lock("a"):
        assert queue.got == list(range(WAITERS))


@pytest.mark.parametrize("seconds", [0.001, 0.25, 3.0, 5_000.0])
def test_a_release_is_heard_of_at_once(memory: Memory, seconds: float) -> None:
    taken = memory.take("a", renew=True)
    memory.after(seconds, taken.release)
    with memory.client().lock("a"):
        assert memory.now == seconds


@pytest.mark.parametrize("seconds", [0.001, 0.25, 3.0, 5_000.0])
def test_so_it_is_by_tasks(memory: Memory, seconds: float) -> None:
    async def main() -> None:
        taken = memory.take("a", renew=True)
        memory.after(seconds, taken.release)
        async with memory.async_client().lock("a"):
            assert memory.now == seconds

    asyncio.run(main())


def test_a_lease_that_ends_is_noticed_within_milliseconds(memory: Memory) -> None:
    memory.take("a", ttl=20)
    with memory.client().lock("a"):
        assert 20 <= memory.now < 20.01


@pytest.mark.parametrize("wait", [0.001, 0.7, 1.0, 12.345, 1000.0])
def test_timeouts_are_exact(memory: Memory, wait: float) -> None:
    taken = memory.take("a", renew=True)
    with pytest.raises(holdfast.TimedOut) as caught:
        memory.client().lock("a").acquire(wait=wait)
    assert caught.value.waited == memory.now == wait
    assert memory.client().lock("a").waiters() == []
    taken.release()


def test_timeouts_of_many_are_exact(memory: Memory) -> None:
    client, waits = memory.async_client(), (7.5, 0.5, 100.0, 2.25)

    async def wait(seconds: float) -> float:
        with pytest.raises(holdfast.TimedOut) as caught:
            await client.lock("a").acquire(wait=seconds)
        return caught.value.waited

    async def main() -> None:
        waited = await asyncio.gather(*(wait(seconds) for seconds in waits))
        assert waited == list(waits)

    taken = memory.take("a", renew=True)
    asyncio.run(main())
    assert memory.now == 100
    taken.release()


def test_who_has_it_and_who_waits(memory: Memory, in_thread: Callable) -> None:
    lock = memory.client(label="the holder").lock("a")
    nodes = len(memory.client().addresses)
    assert lock.holder() is None
    assert lock.waiters() == []
    memory.advance(5)
    with lock as lease:
        queue = Queue(memory, in_thread)
        memory.advance(100)
        holder, waiters = lock.holder(), lock.waiters()
        assert holder is not None
        assert (holder.label, holder.pid, holder.fence) == ("the holder", os.getpid(), lease.fence)
        assert holder.remaining == pytest.approx(25, abs=5)
        assert [each.label for each in waiters] == [f"waiter {each}" for each in range(WAITERS)]
        assert {each.nodes for each in waiters} == {nodes}
        assert not any(each.called for each in waiters)
        began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=5)
        for each in (holder, *waiters):
            assert each.since is not None
            assert timedelta(0) <= each.since - began < timedelta(milliseconds=1)
    queue.served()


def test_tasks_can_look_too(memory: Memory) -> None:
    async def main() -> None:
        lock = memory.async_client(label="mine").lock("a")
        async with lock:
            other = memory.async_client(label="theirs").lock("a")
            task = asyncio.create_task(other.acquire())
            await stand_in_line(memory, 1)
            holder = await lock.holder()
            assert holder is not None
            assert holder.label == "mine"
            assert [each.label for each in await lock.waiters()] == ["theirs"]
        await (await task).release()
        assert await lock.holder() is None

    asyncio.run(main())


def test_somebody_else_is_called_so(memory: Memory) -> None:
    memory.take("a")
    holder = memory.client().lock("a").holder()
    assert holder is not None
    assert holder.label == "somebody else"


def test_a_waiter_that_is_cancelled_leaves_the_line(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        lock = client.lock("a")
        async with lock:
            first = asyncio.create_task(client.lock("a").acquire())
            await stand_in_line(memory, 1)
            second = asyncio.create_task(client.lock("a").acquire())
            await stand_in_line(memory, 2)
            assert len(await lock.waiters()) == 2
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert len(await lock.waiters()) == 1
        await (await second).release()
        assert memory.now == 0

    asyncio.run(main())


def test_one_that_is_cancelled_when_it_is_called_passes_it_on(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        lease = await client.lock("a").acquire()
        first = asyncio.create_task(client.lock("a").acquire())
        await stand_in_line(memory, 1)
        second = asyncio.create_task(client.lock("a").acquire())
        await stand_in_line(memory, 2)
        await lease.release()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await (await second).release()
        assert memory.now == 0

    asyncio.run(main())


def test_one_that_is_interrupted_leaves_the_line(memory: Memory) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    taken = memory.take("a", renew=True)
    memory.after(3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        memory.client().lock("a").acquire()
    assert memory.client().lock("a").waiters() == []
    taken.release()


def test_one_that_is_gone_without_a_word_is_forgotten(memory: Memory) -> None:
    taken = memory.take("a", renew=True)
    loop, client = asyncio.new_event_loop(), memory.async_client()
    waiting = client.lock("a").acquire()
    task = loop.create_task(waiting)
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(asyncio.sleep(0))
    lock = memory.client().lock("a")
    assert len(lock.waiters()) == 1
    waiting.close()
    loop.close()
    assert len(lock.waiters()) == 1, "nobody has heard that it is gone"
    memory.advance(4)
    assert lock.waiters() == []
    taken.release()
    assert memory.take("a")
    del task


def test_one_whose_thread_is_blocked_is_passed_over(memory: Memory) -> None:
    async def main() -> None:
        taken = memory.take("a", renew=True)
        task = asyncio.create_task(memory.async_client().lock("a").acquire())
        await stand_in_line(memory, 1)
        memory.after(3, taken.release)
        with memory.client().lock("a", wait=20):  # nothing else goes on here meanwhile
            assert memory.now < 5
        await (await task).release()

    asyncio.run(main())


def test_a_lock_that_is_deleted_is_noticed_within_a_heartbeat(memory: Memory) -> None:
    memory.take("a", renew=False, ttl=30)
    memory.after(10, lambda: memory.lose("a"))
    with memory.client().lock("a"):
        assert 10 <= memory.now <= 11


def test_a_closed_client_is_not_called(memory: Memory, in_thread: Callable) -> None:
    client, begun = memory.client(), threading.Event()
    with memory.client().lock("a") as lease:

        def wait() -> None:
            begun.set()
            client.lock("a").acquire()

        waiting = in_thread(wait)
        begun.wait()
        until(lambda: lease._home is not None and len(memory.client().lock("a").waiters()) == 1)
        client.close()
        with pytest.raises(holdfast.ClientClosed):
            waiting.result()
        assert memory.client().lock("a").waiters() == []
