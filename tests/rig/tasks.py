"""Tests that are coroutines: how they run, and how they wait. A conftest imports the hook."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest


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


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait for a condition, while the loop goes on."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)
