"""Renew: one round that asks for the full ttl again."""

from .effects import Ask, Flow, Tell
from .outcomes import LossReason, Lost, Renewed, Unsure
from .tally import Tally
from .terms import Terms
from .votes import Answer, Verdict


def renew(
    terms: Terms, token: str, *, valid_until: float, now: float, patience: float | None = None
) -> Flow[Renewed | Unsure | Lost]:
    """Renew a lease that is valid until `valid_until`, waiting for slow nodes as long as is said.

    It counts only with a quorum, and only if it is noticed while the old time still runs (L6).
    With too few answers the lease keeps its old end. A lease that the nodes deny is cleared from
    those that still have it, so that it is in nobody's way; one whose time is up is not, because
    somebody else may have renewed it in the meantime.
    """
    if now < valid_until:  # L6
        tally = Tally(terms.nodes, terms.quorum)
        renewed_until = now + terms.validity  # L1
        until = now + (terms.patience if patience is None else patience)
        now = yield Ask(terms.renew(token), tally, min(until, valid_until))
        if now < valid_until:  # L6
            if tally.verdict is Verdict.WON:  # L2
                return Renewed(renewed_until)
            if not tally.denied:
                return Unsure(tally)
            yield Tell(terms.release(token))
            return Lost(loss_of(tally))
    return Lost(LossReason.EXPIRED)


def loss_of(tally: Tally) -> LossReason:
    """Say why so many nodes denied a lease that should have been ours."""
    return LossReason.TAKEN if Answer.HELD in tally.answers else LossReason.DELETED
