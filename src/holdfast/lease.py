"""A lease: what you have after acquiring a lock."""

import sys
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from . import forking
from .core.effects import Flow, Noted
from .core.holding import Holding, State
from .core.outcomes import Endangered, Kept, LossReason, Lost, Released, Renewed, Unsure
from .core.release import release
from .core.renew import renew
from .drivers.port import BlockingPort
from .errors import BadInput, LeaseLost, NotHeld, Unreachable
from .hearers import Hearers
from .home import Home
from .keeper.owner import Owner, lives
from .lost import LossSignal
from .reports import reports_of
from .settings import UNSET
from .shelf import Shelf

F = TypeVar("F", bound=Callable[..., object])


class LeaseFacts:
    """All of a lease that needs no waiting; how to wait is its client's business."""

    __slots__ = ("__weakref__", "_hearers", "_holding", "_home", "_owner", "_pid", "_shelf")

    _home: Home[Any, Any]

    def __init__(self, home: Home[Any, Any], holding: Holding, shelf: Shelf[Any]) -> None:
        self._home = home
        self._holding = holding
        self._owner = shelf.owner
        self._shelf = shelf
        self._pid = forking.process
        self._hearers: Hearers[Any] | None = None

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._holding.terms.name

    @property
    def token(self) -> str:
        """The secret that proves this acquisition to the nodes."""
        return self._holding.token

    @property
    def fence(self) -> int:
        """A number above that of every lease this lock had before, for the protected resource.

        A holder that was paused does not know that its time is up. The resource does, if it
        refuses numbers below the highest it has seen: see `holdfast.fencing`. Renewing keeps it.
        """
        return self._holding.fence

    @property
    def ttl(self) -> float:
        """How long nodes keep the lock after acquiring or renewing, in seconds."""
        return self._holding.terms.ttl

    @property
    def valid_for(self) -> float:
        """How many seconds the lease may still be relied upon, by our own clock; 0 if not held.

        While the keeper renews, this rises again and again.
        """
        left = self._holding.valid_until - self._home.port.now()
        return left if left > 0 and self.is_held else 0.0

    @property
    def is_held(self) -> bool:
        """True while the lease may be relied upon. Asks nobody: it needs only our own clock."""
        return self._is_ours() and self._holding.is_held(self._home.port.now())

    def ensure_held(self) -> None:
        """Raise `LeaseLost` or `NotHeld` unless the lease is held."""
        self._ensure_ours()
        reason = self._loss()
        if reason is not None:
            raise LeaseLost(self.name, reason)

    def __repr__(self) -> str:
        if left := self.valid_for:
            return f"<{type(self).__name__} of {self.name!r}, valid for {left:.3f} s>"
        state = self._holding.state
        word = "not held" if state is State.HELD else state.value
        return f"<{type(self).__name__} of {self.name!r}, {word}>"

    def __reduce__(self) -> str:
        raise TypeError(
            f"the lease of lock {self.name!r} belongs to this process: do not pickle it"
        )

    # -- the steps of renewing and releasing, around the wait in between --------------------------

    def _renewing(self) -> Callable[[float], Flow[Renewed | Unsure | Lost]]:
        self.ensure_held()
        holding = self._holding
        fence = holding.repair()
        return lambda now: renew(
            holding.terms,
            holding.token,
            fence=fence,
            valid_until=holding.valid_until,
            now=now,
        )

    def _renewed(self, outcome: Renewed | Unsure | Lost, begun: float) -> None:
        port = self._home.port
        match outcome:
            case Renewed(valid_until, tally):
                self._holding.renewed(valid_until, tally)
            case Unsure(tally):
                raise Unreachable(self.name, reports_of(port.endpoints, tally), port.now() - begun)
            case Lost(LossReason.EXPIRED) if self._loss() is None:
                self._ensure_ours()  # the keeper has renewed it meanwhile
            case Lost(reason):
                if reason is LossReason.EXPIRED:
                    reason = self._loss() or reason
                if self._holding.lose(reason):
                    self._come_upon(Lost(reason))
                self._ensure_ours()
                raise LeaseLost(self.name, self._holding.reason or reason)

    def _releasing(self, now: float) -> Flow[Released | Lost]:
        holding = self._holding
        if self._pid != forking.process or not holding.release():
            self._ensure_ours()
            self._shelf.forget(self)  # who asks for it by name hears of its loss, once
            raise LeaseLost(self.name, holding.reason or LossReason.EXPIRED)
        # From here on nobody relies on it, and no renewal begins, whatever happens.
        self._home.keeper.drop(holding)
        self._shelf.forget(self)
        if self._hearers is not None:
            self._hearers.ring()
        flow = release(
            holding.terms,
            holding.token,
            valid_until=holding.valid_until,
            now=now,
            repaired=holding.repaired,
            stamp=self._home.source.stamp(),
        )
        return self._followed(flow) if holding.asked else flow

    def _followed(self, flow: Flow[Released | Lost]) -> Flow[Released | Lost]:
        """See that no renewal comes after the release: the keeper sends another one behind them.

        Afterwards, so that this one finds its key, if it is still there.
        """
        try:
            return (yield from flow)
        finally:
            self._home.keeper.follow(self._holding)

    def _released(self, outcome: Released | Lost) -> Released:
        holding, journal = self._holding, self._home.journal
        if isinstance(outcome, Lost):
            holding.found_lost(outcome.reason)
            reason = holding.reason or outcome.reason
            self._come_upon(Lost(reason))
            raise LeaseLost(self.name, reason)
        if journal.hook is not None:
            journal.released(holding, outcome, self._home.port.now())
        return outcome

    def _may_leave(self) -> bool:
        """True if there is nothing to do at the end of a `with` block."""
        return self._holding.state is State.RELEASED or not self._is_ours()

    def _loss(self) -> LossReason | None:
        """Return why the lease was lost, None if it was not, or is another process's."""
        return self._holding.loss(self._home.port.now()) if self._is_ours() else None

    def _is_over(self) -> bool:
        """True if there is nothing left to end here."""
        return self._holding.ended or not self._is_ours()

    def _abandon(self) -> None:
        """Leave the lease to lapse, unless it has ended: whoever had it is done with it."""
        if not self._is_over() and self._holding.lose(LossReason.OWNER_DIED):
            self._home.keeper.drop(self._holding)
            self._hear(Lost(LossReason.OWNER_DIED))

    def _is_ours(self) -> bool:
        return self._pid == forking.process

    def _ensure_ours(self) -> None:
        if not self._is_ours():
            raise NotHeld(self.name, f"the lease belongs to process {self._pid}")
        if self._holding.state is State.RELEASED:
            reason = self._holding.reason
            was = f"; it had been lost before: {reason.value}" if reason is not None else ""
            raise NotHeld(self.name, f"it was released{was}")

    # -- what the keeper asks and says ------------------------------------------------------------

    def _owner_lives(self) -> bool:
        return self._is_ours() and lives(self._owner)

    def _hear(self, note: Noted) -> None:
        """Take note of what befell the lease, and pass it on."""
        holding, journal, now = self._holding, self._home.journal, self._home.port.now()
        match note:
            case Kept():
                journal.kept(holding, note, now)
            case Unsure():
                journal.unsure(holding, now)
            case Endangered():
                journal.endangered(holding, now)
                for callback in self._hearers.endangered() if self._hearers is not None else ():
                    self._deliver(callback)
            case Lost(reason):
                journal.lost(holding, reason, now)
                self._tell_of_loss()

    def _come_upon(self, loss: Lost) -> None:
        """Take note of a loss that the owner's own renewal or release has found."""
        self._hear(loss)

    def _tell_of_loss(self) -> None:
        if self._hearers is not None:
            self._hearers.ring()
            for callback in self._hearers.take_lost():
                self._deliver(callback)

    def _add_lost(self, callback: object) -> None:
        hearers: Hearers[object] = Hearers.of(self)
        hearers.on_lost(callback)
        if self._loss() is not None:  # it came before us
            self._tell_of_loss()

    def _deliver(self, callback: Any) -> None:
        """Call a callback of this lease, where it should run."""
        raise NotImplementedError

    # -- changing hands ---------------------------------------------------------------------------

    def _hand_to(self, owner: Owner, *, here: bool) -> None:
        self.ensure_held()
        self._owner = owner
        if here or owner is None:  # where it can be released by name
            shelf: Shelf[Any] = self._home.shelf() if here else self._home.common
            self._shelf.move(self, shelf)
            self._shelf = shelf

    def __del__(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not self._holding.ended and not _finalizing():
            self._leak()

    def _leak(self) -> None:
        """Leave a lease to lapse that nobody can release any more."""
        if not self._is_ours():
            return
        held, holding = self.is_held, self._holding
        holding.lose(LossReason.OWNER_DIED)  # also if the warning brings us back to life
        self._home.keeper.drop(holding)
        self._shelf.forget(self)
        if held and holding.terms.renewing:
            warnings.warn(
                f"the lease of lock {self.name!r} was dropped without a release: it lapses in up to"
                f" {self.ttl:g} s; hint: use `with`, or refer to it until you release it",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )


class Lease(LeaseFacts):
    """The right to be the only one, until it ends by itself or is released.

    A context manager: leaving the block releases, and raises `LeaseLost` if the lease did not last
    that long. If the body has failed already, its own exception goes on and the loss is attached to
    it as a note.

    The client's keeper renews it (unless the lock was made with `renew=False`) as long as its owner
    lives: the thread that acquired it, or another one after `transfer`. A lease belongs to the
    process that acquired it. Any of its threads may use it; a forked child may not, and for the
    child it is not held. A lease that nobody refers to any more is left to lapse, with a
    `ResourceWarning`.
    """

    __slots__ = ()

    _home: Home[BlockingPort, "Lease"]

    def renew(self) -> None:
        """Ask for the full ttl again, now; beyond `max_hold` it does not last, all the same.

        Raises `LeaseLost` if the lease has ended, and `Unreachable` if too few nodes answered: then
        it holds on until its old end, and renewing may be tried again.
        """
        flow, begun = self._renewing(), self._home.port.now()
        self._renewed(self._home.port.run(flow), begun)

    def release(self) -> Released:
        """Give the lock back, on every node.

        Returns `Released.FREED`, or `Released.LAPSING` if too few nodes answered: all were told,
        and the lock frees itself when its ttl ends. Raises `LeaseLost` if the lease had ended
        before, and `NotHeld` if it was released already or belongs to another process.
        """
        return self._released(self._home.port.run(self._releasing))

    @property
    def lost(self) -> LossSignal:
        """The loss of this lease: `lost.is_set()`, `lost.reason`, `lost.wait(timeout)`."""
        return LossSignal(self)

    def on_lost(self, callback: F) -> F:
        """Call `callback(lease)` when the lease is lost, once; at once if it is lost already.

        It is called on a thread of its own. Returns the callback, so that it may be a decorator.
        """
        self._add_lost(callback)
        return callback

    def on_endangered(self, callback: F) -> F:
        """Call `callback(lease)` if the lease has not been renewed a `grace` before its end.

        In time to stop what the lease protects: `lease.valid_for` says how much of it is left. The
        renewal may still succeed after that; it is called again the next time. It is called on a
        thread of its own. Returns the callback, so that it may be a decorator.
        """
        hearers: Hearers[F] = Hearers.of(self)
        hearers.on_endangered(callback)
        return callback

    def transfer(self, owner: threading.Thread | None = UNSET) -> None:
        """Make this thread the owner, or the one that is given; None is the whole process.

        The lease is renewed as long as its owner lives. For leases that are acquired in one thread
        and used in another one, as with thread pools. Raises `LeaseLost` or `NotHeld` if it is not
        held.
        """
        here = owner is UNSET
        if here:
            owner = threading.current_thread()
        elif owner is not None and not isinstance(owner, threading.Thread):
            raise BadInput(f"a lease's owner is a thread or None, not {type(owner).__name__}")
        elif not lives(owner):
            raise BadInput(f"{owner!r} has ended: it cannot be a lease's owner")
        self._hand_to(owner, here=here)

    def _deliver(self, callback: Callable[["Lease"], object]) -> None:
        self._home.calls.call(lambda: callback(self))

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
        finally:
            self._abandon()  # if an interruption has struck before the release could begin
