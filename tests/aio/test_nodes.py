"""Slow, dead and odd nodes, seen from a loop."""

import asyncio
import statistics
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.tasks import eventually

CALM = 5.0


async def pairs(client: holdfast.aio.AsyncClient, name: str, count: int) -> float:
    """Return the median seconds of a pair among so many."""
    lock, spent = client.lock(name, ttl=30), []
    for _ in range(count):
        begun = time.perf_counter()
        await (await lock.acquire(wait=0)).release()
        spent.append(time.perf_counter() - begun)
    return statistics.median(spent)


async def test_a_hung_node_blocks_nobody(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    nodes = own_nodes(3)
    async with holdfast.aio.connect(*nodes.urls, node_timeout=CALM) as client:
        await pairs(client, name, 50)
        healthy = await pairs(client, name, 200)
        nodes[1].pause()
        hung = await pairs(client, name, 200)
        nodes[1].resume()
    # A round that waited for the node would take seconds; ten times is for a busy machine.
    assert hung < 10 * healthy


async def test_a_node_that_comes_back_is_found(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    nodes = own_nodes(3)
    async with holdfast.aio.connect(*nodes.urls, node_timeout=CALM) as client:
        await pairs(client, name, 5)
        nodes[0].kill()
        await pairs(client, name, 5)
        nodes[1].kill()
        with pytest.raises(holdfast.Unreachable):
            await client.lock(name).acquire(wait=0)
        nodes[0].start()
        nodes[0].initialise()
        async with client.lock(name, ttl=30, wait=20) as lease:
            assert lease.is_held


async def test_waiting_through_an_outage(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    [node] = own_nodes(1)
    async with holdfast.aio.connect(node.url, node_timeout=CALM) as client:
        await pairs(client, name, 1)
        node.kill()
        waiting = asyncio.create_task(client.lock(name).acquire(wait=20))
        await asyncio.sleep(0)
        node.start()
        lease = await waiting
        assert lease.is_held
        await lease.release()


async def test_a_killed_connection_is_replaced_within_the_round(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    nodes = own_nodes(3)
    async with holdfast.aio.connect(*nodes.urls, node_timeout=CALM) as client:
        await pairs(client, name, 5)
        for _ in range(5):
            for node in nodes:
                node.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await (await client.lock(name, ttl=30).acquire(wait=0)).release()


async def test_forgotten_scripts_are_sent_again(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    nodes = own_nodes(3)
    async with holdfast.aio.connect(*nodes.urls, node_timeout=CALM) as client:
        for _ in range(5):
            for node in nodes:
                node.call("SCRIPT", "FLUSH")
            async with client.lock(name, ttl=30, wait=0) as lease:
                for node in nodes:
                    node.call("SCRIPT", "FLUSH")
                await lease.renew()


async def test_one_server_under_two_addresses_is_refused(
    healthy: list[ThrowawayNode], short_dir: object, name: str
) -> None:
    link = short_dir / "again.sock"
    link.symlink_to(healthy[0].socket)
    async with holdfast.aio.connect(healthy[0].url, f"unix://{link}", node_timeout=CALM) as client:
        for _ in range(2):
            with pytest.raises(holdfast.DuplicateNode):
                await client.lock(name).acquire()


async def test_nobody_there(name: str) -> None:
    async with holdfast.aio.connect("unix:///nonexistent", "redis://127.0.0.1:1") as client:
        with pytest.raises(holdfast.Unreachable) as caught:
            await client.lock(name).acquire(wait=0)
    assert len(caught.value.reports) == 2
    assert "unreachable" in caught.value.reports[0].answer


async def test_resp2(healthy: list[ThrowawayNode], name: str) -> None:
    urls = [f"{node.url}?protocol=2" for node in healthy]
    async with (
        holdfast.aio.connect(*urls, node_timeout=CALM) as client,
        client.lock(name, ttl=30) as lease,
    ):
        await lease.renew()
        await eventually(lambda: "resp=2" in (healthy[0].call("CLIENT", "LIST") or ""))


async def test_a_round_ends_when_its_time_is_up(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    nodes = own_nodes(3)
    async with holdfast.aio.connect(*nodes.urls, node_timeout=0.2) as client:
        await pairs(client, name, 5)
        for node in nodes[:2]:
            node.pause()
        begun = time.monotonic()
        with pytest.raises(holdfast.Unreachable) as caught:
            await client.lock(name, ttl=60).acquire(wait=0)
        assert time.monotonic() - begun < 10
        assert [report.answer for report in caught.value.reports].count("no answer in time") == 2
        for node in nodes:
            node.resume()
        lease = await client.lock(name, ttl=60).acquire(wait=20)  # long before the ttl
        await lease.release()
