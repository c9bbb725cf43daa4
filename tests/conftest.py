"""Servers are shared by all tests of a worker; locks are not: every test has a name of its own."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.fake import FakeServer, Words
from rig.proxy import Proxy
from rig.servers import Park

_numbers = itertools.count(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whatever runs in the background of a shell ignores Ctrl-C, and so would all it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

CALM = 5.0
"""A node timeout that only a hung node uses up, however busy the machine is."""


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the developer's own settings out."""
    monkeypatch.delenv("HOLDFAST_NODES", raising=False)
    monkeypatch.delenv("HOLDFAST_RUNTIME_DIR", raising=False)


@pytest.fixture
def name() -> str:
    """Return a lock's name that no other test uses."""
    return f"lock:{os.getpid()}:{next(_numbers)}"


@pytest.fixture(scope="session")
def park() -> Iterator[Park]:
    """Return the healthy servers of this worker."""
    park = Park()
    yield park
    park.close()


@pytest.fixture
def healthy(park: Park) -> list[ThrowawayNode]:
    """Return three healthy nodes, not to be harmed."""
    return park.nodes("valkey", 3)


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """Return a directory whose path is short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def cleanup() -> Iterator[contextlib.ExitStack]:
    """Return a stack that is unwound after the test."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def connect(cleanup: contextlib.ExitStack) -> Callable[..., holdfast.Client]:
    """Return `holdfast.connect` with a calm node timeout; clients are closed after the test."""

    def make(*nodes: object, node_timeout: float = CALM, **options: object) -> holdfast.Client:
        client = holdfast.connect(*nodes, node_timeout=node_timeout, **options)
        cleanup.callback(client.close)
        return client

    return make


@pytest.fixture
def own_nodes(cleanup: contextlib.ExitStack) -> Callable[..., ThrowawayNodes]:
    """Return what starts nodes for one test alone, which may kill them."""
    return lambda count, **options: cleanup.enter_context(ThrowawayNodes(count, **options))


@pytest.fixture
def proxy(short_dir: Path, cleanup: contextlib.ExitStack) -> Callable[[ThrowawayNode], Proxy]:
    """Return what puts a proxy in front of a node."""

    def make(node: ThrowawayNode) -> Proxy:
        made = Proxy(node.socket, short_dir / f"p{next(_numbers)}.sock")
        cleanup.callback(made.close)
        return made

    return make


@pytest.fixture
def fake(
    short_dir: Path, cleanup: contextlib.ExitStack
) -> Callable[[Callable[[Words], bytes]], FakeServer]:
    """Return what starts a fake server."""

    def make(answer: Callable[[Words], bytes]) -> FakeServer:
        made = FakeServer(short_dir / f"f{next(_numbers)}.sock", answer)
        cleanup.callback(made.close)
        return made

    return make


@pytest.fixture
def in_thread(cleanup: contextlib.ExitStack) -> Callable[..., Future]:
    """Return what runs a function on another thread; `result()` waits for it."""
    pool = cleanup.enter_context(ThreadPoolExecutor(64, thread_name_prefix="test"))
    return pool.submit


@pytest.fixture
def free_port() -> int:
    """Return a TCP port that nobody listens at."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
