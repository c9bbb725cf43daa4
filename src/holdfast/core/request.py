"""Request: one round that asks for the lock, and agrees on a fence."""

from collections.abc import Collection

from .effects import Ask, Flow
from .fence import raise_fence
from .outcomes import Acquired
from .place import Place
from .tally import Tally
from .terms import Terms
from .votes import Verdict


def request(
    terms: Terms,
    token: str,
    stamp: int,
    now: float,
    *,
    place: Place = Place.NOWHERE,
    silent: Collection[int] = (),
) -> Flow[tuple[Acquired | Tally, float]]:
    """Ask for the lock once; with a `place`, stand in line where it is not to be had.

    Then all nodes' answers are waited for, but for those that are known to be `silent`.

    Returns the lease or the votes that denied it, and the time. Whoever gets no lease has to
    release, or to go on waiting: nodes may have granted it all the same.
    """
    tally = Tally(terms.nodes, terms.quorum, thorough=place.is_taken, silent=silent)
    valid_until = now + terms.validity  # L1: from before the first byte
    fence: int | Tally = stamp
    now = yield Ask(terms.request(token, stamp, place), tally, now + terms.patience)
    if tally.verdict is Verdict.WON:
        if tally.marks and not tally.accepted:
            fence, now = yield from raise_fence(
                terms, token, tally, stamp=stamp, valid_until=valid_until, now=now
            )
        if isinstance(fence, Tally):
            tally = fence  # what kept it from us
            tally.late_fence = True
        elif now < valid_until and not terms.guard.disputed_ms:  # L2, F1
            return Acquired(token, valid_until, tally, fence), now
    return tally, now
