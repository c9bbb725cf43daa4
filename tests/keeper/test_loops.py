"""Event loops that are blocked, many, or not asyncio's own; and the end of a client."""

import asyncio
import gc
import threading
import time
import warnings
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, delete, renewed, threads, urls
from rig.servers import holders
from rig.tap import Tap
from rig.waiting import pass_time, until

TTL = 0.5

Make = Callable[..., Party]


def uv() -> asyncio.AbstractEventLoop:
    return pytest.importorskip("uvloop").new_event_loop()


UNCLOSED = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
"""A loop that ends before its client is closed leaves its connections to the collector."""


@pytest.mark.parametrize("make", [asyncio.new_event_loop, uv], ids=["asyncio", "uvloop"])
def test_a_blocked_loop(healthy: list[ThrowawayNode], name: str, make: Callable) -> None:
    async def work() -> None:
        async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:
            async with client.lock(name, ttl=TTL) as lease:
                time.sleep(3 * TTL)  # blocks the loop: the subject
                assert lease.is_held
                assert client.stats().renewals >= 3
            heard = asyncio.Event()
            with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
                async with client.lock(name, ttl=TTL, cancel_on_lost=True) as lease:
                    lease.on_lost(lambda lease: heard.set())
                    delete(healthy, name)
                    await asyncio.sleep(60)
            await heard.wait()

    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(work())
    assert holders(healthy, name) == []


@UNCLOSED
def test_several_loops_one_keeper(
    healthy: list[ThrowawayNode], name: str, in_thread: Callable
) -> None:
    until(lambda: not threads())
    client = holdfast.aio.connect(*urls(healthy), node_timeout=5)
    gate = threading.Barrier(4)

    async def work(number: int) -> int:
        async with client.lock(f"{name}:{number}", ttl=TTL) as lease:
            gate.wait(20)
            count = len(threads("holdfast-keeper"))
            await asyncio.sleep(2 * TTL)
            assert lease.is_held
        return count

    running = [in_thread(lambda number=number: asyncio.run(work(number))) for number in range(4)]
    assert [each.result() for each in running] == [1] * 4
    assert client.stats().lost == 0
    asyncio.run(client.close())
    until(lambda: not threads())


@UNCLOSED
def test_a_loop_that_ends_takes_its_tasks_leases_along(
    healthy: list[ThrowawayNode], name: str
) -> None:
    client = holdfast.aio.connect(*urls(healthy), node_timeout=5)

    async def take() -> holdfast.aio.AsyncLease:
        lease = await client.lock(name, ttl=TTL).acquire()
        lease.on_lost(lambda lease: None)  # its loop will be closed by then
        return lease

    lease = asyncio.run(take())
    until(lease.lost.is_set)
    assert lease.lost.reason is holdfast.LossReason.OWNER_DIED
    asyncio.run(client.close())


def ours(node: ThrowawayNode) -> int:
    return (node.call("CLIENT", "LIST") or "").count(" name=holdfast@")


def test_closing_with_leases_held(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    """No threads, no sockets, no late renewals: what is left lapses."""
    until(lambda: not threads())
    holder = party(colour, *urls(three))
    leases = [holder.acquire(f"{name}:{number}", ttl=0.8) for number in range(20)]
    renewed(holder.client, 20)
    assert len(leases) == 20
    if colour == "blocking":
        holder.client.close()
    else:
        holder.actor.call(holder.client.close)
    assert threads("holdfast-keeper") == []
    for node in three:
        until(lambda node=node: ours(node) == 0)
    count = holder.client.stats().renewals
    for lease in leases:
        until(lambda lease=lease: lease.lost.is_set())
    until(lambda: not any(holders(three, lease.name) for lease in leases))
    assert holder.client.stats().renewals == count
    with pytest.raises(holdfast.ClientClosed):
        holder.acquire(name)
    until(lambda: not threads())


def test_closing_during_renewals(three: list[ThrowawayNode], party: Make, name: str) -> None:
    until(lambda: not threads())
    for number in range(10):
        client = holdfast.connect(*urls(three), node_timeout=5, guard=False)
        leases = [client.lock(f"{name}:{number}:{each}", ttl=0.06).acquire() for each in range(30)]
        until(lambda client=client: client.stats().renewals > 3)
        client.close()
        assert threads("holdfast-keeper") == []
        until(lambda leases=leases: not any(lease.is_held for lease in leases))
    for node in three:
        until(lambda node=node: ours(node) == 0)


def test_closing_while_the_keeper_hangs(
    lone: ThrowawayNode, tap: Callable[[ThrowawayNode], Tap], name: str
) -> None:
    wire = tap(lone)
    client = holdfast.connect(wire.url, node_timeout=5)
    lease = client.lock(name, ttl=1).acquire()
    lines = wire.lines
    wire.hold_new()
    until(lambda: wire.lines > lines)
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < 0.9
    assert threads("holdfast-keeper") == []
    until(lambda: not lease.is_held)


def test_a_client_that_is_forgotten_ends_its_keeper(lone: ThrowawayNode, name: str) -> None:
    until(lambda: not threads())
    client = holdfast.connect(lone.url, node_timeout=5)
    client.lock(name, ttl=TTL).acquire().release()
    assert len(threads()) == 1
    del client
    gc.collect()
    until(lambda: not threads())
    until(lambda: ours(lone) == 0)


def test_a_client_that_is_forgotten_with_a_lease(lone: ThrowawayNode, name: str) -> None:
    until(lambda: not threads())
    client = holdfast.connect(lone.url, node_timeout=5)
    leases = [client.lock(name, ttl=TTL).acquire()]
    del client
    gc.collect()
    pass_time(2 * TTL)
    assert leases[0].is_held, "it is kept as long as there is the lease"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        leases.clear()
        gc.collect()
    until(lambda: not threads(), within=5)
