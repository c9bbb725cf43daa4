"""Three nodes to be harmed, each behind a proxy; whole and healed again before every test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.proxy import Proxy


@pytest.fixture(scope="module")
def fragile() -> Iterator[ThrowawayNodes]:
    """Return three nodes of this module's own. Whoever harms them mends them."""
    with ThrowawayNodes(3) as nodes:
        yield nodes


@dataclass
class Site:
    """Nodes and the proxies in front of them."""

    nodes: list[ThrowawayNode]
    proxies: list[Proxy]

    @property
    def urls(self) -> list[str]:
        return [proxy.url for proxy in self.proxies]


@pytest.fixture
def site(fragile: ThrowawayNodes, proxy: Callable[[ThrowawayNode], Proxy]) -> Site:
    """Return three nodes behind proxies."""
    return Site(list(fragile), [proxy(node) for node in fragile])


@pytest.fixture
def lone(fragile: ThrowawayNodes, proxy: Callable[[ThrowawayNode], Proxy]) -> Site:
    """Return one node behind a proxy."""
    return Site([fragile[0]], [proxy(fragile[0])])


@pytest.fixture
def warm(fragile: ThrowawayNodes) -> None:
    """Let the nodes know all scripts."""
    for node in fragile:
        with holdfast.connect(node.url, node_timeout=5) as client, client.lock("warm") as lease:
            lease.renew()
