"""What belongs to one task."""

import asyncio
import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..keeper.owner import Owner
from ..shelf import Shelf

if TYPE_CHECKING:
    from .lease import AsyncLease


class Mine(NamedTuple):
    """Who a task is to its client, and what it holds."""

    task: "weakref.ref[asyncio.Task[Any]]"
    owner: Owner
    """Who its leases are renewed for."""
    shelf: "Shelf[AsyncLease]"

    @classmethod
    def of(cls, task: "asyncio.Task[Any]") -> "Mine":
        """Return what belongs to a task that has nothing yet."""
        reference = weakref.ref(task)
        return cls(reference, None if _only_acquires(task) else reference, Shelf())


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
