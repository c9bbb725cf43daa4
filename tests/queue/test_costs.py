"""What waiting costs: neither messages nor connections grow with the number of those who wait."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.lineup import HEARTBEAT, LineUp, in_line
from rig.servers import calls
from rig.tasks import eventually
from rig.waiting import pass_time, until

CALM = 5.0
MANY = 500


def spent(node: ThrowawayNode) -> dict[str, int]:
    return {command: calls(node, command) for command in ("evalsha", "eval", "publish")}


def clients(node: ThrowawayNode) -> list[dict[str, str]]:
    """Return who is connected, but for whoever asks."""
    found = [
        dict(word.partition("=")[::2] for word in line.split())
        for line in (node.call("CLIENT", "LIST") or "").splitlines()
    ]
    return [each for each in found if "client|list" not in each["cmd"]]


@pytest.mark.parametrize("count", [1, 3])
def test_a_handover_costs_the_same_however_many_wait(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    count: int,
) -> None:
    """Per node: the release, the confirming request, one message."""
    nodes = list(own_nodes(count))
    least = {}
    for waiters in (2, 64):
        own = f"{name}:{waiters}"
        line, actor = line_up(nodes, own), new_actor(nodes)
        lease, seen = actor.acquire(own, ttl=30), []
        guests = {guest.number: guest for guest in line.join_all([actor] * waiters)}
        until(lambda line=line: all(each.nodes == count for each in line.look.waiters()))
        begun, start, turns = time.monotonic(), calls(nodes[0], "evalsha"), min(waiters, 8)
        for turn in range(turns):
            before = spent(nodes[0])
            lease.release() if turn == 0 else guests[line.served[-1]].leave()
            until(lambda turn=turn, line=line: len(line.served) == turn + 1)

            def grown(before: dict[str, int] = before) -> dict[str, int]:
                return {
                    command: count - before[command] for command, count in spent(nodes[0]).items()
                }

            # A quorum may have done without this node: then what it is told comes a little later.
            until(lambda grown=grown: grown()["evalsha"] >= 2 and grown()["publish"] >= 1)
            seen.append(grown())
        beats = waiters * ((time.monotonic() - begun) / HEARTBEAT + 1)
        assert calls(nodes[0], "evalsha") - start <= 2 * turns + beats, "not all were woken"
        line.hurry()
        # Heartbeats fall in between now and then. What grew with the waiters would be in all.
        least[waiters] = {command: min(each[command] for each in seen) for command in seen[0]}
    assert least[2] == least[64] == {"evalsha": 2, "eval": 0, "publish": 1}


def test_who_waits_speaks_once_in_a_heartbeat(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    nodes, waiters = list(own_nodes(1)), 20
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name, ttl=60)
    line.join_all([actor] * waiters)
    before, beats = calls(nodes[0], "evalsha"), 3
    pass_time(beats * HEARTBEAT)
    spoken = calls(nodes[0], "evalsha") - before
    assert spoken <= waiters * (beats + 1)
    lease.release()
    line.hurry()


def test_waiting_threads_share_connections(
    own_nodes: Callable[..., ThrowawayNodes],
    connect: Callable[..., holdfast.Client],
    name: str,
) -> None:
    """At most `connections`, and the keeper's, which is the only one that hears calls."""
    [node] = own_nodes(1)
    holder, served = connect(node.url), []
    lease = holder.lock(name, ttl=30).acquire()
    until(lambda: len(clients(node)) == 2)  # its own, and its keeper's
    client = connect(node.url, connections=2)

    def visit() -> None:
        with client.lock(name, wait=50):
            served.append(1)

    threads = [threading.Thread(target=visit) for _ in range(MANY)]
    for thread in threads:
        thread.start()
    until(lambda: len(in_line(node, name)) == MANY, within=40)
    seen = clients(node)
    assert len([each for each in seen if each["sub"] != "0"]) == 1
    assert len(seen) <= 2 + 3, seen
    lease.release()
    for thread in threads:
        thread.join(50)
    assert len(served) == MANY


async def test_waiting_tasks_share_one_connection(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    """One per node, which also hears the calls; the keeper's connection is only for renewals."""
    nodes = own_nodes(3)
    async with (
        holdfast.aio.connect(*nodes.urls, node_timeout=CALM) as holder,
        holdfast.aio.connect(*nodes.urls, node_timeout=CALM, renew=False) as client,
    ):
        lease, served = await holder.lock(name, ttl=60).acquire(), []
        await eventually(lambda: all(clients(node) for node in nodes))
        others = [len(clients(node)) for node in nodes]

        async def visit() -> None:
            async with client.lock(name, wait=50):
                served.append(1)

        tasks = [asyncio.create_task(visit()) for _ in range(MANY)]
        await eventually(lambda: all(len(in_line(node, name)) == MANY for node in nodes))
        for node, before in zip(nodes, others, strict=True):
            seen = clients(node)
            assert len(seen) == before + 1
            assert len([each for each in seen if each["sub"] != "0"]) == 1
        await lease.release()
        await asyncio.gather(*tasks)
        assert len(served) == MANY
