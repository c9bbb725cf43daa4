"""Acquire: one try, and then a place in line."""

from .effects import Flow, Listen, Source, Tell
from .outcomes import Acquired, Missed
from .place import Hearing
from .queue import Waiting, wait_in_line
from .request import request
from .tally import Tally
from .terms import Terms


def attempt(
    terms: Terms, token: str, stamp: int, now: float
) -> Flow[tuple[Acquired | Tally, float]]:
    """Ask once, under a token of its own; unless that wins, tell every node to release.

    Returns the lease or the lost tally, and the time.
    """
    try:
        result, now = yield from request(terms, token, stamp, now)
        if isinstance(result, Acquired):
            return result, now
    except GeneratorExit:  # the driver itself is gone: there is nobody left to tell
        raise
    except BaseException:
        yield Tell(terms.release(token))  # L5, L7
        raise
    now = yield Tell(terms.release(token))  # L5: also where it was refused or not answered
    return result, now


def acquire(
    terms: Terms, source: Source, *, now: float, wait: float | None, since: float | None = None
) -> Flow[Acquired | Missed]:
    """Try once, and wait in line for `wait` seconds: 0 is one try, None as long as it takes.

    The wait counts from `since`, if somebody has been waiting before the flow began. The last try
    is made at the deadline, so it is never given up early and never more than a round late. What
    cannot get better by waiting ends the wait at once; with no deadline, so does an outage of a
    quorum that lasts `OUTAGE_PATIENCE`. Nodes that abstain will be back, and are waited for.

    A client that was never called before first asks without a place in line: most locks are free,
    and then it needs no inbox.
    """
    waiting = Waiting(wait, now if since is None else since, now)
    if wait == 0 or source.hearing is Hearing.UNKNOWN:
        result, now = yield from attempt(terms, source.token(), source.stamp(), now)
        if isinstance(result, Acquired):
            return result
        if waiting.is_over(result, now, terms.guard):
            return waiting.missed(result, now)
        if source.hearing is Hearing.UNKNOWN:
            now = yield Listen(min(now + terms.patience, waiting.deadline))
    return (yield from wait_in_line(terms, source, waiting, now))
