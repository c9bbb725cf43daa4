"""What we know of a lease we hold: its state, and when it ends on our own clock.

    HELD ──release──▶ RELEASED
      │
      └──lose──▶ LOST(reason)

There is no way back to HELD (L6). A lease whose time is up is not held, whether or not anybody has
called `lose` yet: `is_held` needs only a clock.

Owner and keeper may both end a lease at the same moment. The first end counts, and who put it
there is told so: appending to a list is one step.
"""

from enum import Enum

from .outcomes import LossReason
from .tally import Tally
from .terms import Terms


class State(Enum):
    """Where a lease is in its life."""

    HELD = "held"
    RELEASED = "released"
    LOST = "lost"


class Holding:
    """One lease's facts. The shells' lease objects are views of it."""

    __slots__ = (
        "_ends",
        "_found",
        "_last",
        "asked",
        "began",
        "fence",
        "hold_until",
        "repaired",
        "terms",
        "token",
        "unsure",
        "valid_until",
    )

    def __init__(self, terms: Terms, token: str, valid_until: float, fence: int) -> None:
        self.terms = terms
        self.token = token
        self.fence = fence
        """Above that of every lease that this lock had before."""
        self.began = began = valid_until - terms.validity
        """When the round that won it was sent."""
        self.hold_until = hold_until = began + terms.max_hold
        """No renewal reaches beyond this."""
        self.valid_until = valid_until if valid_until < hold_until else hold_until
        self.asked = False
        """True if the keeper has ever asked to renew it: then its release has to go behind that."""
        self.repaired = False
        """True if somebody has ever asked to repair it: its release has to outlive that."""
        self._last: Tally | None = None
        """The votes of the last renewal that counted."""
        self.unsure: LossReason | None = None
        """Why the last renewal did not count, if too few nodes have answered it."""
        self._ends: list[tuple[State, LossReason | None]] = []
        self._found: LossReason | None = None

    @property
    def ended(self) -> bool:
        """True if it was released or lost, and somebody has said so."""
        return bool(self._ends)

    @property
    def state(self) -> State:
        """Where it is in its life."""
        return self._ends[0][0] if self._ends else State.HELD

    @property
    def reason(self) -> LossReason | None:
        """Why it was lost, as far as somebody has said so."""
        return self._found or (self._ends[0][1] if self._ends else None)

    def is_held(self, now: float) -> bool:
        """True while the lease may be relied upon."""
        return not self._ends and now < self.valid_until

    def loss(self, now: float) -> LossReason | None:
        """Return why the lease was lost, None if it was not."""
        return self._why_over if not self._ends and now >= self.valid_until else self.reason

    @property
    def _why_over(self) -> LossReason:
        if self.is_at_its_bound:
            return LossReason.MAX_HOLD
        return self.unsure or LossReason.EXPIRED

    @property
    def is_at_its_bound(self) -> bool:
        """True if renewing cannot make it any longer."""
        return self.valid_until >= self.hold_until

    def repair(self) -> int:
        """Return the fence to repair the lease with, if nodes are known to be without it, else 0.

        Whoever asks is about to do it.
        """
        if self._last is None or not self._last.gaps:
            return 0
        self.repaired = True
        return self.fence

    def renewed(self, valid_until: float, tally: Tally | None = None) -> None:
        """Take note of a renewal. It can lengthen a lease, and not bring one back (L6)."""
        self._last = tally
        if not self._ends:
            self.valid_until = max(self.valid_until, min(valid_until, self.hold_until))
            self.unsure = None

    def lose(self, reason: LossReason) -> bool:
        """Take note of a loss; True if that is how the lease ended."""
        return self._end(State.LOST, reason)

    def release(self) -> bool:
        """Take note of a release: nothing is held from here on, whatever the nodes answer.

        True if that is how the lease ended: of several that release it at once, one does.
        """
        return self._end(State.RELEASED, None)

    def _end(self, state: State, reason: LossReason | None) -> bool:
        if self._ends:
            return False
        end = (state, reason)  # not a constant: it is told from others by its identity
        self._ends.append(end)
        return self._ends[0] is end

    def found_lost(self, reason: LossReason) -> None:
        """Take note that a release found nothing to release: it had been lost before."""
        if self.state is State.RELEASED:
            self._found = self._why_over if reason is LossReason.EXPIRED else reason
