"""Tasks in one universe: they contend, wait for one another, and can be cancelled anywhere."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.testing import Memory

TASKS = 12


def run(main: Callable[[], Awaitable[Any]]) -> None:
    """Run a test's coroutine, with a deadline that only a hung one meets."""

    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())


def test_tasks_never_overlap_and_all_get_in(memory: Memory) -> None:
    inside: list[int] = []
    order: list[int] = []

    async def work(number: int) -> None:
        async with memory.async_client().lock("a", ttl=1):
            inside.append(number)
            for _ in range(10):
                await asyncio.sleep(0)
                assert inside == [number]
            order.append(inside.pop())

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(TASKS)))

    run(main)
    assert sorted(order) == list(range(TASKS))


def test_the_same_tasks_get_in_in_the_same_order() -> None:
    def order() -> list[int]:
        memory, seen = Memory(), list[int]()
        client = memory.async_client()

        async def work(number: int) -> None:
            async with client.lock("a"):
                seen.append(number)
                await asyncio.sleep(0)

        async def main() -> None:
            await asyncio.gather(*(work(number) for number in range(TASKS)))

        run(main)
        return seen

    assert order() == order()


def test_no_lease_ends_while_its_task_works_in_real_time(memory: Memory) -> None:
    client = memory.async_client()

    async def work() -> None:
        async with client.lock("a", ttl=0.5):
            await asyncio.sleep(0.01)

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(5)))

    run(main)  # leaving a block would raise LeaseLost


def test_somebody_who_asks_again_and_again_does_not_shut_others_out(memory: Memory) -> None:
    client = memory.async_client()
    done = asyncio.Event()

    async def greedy() -> None:
        while not done.is_set():
            async with client.lock("a"):
                pass

    async def modest() -> None:
        async with client.lock("a"):
            done.set()

    async def main() -> None:
        await asyncio.gather(greedy(), modest())

    run(main)


def test_a_release_ends_a_wait_before_time_passes(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        lease = await client.lock("a", ttl=5).acquire()
        waiting = asyncio.create_task(client.lock("a").acquire(wait=20))
        for _ in range(50):
            await asyncio.sleep(0)
        assert memory.now == 0, "we are at work"
        await lease.release()
        await (await waiting).release()
        assert memory.now < 0.2

    run(main)


def test_one_task_never_waits_for_itself(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        async with client.lock("a"):
            with pytest.raises(holdfast.TimedOut):
                await client.lock("a").acquire(wait=20)

    begun = time.monotonic()
    run(main)
    assert time.monotonic() - begun < 10
    assert memory.now == 20


def test_a_thread_does_not_wait_for_what_it_holds_below_its_loop() -> None:
    memory = Memory(grace=3600)
    taken = memory.take("a", ttl=300)

    async def main() -> None:
        with pytest.raises(holdfast.TimedOut):
            await asyncio.create_task(memory.async_client().lock("a").acquire(wait=20))

    run(main)
    taken.renew()


def test_a_task_that_has_ended_is_not_at_work() -> None:
    memory = Memory(grace=3600)
    client = memory.async_client()

    async def leave_it_to_us() -> holdfast.aio.AsyncLease:
        return await client.lock("a", ttl=10).acquire()

    async def main() -> None:
        lease = await asyncio.create_task(leave_it_to_us())
        async with client.lock("a", wait=20):
            assert 10 < memory.now < 11
        assert lease.lost.reason is holdfast.LossReason.OWNER_DIED

    run(main)


def test_a_holder_that_awaits_the_waiter_costs_the_grace_and_no_more() -> None:
    memory = Memory(grace=0.05)
    client = memory.async_client()

    async def main() -> None:
        async with client.lock("a"):
            with pytest.raises(holdfast.TimedOut) as caught:
                await asyncio.create_task(client.lock("a").acquire(wait=60))
        assert caught.value.waited == 60

    run(main)


def test_advance_wakes_tasks(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        lease = await client.lock("a", ttl=10, renew=False).acquire()
        waiting = asyncio.create_task(client.lock("a").acquire(wait=20))
        await asyncio.sleep(0)
        memory.advance(11)
        assert not lease.is_held
        async with await waiting:
            assert memory.now == 11

    run(main)


def test_blocking_and_asyncio_clients_contend(memory: Memory) -> None:
    async def main() -> None:
        lease = memory.client().lock("a").acquire()
        assert await memory.async_client().try_lock("a") is None
        lease.release()
        async with memory.async_client().lock("a"):
            assert memory.client().try_lock("a") is None

    run(main)


def test_a_blocking_wait_on_the_loops_thread_does_not_wait_for_its_tasks() -> None:
    memory, inside = Memory(grace=3600), asyncio.Event()

    async def main() -> None:
        held = asyncio.create_task(hold())
        await inside.wait()
        with pytest.raises(holdfast.TimedOut):
            memory.client().lock("a").acquire(wait=20)
        held.cancel()

    async def hold() -> None:
        async with memory.async_client().lock("a"):
            inside.set()
            await asyncio.Event().wait()

    run(main)


def test_acquire_cancelled_at_every_turn_leaves_nothing(memory: Memory) -> None:
    client, interrupted = memory.async_client(), 0

    async def main() -> None:
        nonlocal interrupted
        for turns in range(8):
            task = asyncio.create_task(client.lock("a").acquire())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await (await task).release()
            except asyncio.CancelledError:
                interrupted += 1
            assert memory.holder("a") is None

    run(main)
    assert 2 <= interrupted < 8


def test_a_wait_cancelled_at_every_turn_leaves_nothing(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        async with client.lock("a") as lease:
            for turns in range(12):
                task = asyncio.create_task(client.lock("a").acquire(wait=None))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert memory.holder("a") == lease.token
        assert memory.holder("a") is None
        assert memory.now == 0

    run(main)


def test_release_cancelled_at_every_turn_still_releases(memory: Memory) -> None:
    client = memory.async_client()

    async def main() -> None:
        for turns in range(1, 6):
            lease = await client.lock("a").acquire()
            task = asyncio.create_task(lease.release())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert memory.holder("a") is None

    run(main)
