"""Leases that are renewed by a keeper, on real servers; ttls are short, so that they often are."""

import asyncio
import contextlib
import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.actor import ACTORS, AsyncActor, AsyncHeldLease
from rig.tap import Tap
from rig.tasks import pytest_pyfunc_call as pytest_pyfunc_call
from rig.waiting import until

CALM = 5.0

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """See that what somebody forgot is found here, and not in whichever test is next."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def fragile() -> Iterator[ThrowawayNodes]:
    """Return three nodes of this module's own."""
    with ThrowawayNodes(3) as nodes:
        yield nodes


@pytest.fixture
def three(fragile: ThrowawayNodes) -> Iterator[list[ThrowawayNode]]:
    """Return three nodes that a test may kill and pause; they are mended after it."""
    yield list(fragile)
    for node in fragile:
        if node.pid is None:
            node.start()
        node.resume()
        node.initialise()  # whatever it was told, or has forgotten


@pytest.fixture
def lone(three: list[ThrowawayNode]) -> ThrowawayNode:
    """Return one such node."""
    return three[0]


@pytest.fixture
def tap(short_dir: Path, cleanup: contextlib.ExitStack) -> Callable[[ThrowawayNode], Tap]:
    """Return what taps a node's wire."""

    def make(node: ThrowawayNode) -> Tap:
        made = Tap(node.socket, short_dir / f"t{next(_numbers)}.sock")
        cleanup.callback(made.close)
        return made

    return make


class Party:
    """Somebody who holds locks with a client of either colour, through plain calls."""

    def __init__(self, colour: str, *nodes: str, **options: Any) -> None:
        self.colour = colour
        self.actor: Any = ACTORS[colour](*nodes, **{"node_timeout": CALM, **options})
        self.client: Any = self.actor.client
        self.close = self.actor.close

    def acquire(self, name: str, **options: Any) -> Any:
        """Acquire a lock; every option of `client.lock` may be given."""
        lock = self.client.lock(name, **{"wait": 20, **options})
        if isinstance(self.actor, AsyncActor):
            return AsyncHeldLease(self.actor, self.actor.call(lock.acquire))
        return lock.acquire()

    def wait_lost(self, lease: Any, timeout: float | None = 20) -> holdfast.LossReason | None:
        """Wait for a loss."""
        if isinstance(self.actor, AsyncActor):
            return self.actor.call(lambda: lease.lost.wait(timeout))
        return lease.lost.wait(timeout)

    def listen(self, lease: Any, *, endangered: Any = None, lost: Any = None) -> None:
        """Add callbacks."""

        async def add() -> None:
            if endangered is not None:
                lease.on_endangered(endangered)
            if lost is not None:
                lease.on_lost(lost)

        if isinstance(self.actor, AsyncActor):
            self.actor.call(add)
        else:
            asyncio.run(add())


@pytest.fixture
def party(cleanup: contextlib.ExitStack) -> Callable[..., Party]:
    """Return what makes a `Party`: its colour, its nodes' addresses, its client's options."""

    def make(colour: str, *nodes: str, **options: Any) -> Party:
        made = Party(colour, *nodes, **options)
        cleanup.callback(made.close)
        return made

    return make


@pytest.fixture(params=list(ACTORS))
def colour(request: pytest.FixtureRequest) -> str:
    """Return a kind of client."""
    return request.param


def urls(nodes: list[ThrowawayNode]) -> list[str]:
    """Return where clients find nodes."""
    return [node.url for node in nodes]


def pttl(node: ThrowawayNode, name: str) -> int:
    """Return for how many milliseconds a node still keeps a lock; -2 if it does not."""
    return int(node.call("PTTL", lock_key(name)) or -2)


def delete(nodes: list[ThrowawayNode], name: str) -> None:
    """Delete a lock behind its holder's back."""
    for node in nodes:
        node.call("DEL", lock_key(name))


def info(node: ThrowawayNode, section: str, field: str) -> int:
    """Return a number that a node counts."""
    lines = (node.call("INFO", section) or "").splitlines()
    return int(dict(line.split(":", 1) for line in lines if ":" in line)[field])


def threads(prefix: str = "holdfast-") -> list[threading.Thread]:
    """Return our background threads."""
    return [each for each in threading.enumerate() if each.name.startswith(prefix)]


def renewed(client: Any, times: int = 1) -> None:
    """Wait until a client's keeper has renewed so often from now on."""
    start = client.stats().renewals
    until(lambda: client.stats().renewals >= start + times)
