"""Attempts to break the keeper: races, collections at odd moments, forks, closings."""

import asyncio
import contextlib
import gc
import logging
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, delete, renewed, threads, urls
from processes.test_fork import in_child
from rig.servers import holders
from rig.waiting import pass_time, until

Make = Callable[..., Party]


@pytest.fixture
def hectic() -> Iterator[None]:
    """Switch threads all the time, and collect often."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(50, 2, 2)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what threads have raised."""
    caught: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: caught.append(args.exc_value))
    return caught


def crowd(count: int, work: Callable[[int], None]) -> None:
    """Run something in many threads; raise what they raise."""
    failed: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001  # raised below
            failed.append(error)

    workers = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for error in failed:
        raise error


def test_everything_at_once(
    healthy: list[ThrowawayNode], party: Make, name: str, hectic: None, raised: list[Any]
) -> None:
    """Acquire, renew, transfer, listen, leak and release at random moments, on 8 threads."""
    holder = party("blocking", *urls(healthy))
    client, used = holder.client, []

    def work(number: int) -> None:
        dice = random.Random(number)
        for turn in range(25):
            lease = holder.acquire(f"{name}:{number}:{turn}", ttl=dice.choice([0.15, 0.3, 5]))
            used.append(lease.name)
            lease.on_lost(lambda lease: None)
            lease.on_endangered(lambda lease: lease.valid_for)
            with contextlib.suppress(holdfast.LeaseError):
                match dice.randrange(6):
                    case 0:
                        pass_time(dice.random() * 0.2)
                    case 1:
                        lease.transfer(None)
                        lease.transfer()
                    case 2:
                        lease.renew()
                    case 3:
                        lease.lost.wait(dice.random() * 0.1)
                    case 4:
                        delete(healthy, lease.name)
                lease.release()

    crowd(8, work)
    until(lambda: client.stats().held == 0)
    until(lambda: not any(holders(healthy, each) for each in used))
    assert raised == []
    assert len(threads("holdfast-keeper")) == 1


def test_leaks_at_odd_moments(
    healthy: list[ThrowawayNode], party: Make, name: str, hectic: None, raised: list[Any]
) -> None:
    holder = party("blocking", *urls(healthy))
    kept = holder.acquire(f"{name}:kept", ttl=1)

    def work(number: int) -> None:
        for turn in range(20):
            lease = holder.acquire(f"{name}:{number}:{turn}", ttl=0.1, renew=turn % 2 == 0)
            cycle: list[Any] = [lease]
            cycle.append(cycle)
            with contextlib.suppress(holdfast.LeaseLost):
                if turn % 2 == 0:
                    pass_time(0.04)
                    lease.release()
            del lease, cycle

    crowd(6, work)
    gc.collect()
    until(lambda: holder.client.stats().held == 1)
    renewed(holder.client)
    assert kept.is_held
    kept.release()
    assert raised == []


def test_transfers_race_with_the_keeper(
    healthy: list[ThrowawayNode], party: Make, name: str, hectic: None
) -> None:
    """A lease that always has a living owner is never lost, however often it changes hands."""
    holder = party("blocking", *urls(healthy))
    lease = holder.acquire(name, ttl=0.4, owner=None)
    end = threading.Event()

    def work(number: int) -> None:
        while not end.is_set():
            lease.transfer()
            lease.transfer(None)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    pass_time(1)
    end.set()
    for worker in workers:
        worker.join()
    lease.transfer(None)
    assert lease.is_held
    assert lease.release() is holdfast.Released.FREED


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forks_during_renewals(
    healthy: list[ThrowawayNode], party: Make, name: str, hectic: None
) -> None:
    holder = party("blocking", *urls(healthy))
    leases = [holder.acquire(f"{name}:{number}", ttl=1) for number in range(100)]
    renewed(holder.client)

    def child() -> None:
        assert not any(lease.is_held for lease in leases)
        mine = holder.acquire(f"{name}:child", ttl=0.3)
        mine.on_lost(print)
        renewed(holder.client)
        mine.release()
        leases.clear()
        gc.collect()
        holder.client.close()

    for _ in range(4):
        in_child(child)
    assert all(lease.is_held for lease in leases)
    assert holder.client.stats().lost == 0
    for lease in leases:
        lease.release()


def test_close_races_with_everything(
    healthy: list[ThrowawayNode], name: str, hectic: None, raised: list[Any]
) -> None:
    for number in range(6):
        client = holdfast.connect(*urls(healthy), node_timeout=5)

        def work(each: int, client: holdfast.Client = client, number: int = number) -> None:
            with contextlib.suppress(holdfast.HoldfastError):  # closed, lost, or too slow
                for turn in range(1000):
                    lease = client.lock(f"{name}:{number}:{each}:{turn}", ttl=0.1).acquire(wait=0)
                    try:
                        lease.renew()
                        lease.release()
                    finally:
                        lease.lost.wait(1)

        closer = threading.Timer(0.03 * number, client.close)
        closer.start()
        crowd(4, work)
        closer.join()
        until(lambda: not threads("holdfast-keeper"))
    assert raised == []


async def test_tasks_cancelled_at_odd_moments(healthy: list[ThrowawayNode], name: str) -> None:
    async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:

        async def work(number: int) -> None:
            for turn in range(50):
                async with client.lock(
                    f"{name}:{number}", ttl=0.1, wait=None, cancel_on_lost=turn % 2 == 0
                ) as lease:
                    lease.on_lost(lambda lease: None)
                    await asyncio.sleep(random.random() * 0.05)

        tasks = [asyncio.create_task(work(number)) for number in range(20)]
        for task in tasks:
            await asyncio.sleep(0.02)
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(
            isinstance(each, asyncio.CancelledError | holdfast.LeaseLost) for each in results
        )
        await asyncio.sleep(0.15)
        assert client.stats().held == 0
        assert not any(holders(healthy, f"{name}:{number}") for number in range(20))


def test_a_log_handler_that_blocks_delays_no_renewal(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    """Losses are logged on the keeper's thread; a slow log must not cost other leases."""
    go_on = threading.Event()

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            go_on.wait(5)

    holder = party("blocking", *urls(healthy))
    kept = holder.acquire(f"{name}:kept", ttl=0.5)
    lost = holder.acquire(name, ttl=0.5)
    logger, slow = logging.getLogger("holdfast"), Slow()
    logger.addHandler(slow)
    try:
        delete(healthy, name)
        until(lost.lost.is_set)
        pass_time(0.8)
        assert kept.is_held
    finally:
        go_on.set()
        logger.removeHandler(slow)
    kept.release()


def test_the_keeper_outlives_an_excepthook_that_raises(
    healthy: list[ThrowawayNode], party: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the log is full")

    def hook(args: object) -> None:
        raise RuntimeError("hook")

    holder = party("blocking", *urls(healthy))
    lost = holder.acquire(name, ttl=0.4)
    logger, broken = logging.getLogger("holdfast"), Broken()
    with monkeypatch.context() as patch:
        patch.setattr(threading, "excepthook", hook)
        logger.addHandler(broken)
        try:
            delete(healthy, name)
            until(lost.lost.is_set)
            pass_time(0.3)
        finally:
            logger.removeHandler(broken)
    lease = holder.acquire(f"{name}:later", ttl=0.4)
    pass_time(0.8)
    assert lease.is_held
    lease.release()
