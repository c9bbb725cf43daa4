"""What belongs to one task."""

import asyncio
import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..shelf import Shelf

if TYPE_CHECKING:
    from .lease import AsyncLease


class Mine(NamedTuple):
    """A task, and what it holds."""

    task: "weakref.ref[asyncio.Task[Any]]"
    shelf: "Shelf[AsyncLease]"

    @classmethod
    def of(cls, task: "asyncio.Task[Any]", common: "Shelf[AsyncLease]") -> "Mine":
        """Return what a new task begins with: a shelf, or the process's if it is no owner."""
        reference = weakref.ref(task)
        return cls(reference, common if _only_acquires(task) else Shelf(reference))


def this_task() -> "asyncio.Task[Any]":
    """Return the task that asks."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("locks are acquired inside a task")
    return task


ACQUIRING: set[CodeType] = set()
"""The coroutines that acquire and do nothing else."""


def _only_acquires(task: "asyncio.Task[Any]") -> bool:
    """True if a task ends as soon as it has the lease, which then is for whoever awaits it.

    `asyncio.gather(lock.acquire(), …)`, `wait_for(lock.acquire(), …)` and the like make such tasks.
    """
    return getattr(task.get_coro(), "cr_code", None) in ACQUIRING
