"""Calling users' callbacks at once, on the thread that makes time pass: always the same way.

The shipped client calls them on threads of their own, so nothing may depend on what they raise: an
exception is reported as a thread's would be. What ends a test run goes through (Ctrl-C, and what
`pytest.fail` raises).
"""

import threading
from collections import deque
from collections.abc import Callable

from ...calls import report


class AtOnce:
    """Calls callbacks of leases where and when something befalls them."""

    dropped = 0

    def reset(self) -> None:
        """Start anew in a forked child: nothing waits here."""

    def call(self, what: Callable[[], object]) -> None:
        """Call something now."""
        try:
            what()
        except Exception as error:  # noqa: BLE001  # reported, see above
            report(error)


class InTurn:
    """Calls a client's hook, one record after the other.

    What happens while the hook is at work, by its own doing or by another thread's, waits until it
    is done; then whoever is at it goes on with that.
    """

    dropped = 0

    def __init__(self) -> None:
        self._at_once = AtOnce()
        self.reset()

    def reset(self) -> None:
        """Start anew in a forked child: what waited was the parent's."""
        self._waiting: deque[Callable[[], object]] = deque()
        self._turn = threading.Lock()

    def call(self, what: Callable[[], object]) -> None:
        """Call something now, or when those before it are done."""
        self._waiting.append(what)
        while self._waiting and self._turn.acquire(blocking=False):  # until all are called
            try:
                while self._waiting:
                    self._at_once.call(self._waiting.popleft())
            finally:
                self._turn.release()
