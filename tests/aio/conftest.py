"""Tests of what only asyncio can do; what all clients do is in the conformance suite."""

import asyncio
import functools
import gc
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast.aio
from holdfast.embedded import ThrowawayNode

CALM = 5.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests on a loop of their own, with a deadline."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(_with_deadline(functools.partial(pyfuncitem.obj, **arguments)))
    return True


async def _with_deadline(test: Callable[[], Any]) -> None:
    async with asyncio.timeout(40):
        await test()


@pytest.fixture(autouse=True)
def _tidy() -> Iterator[None]:
    """See that a connection somebody forgot is found here, and not in whichever test is next."""
    yield
    gc.collect()


@pytest.fixture
def client(healthy: list[ThrowawayNode]) -> holdfast.aio.AsyncClient:
    """Return a client of three healthy nodes. The test closes it: it alone has a loop."""
    return holdfast.aio.connect(*(node.url for node in healthy), node_timeout=CALM)


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait for a condition, while the loop goes on."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)
