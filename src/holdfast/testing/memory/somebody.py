"""Somebody: a thread, or a task on one. Who might still do something, and who cannot."""

import asyncio
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Somebody:
    """A thread of this process, or one task of the loop that runs on it."""

    thread: threading.Thread
    task: "weakref.ref[asyncio.Task[Any]] | None"

    @classmethod
    def here(cls) -> Self:
        """Return who is calling."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop runs on this thread
            task = None
        return cls(threading.current_thread(), weakref.ref(task) if task is not None else None)

    @property
    def alive(self) -> bool:
        """False if it has ended, and will never do anything again."""
        if self.task is not None:
            task = self.task()
            return task is not None and not task.done()
        return self.thread.is_alive()

    def is_kept_by(self, other: "Somebody", *, blocking: bool) -> bool:
        """True if it cannot go on while the other one waits.

        Everybody is kept by their own wait. A thread is kept by the tasks of the loop that it runs,
        and all of them by somebody who blocks the thread.
        """
        if self == other:
            return True
        return self.thread is other.thread and (blocking or self.task is None)
