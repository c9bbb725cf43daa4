"""A lease: what you have after acquiring a lock."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from . import forking
from .core.effects import Flow
from .core.holding import Holding, State
from .core.outcomes import Lost, Released, Renewed, Unsure
from .core.release import release
from .core.renew import renew
from .drivers.port import BlockingPort, Port
from .errors import LeaseLost, NotHeld, Unreachable
from .reports import reports_of


class LeaseFacts:
    """All of a lease that needs no waiting; how to wait is its client's business."""

    __slots__ = ("__weakref__", "_ending", "_forget", "_holding", "_pid", "_port")

    def __init__(self, port: Port, holding: Holding, forget: Callable[[Any], None]) -> None:
        self._port = port
        self._holding = holding
        self._forget = forget
        self._pid = forking.process
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
        left = self._holding.valid_until - self._port.now()
        return left if left > 0 and self.is_held else 0.0

    @property
    def is_held(self) -> bool:
        """True while the lease may be relied upon. Asks nobody: it needs only our own clock."""
        return self._is_ours() and self._holding.is_held(self._port.now())

    def ensure_held(self) -> None:
        """Raise `LeaseLost` or `NotHeld` unless the lease is held."""
        self._ensure_ours()
        reason = self._holding.loss(self._port.now())
        if reason is not None:
            raise LeaseLost(self.name, reason)

    def __repr__(self) -> str:
        if left := self.valid_for:
            return f"<{type(self).__name__} of {self.name!r}, valid for {left:.3f} s>"
        state = self._holding.state
        word = "not held" if state is State.HELD else state.value
        return f"<{type(self).__name__} of {self.name!r}, {word}>"

    # -- the steps of renewing and releasing, around the wait in between --------------------------

    def _renewing(self) -> Callable[[float], Flow[Renewed | Unsure | Lost]]:
        self.ensure_held()
        holding = self._holding
        return lambda now: renew(
            holding.terms, holding.token, valid_until=holding.valid_until, now=now
        )

    def _renewed(self, outcome: Renewed | Unsure | Lost, begun: float) -> None:
        match outcome:
            case Renewed(valid_until):
                self._holding.renewed(valid_until)
            case Unsure(tally):
                reports = reports_of(self._port.endpoints, tally)
                raise Unreachable(self.name, reports, self._port.now() - begun)
            case Lost(reason):
                self._holding.lose(reason)
                self._forget(self)
                raise LeaseLost(self.name, reason)

    def _releasing(self, now: float) -> Flow[Released | Lost]:
        holding = self._holding
        with self._ending:  # of two threads that release at once, one does
            if holding.state is not State.HELD or self._pid != forking.process:
                self._ensure_releasable()
            holding.release()  # first: whatever happens from here on, nobody relies on it
        self._forget(self)
        return release(holding.terms, holding.token, valid_until=holding.valid_until, now=now)

    def _ensure_releasable(self) -> None:
        self._ensure_ours()
        if self._holding.reason is not None:
            raise LeaseLost(self.name, self._holding.reason)

    def _released(self, outcome: Released | Lost) -> Released:
        if isinstance(outcome, Lost):
            self._holding.found_lost(outcome.reason)
            raise LeaseLost(self.name, outcome.reason)
        return outcome

    def _may_leave(self) -> bool:
        """True if there is nothing to do at the end of a `with` block."""
        return self._holding.state is State.RELEASED or not self._is_ours()

    def _is_ours(self) -> bool:
        return self._pid == forking.process

    def _ensure_ours(self) -> None:
        if not self._is_ours():
            raise NotHeld(self.name, f"the lease belongs to process {self._pid}")
        if self._holding.state is State.RELEASED:
            reason = self._holding.reason
            was = f"; it had been lost before: {reason.value}" if reason is not None else ""
            raise NotHeld(self.name, f"it was released{was}")


class Lease(LeaseFacts):
    """The right to be the only one, until it ends by itself or is released.

    A context manager: leaving the block releases, and raises `LeaseLost` if the lease did not last
    that long. If the body has failed already, its own exception goes on and the loss is attached to
    it as a note.

    A lease belongs to the process that acquired it. Any of its threads may use it; a forked child
    may not, and for the child it is not held.
    """

    __slots__ = ()

    _port: BlockingPort

    def renew(self) -> None:
        """Ask for the full ttl again.

        Raises `LeaseLost` if the lease has ended, and `Unreachable` if too few nodes answered: then
        it holds on until its old end, and renewing may be tried again.
        """
        flow, begun = self._renewing(), self._port.now()
        self._renewed(self._port.run(flow), begun)

    def release(self) -> Released:
        """Give the lock back, on every node.

        Returns `Released.FREED`, or `Released.LAPSING` if too few nodes answered: all were told,
        and the lock frees itself when its ttl ends. Raises `LeaseLost` if the lease had ended
        before, and `NotHeld` if it was released already or belongs to another process.
        """
        return self._released(self._port.run(self._releasing))

    def __enter__(self) -> Self:
        self.ensure_held()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._may_leave():
            return
        try:
            self.release()
        except Exception as trouble:
            if error is None:
                raise
            error.add_note(f"holdfast: {trouble}")
