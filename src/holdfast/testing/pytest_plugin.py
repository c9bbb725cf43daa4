"""Fixtures for users' tests. Enable them in the top-level conftest.py:

    pytest_plugins = ["holdfast.testing.pytest_plugin"]

- `holdfast_memory`: a universe in memory; needs the extra `testing`
- `holdfast_nodes`: real servers, up and empty; needs the extra `embedded`
- `start_holdfast_nodes`: what starts further servers for one test alone

Nothing is started or imported before a test asks for it. With pytest-xdist every worker has servers
of its own.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from ..errors import EmbeddedServerError

if TYPE_CHECKING:
    from ..embedded import ThrowawayNode, ThrowawayNodes
    from .memory import Memory

DEFAULT_NODES = "3"
"""The smallest quorum that outlives a node."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the ini file say how many nodes there are."""
    parser.addini(
        "holdfast_nodes",
        f"how many servers the fixture holdfast_nodes has ({DEFAULT_NODES})",
        default=DEFAULT_NODES,
    )


@pytest.fixture
def holdfast_memory() -> "Memory":
    """Return a `Memory` of one node, new for every test: clients without servers or waiting."""
    try:
        from .memory import Memory
    except ImportError as error:
        pytest.fail(f"fixture holdfast_memory: {error}", pytrace=False)
    return Memory()


@pytest.fixture
def holdfast_nodes(_holdfast_servers: "ThrowawayNodes") -> "ThrowawayNodes":
    """Return real servers, up and empty; `urls` is for `holdfast.connect(*holdfast_nodes.urls)`.

    They are shared by all tests of a session. A test may kill, pause and restart them: whatever it
    leaves behind is mended and emptied before the next one.
    """
    for node in _holdfast_servers:
        _mend(node)
    return _holdfast_servers


@pytest.fixture
def start_holdfast_nodes() -> "Iterator[Callable[[int], ThrowawayNodes]]":
    """Return what starts so many servers for this test alone; they end with it."""
    with contextlib.ExitStack() as stack:
        yield lambda count: stack.enter_context(_started(count))


@pytest.fixture(scope="session")
def _holdfast_servers(pytestconfig: pytest.Config) -> "Iterator[ThrowawayNodes]":
    given = pytestconfig.getini("holdfast_nodes")
    try:
        count = int(given)
    except ValueError:
        count = 0
    if count < 1:
        pytest.fail(f"holdfast_nodes = {given!r} is not a number of nodes", pytrace=False)
    with _started(count) as nodes:
        yield nodes


@contextlib.contextmanager
def _started(count: int) -> "Iterator[ThrowawayNodes]":
    from ..embedded import ThrowawayNodes

    try:
        nodes = ThrowawayNodes(count).__enter__()
    except EmbeddedServerError as error:
        pytest.fail(f"throw-away nodes cannot be started: {error}", pytrace=False)
    with contextlib.closing(nodes):
        yield nodes


def _mend(node: "ThrowawayNode") -> None:
    """Let a node go on, empty it, and start it again if it does not answer."""
    node.resume()
    if node.call("FLUSHALL") != "OK":
        node.restart()
    node.initialise()
