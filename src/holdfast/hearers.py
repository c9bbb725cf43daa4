"""Who wants to hear what befalls a lease. Made only for leases that somebody listens to."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

C = TypeVar("C")

_making = threading.RLock()  # a signal handler may listen to a lease, too


def _in_child() -> None:
    global _making
    _making = threading.RLock()  # another thread of the parent may have had the old one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Hearers(Generic[C]):
    """Callbacks of one lease, and those who wait for its end."""

    __slots__ = ("_endangered", "_ended", "_lost")

    def __init__(self) -> None:
        self._lost: deque[C] = deque()
        self._endangered: list[C] = []
        self._ended: list[Callable[[], object]] = []

    @classmethod
    def of(cls, lease: Any) -> "Hearers[C]":
        """Return a lease's hearers; the first time they are made."""
        if lease._hearers is None:
            with _making:
                if lease._hearers is None:
                    lease._hearers = cls()
        hearers: Hearers[C] = lease._hearers
        return hearers

    def on_lost(self, callback: C) -> None:
        """Add somebody who wants to hear of the loss."""
        self._lost.append(callback)

    def on_endangered(self, callback: C) -> None:
        """Add somebody who wants to hear that it may end soon."""
        self._endangered.append(callback)

    def on_ended(self, ring: Callable[[], object]) -> None:
        """Add a bell to ring when the lease is lost or released."""
        self._ended.append(ring)

    def forget(self, ring: Callable[[], object]) -> None:
        """Take a bell off."""
        with contextlib.suppress(ValueError):
            self._ended.remove(ring)

    def take_lost(self) -> Iterator[C]:
        """Give out those who want to hear of the loss, each only once."""
        while True:  # until there are none
            try:
                yield self._lost.popleft()
            except IndexError:
                return

    def endangered(self) -> list[C]:
        """Return those who want to hear of danger."""
        return list(self._endangered)

    def ring(self) -> None:
        """Ring for those who wait for the end."""
        for ring in list(self._ended):
            ring()
