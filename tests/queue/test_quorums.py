"""Waiting over a quorum: a minority may be down or hang, and many may come at the same moment."""

import threading
from collections.abc import Callable

import pytest

from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.actor import Actor
from rig.lineup import HEARTBEAT, LineUp, in_line, nothing_left
from rig.servers import holders
from rig.waiting import pass_time, until

BRISK = 0.15
"""A node timeout in seconds: a hung node costs so much, and a busy machine seldom needs it."""


@pytest.mark.parametrize(("count", "away"), [(3, 1), (5, 2)])
@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_minority_that_is_away(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    count: int,
    away: int,
    how: str,
) -> None:
    nodes = list(own_nodes(count))
    line, actor = line_up(nodes, name, node_timeout=BRISK), new_actor(nodes, node_timeout=BRISK)
    lease = actor.acquire(name)
    for _ in range(2):
        line.join(actor)
    for node in nodes[:away]:
        getattr(node, how)()
    for _ in range(2):
        line.join(actor)
    lease.release()
    for guest in line.guests[:2]:
        guest.be_served()
        guest.leave()
    for node in nodes[:away]:
        node.resume()
        if node.pid is None:
            node.start()
    line.hurry()
    assert line.served == [0, 1, 2, 3]
    assert line.fences == sorted(set(line.fences))
    until(lambda: nothing_left(nodes, name))


def test_a_majority_that_is_away_for_a_while(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    nodes = list(own_nodes(3))
    line, actor = line_up(nodes, name, node_timeout=BRISK), new_actor(nodes, node_timeout=BRISK)
    lease = actor.acquire(name, ttl=60)
    for _ in range(3):
        line.join(actor, ttl=60)
    for node in nodes[:2]:
        node.pause()
    lease.release()
    for node in nodes[:2]:
        node.resume()
    line.hurry()
    assert sorted(line.served) == [0, 1, 2]
    until(lambda: nothing_left(nodes, name))


@pytest.mark.parametrize("count", [1, 3, 5])
def test_many_at_the_same_moment(
    own_nodes: Callable[..., ThrowawayNodes], new_actor: Callable, name: str, count: int
) -> None:
    """Nobody holds the lock, and all want it: all are served, and fences rise in that order."""
    nodes, turns = list(own_nodes(count)), 4
    actors = [new_actor(nodes) for _ in range(8)]
    for actor in actors:
        actor.acquire(f"{name}:warm").release()
    start, fences, inside, overlaps = threading.Barrier(len(actors)), [], [], []

    def compete(actor: Actor) -> None:
        start.wait()
        for _ in range(turns):
            lease = actor.acquire(name, ttl=30, wait=40)
            inside.append(actor)
            if len(inside) != 1:
                overlaps.append(list(inside))
            fences.append(lease.fence)
            inside.remove(actor)
            lease.release()

    threads = [threading.Thread(target=compete, args=(actor,)) for actor in actors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(45)
    assert len(fences) == len(actors) * turns, "somebody was not served"
    assert overlaps == []
    assert fences == sorted(set(fences))
    until(lambda: nothing_left(nodes, name))


def test_a_release_reaches_a_node_whose_connection_broke(
    healthy: list[ThrowawayNode],
    proxy: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    """What it was told on an earlier connection still stands there: a place in line."""
    line, holder, slow = line_up(healthy, name), new_actor(healthy), proxy(healthy[2])
    lease = holder.acquire(name)
    waits = new_actor([healthy[0], healthy[1], slow.url])
    guest = line.join(waits)
    until(lambda: len(in_line(healthy[2], name)) == 1)
    slow.hold_requests()  # who connects anew is not greeted for a while
    slow.cut()
    lease.release()
    guest.be_served()
    guest.leave()
    slow.let_requests_pass()

    def is_told() -> bool:
        waits.acquire(f"{name}:other").release()  # a line that nobody uses tells nothing
        return nothing_left(healthy, name)

    until(is_told, within=2, what="for the last release, before the place ends by itself")


def test_a_release_reaches_a_node_although_nobody_speaks_to_it_any_more(
    healthy: list[ThrowawayNode], proxy: Callable, new_actor: Callable, name: str
) -> None:
    slow = proxy(healthy[2])
    actor = new_actor([healthy[0], healthy[1], slow.url])
    lease = actor.acquire(name, ttl=60)
    until(lambda: len(holders(healthy, name)) == 3)
    slow.hold_requests()
    slow.cut()
    lease.release()
    slow.let_requests_pass()
    until(lambda: holders(healthy, name) == [])


def test_who_waits_for_a_hung_node_hears_its_call(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    """Rounds that wait longer for a node than the lock is reserved."""
    nodes = list(own_nodes(3))
    line, actor = line_up(nodes, name, node_timeout=BRISK), new_actor(nodes, node_timeout=2.0)
    lease = actor.acquire(name, ttl=60)
    for _ in range(3):
        line.join(actor, ttl=60)
    nodes[0].pause()
    pass_time(HEARTBEAT)  # so that all have asked it
    lease.release()
    line.hurry()
    assert line.served == [0, 1, 2]
