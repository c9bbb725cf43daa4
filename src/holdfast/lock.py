"""A lock: a name that people contend for, and the terms on which to hold it."""

import threading
from types import TracebackType
from typing import TYPE_CHECKING

from .core.inspect import Sight, inspect
from .core.terms import Terms
from .errors import Busy
from .inspection import Holder, Waiter, holder_in, sights_in, waiters_in
from .lease import Lease
from .options import check_wait
from .settings import UNSET
from .shelf import Entered

if TYPE_CHECKING:
    from .client import Client


class Lock:
    """Describes a lock; it holds nothing. Every acquisition gives a `Lease` of its own.

    Fair: who waits stands in line, and nobody is let in before. Not reentrant: acquiring twice
    waits for oneself. A lease is renewed while its owner lives; if the holder dies, the lock frees
    itself when the ttl ends. One `Lock` may be used by any number of threads.
    """

    def __init__(self, client: "Client", terms: Terms, wait: float | None, *, tied: bool) -> None:
        self._client = client
        self._terms = terms
        self._wait = wait
        self._tied = tied
        self._entered: Entered[Lease] = Entered()

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._terms.name

    def acquire(self, *, wait: float | None = UNSET) -> Lease:
        """Acquire the lock, waiting as long as the lock was made to, or `wait` seconds.

        Raises `Busy` (one try: somebody else has it), `TimedOut` (somebody else still had it) or
        `Unreachable` (too few nodes answered to know). The timeout is never early, and late by one
        round at the most, unless there are more threads than connections: then each waits for its
        turn. To wait for ever means for a holder: nodes that stay away for 30 s end it. Whatever it
        raises, nothing stays acquired.
        """
        seconds = self._wait if wait is UNSET else check_wait(wait)
        return self._client._acquire(self._terms, seconds, tied=self._tied)

    def try_acquire(self) -> Lease | None:
        """Try once: return a lease, or None if somebody else has the lock.

        Raises `Unreachable` if too few nodes answered to know.
        """
        try:
            return self._client._acquire(self._terms, 0.0, tied=self._tied)
        except Busy:
            return None

    def holder(self) -> Holder | None:
        """Return who has the lock: host, process, label, fence, since when. None if nobody has.

        Raises `Unreachable` if too few nodes answered to know.
        """
        return holder_in(self._look(), self._terms.nodes)

    def waiters(self) -> list[Waiter]:
        """Return who waits for the lock, in order.

        Raises `Unreachable` if too few nodes answered to know.
        """
        return waiters_in(self._look())

    def _look(self) -> list[Sight]:
        port, terms = self._client._driver, self._terms
        begun = port.now()
        votes = port.run(lambda now: inspect(terms, now=now))
        return sights_in(votes, terms, port.endpoints, port.now() - begun)

    def __enter__(self) -> Lease:
        lease = self.acquire()
        self._entered.put(threading.get_ident(), lease)
        return lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        lease = self._entered.find(threading.get_ident(), self.name)
        try:
            lease.__exit__(kind, error, traceback)
        finally:
            self._entered.forget(lease)

    def __repr__(self) -> str:
        return f"<Lock {self.name!r}, ttl {self._terms.ttl:g} s, {self._terms.nodes} node(s)>"
