"""Every test here runs with every kind of client and of server, over 1, 3 and 5 nodes."""

import contextlib
from collections.abc import Callable

import pytest

from holdfast.embedded import ThrowawayNode
from rig.actor import ACTORS, Actor
from rig.servers import PROGRAMS, Park

TOPOLOGIES = [
    (kind, count) for kind in PROGRAMS for count in ((1, 3, 5) if kind == "valkey" else (1, 3))
]


@pytest.fixture(params=TOPOLOGIES, ids=lambda topology: f"{topology[0]}-{topology[1]}")
def nodes(request: pytest.FixtureRequest, park: Park) -> list[ThrowawayNode]:
    """Return the nodes to lock on."""
    return park.nodes(*request.param)


@pytest.fixture(params=list(ACTORS))
def new_actor(
    request: pytest.FixtureRequest, nodes: list[ThrowawayNode], cleanup: contextlib.ExitStack
) -> Callable[[], Actor]:
    """Return what makes somebody with a client of its own."""

    def make() -> Actor:
        actor = ACTORS[request.param](*(node.url for node in nodes), node_timeout=5.0)
        cleanup.callback(actor.close)
        return actor

    return make


@pytest.fixture
def actor(new_actor: Callable[[], Actor]) -> Actor:
    """Return somebody who wants locks."""
    return new_actor()


@pytest.fixture
def rival(new_actor: Callable[[], Actor]) -> Actor:
    """Return somebody else."""
    return new_actor()
