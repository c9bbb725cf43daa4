"""Cancelled at any await, nothing stays behind: no key, no waiter, no broken connection."""

import asyncio

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from rig.servers import holders
from rig.tasks import eventually

MOST_TURNS = 60


async def cancelled_after(turns: int, task: asyncio.Task) -> bool:
    """Cancel a task after so many turns of the loop; True if it was not done before."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return task.cancel()


async def test_acquire_cancelled_at_every_turn_leaves_nothing(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    async with client:
        finished = interrupted = 0
        for turns in range(MOST_TURNS):
            own = f"{name}:{turns}"
            task = asyncio.create_task(client.lock(own, ttl=60).acquire())
            await cancelled_after(turns, task)
            try:
                lease = await task
            except asyncio.CancelledError:
                interrupted += 1
                # Long before the ttl: the release was told behind the request.
                await eventually(lambda own=own: holders(healthy, own) == [])
            else:
                finished += 1
                assert lease.is_held
                await lease.release()
        assert interrupted, "a task can be cancelled in mid-round"
        assert finished or interrupted == MOST_TURNS


async def test_a_wait_cancelled_at_every_turn_leaves_nothing(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    async with client:
        async with client.lock(name, ttl=60) as lease:
            for turns in range(0, MOST_TURNS, 3):
                task = asyncio.create_task(client.lock(name).acquire(wait=None))
                assert await cancelled_after(turns, task)
                with pytest.raises(asyncio.CancelledError):
                    await task
            await eventually(lambda: set(holders(healthy, name)) == {lease.token})
        assert holders(healthy, name) == []


async def test_release_cancelled_at_every_turn_still_releases(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    async with client:
        for turns in range(MOST_TURNS):
            lease = await client.lock(f"{name}:{turns}", ttl=60).acquire()
            task = asyncio.create_task(lease.release())
            if await cancelled_after(turns, task) and turns == 0:
                await lease.release()  # it never began: that was not a release
                continue
            await asyncio.gather(task, return_exceptions=True)
            await eventually(lambda turns=turns: holders(healthy, f"{name}:{turns}") == [])


async def test_a_cancelled_body_releases(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with client.lock(name, ttl=60):
            inside.set()
            await asyncio.Event().wait()

    async with client:
        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: holders(healthy, name) == [])


async def test_a_timeout_around_acquire(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    async with client, client.lock(name, ttl=60) as lease:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.lock(name).acquire(wait=None)
        await eventually(lambda: set(holders(healthy, name)) == {lease.token})


async def test_a_failing_task_group_releases_what_its_tasks_hold(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    everybody = asyncio.Barrier(11)

    async def hold(number: int) -> None:
        async with client.lock(f"{name}:{number}", ttl=60):
            await everybody.wait()
            await asyncio.Event().wait()

    async def fail() -> None:
        await everybody.wait()
        raise KeyError("mine")

    async def everything() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(10):
                group.create_task(hold(number))
            group.create_task(fail())

    async with client:
        with pytest.raises(ExceptionGroup) as caught:
            await everything()
        assert [type(error) for error in caught.value.exceptions] == [KeyError]
        for number in range(10):
            await eventually(lambda number=number: holders(healthy, f"{name}:{number}") == [])


async def test_thousands_of_cancelled_tasks_leave_the_connection_in_step(
    client: holdfast.aio.AsyncClient, healthy: list[ThrowawayNode], name: str
) -> None:
    async with client:
        tasks = [
            asyncio.create_task(client.lock(f"{name}:{number}", ttl=60).acquire())
            for number in range(2000)
        ]
        for number, task in enumerate(tasks):
            if number % 3:
                await asyncio.sleep(0)
                task.cancel()
        leases = [
            lease
            for lease in await asyncio.gather(*tasks, return_exceptions=True)
            if isinstance(lease, holdfast.aio.AsyncLease)
        ]
        assert leases
        for lease in leases[:50]:
            await eventually(lambda lease=lease: lease.token in holders(healthy, lease.name))
        await asyncio.gather(*(lease.release() for lease in leases))
        for node in healthy:
            await eventually(lambda node=node: not _keys(node, name))


def _keys(node: ThrowawayNode, name: str) -> bool:
    """True if there is a lock of a name that begins so; marks of fences stay."""
    return node.call("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", f"*{name}:*}}") != "0"
