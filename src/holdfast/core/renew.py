"""Renew: one round that asks for the full ttl again, and perhaps for votes that are missing.

**Repair.** If a renewal has counted and yet some node was without the key, because it was restarted
or was away when the lease was acquired, the next one asks such nodes to take it again; they do,
unless somebody else has it or they abstain. So a lease outlives its nodes' restarts, one after the
other. What was taken again counts from the round after that: a lease that no quorum has kept is
lost, and not repaired.
"""

from .effects import Ask, Flow, Tell
from .outcomes import LossReason, Lost, Renewed, Unsure
from .tally import Tally
from .terms import Terms
from .votes import Answer, Verdict


def renew(
    terms: Terms,
    token: str,
    *,
    fence: int,
    valid_until: float,
    now: float,
    patience: float | None = None,
) -> Flow[Renewed | Unsure | Lost]:
    """Renew a lease that is valid until `valid_until`, waiting for slow nodes as long as is said.

    With a `fence` other than 0, also repair it; that is its own.

    It counts only with a quorum, and only if it is noticed while the old time still runs (L6).
    With too few answers the lease keeps its old end. A lease that the nodes deny is cleared from
    those that still have it, so that it is in nobody's way; one whose time is up is not, because
    somebody else may have renewed it in the meantime.
    """
    if now < valid_until:  # L6
        tally = Tally(terms.nodes, terms.quorum)
        renewed_until = now + terms.validity  # L1
        until = now + (terms.patience if patience is None else patience)
        now = yield Ask(terms.renew(token, fence), tally, min(until, valid_until))
        if now < valid_until:  # L6
            if tally.verdict is Verdict.WON:  # L2
                return Renewed(renewed_until, tally)
            if not tally.denied:
                return Unsure(tally)
            yield Tell(terms.release(token, repaired=True))
            return Lost(loss_of(tally))
    return Lost(LossReason.EXPIRED)


def loss_of(tally: Tally) -> LossReason:
    """Say why so many nodes denied a lease that should have been ours."""
    return LossReason.TAKEN if Answer.HELD in tally.answers else LossReason.DELETED
