"""The task inside an `async with` block, which is cancelled when its lease is lost."""

import asyncio
import contextlib
from typing import Any


class Body:
    """A task, from entering a block to leaving it."""

    __slots__ = ("_before", "_left", "_struck", "_task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self._task = task
        self._before = task.cancelling()
        self._struck = False
        self._left = False

    def cancel(self, why: str) -> None:
        """Cancel the task, unless it has left the block by then. Any thread calls this."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is no task any more
            self._task.get_loop().call_soon_threadsafe(self._strike, why)

    def _strike(self, why: str) -> None:
        if not self._left and not self._struck:
            self._struck = True
            self._task.cancel(why)

    def was_cancelled_by_us(self, error: BaseException | None) -> bool:
        """Leave the block; True if the cancellation that ends it is ours alone."""
        self._left = True
        if not self._struck:
            return False
        others = self._task.uncancel() > self._before
        return isinstance(error, asyncio.CancelledError) and not others
