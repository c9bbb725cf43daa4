"""What clients and leases call, from any thread.

Most leases are released long before they need any care, so acquiring and releasing must cost next
to nothing: a new lease is only put where the thread will find it, and the thread is woken only if
it would otherwise sleep too long.
"""

import atexit
import threading
import weakref

from ..core.holding import Holding
from ..drivers.fleet import Fleet
from ..errors import ClientClosed
from .loop import Loop
from .port import Ward

_running: "weakref.WeakSet[Keeper]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """End what runs when the program ends: connections are closed, and nothing is renewed."""
    for keeper in list(_running):
        keeper.end(FAREWELL)


FAREWELL = 0.5
"""Seconds that the end of the program gives a keeper to close its connections."""


class Keeper:
    """Looks after a client's leases on one daemon thread, started when the first is acquired."""

    def __init__(self, fleet: Fleet, *, listening: bool = False) -> None:
        """Look after a client's leases; `listening`: also hear who is called."""
        self._fleet = fleet
        self._listening = listening
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._starting = threading.RLock()  # a signal handler may acquire a lock, too
        self._thread: threading.Thread | None = None
        self._loop = loop = Loop(self._fleet, listening=self._listening)
        if self._listening:
            self._fleet.post.begin = self._fleet.on_unsaid = lambda: loop.ring()

    def reset(self) -> None:
        """Start anew: a forked child does, whose parent's thread is not here."""
        self._loop.drop()  # at once: the frames of the thread that is not here refer to it
        self._begin()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is not None:  # its client is gone: nobody is left to look after anything for
            loop.stop()

    def ready(self, *, needed: bool) -> None:
        """See that the thread runs. Raises RuntimeError or OSError if that cannot be."""
        if self._thread is None or self._closed:
            try:
                self._start()
            except (RuntimeError, OSError):  # no thread, no descriptor, or the interpreter ends
                if needed or self._closed:
                    raise

    def _start(self) -> None:
        with self._starting:
            if self._closed:
                raise ClientClosed("the client is closed")
            if self._thread is not None:
                return
            self._loop.open_line()
            thread = threading.Thread(target=self._loop.run, name="holdfast-keeper", daemon=True)
            self._thread = thread  # first: a signal handler that strikes here starts no other
            try:
                thread.start()
                _running.add(self)
            except BaseException:
                self._thread = None
                raise

    def keep(self, lease: Ward) -> None:
        """Look after a lease that was just acquired, for as long as somebody refers to it."""
        holding, loop = lease._holding, self._loop
        loop.new[holding] = weakref.ref(lease)
        if holding.began + holding.terms.lead < loop.wakes_at:
            loop.ring()

    def drop(self, holding: Holding) -> None:
        """Look after a lease no more: it is about to be released, or has been forgotten."""
        loop = self._loop
        if loop.new.pop(holding, None) is None:
            loop.stale += 1  # it is swept out when there are many

    def follow(self, holding: Holding) -> None:
        """See that a release goes behind renewals that are still under way."""
        self._loop.followed.append(holding)
        self._loop.ring()

    def held(self) -> int:
        """Return how many leases are looked after."""
        return self._loop.held()

    def stop(self, wait: float = 0.0) -> bool:
        """End the thread and its connections; True once they have ended. May be called again."""
        with self._starting:
            self._closed = True
        return self.end(wait)

    def end(self, wait: float) -> bool:
        """End the thread, however else the client may still be used."""
        thread = self._thread
        self._loop.stop()
        if thread is None:
            return True
        thread.join(wait)
        return not thread.is_alive()
