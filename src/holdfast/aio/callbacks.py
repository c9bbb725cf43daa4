"""Calling a lease's callbacks on their event loop."""

import asyncio
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lease import AsyncLease

Callback = Callable[["AsyncLease"], object]

_running: "set[asyncio.Task[Any]]" = set()
"""Callbacks that are at work: a loop refers to its tasks only weakly."""


def call(loop: asyncio.AbstractEventLoop, callback: Callback, lease: "AsyncLease") -> None:
    """Call a lease's callback on its loop; what it raises goes to the loop's handler."""
    result = callback(lease)
    if inspect.iscoroutine(result):
        task = loop.create_task(result, name="holdfast-callback")
        _running.add(task)
        task.add_done_callback(_running.discard)
