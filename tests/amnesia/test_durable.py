"""Servers that write every change to their disk before they answer have nothing to forget.

The longest ttl is long here: whoever had to wait for its end would be noticed.
"""

import contextlib
from collections.abc import Callable, Sequence

import pytest

import holdfast
from amnesia.harness import SLACK, hold, restart, start
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.servers import holders

ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")

Connect = Callable[..., holdfast.Client]


def shut_down(nodes: Sequence[ThrowawayNode]) -> None:
    for node in nodes:
        node.stop()
    start(nodes)


@pytest.mark.parametrize("again", [shut_down, restart], ids=["in good order", "killed"])
def test_they_grant_at_once_after_a_restart(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str, again: Callable
) -> None:
    nodes = own_nodes(3, config=ALWAYS)
    holder, other = (connect(*nodes.urls, durable=True, max_ttl=60) for _ in range(2))
    lease = hold(holder, nodes, name, ttl=60)
    again(nodes[:])
    with other.lock(f"{name}:other", ttl=60, wait=SLACK):
        pass
    assert holders(nodes[:], name) == [lease.token] * 3
    assert other.lock(name, ttl=60).try_acquire() is None
    lease.renew()
    fence = lease.fence
    assert lease.release() is holdfast.Released.FREED
    with other.lock(name, ttl=60, wait=SLACK) as later:
        assert later.fence > fence


def test_they_abstain_all_the_same_if_their_files_are_lost(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str
) -> None:
    nodes = own_nodes(3, config=ALWAYS)
    client = connect(*nodes.urls, durable=True, max_ttl=60)
    client.lock(name, ttl=60, renew=False).acquire(wait=SLACK)
    for node in nodes[:2]:
        node.kill()
        for log in node.directory.glob("appendonlydir/*"):
            log.unlink()
    start(nodes[:2])
    with pytest.raises(holdfast.Unreachable, match="abstain"):
        client.lock(f"{name}:other", ttl=60).acquire(wait=0)


@pytest.mark.parametrize(
    "config",
    [
        ("--appendonly", "yes", "--appendfsync", "everysec"),
        (*ALWAYS, "--no-appendfsync-on-rewrite", "yes"),
        (),
    ],
    ids=["every second", "not while it rewrites", "no log"],
)
def test_servers_that_only_claim_it_are_not_believed(
    own_nodes: Callable[..., ThrowawayNodes],
    connect: Connect,
    name: str,
    config: Sequence[str],
) -> None:
    nodes = own_nodes(3, config=config)
    with contextlib.suppress(holdfast.HoldfastError):  # refused, or treated as any other
        client = connect(*nodes.urls, durable=True, max_ttl=60)
        client.lock(name, ttl=60, renew=False).acquire(wait=0)
        restart(nodes[:])
        lease = client.lock(name, ttl=60).try_acquire()
        assert lease is None


def test_servers_that_were_not_durable_in_their_last_run_abstain(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str
) -> None:
    nodes = own_nodes(3, config=("--appendonly", "yes", "--appendfsync", "everysec"))
    logs = [next(node.directory.glob("appendonlydir/*.incr.aof")) for node in nodes]
    sizes = [log.stat().st_size for log in logs]
    lease = hold(connect(*nodes.urls, durable=True, max_ttl=60), nodes, name, renew=False)
    for node, log, size in zip(nodes, logs, sizes, strict=True):
        node.kill()
        with log.open("r+b") as file:
            file.truncate(size)
        node._config = list(ALWAYS)
    start(nodes[:])
    with pytest.raises(holdfast.Unreachable, match="abstain"):
        connect(*nodes.urls, durable=True, max_ttl=60).lock(name, renew=False).acquire(wait=0)
    assert lease.is_held
