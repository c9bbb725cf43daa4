"""Calls that are lost, connections that break, nodes that forget: who waits finds out by itself."""

import time
from collections.abc import Callable, Iterator

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.lineup import CLAIM, HEARTBEAT, SLACK, LineUp, delete, in_line, nothing_left
from rig.servers import holders
from rig.waiting import until


@pytest.fixture(params=[1, 3])
def fragile(
    request: pytest.FixtureRequest, own_nodes: Callable[..., ThrowawayNodes]
) -> list[ThrowawayNode]:
    """Return nodes to be harmed: one, and a quorum."""
    return list(own_nodes(request.param))


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    """See that nobody waited for the end of a ttl, which is 30 s here."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < 25


SOON = HEARTBEAT + 2 * CLAIM + SLACK
"""Seconds within which who waits has found out what it was not told."""


@pytest.mark.parametrize("kind", ["pubsub", "normal"])
def test_connections_that_are_killed_while_waiting(
    fragile: list[ThrowawayNode],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    kind: str,
) -> None:
    line, actor, other = line_up(fragile, name), new_actor(fragile), new_actor(fragile)
    lease = actor.acquire(name)
    one, two = line.join(other), line.join(actor)
    for node in fragile:
        node.call("CLIENT", "KILL", "TYPE", kind)
    lease.release()  # at this moment perhaps nobody is there to hear it
    begun = time.monotonic()
    until(lambda: line.served, within=SOON)
    line.hurry()
    assert time.monotonic() - begun < 2 * SOON
    assert one.lease
    assert two.lease
    until(lambda: nothing_left(fragile, name))


def test_who_hears_again_is_called_in_order(
    fragile: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor, other = line_up(fragile, name), new_actor(fragile), new_actor(fragile)
    lease = actor.acquire(name)
    for each in (actor, other, actor):
        line.join(each)
    heard = "return #redis.call('PUBSUB', 'CHANNELS', 'hf:inbox:*')"
    for node in fragile:
        node.call("CLIENT", "KILL", "TYPE", "pubsub")
    for node in fragile:
        until(lambda node=node: node.call("EVAL", heard, "0") == "2", within=SOON)
    lease.release()
    line.hurry()
    assert line.served == [0, 1, 2]


def test_a_lock_deleted_by_hand(
    fragile: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(fragile, name), new_actor(fragile)
    lease = actor.acquire(name)
    guest, second = line.join(actor), line.join(actor)
    delete(fragile, name)
    guest.be_served(within=SOON)
    with pytest.raises(holdfast.LeaseLost):
        lease.release()
    assert not second.has_it
    line.hurry()
    assert line.served == [0, 1]


def test_scripts_flushed_while_waiting(
    fragile: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(fragile, name), new_actor(fragile)
    lease = actor.acquire(name)
    for _ in range(3):
        line.join(actor)
    for node in fragile:
        node.call("SCRIPT", "FLUSH")
    lease.release()
    for guest in line.guests:
        guest.be_served(within=SOON)
        for node in fragile:
            node.call("SCRIPT", "FLUSH")
        guest.leave()
    assert line.served == [0, 1, 2]


@pytest.mark.parametrize(
    "forget",
    [lambda node: node.call("FLUSHALL"), lambda node: node.restart()],
    ids=["flushed", "restarted"],
)
def test_a_node_that_forgets_everything_while_somebody_waits(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    forget: Callable[[ThrowawayNode], object],
) -> None:
    """Without a guard: then it lets the next one in."""
    nodes = list(own_nodes(1))
    line, actor = line_up(nodes, name), new_actor(nodes, renew=False)
    lease = actor.acquire(name)
    line.join(actor)
    line.join(actor)
    forget(nodes[0])
    until(lambda: line.served, within=SOON)
    with pytest.raises(holdfast.LeaseLost):
        lease.release()
    line.hurry()
    assert sorted(line.served) == [0, 1]


def test_a_node_down_for_a_while(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    nodes = list(own_nodes(1))
    line, actor = line_up(nodes, name), new_actor(nodes, renew=False)
    actor.acquire(name).release()
    lease = actor.acquire(name)
    guest = line.join(actor)
    nodes[0].kill()
    assert guest.lease is None
    nodes[0].start()
    guest.be_served(within=SOON)
    with pytest.raises(holdfast.LeaseLost):
        lease.release()
    guest.leave()
    until(lambda: nothing_left(nodes, name))


def test_a_queue_deleted_by_hand(
    fragile: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    """Who waits comes back at its next heartbeat; over a quorum, at its old place."""
    line, actor = line_up(fragile, name), new_actor(fragile)
    lease = actor.acquire(name, ttl=60)
    for _ in range(4):
        line.join(actor)
    until(lambda: all(len(in_line(node, name)) == 4 for node in fragile))
    before = [in_line(node, name) for node in fragile]
    for node in fragile:
        node.call("DEL", f"hf:{{{name}}}:q", f"hf:{{{name}}}:w")
    line.expect(4, within=SOON)
    if len(fragile) > 1:
        until(lambda: [in_line(node, name) for node in fragile] == before, within=SOON)
    lease.release()
    line.hurry()
    assert sorted(line.served) == [0, 1, 2, 3]
    assert len(fragile) == 1 or line.served == [0, 1, 2, 3]
    until(lambda: holders(fragile, name) == [])
