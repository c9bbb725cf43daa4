"""Release: one round that gives the lock back, at every node."""

from .effects import Ask, Flow, Tell
from .outcomes import LossReason, Lost, Released
from .renew import loss_of
from .tally import Tally
from .terms import Terms
from .votes import Verdict


def release(
    terms: Terms,
    token: str,
    *,
    valid_until: float,
    now: float,
    repaired: bool = True,
    stamp: int = 0,
) -> Flow[Released | Lost]:
    """Release a lease that is valid until `valid_until`, and may have been `repaired`.

    Every node hands the lock over to the first in its line, and proposes `stamp` as its fence.

    A lease whose time was up, or that a quorum does not know any more, was lost before: the last
    part of the work it covered was not protected, and the caller must hear of it.
    """
    expired = now >= valid_until
    tally = Tally(terms.nodes, terms.quorum)
    command = terms.release(token, repaired=repaired, stamp=stamp)
    try:
        yield Ask(command, tally, now + terms.patience)  # L5: to every node
    except GeneratorExit:  # the driver itself is gone: there is nobody left to tell
        raise
    except BaseException:
        yield Tell(command)  # L7; saying it twice is saying it once
        raise
    if expired:
        return Lost(LossReason.EXPIRED)
    if tally.denied:
        return Lost(loss_of(tally))
    return Released.FREED if tally.verdict is Verdict.WON else Released.LAPSING
