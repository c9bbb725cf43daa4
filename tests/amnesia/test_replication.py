"""Servers that take over another one's memory, or somebody else's place."""

from collections.abc import Sequence

import pytest

from amnesia.harness import Event, Site, try_out
from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import NODE_KEY
from rig.waiting import until

AT_ONCE = ("--repl-diskless-sync-delay", "0")

SLOWLY = 2.5
"""Seconds. A server looks for its source once a second, and the lock should be held meanwhile."""


def follow(replica: ThrowawayNode, source: ThrowawayNode) -> None:
    """Make a server a replica of another one."""
    host, _, port = source.tcp_url.removeprefix("redis://").partition(":")
    assert replica.call("REPLICAOF", host, port) == "OK"


def synced(replicas: Sequence[ThrowawayNode]) -> None:
    """Wait until replicas have what their sources have."""
    for replica in replicas:
        until(lambda r=replica: "master_link_status:up" in (r.call("INFO", "replication") or ""))


def marker(node: ThrowawayNode) -> str | None:
    return node.call("HGET", NODE_KEY, "id")


def promote(nodes: Sequence[ThrowawayNode]) -> None:
    for node in nodes:
        assert node.call("REPLICAOF", "NO", "ONE") == "OK"


def start_an_empty_one(site: Site) -> None:
    site.notes["empty"] = site.spares(1, config=AT_ONCE)[0]


def take_over_nothing(site: Site) -> None:
    """Make two nodes replicas of an empty server, and promote them again."""
    site.strike_now()
    for node in site.nodes[:2]:
        follow(node, site.notes["empty"])
    synced(site.nodes[:2])
    promote(site.nodes[:2])


def fall_behind(site: Site) -> None:
    """Give two nodes replicas that are promoted before the lock is taken."""
    site.notes["others"] = others = site.spares(2, config=AT_ONCE)
    for other, node in zip(others, site.nodes[:2], strict=True):
        follow(other, node)
    synced(others)
    if site.guard:  # with its first replica a server begins a new history, and so it abstains
        site.connect().nodes.init()
    for other, node in zip(others, site.nodes[:2], strict=True):
        until(lambda o=other, n=node: marker(o) == marker(n))
    promote(others)


def fail_over_and_back(site: Site) -> None:
    """Make the two nodes replicas of those that were theirs, and promote them again.

    Each is the same run of the same server as before, at the same address, and has a marker that
    it wrote itself.
    """
    site.strike_now()
    for node, other in zip(site.nodes[:2], site.notes["others"], strict=True):
        follow(node, other)
    synced(site.nodes[:2])
    promote(site.nodes[:2])


EVENTS = [
    Event(
        "promoted with an empty one's memory",
        take_over_nothing,
        prepare=start_an_empty_one,
        config=AT_ONCE,
        tcp=True,
        max_ttl=SLOWLY,
    ),
    Event(
        "failed over and back",
        fail_over_and_back,
        prepare=fall_behind,
        config=AT_ONCE,
        tcp=True,
        max_ttl=SLOWLY,
    ),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_with_a_guard_there_is_one_lease(event: Event, name: str) -> None:
    try_out(event, name, guard=True)


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_without_a_guard_there_are_two(event: Event, name: str) -> None:
    try_out(event, name, guard=False)
