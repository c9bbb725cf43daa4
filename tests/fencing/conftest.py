"""Resources that check fences: on real servers, in real databases."""

import contextlib
import gc
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis

from fencing.postgres import Postgres, missing
from holdfast.embedded import ThrowawayNode
from processes.conftest import python as python
from rig.servers import PROGRAMS, Park
from rig.tasks import pytest_pyfunc_call as pytest_pyfunc_call

LIBRARIES = [name for name in ("redis", "valkey") if importlib.util.find_spec(name)]


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """See that a connection somebody forgot is found here, and not in whichever test is next."""
    yield
    gc.collect()


@pytest.fixture(params=PROGRAMS)
def server(request: pytest.FixtureRequest, park: Park) -> ThrowawayNode:
    """Return a healthy server of every kind there is."""
    return park.nodes(request.param, 1)[0]


@pytest.fixture
def user(
    server: ThrowawayNode, cleanup: contextlib.ExitStack
) -> Callable[..., "redis.Redis[bytes]"]:
    """Return what makes a user's own client of that server."""

    def make(**options: Any) -> "redis.Redis[bytes]":
        return cleanup.enter_context(redis.Redis.from_url(server.url, **options))

    return make


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> ModuleType:
    """Return a client library that is installed."""
    return importlib.import_module(request.param)


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Postgres]:
    if reason := missing():
        pytest.skip(reason)
    with Postgres() as running:
        yield running


@pytest.fixture
def postgres(_cluster: Postgres, cleanup: contextlib.ExitStack) -> Callable[..., Any]:
    """Return what connects to a database of this test's own."""
    database = _cluster.new_database()
    return lambda **options: cleanup.enter_context(
        contextlib.closing(_cluster.connect(database, **options))
    )


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return where a test has its SQLite database."""
    return tmp_path / "resource.db"
