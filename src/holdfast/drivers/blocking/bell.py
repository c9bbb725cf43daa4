"""A bell for one thread, which another one rings."""

import contextlib
import threading


class Bell:
    """A lock that its thread cannot take until it is rung.

    Not a `threading.Condition`: an exception inside its `wait()` leaves its lock unlocked.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake the thread, now or when it next waits. May be called on any thread."""
        with contextlib.suppress(RuntimeError):  # it was rung before, and is about to look
            self._lock.release()

    def wait(self, timeout: float) -> bool:
        """Wait until somebody rings; False if nobody does for so many seconds."""
        return self._lock.acquire(timeout=timeout)
