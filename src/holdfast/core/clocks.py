"""What the nodes' clocks show, as seen on our own: for stamps, deadlines, and to catch steps.

Every reply carries the node's time. It was read between our sending and our hearing, so it bounds
the *offset* between that clock and ours. An offset may creep as clocks may (`RATE_ERROR`, on either
side); if it jumps further than `JUMP`, the node's clock was set, and keys may have ended too early
there: a vote with such a time must not count.

What this cannot see: a jump that is smaller than `JUMP`, the round trip, and the creep since we
last heard of the node, together; one that is undone before we look; and any jump before we first
heard of the node, or after we have not for `STALE` seconds.

Times of ours are seconds on our own clock, those of nodes microseconds since the epoch. All
threads of a client share its clocks; what they write is a single assignment.
"""

from collections.abc import Sequence

from .validity import RATE_ERROR, STEP_TOLERANCE

JUMP = STEP_TOLERANCE / 2
"""Seconds. A clock may be this much ahead of what we think, and later as much behind: leases allow
for both."""

CREEP = 2 * RATE_ERROR
"""How much an offset may change per second: both clocks may be wrong, in opposite ways."""

LONGEST_CREEP = 60.0
"""Seconds for which that is granted. In the long run clocks are far better than `RATE_ERROR`, and
without a bound a client that was idle for an hour would take any step for creeping."""

STALE = 600.0
"""Seconds after which what we knew of a clock is worth nothing: clocks that nobody disciplines
would seem to have jumped."""

_JUMP_US = JUMP * 1e6
_SECOND_US = CREEP * 1e6
"""How far an offset may creep in a second."""

LOOK_AGAIN = 0.1
"""Seconds for which an offset that was found is used before it is computed again."""

Bounds = tuple[float, float, float]
"""The least and the largest offset, in microseconds, and when they were last found."""


class NodeClock:
    """One node's clock."""

    __slots__ = ("_bounds", "_distrust", "stale", "trusting")

    def __init__(self, *, trusting: bool, stale: float = STALE) -> None:
        """Know nothing yet. `trusting`: follow every step; nobody's safety depends on it."""
        self.trusting = trusting
        self.stale = stale
        self._bounds: Bounds | None = None
        self._distrust = -1.0
        """What was sent before this was perhaps executed before the node abstained."""

    def meet(self, shown_us: int, sent: float, heard: float) -> None:
        """Take the time that a server showed when it was greeted.

        If it has jumped since we last heard of the node, the next vote tells: also if the server
        was restarted meanwhile, because it may have got all its memory back.
        """
        self.agrees(shown_us, sent, heard)

    def reset(self, shown_us: int, sent: float, heard: float) -> None:
        """Believe what the clock shows: the node has abstained since it jumped."""
        self._distrust = heard
        self._bounds = (shown_us - heard * 1e6, shown_us - sent * 1e6, heard)

    def agrees(self, shown_us: int, sent: float, heard: float) -> bool:
        """True unless the clock has jumped since it was last looked at."""
        bounds = self._bounds
        crept = _SECOND_US * (heard - sent)  # since it was shown
        low, high = shown_us - heard * 1e6 - crept, shown_us - sent * 1e6 + crept
        if bounds is None:
            self._bounds = (low, high, heard)
            return True
        least, largest, since = bounds
        if (  # the usual case: it tells us nothing new
            low <= largest
            and high >= least
            and high - low >= largest - least
            and heard - since < LOOK_AGAIN
            and sent >= self._distrust
        ):
            return True
        return self._look_closer(bounds, low, high, heard) and sent >= self._distrust

    def _look_closer(self, bounds: Bounds, low: float, high: float, heard: float) -> bool:
        least, largest = _crept(bounds, heard)
        jumped = low > largest + _JUMP_US or high < least - _JUMP_US
        if jumped and not self.trusting and heard - bounds[2] <= self.stale:
            return False
        if jumped:
            self._bounds = (low, high, heard)
        elif low > largest:  # an offset that creeps faster than clocks may is left behind,
            self._bounds = (largest, largest, heard)
        elif high < least:  # and noticed in the end
            self._bounds = (least, least, heard)
        else:
            self._bounds = (max(least, low), min(largest, high), heard)
        return True

    @property
    def offset_us(self) -> float | None:
        """How far the clock is ahead of ours, about; None if the node was never heard of."""
        bounds = self._bounds
        return None if bounds is None else (bounds[0] + bounds[1]) / 2

    def deadline_ms(self, until: float) -> int:
        """Return what the clock shows, in milliseconds, when ours surely is past `until`.

        0 if that is not known.
        """
        bounds = self._bounds
        if bounds is None or until - bounds[2] > self.stale:
            return 0
        slack = _JUMP_US + _SECOND_US
        if until - bounds[2] > 1.0:  # the usual case is that we have just heard of the node
            slack += _crept(bounds, until)[1] - bounds[1]
        return int((bounds[1] + until * 1e6 + slack) / 1000) + 1

    def jump(self, shown_us: int, sent: float, heard: float) -> tuple[int, int]:
        """Return by how many microseconds a clock that disagrees has jumped, and what it would
        have shown when it was last found right.
        """
        bounds = self._bounds
        if bounds is None:
            return 0, 0
        middle = (bounds[0] + bounds[1]) / 2
        shown = shown_us - (sent + heard) / 2 * 1e6
        return int(shown - middle), int(middle + bounds[2] * 1e6)


def _crept(bounds: Bounds, now: float) -> tuple[float, float]:
    """Return where the offset may be by now, if the clock was not set."""
    least, largest, since = bounds
    creep = CREEP * 1e6 * min(max(now - since, 0.0), LONGEST_CREEP)
    return least - creep, largest + creep


class Clocks:
    """The clocks of all nodes."""

    __slots__ = ("_agreed", "_look_again", "_spare", "nodes")

    def __init__(
        self, nodes: int, quorum: int, *, trusting: bool, longest_ttl: float = 0.0
    ) -> None:
        stale = max(STALE, 2 * longest_ttl)  # a step must be seen for as long as leases last
        self.nodes: Sequence[NodeClock] = [
            NodeClock(trusting=trusting, stale=stale) for _ in range(nodes)
        ]
        self._spare = nodes - quorum
        self._agreed = 0.0
        self._look_again = -1.0

    def stamp(self, now: float) -> int:
        """Return the time that a quorum of nodes has reached, in microseconds.

        Not our own wall clock, which may be wrong by any amount. Nodes accept a number that is not
        far ahead of their clocks; this one is not ahead of a quorum of them.
        """
        if now >= self._look_again:
            known = sorted(node.offset_us for node in self.nodes if node.offset_us is not None)
            if not known:
                return 1  # any number will do: the nodes say what is too low
            self._agreed = known[min(self._spare, len(known) - 1)]
            self._look_again = now + LOOK_AGAIN
        return int(now * 1e6 + self._agreed)

    def reset(self) -> None:
        """Forget what was agreed: a node was met."""
        self._look_again = -1.0
