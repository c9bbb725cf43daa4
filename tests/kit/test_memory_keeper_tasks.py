"""Leases of tasks are renewed as virtual time passes, and their callbacks run on their loop."""

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast import LossReason, events
from holdfast.testing import Memory

DAY = 86_400


def run(main: Callable[[], Awaitable[Any]]) -> None:
    """Run a test's coroutine, with a deadline that only a hung one meets."""

    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())


def test_what_is_held_stays_held(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client()
        async with client.lock("a", ttl=30) as lease:
            memory.advance(60)
            assert lease.is_held
            with pytest.raises(holdfast.TimedOut):
                await client.lock("a").acquire(wait=60)
            assert lease.is_held
            assert memory.holder("a") == lease.token
            assert client.stats().renewals == 12
        assert client.stats().held == 0

    run(main)
    assert memory.now == 120


def test_without_renewals_a_lease_ends(memory: Memory) -> None:
    async def main() -> None:
        lease = await memory.async_client(renew=False).lock("a", ttl=30).acquire()
        assert await lease.lost.wait() is LossReason.EXPIRED
        assert memory.now == 29.348

    run(main)


def test_a_lease_outlives_its_task_by_no_more_than_its_ttl(memory: Memory) -> None:
    client = memory.async_client()

    async def leave_it() -> holdfast.aio.AsyncLease:
        return await client.lock("a", ttl=30).acquire()

    async def main() -> None:
        ours = await asyncio.create_task(leave_it())
        assert await ours.lost.wait() is LossReason.OWNER_DIED
        assert memory.now == 10
        memory.advance(20.01)
        handed = await asyncio.create_task(leave_it())
        handed.transfer()
        memory.advance(60)
        await handed.release()

    run(main)


def test_waiting_for_the_loss_lets_time_pass(memory: Memory) -> None:
    async def main() -> None:
        lease = await memory.async_client().lock("a", ttl=30).acquire()
        assert await lease.lost.wait(15) is None
        assert memory.now == 15
        memory.lose("a")
        assert await lease.lost.wait() is LossReason.DELETED
        assert memory.now == 20, "at the renewal, and not at the end of the lease"

    run(main)


def test_a_day_of_it_takes_a_moment(memory: Memory) -> None:
    async def main() -> None:
        lease = await memory.async_client().lock("a").acquire()
        assert await lease.lost.wait() is LossReason.MAX_HOLD

    begun = time.monotonic()
    run(main)
    assert memory.now == DAY
    assert time.monotonic() - begun < 20


def test_a_waiter_waits_a_lease_out_in_the_end(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client(max_hold=3600)
        lease = await client.lock("a").acquire()
        async with client.lock("a"):
            assert lease.lost.reason is LossReason.MAX_HOLD

    run(main)
    assert 3600 <= memory.now < 3600 * 1.02


def test_a_watcher_does_not_make_time_pass_while_we_work() -> None:
    memory = Memory(grace=3600)

    async def main() -> None:
        async with memory.async_client().lock("a") as lease:
            watching = asyncio.create_task(lease.lost.wait())
            for _ in range(50):
                await asyncio.sleep(0)
        assert await watching is None

    run(main)
    assert memory.now == 0


def test_several_watchers_hear_of_it_at_the_same_time(memory: Memory) -> None:
    heard: list[tuple[LossReason | None, float]] = []

    async def watch(lease: holdfast.aio.AsyncLease) -> None:
        heard.append((await lease.lost.wait(), memory.now))

    async def main() -> None:
        lease = await memory.async_client().lock("a").acquire()
        memory.lose("a")
        await asyncio.gather(*(watch(lease) for _ in range(5)))

    run(main)
    assert heard == [(LossReason.DELETED, 10)] * 5


def test_callbacks_run_on_their_loop(memory: Memory) -> None:
    heard: list[tuple[str, float, asyncio.AbstractEventLoop]] = []

    def note(what: str) -> Callable[[holdfast.aio.AsyncLease], None]:
        return lambda _: heard.append((what, memory.now, asyncio.get_running_loop()))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        lease = await memory.async_client().lock("a", ttl=30).acquire()
        lease.on_endangered(note("endangered"))
        lease.on_lost(note("lost"))

        @lease.on_lost
        async def later(_: holdfast.aio.AsyncLease) -> None:
            await asyncio.sleep(0)
            note("lost, awaited")(lease)

        memory.fail()
        assert await lease.lost.wait() is LossReason.UNREACHABLE
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert heard == [
            ("endangered", pytest.approx(24.3, abs=0.2), loop),
            ("lost", 29.348, loop),
            ("lost, awaited", 29.348, loop),
        ]

    run(main)


def test_the_hook_is_called_at_once(memory: Memory) -> None:
    heard: list[tuple[float, str, bool]] = []

    def hear(event: events.Event) -> None:
        here = threading.current_thread() is threading.main_thread()
        heard.append((memory.now, type(event).__name__, here))

    async def main() -> None:
        async with memory.async_client(on_event=hear).lock("a") as lease:
            await lease.lost.wait(15)

    run(main)
    assert heard == [(0, "Acquired", True), (10, "Renewed", True), (15, "Released", True)]


def test_a_body_is_cancelled_when_its_lease_is_lost(memory: Memory) -> None:
    client, ends = memory.async_client(), list[float]()

    async def work() -> None:
        async with client.lock("a", ttl=30, cancel_on_lost=True):
            try:
                await asyncio.Event().wait()
            finally:
                ends.append(memory.now)

    async def main() -> None:
        working = asyncio.create_task(work())
        while memory.holder("a") is None:  # some turns of the loop
            await asyncio.sleep(0)
        memory.lose("a")
        other = memory.take("b", renew=True)
        with pytest.raises(holdfast.TimedOut):
            await client.lock("b").acquire(wait=60)
        with pytest.raises(holdfast.LeaseLost) as caught:
            await working
        assert caught.value.reason is LossReason.DELETED
        other.release()

    run(main)
    assert ends == [10], "before more time passed"


def test_a_wait_inside_a_body_is_cancelled_too(memory: Memory) -> None:
    client = memory.async_client()
    other = memory.take("b", renew=True)

    async def main() -> None:
        async with client.lock("a", cancel_on_lost=True):
            memory.lose("a")
            await client.lock("b").acquire()

    with pytest.raises(holdfast.LeaseLost):
        run(main)
    assert memory.now == 10
    other.release()


def test_what_is_forgotten_lapses(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client()
        lease = await client.lock("a", ttl=30).acquire()
        seen = weakref.ref(lease)
        with pytest.warns(ResourceWarning, match="'a' was dropped"):
            del lease
        assert seen() is None
        assert client.stats().held == 0
        async with client.lock("a", wait=60):
            assert 30 < memory.now < 31

    run(main)


def test_leases_of_both_kinds_are_renewed_by_whoever_waits(memory: Memory) -> None:
    async def main() -> None:
        ours = memory.client().lock("a").acquire()
        async with memory.async_client().lock("b") as lease:
            assert await lease.lost.wait(100) is None
            assert ours.is_held
            assert ours.lost.wait(100) is None
            assert lease.is_held
        ours.release()

    run(main)
    assert memory.now == 200
