"""Acquire: rounds of requests until one is won or the wait is over."""

from math import inf

from .effects import Ask, Flow, Sleep, Source, Tell
from .fence import raise_fence
from .outcomes import Acquired, Miss, Missed
from .retry import pause, pause_for
from .tally import Tally
from .terms import Terms
from .votes import Verdict

OUTAGE_PATIENCE = 30.0
"""Waiting for ever means for a holder. Nodes that stay away this long are an error."""


def attempt(
    terms: Terms, token: str, stamp: int, now: float
) -> Flow[tuple[Acquired | Tally, float]]:
    """Ask once, under a token of its own; unless that wins, tell every node to release.

    Returns the lease or the lost tally, and the time.
    """
    tally = Tally(terms.nodes, terms.quorum)
    valid_until = now + terms.validity  # L1: from before the first byte
    fence: int | Tally = stamp
    try:
        now = yield Ask(terms.request(token, stamp), tally, now + terms.patience)
        if tally.verdict is Verdict.WON:
            if tally.marks and not tally.accepted:
                fence, now = yield from raise_fence(
                    terms, token, tally, stamp=stamp, valid_until=valid_until, now=now
                )
            if isinstance(fence, Tally):
                tally = fence  # what kept it from us
            elif now < valid_until and not terms.guard.disputed_ms:  # L2, F1
                return Acquired(token, valid_until, tally, fence), now
    except GeneratorExit:  # the driver itself is gone: there is nobody left to tell
        raise
    except BaseException:
        yield Tell(terms.release(token))  # L5, L7
        raise
    now = yield Tell(terms.release(token))  # L5: also where it was refused or not answered
    return tally, now


def acquire(
    terms: Terms, source: Source, *, now: float, wait: float | None, since: float | None = None
) -> Flow[Acquired | Missed]:
    """Try until it is ours, for `wait` seconds: 0 is one try, None as long as it takes.

    The wait counts from `since`, if somebody has been waiting before the flow began. The last try
    is made at the deadline, so it is never given up early and never more than a round late. What
    cannot get better by waiting ends the wait at once; with no deadline, so does an outage of a
    quorum that lasts `OUTAGE_PATIENCE`. Nodes that abstain will be back, and are waited for.
    """
    started, reached = now if since is None else since, now
    deadline = inf if wait is None else started + wait
    misses = 0
    while True:  # until the deadline, or OUTAGE_PATIENCE after the nodes went away
        asked = now
        # L4: a new token each time
        result, now = yield from attempt(terms, source.token(), source.stamp(), now)
        if isinstance(result, Acquired):
            return result
        misses += 1
        cut_off, abstained = result.cut_off, result.abstained
        if abstained or not cut_off:
            reached = now
        gone = wait is None and now - reached >= OUTAGE_PATIENCE
        if now >= deadline or gone or result.hopeless or terms.guard.disputed_ms:
            return Missed(_why(result, waited=wait != 0), now - started, result)
        remaining = result.remaining()
        if cut_off and abstained and remaining:
            delay = pause_for(remaining, source.chance())
        else:
            delay = pause(source.chance(), now - asked, misses, remaining)
        now = yield Sleep(min(now + delay, deadline))


def _why(tally: Tally, *, waited: bool) -> Miss:
    if tally.cut_off or tally.outbid or tally.verdict is Verdict.WON:  # won, and yet not ours
        return Miss.UNREACHABLE
    return Miss.TIMED_OUT if waited else Miss.BUSY
