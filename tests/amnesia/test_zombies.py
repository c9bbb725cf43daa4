"""Requests that are delivered long after their round: nobody waits for them, and nothing comes of
them, not for a moment.
"""

from collections.abc import Callable

import pytest

import holdfast
from amnesia.harness import hold
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.proxy import Proxy
from rig.servers import calls, token_on
from rig.waiting import pass_time, until

ROUND = 0.2
"""Seconds. How long a round waits here."""

TOO_LATE = 0.5
"""Seconds. More than a round, and all that is allowed for clocks."""


@pytest.fixture(params=[True, False], ids=["guard", "no guard"])
def guard(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def nodes(own_nodes: Callable[..., ThrowawayNodes]) -> ThrowawayNodes:
    return own_nodes(3)


def test_a_request_that_comes_too_late_takes_nothing(
    nodes: ThrowawayNodes,
    proxy: Callable[[ThrowawayNode], Proxy],
    connect: Callable[..., holdfast.Client],
    name: str,
    guard: bool,
) -> None:
    lines = [proxy(node) for node in nodes]
    client = connect(*(line.url for line in lines), guard=guard, node_timeout=ROUND)
    hold(client, nodes, f"{name}:before").release()  # it has met them, and they know the scripts
    for line in lines:
        line.hold_requests()
    with pytest.raises(holdfast.Unreachable):
        client.lock(name, ttl=20).acquire(wait=0)
    until(lambda: all(line.requests_held for line in lines))
    pass_time(TOO_LATE)
    said = [(calls(node, "evalsha"), calls(node, "set")) for node in nodes]
    for line in lines:
        line.let_requests_pass()
    for node, (scripts, sets) in zip(nodes, said, strict=True):
        until(lambda n=node, s=scripts: calls(n, "evalsha") > s, what="for the request")
        assert calls(node, "set") == sets, "it took the lock, if only for a moment"
        assert token_on(node, name) == ""
    with client.lock(name, wait=20):
        pass


def test_a_renewal_that_comes_too_late_brings_nothing_back(
    nodes: ThrowawayNodes,
    proxy: Callable[[ThrowawayNode], Proxy],
    connect: Callable[..., holdfast.Client],
    name: str,
    guard: bool,
) -> None:
    late = proxy(nodes[2])
    client = connect(*nodes.urls[:2], late.url, guard=guard, node_timeout=ROUND)
    lease = hold(client, nodes, name, ttl=20, renew=False)
    late.hold_requests()
    lease.renew()
    until(lambda: late.requests_held)
    nodes[2].call("DEL", lock_key(name))
    pass_time(TOO_LATE)
    scripts, sets = calls(nodes[2], "evalsha"), calls(nodes[2], "set")
    late.let_requests_pass()
    until(lambda: calls(nodes[2], "evalsha") > scripts, what="for the renewal")
    assert calls(nodes[2], "set") == sets
    assert token_on(nodes[2], name) == ""
    lease.release()
