"""A lease: what you have after acquiring a lock."""

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from .core.holding import Holding, State
from .core.outcomes import LossReason, Lost, Released, Renewed, Unsure
from .core.release import release
from .core.renew import renew
from .drivers.blocking import BlockingDriver
from .errors import LeaseLost, NotHeld, Unreachable
from .reports import reports_of


class Lease:
    """The right to be the only one, until it ends by itself or is released.

    A context manager: leaving the block releases, and raises `LeaseLost` if the lease did not last
    that long. If the body has failed already, its own exception goes on and the loss is attached to
    it as a note.

    A lease belongs to the process that acquired it. Any of its threads may use it; a forked child
    may not, and for the child it is not held.
    """

    def __init__(
        self, driver: BlockingDriver, holding: Holding, forget: Callable[["Lease"], None]
    ) -> None:
        self._driver = driver
        self._holding = holding
        self._forget = forget
        self._pid = os.getpid()
        self._ending = threading.Lock()

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._holding.terms.name

    @property
    def token(self) -> str:
        """The secret that proves this acquisition to the nodes."""
        return self._holding.token

    @property
    def ttl(self) -> float:
        """How long nodes keep the lock after acquiring or renewing, in seconds."""
        return self._holding.terms.ttl

    @property
    def valid_for(self) -> float:
        """How many seconds the lease may still be relied upon, by our own clock; 0 if not held."""
        now = self._driver.now()
        if not self._is_ours() or not self._holding.is_held(now):
            return 0.0
        return self._holding.valid_until - now

    @property
    def is_held(self) -> bool:
        """True while the lease may be relied upon. Asks nobody: it needs only our own clock."""
        return self._is_ours() and self._holding.is_held(self._driver.now())

    def ensure_held(self) -> None:
        """Raise `LeaseLost` or `NotHeld` unless the lease is held."""
        self._ensure_ours()
        reason = self._holding.loss(self._driver.now())
        if reason is not None:
            raise LeaseLost(self.name, reason)

    def renew(self) -> None:
        """Ask for the full ttl again.

        Raises `LeaseLost` if the lease has ended, and `Unreachable` if too few nodes answered: then
        it holds on until its old end, and renewing may be tried again.
        """
        self.ensure_held()
        holding, begun = self._holding, self._driver.now()
        outcome = self._driver.run(
            lambda now: renew(
                holding.terms, holding.token, valid_until=holding.valid_until, now=now
            )
        )
        match outcome:
            case Renewed(valid_until):
                holding.renewed(valid_until)
            case Unsure(tally):
                waited = self._driver.now() - begun
                raise Unreachable(self.name, reports_of(self._driver.endpoints, tally), waited)
            case Lost(reason):
                self._lose(reason)

    def release(self) -> Released:
        """Give the lock back, on every node.

        Returns `Released.FREED`, or `Released.LAPSING` if too few nodes answered: all were told,
        and the lock frees itself when its ttl ends. Raises `LeaseLost` if the lease had ended
        before, and `NotHeld` if it was released already or belongs to another process.
        """
        self._ensure_ours()
        holding = self._holding
        with self._ending:  # of two threads that release at once, one does
            self._ensure_ours()
            if holding.reason is not None:
                raise LeaseLost(self.name, holding.reason)
            holding.release()  # first: whatever happens from here on, nobody relies on it
        self._forget(self)
        outcome = self._driver.run(
            lambda now: release(
                holding.terms, holding.token, valid_until=holding.valid_until, now=now
            )
        )
        if isinstance(outcome, Lost):
            raise LeaseLost(self.name, outcome.reason)
        return outcome

    def __enter__(self) -> Self:
        self.ensure_held()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._holding.state is State.RELEASED or not self._is_ours():
            return
        try:
            self.release()
        except Exception as trouble:
            if error is None:
                raise
            error.add_note(f"holdfast: {trouble}")

    def __repr__(self) -> str:
        state = self._holding.state
        if state is State.HELD:
            left = self.valid_for
            return (
                f"<Lease of {self.name!r}, valid for {left:.3f} s>"
                if left
                else (f"<Lease of {self.name!r}, not held>")
            )
        return f"<Lease of {self.name!r}, {state.value}>"

    def _lose(self, reason: LossReason) -> None:
        self._holding.lose(reason)
        self._forget(self)
        raise LeaseLost(self.name, reason)

    def _is_ours(self) -> bool:
        return self._pid == os.getpid()

    def _ensure_ours(self) -> None:
        if not self._is_ours():
            raise NotHeld(self.name, f"the lease belongs to process {self._pid}")
        if self._holding.state is State.RELEASED:
            raise NotHeld(self.name, "it was released")
