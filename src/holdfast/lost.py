"""`lease.lost`: the loss of a lease, as something to look at and to wait for."""

import math
import threading
from typing import TYPE_CHECKING

from .core.outcomes import LossReason
from .hearers import Hearers
from .options import check_wait

if TYPE_CHECKING:
    from .lease import Lease, LeaseFacts


class LossFacts:
    """What needs no waiting."""

    __slots__ = ("_lease",)

    _lease: "LeaseFacts"

    def __init__(self, lease: "LeaseFacts") -> None:
        self._lease = lease

    def is_set(self) -> bool:
        """True once the lease is lost, by our own clock or by what the nodes have said."""
        return self.reason is not None

    @property
    def reason(self) -> LossReason | None:
        """Why the lease was lost; None as long as it is not."""
        return self._lease._loss()

    def __repr__(self) -> str:
        reason = self.reason
        return f"<lost: {reason.value}>" if reason is not None else "<not lost>"

    def _is_over(self) -> bool:
        lease = self._lease
        return lease._holding.ended or not lease._is_ours() or self.reason is not None

    def _next_look(self, deadline: float) -> float:
        return min(self._lease._holding.valid_until, deadline)


class LossSignal(LossFacts):
    """The loss of a `Lease`."""

    __slots__ = ()

    _lease: "Lease"

    def wait(self, timeout: float | None = None) -> LossReason | None:
        """Wait until the lease is lost, for `timeout` seconds at most; return why.

        None if it was released, or is still held when the time is up. A loss is noticed at the
        lease's end on our own clock at the latest, whatever the keeper does.
        """
        port, bell = self._lease._home.port, threading.Event()
        deadline = deadline_of(port.now(), timeout)
        hearers: Hearers[object] = Hearers.of(self._lease)
        hearers.on_ended(bell.set)  # first: an end after we looked is heard
        try:
            while not self._is_over() and port.now() < deadline:
                port.wait_for(bell, self._next_look(deadline))
        finally:
            hearers.forget(bell.set)
        return self.reason


def deadline_of(now: float, timeout: float | None) -> float:
    """Return when a wait ends that begins now."""
    seconds = check_wait(timeout)
    return math.inf if seconds is None else now + seconds
