"""Whoever meets a node that abstains is told so, and waits it out."""

import logging
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast import events
from holdfast.embedded import ThrowawayNodes
from rig.waiting import until

MAX_TTL = 0.5
Q = MAX_TTL * 1.02 + 1

Connect = Callable[..., holdfast.Client]


@pytest.fixture
def forgetful(own_nodes: Callable[..., ThrowawayNodes]) -> ThrowawayNodes:
    """Return three nodes that have been flushed."""
    nodes = own_nodes(3)
    for node in nodes:
        assert node.call("FLUSHALL") == "OK"
    return nodes


def test_it_is_told_once(
    forgetful: ThrowawayNodes, connect: Connect, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="holdfast")
    seen: list[events.Event] = []
    client = connect(*forgetful.urls, on_event=seen.append)
    for _ in range(3):
        with pytest.raises(holdfast.Unreachable, match=r"abstains for 6\d s more; hint: .*init"):
            client.lock(name).acquire(wait=0)
    until(lambda: len(seen) >= 2 and len(caplog.records) >= 2)  # a majority was heard of
    client.nodes.init()
    client.lock(name).acquire(wait=0).release()
    until(lambda: isinstance(seen[-1], events.Released))
    told = [each.node for each in seen if isinstance(each, events.NodeAbstains)]
    assert len(told) == len(set(told)) == len(seen) - 2, "each once, and then nothing more"
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert "has no memory of its locks" in caplog.text


def test_who_waits_waits_it_out(forgetful: ThrowawayNodes, connect: Connect, name: str) -> None:
    client = connect(*forgetful.urls, max_ttl=MAX_TTL)
    assert [node.state for node in client.nodes.status()] == ["unmarked"] * 3
    begun = client._driver.now()
    with client.lock(name, wait=None) as lease:
        assert lease.is_held
        assert client._driver.now() - begun >= Q
    until(lambda: [node.state for node in client.nodes.status()] == ["ready"] * 3)


async def test_tasks_wait_it_out_as_well(forgetful: ThrowawayNodes, name: str) -> None:
    async with holdfast.aio.connect(*forgetful.urls, max_ttl=MAX_TTL, node_timeout=5) as client:
        async with client.lock(name, wait=None) as lease:
            assert lease.is_held
        await client.nodes.init()
        assert [node.state for node in await client.nodes.status()] == ["ready"] * 3
        await client.nodes.drain(0)
        await client.nodes.drain(forgetful.urls[1])
        with pytest.raises(holdfast.Unreachable, match=r"drained 0 s ago; .*hint: .*admit"):
            await client.lock(name).acquire(wait=0)
        await client.nodes.admit(1)
        await (await client.lock(name).acquire(wait=0)).release()
        with pytest.raises(holdfast.BadInput, match="there is no node 7"):
            await client.nodes.admit(7)
