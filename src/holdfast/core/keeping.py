"""Keep: look after one lease from its first renewal to its end.

The keeper runs this flow for every lease. It renews at a third of the ttl, asks again until
`valid_until` if too few nodes answered, and says what the owner must hear, as `Note`s:

- `Kept` after every renewal that counted, and `Unsure` after one that did not
- `Endangered` a grace before the end, once, if the lease has not been renewed by then
- `Lost` when it is over: as soon as that is known, and at `valid_until` at the latest (L9)

A lease whose owner is gone is not renewed (L8): it is left to lapse, and lost. One that was
released, or that nobody can use any more, needs no care; the flow ends without a word.
"""

import math
from collections.abc import Generator
from typing import Protocol

from .effects import Effect, Note, Sleep, Tell
from .holding import Holding
from .outcomes import Endangered, Kept, LossReason, Lost, Renewed, Unsure
from .renew import renew
from .validity import RENEW_SHARE, RETRY_SHARE, ROUND_SHARE

Care = Generator[Effect | Note, float, None]


class Owner(Protocol):
    """What the flow cannot know by itself."""

    def lives(self) -> bool:
        """True while whoever has the lease is there to do its work."""

    def remembers(self) -> bool:
        """False once nobody can reach the lease any more, to use or release it."""


def keep(holding: Holding, owner: Owner) -> Care:
    """Keep a lease until it ends."""
    terms = holding.terms
    due = first_due(holding)
    warned_of = None
    while True:  # until the lease ends: every turn waits for something before `valid_until`
        end = holding.valid_until
        now = yield Sleep(min(due, end if warned_of == end else end - terms.grace))
        end = holding.valid_until  # somebody may have renewed it by hand meanwhile
        if holding.ended or not owner.remembers():
            return
        if now >= end:
            if (yield from _lose(holding, holding.loss(now))):
                yield Tell(
                    terms.release(holding.token, repaired=holding.repaired)
                )  # so that it is in nobody's way
            return
        if holding.is_at_its_bound:
            due = math.inf
        if warned_of != end and _is_endangered(holding, now, due):
            warned_of = end
            now = yield Note(Endangered(end))
        if now >= due:
            if not owner.lives():
                yield from _lose(holding, LossReason.OWNER_DIED)  # L8
                return
            holding.asked = True  # first: whoever releases after we looked sees that we ask
            if holding.ended:
                return
            asked = now
            outcome = yield from renew(
                terms,
                holding.token,
                fence=holding.repair(),
                valid_until=end,
                now=now,
                patience=_patience(holding, now, warned=warned_of == end),
            )
            match outcome:
                case Renewed(valid_until, tally):
                    holding.renewed(valid_until, tally)
                    yield Note(Kept(holding.valid_until, late_by=asked - due))
                    due = next_due(holding, asked)
                case Unsure():
                    holding.unsure = outcome.why
                    now = yield Note(outcome)
                    due = max(now, asked + terms.ttl * RETRY_SHARE)
                case Lost(LossReason.EXPIRED):  # for want of answers: it was asked in time
                    # And lost, unless it was renewed by hand meanwhile.
                    holding.unsure = holding.unsure or LossReason.UNREACHABLE
                case Lost(reason):
                    yield from _lose(holding, reason)
                    return


def _patience(holding: Holding, now: float, *, warned: bool) -> float:
    """Return how long a renewal waits for slow nodes: nobody waits for it, so for long.

    But not far beyond the time for a warning, which cannot be given while a round is under way.
    """
    terms = holding.terms
    patience = max(terms.patience, terms.ttl * ROUND_SHARE)
    before_warning = holding.valid_until - terms.grace - now
    return patience if warned else min(patience, max(before_warning, terms.patience))


def _is_endangered(holding: Holding, now: float, due: float) -> bool:
    """True if a lease that should have been renewed ends in less than its grace.

    One whose renewal is only about to be tried is given that chance. One that is tried again and
    again counts a little early: a round that is too short to be answered is of no use.
    """
    end, terms = holding.valid_until, holding.terms
    if holding.unsure:
        return now > end - terms.grace - terms.patience
    return now < due and now >= end - terms.grace  # the very time that the flow has slept until


def first_due(holding: Holding) -> float:
    """Return when a lease must be renewed for the first time."""
    return next_due(holding, holding.began)


def next_due(holding: Holding, asked: float) -> float:
    """Return when to renew a lease again that was last asked for at `asked`; infinity is never."""
    terms = holding.terms
    if not terms.renewing or holding.is_at_its_bound:
        return math.inf
    due = asked + terms.ttl * RENEW_SHARE
    return math.floor(due / terms.grain) * terms.grain


def _lose(holding: Holding, reason: LossReason | None) -> Generator[Note, float, bool]:
    """End the lease and say so; False if it was released in this very moment."""
    if reason is None or not holding.lose(reason):
        return False
    yield Note(Lost(reason))
    return True
