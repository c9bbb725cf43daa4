"""Tests of what only asyncio can do; what all clients do is in the conformance suite."""

import gc
from collections.abc import Iterator

import pytest

import holdfast.aio
from holdfast.embedded import ThrowawayNode
from rig.tasks import pytest_pyfunc_call as pytest_pyfunc_call

CALM = 5.0


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """See that a connection somebody forgot is found here, and not in whichever test is next."""
    yield
    gc.collect()


@pytest.fixture
def client(healthy: list[ThrowawayNode]) -> holdfast.aio.AsyncClient:
    """Return a client of three healthy nodes. The test closes it: it alone has a loop."""
    return holdfast.aio.connect(*(node.url for node in healthy), node_timeout=CALM)
