"""Locks that people wait for in line, on real servers."""

import contextlib
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from rig.actor import ACTORS, Actor
from rig.lineup import LineUp
from rig.servers import Park
from rig.tasks import pytest_pyfunc_call as pytest_pyfunc_call

CALM = 5.0

TOPOLOGIES = [("valkey", 1), ("valkey", 3)]


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """See that what somebody forgot is found here, and not in whichever test is next."""
    yield
    gc.collect()


@pytest.fixture(params=TOPOLOGIES, ids=lambda topology: f"{topology[0]}-{topology[1]}")
def nodes(request: pytest.FixtureRequest, park: Park) -> list[ThrowawayNode]:
    """Return healthy nodes, not to be harmed: one, and a quorum."""
    return park.nodes(*request.param)


@pytest.fixture
def lone(park: Park) -> ThrowawayNode:
    """Return one healthy node."""
    return park.nodes("valkey", 1)[0]


@pytest.fixture(params=list(ACTORS))
def colour(request: pytest.FixtureRequest) -> str:
    """Return a kind of client."""
    return request.param


NewActor = Callable[..., Actor]


@pytest.fixture
def new_actor(colour: str, cleanup: contextlib.ExitStack) -> NewActor:
    """Return what makes somebody with a client of its own: nodes or addresses, and options."""

    def make(nodes: Sequence[ThrowawayNode | str], **options: Any) -> Actor:
        urls = [node if isinstance(node, str) else node.url for node in nodes]
        actor = ACTORS[colour](*urls, **{"node_timeout": CALM, **options})
        cleanup.callback(actor.close)
        return actor

    return make


@pytest.fixture
def line_up(cleanup: contextlib.ExitStack) -> Callable[..., LineUp]:
    """Return what lines people up for a lock. Whoever waits is let go before clients are closed."""

    def make(nodes: Sequence[ThrowawayNode], name: str, **options: Any) -> LineUp:
        urls = [node.url for node in nodes]
        client = holdfast.connect(*urls, **{"node_timeout": CALM, "label": "onlooker", **options})
        cleanup.callback(client.close)
        line = LineUp(name, client.lock(name, ttl=30), nodes=len(urls))
        cleanup.callback(line.close)
        return line

    return make


PROGRAM = """
import json, sys, threading, holdfast

said = json.loads(sys.argv[1])
client = holdfast.connect(*said["urls"], node_timeout=5, **said["options"])

def visit():
    with client.lock(said["name"], ttl=said["ttl"], wait=40):
        if said["note"]:
            with open(said["note"], "a") as note:
                note.write(said["label"] + "\\n")
        print("held", flush=True)
        if not said["note"]:
            sys.stdin.readline()
    print("left", flush=True)

for _ in range(said["threads"] - 1):
    threading.Thread(target=visit, daemon=True).start()
visit()
"""


@pytest.fixture
def process(cleanup: contextlib.ExitStack) -> Callable[..., "subprocess.Popen[str]"]:
    """Return what starts a process that acquires a lock, says "held" and waits for a line.

    With a `note` it writes its label there instead, and releases at once.
    """

    def start(
        nodes: Sequence[ThrowawayNode],
        name: str,
        *,
        ttl: float = 30,
        threads: int = 1,
        note: Path | None = None,
        label: str = "process",
        **options: Any,
    ) -> "subprocess.Popen[str]":
        said = {
            "urls": [node.url for node in nodes],
            "name": name,
            "ttl": ttl,
            "threads": threads,
            "note": str(note) if note is not None else None,
            "label": label,
            "options": {"label": label, **options},
        }
        started = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(said)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        cleanup.callback(started.communicate)
        cleanup.callback(started.kill)
        return started

    return start
