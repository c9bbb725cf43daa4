"""A holder that dies is succeeded when its ttl ends, by the first in line."""

import time
from collections.abc import Callable

import pytest

from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.lineup import CLAIM, HEARTBEAT, SLACK, SOME, LineUp, hear
from rig.servers import calls, holders
from rig.waiting import until


@SOME
def test_a_killed_holder_is_succeeded_in_order(
    nodes: list[ThrowawayNode],
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, actor, ttl = line_up(nodes, name), new_actor(nodes), 1.0
    holder = process(nodes, name, ttl=ttl)
    hear(holder, "held")
    for _ in range(3):
        line.join(actor)
    holder.kill()
    holder.wait()
    line.guests[0].be_served(within=ttl + SLACK)
    line.hurry()
    assert line.served == [0, 1, 2]
    until(lambda: holders(nodes, name) == [])


def test_a_lease_that_is_not_renewed_is_succeeded_when_it_ends_and_not_before(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor, ttl = line_up(nodes, name), new_actor(nodes), 1.2
    begun = time.monotonic()
    lease = actor.acquire(name, ttl=ttl, renew=False)
    guest = line.join(actor)
    guest.be_served(within=ttl + SLACK)
    assert time.monotonic() >= begun + lease.valid_for
    assert not lease.is_held
    guest.leave()
    line.look.acquire(wait=0).release()


def test_only_the_head_asks_when_the_holders_time_is_up(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    """A foreign lock without an end makes the head look often; the others' heartbeats go on."""
    nodes, waiters, beats = list(own_nodes(1)), 15, 2
    line, actor = line_up(nodes, name), new_actor(nodes)
    nodes[0].call("SET", lock_key(name), "somebody")
    line.join_all([actor] * waiters)
    before, begun = calls(nodes[0], "evalsha"), time.monotonic()
    until(lambda: time.monotonic() > begun + beats * HEARTBEAT)
    took = time.monotonic() - begun
    spoken = calls(nodes[0], "evalsha") - before
    looks = took / 0.1 + 1  # the head's, who looks again after a tenth of a second
    assert spoken <= waiters * (took / HEARTBEAT + 1) + looks
    nodes[0].call("DEL", lock_key(name))
    line.hurry()


@pytest.mark.parametrize("colour", ["asyncio"])
def test_a_dead_holder_and_a_dead_head(
    healthy: list[ThrowawayNode],
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, actor, ttl = line_up(healthy, name), new_actor(healthy), 1.0
    holder = process(healthy, name, ttl=ttl)
    hear(holder, "held")
    head = process(healthy, name)
    line.expect(1)
    guest = line.join(actor)
    holder.kill()
    head.kill()
    guest.be_served(within=ttl + CLAIM + HEARTBEAT + SLACK)
    guest.leave()
