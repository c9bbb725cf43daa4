"""What the keeper's thread does: run the keeping flow of every lease, over connections of its own.

For a client of threads it also hears the calls of who waits, and wakes whom they are for.

All flows that are due run in one turn, and what they say goes out in one piece per node at its end.

**Waking.** Other threads put leases into `new` and then look at `wakes_at`; the thread publishes
`wakes_at` and then looks into `new`. Whoever is second sees the other one, so no lease is missed,
and nobody rings a bell that need not be rung.

**Releases.** A renewal that is under way when its lease is released must not come after the
release. What has not been sent is dropped; behind what has been sent goes another release, on the
same connection. It is sent after the owner's own, which has to find its key to know that it was
still there.
"""

import heapq
import itertools
import math
import time
import weakref
from collections import deque
from collections.abc import Callable

from ..calls import report
from ..core.effects import Ask, Effect, Note, Sleep, Tell
from ..core.holding import Holding
from ..core.keeping import Care, keep
from ..core.terms import Terms
from ..core.validity import ROUND_SHARE
from ..drivers import clock
from ..drivers.blocking.line import Line
from ..drivers.fleet import Fleet
from ..wire import commands
from ..wire.round import Round
from .port import Ward

MOST_UNANSWERED = 65_536
"""Per node: more renewals than this are not sent to a node that does not answer."""

LONGEST_SLEEP = 3600.0
"""Seconds. With nothing to do the thread sleeps until it is rung for; this only bounds the wait."""

LEAST_SILENCE = 0.5
"""Seconds without a byte, with answers outstanding, after which the keeper connects anew. Routers
forget connections that are as quiet as the keeper's, and then nothing ever comes back."""

BATCH = 256
"""How many flows run in a turn: their answers are heard before the patience of the first ends."""

SWEEP = 256
"""How many ended leases may gather before they are swept out, besides as many as are held."""

REST = 0.1
"""Seconds to rest after something unforeseen, so that it does not happen all the time."""


class Charge:
    """A lease in the keeper's care, and the flow that looks after it."""

    __slots__ = ("_lease", "_loop", "flow", "holding", "round", "turn")

    def __init__(self, loop: "Loop", holding: Holding, lease: "weakref.ref[Ward]") -> None:
        self.holding = holding
        self.flow: Care = keep(holding, self)
        self.round: Round | None = None
        """The renewal that is under way."""
        self.turn = 0
        """Counts waits, so that whatever comes too late for one is known."""
        self._lease = lease
        self._loop = loop

    # -- what the flow asks -----------------------------------------------------------------------

    def lives(self) -> bool:
        """True while there is somebody to renew the lease for."""
        lease = self._lease()
        return lease is not None and lease._owner_lives()

    def remembers(self) -> bool:
        """False once nobody can reach the lease any more."""
        return self._lease() is not None

    # -- what the loop and the round say ----------------------------------------------------------

    def hear(self, note: Note) -> None:
        """Pass on what befell the lease."""
        lease = self._lease()
        if lease is not None:
            try:
                lease._hear(note.what)
            except Exception as error:  # noqa: BLE001  # whatever it is, the lease is kept
                report(error)

    def done(self) -> bool:
        """True if the flow does not wait for a round any more."""
        return self.round is None

    def set_result(self, _: None, /) -> None:
        """Go on at the end of this turn: the round is decided."""
        self.round = None
        self._loop.decided.append((self, self.turn))


class Loop:
    """The thread's body. What other threads may touch is said at each attribute."""

    def __init__(self, fleet: Fleet, *, listening: bool = False) -> None:
        self.new: dict[Holding, weakref.ref[Ward]] = {}
        """Leases that the thread has not seen yet. Any thread adds, and takes out again."""
        self.followed: deque[Holding] = deque()
        """Leases that were released while a renewal may be under way. Any thread adds."""
        self.wakes_at = math.inf
        """Until when the thread sleeps, at the most. Any thread reads."""
        self.stale = 0
        """About how many leases in care have ended. Any thread counts up; it need not be exact."""
        self._fleet = fleet
        self._post = fleet.post if listening else None
        self._listens_at = -math.inf
        """When to see next whether calls can be heard."""
        self._charges: dict[Holding, Charge] = {}
        self._timers: list[tuple[float, int, Charge, int]] = []
        self._order = itertools.count()
        self.decided: deque[tuple[Charge, int]] = deque()
        """Charges that can go on, and what they waited for."""
        self._stopping = False
        self._line: Line | None = None
        self.ring: Callable[[], None] = _nobody_sleeps
        """Ends the thread's sleep. Any thread calls it."""

    def open_line(self) -> Line:
        """Make ready to connect; before the thread is started, so that a failure is heard."""
        line = self._line = Line(self._fleet, most_unanswered=MOST_UNANSWERED, listening=True)
        self.ring = line.bell()
        return line

    def _hang_up(self) -> None:
        line, self._line = self._line, None
        self._listens_at = -math.inf
        if line is not None:
            line.close()

    def held(self) -> int:
        """Return how many leases are held. Any thread calls it."""
        charges = list(self._charges.values())
        return len(self.new) + sum(not charge.holding.ended for charge in charges)

    def drop(self) -> None:
        """Let go of the connections without a word: in a forked child they are the parent's."""
        if self._line is not None:
            self._line.drop()

    def stop(self) -> None:
        """End the thread, soon. Any thread calls it."""
        self._stopping = True
        self.ring()

    def run(self) -> None:
        """Look after leases until `stop`."""
        while not self._stopping:
            try:
                self._turn(self._line or self.open_line())
            except BaseException as error:  # noqa: BLE001  # a bug: be heard, and go on renewing
                report(error)
                self._hang_up()
                time.sleep(REST)
        self._hang_up()

    def _turn(self, line: Line) -> None:
        self.wakes_at = -math.inf  # awake: nobody needs to ring
        self._take_new()
        self._follow()
        self._say_unsaid()
        self._run_due()
        self._run_decided()  # rounds that failed at once
        listening = self._listen(line)
        line.flush()
        self.wakes_at = wakes_at = self._timers[0][0] if self._timers else math.inf
        if self.new or self.followed or self._fleet.unsaid or self._stopping:
            return  # they came before it was known how long we sleep: nobody has rung
        longest = clock.NAP if self._timers or listening else LONGEST_SLEEP
        line.turn(min(max(wakes_at - clock.now(), 0.0), longest))
        self.wakes_at = -math.inf
        self._run_decided()
        line.flush()

    def _listen(self, line: Line) -> bool:
        """Hear calls, once somebody has waited; see now and then that this is still so."""
        post, now = self._post, clock.now()
        if post is None or not post.wanted:
            return False
        if now >= self._listens_at and (post.expecting or not post.settled):
            self._listens_at = now + clock.NAP
            for channel in line.channels:
                channel.doubt(now, LEAST_SILENCE)
                channel.listen(now)
        return post.expecting

    # -- leases come and go -----------------------------------------------------------------------

    def _take_new(self) -> None:
        while self.new:
            try:
                holding, lease = self.new.popitem()
            except KeyError:  # released at this moment
                break
            if not holding.ended:
                charge = self._charges[holding] = Charge(self, holding, lease)
                self._resume(charge, clock.now())
        if self.stale > SWEEP + len(self._charges) // 2:
            self._sweep()

    def _sweep(self) -> None:
        """Take out leases that have ended, before their timers would."""
        self.stale = 0
        for charge in list(self._charges.values()):
            if charge.holding.ended and charge.round is None:
                del self._charges[charge.holding]
        self._timers = [entry for entry in self._timers if entry[2].holding in self._charges]
        heapq.heapify(self._timers)

    def _follow(self) -> None:
        """Send releases behind renewals: those under way, and those answered since."""
        while self.followed:
            holding = self.followed.popleft()
            charge = self._charges.pop(holding, None)
            if charge is not None and charge.round is not None:
                charge.round.open = False  # what still stands in line is not sent any more
                charge.round = None
                charge.turn += 1
            self._say(Round(holding.terms.release(holding.token, repaired=holding.repaired)))

    def _say_unsaid(self) -> None:
        """Say releases that stand in line elsewhere. Saying them twice is saying them once."""
        while self._fleet.unsaid:
            self._say(Round(self._fleet.unsaid.popleft()))

    # -- running flows ----------------------------------------------------------------------------

    def _run_due(self) -> None:
        timers, batch = self._timers, 0
        while timers and batch < BATCH and timers[0][0] <= (now := clock.now()):
            _, _, charge, turn = heapq.heappop(timers)
            if charge.turn == turn:
                batch += 1
                if charge.round is not None:
                    self._give_up(charge.round, charge.holding.terms, now)
                    charge.round = None
                self._resume(charge, now)

    def _give_up(self, round_: Round, terms: Terms, now: float) -> None:
        """End a round whose time is up. A connection that is silent all that time may be dead."""
        round_.open = False
        limit = max(terms.ttl * ROUND_SHARE, LEAST_SILENCE)
        if self._line is not None and round_.tally is not None:
            for channel, vote in zip(self._line.channels, round_.tally.votes, strict=True):
                if vote is None:
                    channel.doubt(now, limit)

    def _run_decided(self) -> None:
        while self.decided:
            charge, turn = self.decided.popleft()
            if charge.turn == turn:
                self._resume(charge, clock.now())

    def _resume(self, charge: Charge, now: float) -> None:
        """Take steps of a flow until it has to wait, or ends."""
        charge.turn += 1
        flow = charge.flow
        try:
            effect = flow.send(now) if charge.turn > 1 else next(flow)
            while not self._begin(charge, effect):
                effect = flow.send(clock.now())
        except StopIteration:
            self._charges.pop(charge.holding, None)
        except Exception as error:  # noqa: BLE001  # a bug: the lease then ends by the clock
            self._charges.pop(charge.holding, None)
            report(error)

    def _begin(self, charge: Charge, effect: Effect | Note) -> bool:
        """Begin what a flow wants; True if it has to wait for it."""
        if isinstance(effect, Sleep):
            self._set_timer(effect.until, charge)
            return True
        if isinstance(effect, Note):
            charge.hear(effect)
            return False
        if isinstance(effect, Ask):
            charge.round = round_ = Round(
                effect.command, effect.tally, charge, sent=clock.now(), until=effect.until
            )
            self._set_timer(effect.until, charge)
            self._say(round_)
            return True
        if isinstance(effect, Tell):
            self._say(Round(effect.command))
        return False

    def _say(self, round_: Round) -> None:
        packed, now = commands.pack(round_.command), clock.now()
        for channel in self._line.channels if self._line is not None else ():
            channel.post(round_, packed, now)

    def _set_timer(self, until: float, charge: Charge) -> None:
        heapq.heappush(self._timers, (until, next(self._order), charge, charge.turn))


def _nobody_sleeps() -> None:
    """Ring for a thread that has not slept yet: it looks before it does."""
