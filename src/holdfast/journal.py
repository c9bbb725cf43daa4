"""What has happened to a client's leases and nodes: counted, logged, and told to its hook.

Logging goes to the logger `holdfast`; a lost lease is a warning, and so is a node that abstains;
everything else is DEBUG.
"""

import functools
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import events
from .calls import MOST_WAITING, Caller, OneByOne
from .core.holding import Holding
from .core.outcomes import Kept, LossReason, Released
from .core.validity import RENEW_SHARE
from .core.votes import Failure, Vote
from .drivers import clock
from .events import Event
from .wire.endpoint import Endpoint

logger = logging.getLogger("holdfast")

LATE_SHARE = 0.25
"""A renewal is late if it begins after so much more than its interval."""

REMEMBERED = 1024
"""How many renewals the percentiles of lateness are of: the latest ones."""


@dataclass(frozen=True, slots=True)
class Stats:
    """A client's counts since it was made, in this process."""

    held: int
    """Leases held now."""
    renewals: int
    """Renewals by the keeper that counted."""
    late: int
    """Those of them that began late: a sign that something starves the process."""
    failed: int
    """Renewals that did not count, because too few nodes answered; they are tried again."""
    lost: int
    """Leases that ended without being released."""
    lateness_p50: float
    """How many seconds after they were due the latest renewals began, in the median."""
    lateness_p99: float
    """The same for the one in a hundred that was latest."""
    events_dropped: int
    """Records that `on_event` was too slow for."""


class Journal:
    """One client's. Every method may be called on any thread, and none waits."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        on_event: Callable[[Event], object] | None,
        calls: Caller | None = None,
    ) -> None:
        self.hook = on_event
        """None if nobody listens: on the hot path no record is made then."""
        self._names = [str(endpoint) for endpoint in endpoints]
        self._calls = calls or OneByOne("holdfast-events", MOST_WAITING)
        self._logs = calls or OneByOne("holdfast-log", MOST_WAITING)
        self.reset()

    def reset(self) -> None:
        """Start anew in a forked child."""
        self._calls.reset()
        self._logs.reset()
        self._counting = threading.RLock()  # a signal handler may release a lease, too
        self._renewals = self._late = self._failed = self._lost = 0
        self._lateness: deque[float] = deque(maxlen=REMEMBERED)
        self._down: set[int] = set()
        self._missing: set[str] = set()
        """Rights that waiting needs and somebody was told of."""
        self._abstaining: dict[int, float] = {}
        """Until when nodes abstain that somebody was told of."""

    def stats(self, held: int) -> Stats:
        """Return the counts."""
        lateness = sorted(self._lateness) or [0.0]
        return Stats(
            held=held,
            renewals=self._renewals,
            late=self._late,
            failed=self._failed,
            lost=self._lost,
            lateness_p50=lateness[len(lateness) // 2],
            lateness_p99=lateness[len(lateness) * 99 // 100],
            events_dropped=self._calls.dropped,
        )

    # -- leases -----------------------------------------------------------------------------------

    def acquired(self, holding: Holding, waited: float) -> None:
        """Take note of a lease."""
        self._tell(events.Acquired(holding.terms.name, waited))

    def kept(self, holding: Holding, kept: Kept, now: float) -> None:
        """Take note of a renewal."""
        name, left = holding.terms.name, kept.valid_until - now
        self._renewals += 1
        self._lateness.append(kept.late_by)
        late = kept.late_by > holding.terms.ttl * RENEW_SHARE * LATE_SHARE
        self._late += late
        self._log(
            logging.DEBUG, "renewed %r, valid for %.3f s, late by %.3f s", name, left, kept.late_by
        )
        self._tell(
            events.RenewedLate(name, left, kept.late_by) if late else events.Renewed(name, left)
        )

    def unsure(self, holding: Holding, now: float) -> None:
        """Take note of a renewal that did not count."""
        self._failed += 1
        left = holding.valid_until - now
        self._log(
            logging.DEBUG, "could not renew %r so far, valid for %.3f s", holding.terms.name, left
        )

    def endangered(self, holding: Holding, now: float) -> None:
        """Take note that a lease may end soon."""
        left = holding.valid_until - now
        self._log(logging.DEBUG, "%r is endangered, valid for %.3f s", holding.terms.name, left)

    def lost(self, holding: Holding, reason: LossReason, now: float) -> None:
        """Take note of a loss."""
        name, held_for = holding.terms.name, now - holding.began
        with self._counting:  # owner and keeper may both come upon a loss
            self._lost += 1
        self._log(
            logging.WARNING, "lost the lease of %r after %.3f s: %s", name, held_for, reason.value
        )
        self._tell(events.Lost(name, reason, held_for))

    def released(self, holding: Holding, outcome: Released, now: float) -> None:
        """Take note of a release."""
        self._tell(events.Released(holding.terms.name, outcome, now - holding.began))

    # -- nodes ------------------------------------------------------------------------------------

    def up(self, node: int) -> None:
        """Take note that a node was greeted."""
        if node in self._down:
            self._down.discard(node)
            self._log(logging.DEBUG, "%s is up again", self._names[node])
            self._tell(events.NodeUp(self._names[node]))

    def down(self, node: int, failure: Failure) -> None:
        """Take note that a node cannot be reached."""
        if node not in self._down:
            self._down.add(node)
            self._log(logging.DEBUG, "%s is down: %s", self._names[node], failure)
            self._tell(events.NodeDown(self._names[node], str(failure)))

    def abstains(self, node: int, vote: Vote) -> None:
        """Take note that a node grants nothing for a while: once, until that while is over."""
        now = clock.now()
        if now >= self._abstaining.get(node, now):
            self._abstaining[node] = now + (vote.remaining_ms or 0) / 1000
            self._log(logging.WARNING, "%s %s", self._names[node], vote)
            self._tell(events.NodeAbstains(self._names[node], str(vote)))

    def unheard(self, node: int, rights: tuple[str, ...], why: str) -> None:
        """Take note that a node does not let us hear calls, or call others: once for a right."""
        missing = [right for right in rights if right not in self._missing]
        if missing:
            self._missing.update(missing)
            message = (
                "%s does not let us say or hear whose turn it is, so waiters ask again and again"
                " (%s); hint: ACL SETUSER … %s"
            )
            self._log(logging.WARNING, message, self._names[node], why, " ".join(missing))

    def _log(self, level: int, message: str, *values: object) -> None:
        """Log on another thread: a handler may be slow, or fail; and not on that of the hook."""
        if logger.isEnabledFor(level):
            self._logs.call(functools.partial(logger.log, level, message, *values))

    def _tell(self, event: Event) -> None:
        if self.hook is not None:
            self._calls.call(functools.partial(self.hook, event))
