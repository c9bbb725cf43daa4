"""Acquire: rounds of requests until one is won or the wait is over."""

from math import inf

from .effects import Ask, Flow, Sleep, Source, Tell
from .outcomes import Acquired, Miss, Missed
from .retry import pause
from .tally import Tally
from .terms import Terms
from .votes import Verdict

OUTAGE_PATIENCE = 30.0
"""Waiting for ever means for a holder. Nodes that stay away this long are an error."""


def attempt(terms: Terms, token: str, now: float) -> Flow[tuple[Acquired | Tally, float]]:
    """Ask once, under a token of its own; unless that wins, tell every node to release.

    Returns the lease or the lost tally, and the time.
    """
    tally = Tally(terms.nodes, terms.quorum)
    valid_until = now + terms.validity  # L1: from before the first byte
    try:
        now = yield Ask(terms.request(token), tally, now + terms.patience)
        if tally.verdict is Verdict.WON and now < valid_until:  # L2
            return Acquired(token, valid_until, tally), now
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
    quorum that lasts `OUTAGE_PATIENCE`.
    """
    started, reached = now if since is None else since, now
    deadline = inf if wait is None else started + wait
    misses = 0
    while True:  # until the deadline, or OUTAGE_PATIENCE after the nodes went away
        asked = now
        result, now = yield from attempt(terms, source.token(), now)  # L4: a new token each time
        if isinstance(result, Acquired):
            return result
        misses += 1
        if not result.cut_off:
            reached = now
        gone = wait is None and now - reached >= OUTAGE_PATIENCE
        if now >= deadline or gone or result.hopeless:
            return Missed(_why(result, waited=wait != 0), now - started, result)
        delay = pause(source.chance(), now - asked, misses, result.remaining())
        now = yield Sleep(min(now + delay, deadline))


def _why(tally: Tally, *, waited: bool) -> Miss:
    if tally.cut_off:
        return Miss.UNREACHABLE
    return Miss.TIMED_OUT if waited else Miss.BUSY
