"""What we know of a lease we hold: its state, and when it ends on our own clock.

    HELD ──release──▶ RELEASED
      │
      └──lose──▶ LOST(reason)

There is no way back to HELD (L6). A lease whose time is up is not held, whether or not anybody has
called `lose` yet: `is_held` needs only a clock.
"""

from enum import Enum

from .outcomes import LossReason
from .terms import Terms


class State(Enum):
    """Where a lease is in its life."""

    HELD = "held"
    RELEASED = "released"
    LOST = "lost"


class Holding:
    """One lease's facts. The shells' lease objects are views of it."""

    __slots__ = ("reason", "state", "terms", "token", "valid_until")

    def __init__(self, terms: Terms, token: str, valid_until: float) -> None:
        self.terms = terms
        self.token = token
        self.valid_until = valid_until
        self.state = State.HELD
        self.reason: LossReason | None = None

    def is_held(self, now: float) -> bool:
        """True while the lease may be relied upon."""
        return self.state is State.HELD and now < self.valid_until

    def loss(self, now: float) -> LossReason | None:
        """Return why the lease was lost, None if it was not."""
        if self.state is State.HELD and now >= self.valid_until:
            return LossReason.EXPIRED
        return self.reason

    def renewed(self, valid_until: float) -> None:
        """Take note of a renewal. It can lengthen a lease, and not bring one back (L6)."""
        if self.state is State.HELD:
            self.valid_until = max(self.valid_until, valid_until)

    def lose(self, reason: LossReason) -> None:
        """Take note of a loss. The first reason stays."""
        if self.state is State.HELD:
            self.state, self.reason = State.LOST, reason

    def release(self) -> None:
        """Take note of a release: nothing is held from here on, whatever the nodes answer."""
        if self.state is State.HELD:
            self.state = State.RELEASED

    def found_lost(self, reason: LossReason) -> None:
        """Take note that a release found nothing to release: it had been lost before."""
        if self.state is State.RELEASED:
            self.reason = reason
