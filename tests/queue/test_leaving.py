"""Who stops waiting leaves every queue: in time, cancelled, interrupted, or with its client."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from rig.actor import AsyncActor
from rig.lineup import HEARTBEAT, SLACK, LineUp, in_line, nothing_left
from rig.servers import holders
from rig.tasks import eventually
from rig.waiting import pass_time, until

CALM = 5.0


def waiting(nodes: list[ThrowawayNode], name: str, count: int = 1) -> bool:
    return all(len(in_line(node, name)) == count for node in nodes)


@pytest.mark.parametrize("wait", [0.05, 0.5])
def test_a_timeout_is_never_early_and_hardly_late(
    nodes: list[ThrowawayNode],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    wait: float,
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name, ttl=60)
    begun = time.monotonic()
    with pytest.raises(holdfast.TimedOut) as caught:
        actor.acquire(name, wait=wait)
    assert wait <= time.monotonic() - begun < wait + SLACK
    assert caught.value.waited >= wait
    until(lambda: waiting(nodes, name, 0))
    assert line.look.waiters() == []
    lease.release()


def test_a_lock_that_is_handed_over_while_time_runs_out_is_had_or_left(
    lone: ThrowawayNode, new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up([lone], name), new_actor([lone])
    line.lenient = True
    for attempt in range(6):
        lease = actor.acquire(name, ttl=60)
        guest = line.join(actor, wait=0.3)
        pass_time(0.26 + attempt / 100)
        lease.release()
        until(lambda guest=guest: guest.has_it or guest.error)
        guest.end()
        assert guest.has_it or isinstance(guest.error, holdfast.TimedOut)
        until(lambda: nothing_left([lone], name), within=0.25, what="for what was reserved")


def test_who_leaves_makes_room_for_the_next(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    line.lenient = True
    lease = actor.acquire(name, ttl=60)
    first = line.join(actor)
    impatient = line.join(actor, wait=0.5)
    third = line.join(actor)
    assert isinstance(impatient.fail(), holdfast.TimedOut)
    line.expect(2)
    lease.release()
    first.be_served()
    first.leave()
    third.be_served()
    third.leave()


async def test_a_cancelled_task_leaves_the_line(healthy: list[ThrowawayNode], name: str) -> None:
    async with holdfast.aio.connect(*(node.url for node in healthy), node_timeout=CALM) as client:
        lease = await client.lock(name, ttl=60).acquire()
        tasks = []
        for number in range(3):
            tasks.append(asyncio.create_task(client.lock(name, ttl=60).acquire(wait=None)))
            await eventually(lambda number=number: waiting(healthy, name, number + 1))
        first, second, third = tasks
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        await eventually(lambda: waiting(healthy, name, 2))
        first.cancel()
        await eventually(lambda: waiting(healthy, name, 1))
        await lease.release()
        await (await third).release()
        await eventually(lambda: nothing_left(healthy, name))


async def test_who_is_cancelled_when_called_hands_on(
    healthy: list[ThrowawayNode], name: str
) -> None:
    """At every turn of the loop after the release; or it has had the lock before."""
    async with holdfast.aio.connect(*(node.url for node in healthy), node_timeout=CALM) as client:
        for turns in range(60):
            own = f"{name}:{turns}"
            lease = await client.lock(own, ttl=60).acquire()
            first = asyncio.create_task(client.lock(own, ttl=60).acquire(wait=None))
            await eventually(lambda own=own: waiting(healthy, own))
            second = asyncio.create_task(client.lock(own, ttl=60).acquire(wait=None))
            await eventually(lambda own=own: waiting(healthy, own, 2))
            releasing = asyncio.create_task(lease.release())
            for _ in range(turns):
                await asyncio.sleep(0)
            first.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await first).release()
            await releasing
            async with asyncio.timeout(HEARTBEAT + SLACK):
                await (await second).release()
            await eventually(lambda own=own: nothing_left(healthy, own))


async def test_cancelled_at_every_turn_nobody_stays_in_line(
    healthy: list[ThrowawayNode], name: str
) -> None:
    async with holdfast.aio.connect(*(node.url for node in healthy), node_timeout=CALM) as client:
        async with client.lock(name, ttl=60) as lease:
            for turns in range(80):
                task = asyncio.create_task(client.lock(name, ttl=60).acquire(wait=None))
                for _ in range(turns):
                    await asyncio.sleep(0)
                assert task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await eventually(lambda: waiting(healthy, name, 0))
            await eventually(lambda: holders(healthy, name) == [lease.token] * 3)
        await eventually(lambda: nothing_left(healthy, name))


async def test_cancelled_at_every_turn_of_a_first_wait(
    healthy: list[ThrowawayNode], name: str
) -> None:
    """With a new client, which does not know yet whether it can be called."""
    urls = [node.url for node in healthy]
    async with (
        holdfast.aio.connect(*urls, node_timeout=CALM) as holder,
        holder.lock(name, ttl=60) as lease,
    ):
        for turns in range(0, 120, 4):
            async with holdfast.aio.connect(*urls, node_timeout=CALM) as client:
                task = asyncio.create_task(client.lock(name, ttl=60).acquire(wait=None))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        await eventually(lambda: waiting(healthy, name, 0))
        await eventually(lambda: holders(healthy, name) == [lease.token] * 3)


@pytest.mark.parametrize("count", [1, 3])
def test_ctrl_c_in_line(
    healthy: list[ThrowawayNode],
    process: Callable,
    connect: Callable[..., holdfast.Client],
    line_up: Callable[..., LineUp],
    name: str,
    count: int,
) -> None:
    nodes = healthy[:count]
    line = line_up(nodes, name)
    lease = connect(*(node.url for node in nodes)).lock(name, ttl=60).acquire()
    interrupted = process(nodes, name)
    line.expect(1)
    interrupted.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in interrupted.communicate()[1]
    assert line.look.waiters() == [], "it has said so before it ended"
    lease.release()
    assert nothing_left(nodes, name)


def test_closing_a_client_ends_its_waits(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, holder = line_up(nodes, name), new_actor(nodes)
    leaving = new_actor(nodes)
    lease = holder.acquire(name, ttl=60)
    guest = line.join(leaving)
    next_one = line.join(holder)
    if isinstance(leaving, AsyncActor):
        leaving.call(leaving.client.close)
    else:
        leaving.client.close()
    assert isinstance(guest.fail(within=2 * HEARTBEAT + SLACK), holdfast.ClientClosed)
    lease.release()
    next_one.be_served(within=HEARTBEAT + SLACK)
    next_one.leave()


@pytest.mark.parametrize("protocol", [2, 3])
def test_who_waits_while_its_client_is_closed_leaves_the_line(
    lone: ThrowawayNode, in_thread: Callable, name: str, protocol: int
) -> None:
    with holdfast.connect(lone.url) as other:
        lease = other.lock(name, ttl=60).acquire()
        client = holdfast.connect(f"{lone.url}?protocol={protocol}")
        threads = [in_thread(client.lock(name).acquire) for _ in range(3)]
        until(lambda: len(in_line(lone, name)) == 3)
        client.close()
        for thread in threads:
            with pytest.raises(holdfast.ClientClosed):
                thread.result()
        assert in_line(lone, name) == []
        lease.release()


async def test_and_so_it_does_with_asyncio(lone: ThrowawayNode, name: str) -> None:
    async with holdfast.aio.connect(lone.url) as other:
        lease = await other.lock(name, ttl=60).acquire()
        client = holdfast.aio.connect(lone.url)
        tasks = [asyncio.create_task(client.lock(name).acquire()) for _ in range(3)]
        await eventually(lambda: len(in_line(lone, name)) == 3)
        await client.close()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(outcome, holdfast.ClientClosed)
        begun = time.monotonic()
        await eventually(lambda: in_line(lone, name) == [])
        assert time.monotonic() - begun < 2 * HEARTBEAT, "not because nodes have forgotten it"
        await lease.release()
