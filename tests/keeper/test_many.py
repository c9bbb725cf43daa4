"""Thousands of leases, one thread."""

import contextlib
from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from keeper.conftest import Party, info, urls
from rig.servers import calls
from rig.waiting import pass_time, until

MANY = 1000

Make = Callable[..., Party]


def test_a_thousand_leases(
    own_nodes: Callable[..., ThrowawayNodes], party: Make, name: str
) -> None:
    nodes = list(own_nodes(3))
    for attempt in range(3):  # a machine that is busy enough keeps any process from renewing
        if keep_many(nodes, party("blocking", *urls(nodes)), f"{name}:{attempt}"):
            return
    pytest.fail("some were lost each time")


def keep_many(nodes: list[ThrowawayNode], holder: Party, name: str) -> bool:
    """Keep a thousand leases for a while; True if none is lost."""
    stats = holder.client.stats
    leases = [holder.acquire(f"{name}:{number}", ttl=1) for number in range(MANY)]
    reads = [info(node, "stats", "total_reads_processed") for node in nodes]
    done = [calls(node, "pexpire") for node in nodes]
    count = stats().renewals
    pass_time(2.2)
    if stats().lost == 0:
        assert stats().held == MANY
        assert stats().renewals - count > MANY * 3
        for node, before, prolonged in zip(nodes, reads, done, strict=True):
            ran = calls(node, "pexpire") - prolonged
            spent = info(node, "stats", "total_reads_processed") - before
            assert ran > MANY * 3
            assert spent < ran / 5, "many renewals in one write"
        assert all(lease.is_held for lease in leases)
    for lease in leases:
        with contextlib.suppress(holdfast.LeaseError):
            lease.release()
    return stats().lost == 0


def test_many_releases_while_a_node_hangs_delay_no_renewal(
    three: list[ThrowawayNode], party: Make, name: str
) -> None:
    """However many answers a hung node owes, finding out which must not stop the keeper."""
    holder = party("blocking", *urls(three))
    kept = holder.acquire(f"{name}:kept", ttl=3)
    leases = [holder.acquire(f"{name}:{number}", ttl=4) for number in range(600)]
    three[2].pause()
    stats = holder.client.stats
    start = stats().renewals
    until(lambda: stats().renewals > start + 600)
    for lease in leases:
        with contextlib.suppress(holdfast.LeaseLost):  # if the machine was too busy to renew it
            lease.release()
    until(lambda: not holder.client._keeper._loop.followed)
    assert kept.is_held
    three[2].resume()
    kept.release()
