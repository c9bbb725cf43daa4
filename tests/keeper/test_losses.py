"""Losses, and everybody who wants to hear of them."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import lock_key
from keeper.conftest import Party, delete, renewed, urls
from rig.servers import holders, token_on
from rig.tasks import eventually
from rig.waiting import pass_time, until

TTL = 0.6
DELETED = holdfast.LossReason.DELETED

Make = Callable[..., Party]


@pytest.fixture
def holder(healthy: list[ThrowawayNode], party: Make, colour: str) -> Party:
    return party(colour, *urls(healthy))


@pytest.fixture
def blocking(healthy: list[ThrowawayNode], party: Make) -> Party:
    return party("blocking", *urls(healthy))


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException | None]]:
    """Return what threads have raised."""
    caught: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: caught.append(args.exc_value))
    return caught


def test_deleted(holder: Party, healthy: list[ThrowawayNode], name: str) -> None:
    lease = holder.acquire(name, ttl=TTL)
    assert not lease.lost.is_set()
    assert lease.lost.reason is None
    delete(healthy, name)
    assert holder.wait_lost(lease) is DELETED
    assert lease.lost.is_set()
    assert lease.lost.reason is DELETED
    assert not lease.is_held
    for act in (lease.ensure_held, lease.renew, lease.release):
        with pytest.raises(holdfast.LeaseLost, match="deleted"):
            act()
    assert holders(healthy, name) == []


def test_taken(holder: Party, healthy: list[ThrowawayNode], name: str) -> None:
    lease = holder.acquire(name, ttl=TTL)
    for node in healthy[:2]:
        node.call("SET", lock_key(name), "somebody else", "PX", "60000")
    assert holder.wait_lost(lease) is holdfast.LossReason.TAKEN
    assert [token_on(node, name) for node in healthy[:2]] == ["somebody else"] * 2
    until(lambda: token_on(healthy[2], name) == "")  # ours is cleared away
    delete(healthy, name)


def test_deleted_at_a_minority(holder: Party, healthy: list[ThrowawayNode], name: str) -> None:
    lease = holder.acquire(name, ttl=TTL)
    until(lambda: len(holders(healthy, name)) == 3)
    delete(healthy[:1], name)
    renewed(holder.client, 3)
    assert lease.is_held
    assert lease.release() is holdfast.Released.FREED


def test_waiting_in_several_threads(
    blocking: Party, healthy: list[ThrowawayNode], name: str, in_thread: Callable
) -> None:
    lease = blocking.acquire(name, ttl=TTL)
    waiting = [in_thread(lease.lost.wait) for _ in range(10)]
    waiting += [in_thread(lease.lost.wait, 30) for _ in range(10)]
    short = in_thread(lease.lost.wait, 0.05)
    assert short.result(20) is None
    assert lease.lost.wait(0) is None
    assert lease.is_held
    delete(healthy, name)
    assert [each.result(20) for each in waiting] == [DELETED] * 20
    assert lease.lost.wait() is DELETED


def test_waiting_ends_with_the_release(blocking: Party, name: str, in_thread: Callable) -> None:
    lease = blocking.acquire(name, ttl=TTL)
    waiting = [in_thread(lease.lost.wait) for _ in range(5)]
    until(lambda: lease._hearers is not None and len(lease._hearers._ended) == 5)
    lease.release()
    assert [each.result(20) for each in waiting] == [None] * 5
    assert lease.lost.wait() is None
    assert not lease.lost.is_set()


async def test_waiting_in_several_tasks_and_loops(
    healthy: list[ThrowawayNode], name: str, in_thread: Callable
) -> None:
    async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:
        lease = await client.lock(name, ttl=TTL).acquire()
        here = [asyncio.create_task(lease.lost.wait()) for _ in range(10)]
        there = [in_thread(lambda: asyncio.run(lease.lost.wait(30))) for _ in range(3)]
        assert await lease.lost.wait(0.05) is None
        assert await lease.lost.wait(0) is None
        gone = asyncio.create_task(lease.lost.wait())
        await asyncio.sleep(0)
        gone.cancel()
        delete(healthy, name)
        assert await asyncio.gather(*here) == [DELETED] * 10
        await eventually(lambda: all(each.done() for each in there))
        assert [each.result() for each in there] == [DELETED] * 3

        lease = await client.lock(name, ttl=TTL).acquire()
        waiting = asyncio.create_task(lease.lost.wait())
        await asyncio.sleep(0)
        await lease.release()
        assert await waiting is None


async def test_a_loop_that_was_closed_while_waiting_bothers_nobody(
    healthy: list[ThrowawayNode], name: str, in_thread: Callable
) -> None:
    async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:
        lost = await client.lock(name, ttl=TTL).acquire()
        released = await client.lock(f"{name}:released", ttl=TTL).acquire()
        kept: list[Any] = []

        def abandon() -> None:
            loop = asyncio.new_event_loop()
            tasks = [loop.create_task(lease.lost.wait()) for lease in (lost, released)]
            loop.run_until_complete(asyncio.sleep(0.01))
            for task in tasks:
                task._log_destroy_pending = False
            kept.extend(tasks)
            loop.close()

        await asyncio.to_thread(abandon)
        heard: list[Any] = []
        lost.on_lost(heard.append)
        assert await released.release() is holdfast.Released.FREED
        delete(healthy, name)
        assert await lost.lost.wait(20) is DELETED
        await eventually(lambda: heard == [lost])
        kept.clear()


def test_on_lost_comes_exactly_once(holder: Party, healthy: list[ThrowawayNode], name: str) -> None:
    lease = holder.acquire(name, ttl=TTL)
    heard: list[Any] = []
    endangered: list[Any] = []
    for _ in range(3):
        holder.listen(lease, lost=lambda lease: heard.append(lease.lost.reason))
    holder.listen(lease, endangered=endangered.append)
    renewed(holder.client, 3)
    assert heard == []
    delete(healthy, name)
    until(lambda: len(heard) == 3)
    holder.listen(lease, lost=lambda lease: heard.append(lease.lost.reason))  # at once
    until(lambda: len(heard) == 4)
    with pytest.raises(holdfast.LeaseLost):
        lease.release()
    pass_time(TTL / 2)
    assert heard == [DELETED] * 4
    assert endangered == [], "it was not overdue"


def test_nothing_is_heard_of_what_was_released(
    holder: Party, healthy: list[ThrowawayNode], name: str
) -> None:
    lease = holder.acquire(name, ttl=TTL)
    heard: list[Any] = []
    holder.listen(lease, lost=heard.append, endangered=heard.append)
    lease.release()
    holder.listen(lease, lost=heard.append)
    pass_time(TTL)
    assert heard == []


def test_a_loss_that_a_release_finds_is_heard(
    holder: Party, healthy: list[ThrowawayNode], name: str
) -> None:
    lease = holder.acquire(name, ttl=30)
    heard: list[Any] = []
    holder.listen(lease, lost=heard.append)
    delete(healthy, name)
    with pytest.raises(holdfast.LeaseLost, match="deleted"):
        lease.release()
    until(lambda: len(heard) == 1)
    holder.listen(lease, lost=heard.append)
    until(lambda: len(heard) == 2)
    assert holder.client.stats().lost == 1


def test_at_once_also_where_only_the_clock_says_so(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    client = holdfast.connect(*urls(healthy), node_timeout=5)
    lease = client.lock(name, ttl=0.2).acquire()
    client.close()
    until(lease.lost.is_set)
    heard = threading.Event()
    lease.on_lost(lambda lease: heard.set())
    assert heard.wait(1)


def test_callbacks_that_block_or_raise_disturb_nothing(
    blocking: Party, healthy: list[ThrowawayNode], name: str, raised: list[BaseException | None]
) -> None:
    go_on = threading.Event()
    kept = blocking.acquire(f"{name}:kept", ttl=TTL)

    def fail(lease: holdfast.Lease) -> None:
        raise ValueError(lease.name)

    bad = [blocking.acquire(f"{name}:{number}", ttl=TTL) for number in range(6)]
    heard: list[Any] = []
    for lease in bad:
        lease.on_lost(fail)
        lease.on_lost(lambda lease: go_on.wait(20))
        lease.on_lost(heard.append)
    for lease in bad:
        delete(healthy, lease.name)
    until(lambda: len(heard) == 6)
    until(lambda: len(raised) == 6)
    assert {str(error) for error in raised} == {lease.name for lease in bad}
    renewed(blocking.client, 3)
    assert kept.is_held
    go_on.set()
    kept.release()


def test_a_callback_may_use_its_client(
    blocking: Party, healthy: list[ThrowawayNode], name: str
) -> None:
    """Also acquire, and close."""
    again: list[Any] = []
    closed = threading.Event()
    lease = blocking.acquire(name, ttl=TTL)
    lease.on_lost(lambda lease: again.append(blocking.acquire(name, ttl=TTL)))
    delete(healthy, name)
    [other] = until(lambda: again)
    assert other.lost.wait(20) is holdfast.LossReason.OWNER_DIED, "callbacks' threads end"
    last = blocking.acquire(name, ttl=TTL)

    def close(lease: holdfast.Lease) -> None:
        blocking.client.close()
        closed.set()

    last.on_lost(close)
    delete(healthy, name)
    assert closed.wait(20)


def test_an_excepthook_that_raises_disturbs_nothing(
    blocking: Party,
    healthy: list[ThrowawayNode],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def hook(args: object) -> None:
        raise RuntimeError("hook")

    monkeypatch.setattr(threading, "excepthook", hook)
    heard: list[Any] = []

    def fail(lease: holdfast.Lease) -> None:
        heard.append(lease)
        raise ValueError

    kept = blocking.acquire(name, ttl=TTL)
    leases = [blocking.acquire(f"{name}:{number}", ttl=TTL) for number in range(20)]
    for lease in leases:
        lease.on_lost(fail)
        delete(healthy, lease.name)
    try:
        until(lambda: len(heard) == 20, within=1.2)
        renewed(blocking.client)
    finally:
        kept.release()


def test_a_log_handler_that_raises_disturbs_nothing(
    blocking: Party, healthy: list[ThrowawayNode], name: str, raised: list[BaseException | None]
) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the log is full")

    logger, broken = logging.getLogger("holdfast"), Broken()
    kept = blocking.acquire(f"{name}:kept", ttl=TTL)
    lost = blocking.acquire(name, ttl=TTL)
    heard: list[Any] = []
    lost.on_lost(heard.append)
    before = logger.level
    logger.addHandler(broken)
    logger.setLevel(logging.DEBUG)
    try:
        pass_time(1.5 * TTL)
        assert kept.is_held
        delete(healthy, name)
        until(lambda: heard, within=3)
    finally:
        logger.removeHandler(broken)
        logger.setLevel(before)
    kept.release()


async def test_callbacks_on_the_loop(healthy: list[ThrowawayNode], name: str) -> None:
    async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:
        loop, heard, wrong = asyncio.get_running_loop(), [], []
        loop.set_exception_handler(lambda _, context: wrong.append(context["exception"]))
        lease = await client.lock(name, ttl=TTL).acquire()
        kept = await client.lock(f"{name}:kept", ttl=TTL).acquire()

        @lease.on_lost
        async def told(lease: holdfast.aio.AsyncLease) -> None:
            await asyncio.sleep(0)
            heard.append(asyncio.get_running_loop())

        @lease.on_lost
        def plain(lease: holdfast.aio.AsyncLease) -> None:
            heard.append(asyncio.get_running_loop())

        @lease.on_lost
        async def fails(lease: holdfast.aio.AsyncLease) -> None:
            raise ValueError("coroutine")

        @lease.on_lost
        def fails_too(lease: holdfast.aio.AsyncLease) -> None:
            raise ValueError("plain")

        delete(healthy, name)
        await eventually(lambda: len(heard) == 2 and len(wrong) == 2)
        assert heard == [loop, loop]
        assert {str(error) for error in wrong} == {"coroutine", "plain"}
        assert kept.is_held
        await kept.release()


def test_the_bodys_own_exception_goes_on(
    holder: Party, healthy: list[ThrowawayNode], name: str
) -> None:
    with pytest.raises(KeyError) as caught, holder.actor.holding(name, ttl=TTL) as lease:  # noqa: PT012  # the block is the subject
        delete(healthy, name)
        until(lease.lost.is_set)
        raise KeyError("mine")
    assert caught.value.args == ("mine",)
    assert any("lost: deleted" in note for note in caught.value.__notes__)
    with pytest.raises(holdfast.LeaseLost), holder.actor.holding(name, ttl=TTL) as lease:  # noqa: PT012  # the block is the subject
        delete(healthy, name)
        until(lease.lost.is_set)
