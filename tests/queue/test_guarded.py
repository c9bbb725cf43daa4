"""Hand-overs respect the guard: a node that abstains, or is full, lets go and reserves nothing."""

from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.lineup import LineUp, in_line, nothing_left
from rig.servers import calls, holders, token_on
from rig.waiting import until


@pytest.fixture
def fragile(own_nodes: Callable[..., ThrowawayNodes]) -> list[ThrowawayNode]:
    return list(own_nodes(3))


def drained(node: ThrowawayNode, client: holdfast.Client) -> None:
    client.nodes.drain(node.url)


def restarted(node: ThrowawayNode, client: holdfast.Client) -> None:
    node.restart()


def flushed(node: ThrowawayNode, client: holdfast.Client) -> None:
    node.call("FLUSHALL")


@pytest.mark.parametrize("forget", [drained, restarted, flushed])
def test_a_node_that_abstains_lets_go_and_reserves_nothing(
    fragile: list[ThrowawayNode],
    connect: Callable[..., holdfast.Client],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    forget: Callable[[ThrowawayNode, holdfast.Client], None],
) -> None:
    line, actor = line_up(fragile, name), new_actor(fragile)
    lease = actor.acquire(name)
    until(lambda: len(holders(fragile, name)) == 3)
    for _ in range(3):
        line.join(actor)
    shy = fragile[0]
    forget(shy, connect(*(node.url for node in fragile)))
    taken = calls(shy, "set")
    # Its waiters are, or come back, in its queue all the same.
    until(lambda: len(in_line(shy, name)) == 3)
    if forget is drained:
        assert token_on(shy, name) == lease.token
    lease.release()
    for guest in line.guests:
        guest.be_served()
        until(lambda: token_on(shy, name) == "")
        assert shy.call("EXISTS", lock_key(name)) == "0"
        guest.leave()
    assert line.served == [0, 1, 2]
    assert line.fences == sorted(set(line.fences))
    assert calls(shy, "set") == taken, "no lock was taken or reserved there"
    until(lambda: nothing_left(fragile, name))


def test_a_full_node_frees_all_the_same(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    [node] = own_nodes(1)
    line, actor = line_up([node], name), new_actor([node])
    lease, alone = actor.acquire(name), actor.acquire(f"{name}:alone")
    guest = line.join(actor)
    node.call("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(holdfast.Unreachable, match="OOM"):
        actor.acquire(f"{name}:refused", wait=0)
    assert alone.release() is holdfast.Released.FREED
    assert token_on(node, f"{name}:alone") == ""
    assert lease.release() is holdfast.Released.FREED
    assert token_on(node, name) != lease.token
    node.call("CONFIG", "SET", "maxmemory", "0")
    guest.be_served()
    guest.leave()
    until(lambda: nothing_left([node], name))


def test_a_full_minority_does_not_matter(
    fragile: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(fragile, name), new_actor(fragile)
    lease = actor.acquire(name)
    until(lambda: len(holders(fragile, name)) == 3)
    for _ in range(3):
        line.join(actor)
    fragile[0].call("CONFIG", "SET", "maxmemory", "1")
    lease.release()
    line.hurry()
    assert line.served == [0, 1, 2]
    until(lambda: holders(fragile, name) == [])


def test_a_node_that_forgot_is_rejoined_at_the_old_places(
    fragile: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor, other = line_up(fragile, name), new_actor(fragile), new_actor(fragile)
    lease = actor.acquire(name)
    for each in (actor, other, actor, other):
        line.join(each)
    until(lambda: all(len(in_line(node, name)) == 4 for node in fragile))
    before = in_line(fragile[1], name)
    fragile[0].restart()
    until(lambda: in_line(fragile[0], name) == before)
    lease.release()
    line.hurry()
    assert line.served == [0, 1, 2, 3]
    until(lambda: nothing_left(fragile, name))
