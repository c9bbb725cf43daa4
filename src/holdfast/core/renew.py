"""Renew: one round that asks for the full ttl again."""

from .effects import Ask, Flow, Tell
from .outcomes import LossReason, Lost, Renewed, Unsure
from .tally import Tally
from .terms import Terms
from .votes import Answer, Verdict


def renew(
    terms: Terms, token: str, *, valid_until: float, now: float
) -> Flow[Renewed | Unsure | Lost]:
    """Renew a lease that is valid until `valid_until`.

    It counts only with a quorum, and only if it is noticed while the old time still runs (L6).
    With too few answers the lease keeps its old end. A lost lease is cleared from the nodes that
    still have it, so that it is in nobody's way.
    """
    if now < valid_until:  # L6
        tally = Tally(terms.nodes)
        renewed_until = now + terms.validity  # L1
        now = yield Ask(terms.renew(token), tally, min(now + terms.patience, valid_until))
        if now < valid_until:  # L6
            if tally.verdict is Verdict.WON:  # L2
                return Renewed(renewed_until)
            if not tally.denied:
                return Unsure(tally)
            yield Tell(terms.release(token))
            return Lost(loss_of(tally))
    yield Tell(terms.release(token))
    return Lost(LossReason.EXPIRED)


def loss_of(tally: Tally) -> LossReason:
    """Say why so many nodes denied a lease that should have been ours."""
    return LossReason.TAKEN if Answer.HELD in tally.answers else LossReason.DELETED
