"""Fences: numbers that only rise, without consensus.

A request proposes one number to all nodes. A node accepts it only above all that it accepted
before; a quorum that granted *and* accepted makes it the lease's fence, in the same round trip.
If too few accept, the holder proposes a higher number. Only a holder does, so nobody duels.

Two laws follow from that rule and from quorums that share a node, with no assumption about delays,
pauses or how long a lease lasts:

- **F1** No two leases of a lock have the same fence.
- **F2** If one lease was granted before another was asked for, the other's fence is greater.
"""

from .effects import Ask, Flow
from .tally import Tally
from .terms import Terms
from .votes import Verdict

MOST_RAISES = 3
"""Rounds. One is enough, unless a message of an earlier holder comes late."""


def raised(tally: Tally, stamp: int, horizon_us: int) -> int:
    """Return a number that a quorum should accept, after `stamp` was refused somewhere.

    A mark far ahead of the clocks comes from a clock that is broken. Nobody else follows it, so as
    many such nodes are passed over as a quorum can do without.
    """
    marks = sorted(tally.marks)
    for _ in range(tally.nodes - tally.quorum):
        if not marks or marks[-1] <= stamp + horizon_us:
            break
        del marks[-1]
    return max([stamp, *marks]) + 1


def raise_fence(
    terms: Terms, token: str, tally: Tally, *, stamp: int, valid_until: float, now: float
) -> Flow[tuple[int | Tally, float]]:
    """Agree on a fence for a lease that a quorum has granted, or return the votes that denied it.

    Also returns the time.
    """
    for _ in range(MOST_RAISES):
        stamp = raised(tally, stamp, terms.guard.horizon_us)
        tally = Tally(terms.nodes, terms.quorum)
        until = min(now + terms.patience, valid_until)
        now = yield Ask(terms.raise_(token, stamp), tally, until)
        if tally.verdict is Verdict.WON:
            return stamp, now
        if not tally.marks or now >= valid_until:  # it is not a higher number that is wanted
            break
    return tally, now
