"""The order: whether the lock went to whoever had waited longest, as far as anybody has seen.

Workers say when they began to wait, and the onlooker saw who was in line. A node lets nobody in
before those who are ahead in its own line. But nodes answer one after the other, and a worker need
not be in line at all of them. So one look at the line proves that a is ahead of b

- if a was in line at a quorum, and b began to wait after the look; or
- if b was behind a, and both were in line at so many nodes that those are too few for a quorum at
  which they may not have been together.

It proves nothing of those who came while it was taken. Who does not come when called (a machine may
pause it that long) is passed over, and nobody is inside until then, for the length of a claim: what
was seen before that does not count any more.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from holdfast.core.place import CLAIM

from . import events
from .evidence import Evidence, Fate, Increment


@dataclass(frozen=True, slots=True)
class HandOver:
    """The lock went to one worker while others waited as well."""

    worker: int
    overtaken: tuple[int, ...]
    """Workers that were ahead of it, and waited on."""
    is_first: bool
    """True if it was ahead of all others. If neither, nobody has seen who was."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """One worker's wait for the lock, which it got."""

    worker: int
    began: float
    entered: float


class _Record:
    """All waits, and all looks at the line."""

    def __init__(self, evidence: Evidence) -> None:
        stays = sorted(evidence.increments, key=lambda each: each.entered)
        self.waits = [
            _Wait(each.worker, each.began, each.entered) for each in stays if each.began is not None
        ]
        self._waits_of: dict[int, list[_Wait]] = {}
        for wait in self.waits:
            self._waits_of.setdefault(wait.worker, []).append(wait)
        self._looks = evidence.looks  # one after the other
        self._asked = [look.asked for look in self._looks]
        self._answered = [look.at for look in self._looks]
        self._pauses = list(_pauses(stays))

    def rivals(self, wait: _Wait) -> Iterator[_Wait]:
        """Return the waits that were on, and went on, when this one ended."""
        for worker, waits in self._waits_of.items():
            place = bisect_right(waits, wait.entered, key=lambda each: each.entered)
            if worker != wait.worker and place < len(waits) and waits[place].began < wait.entered:
                yield waits[place]

    def is_ahead(self, one: _Wait, other: _Wait) -> bool:
        """True if a look proves that one was ahead of the other, and nothing excuses it since."""
        end = min(one.entered, other.entered)
        pause = bisect_right(self._pauses, end)
        begin = max(one.began, self._pauses[pause - 1] if pause else one.began)
        looks = range(bisect_left(self._asked, begin), bisect_right(self._answered, end))
        return any(_proves(self._looks[index], one, other) for index in looks)


def hand_overs(evidence: Evidence) -> list[HandOver]:
    """Return the hand-overs at which there was somebody else to choose."""
    record, found = _Record(evidence), []
    for wait in record.waits:
        rivals = list(record.rivals(wait))
        overtaken = [each.worker for each in rivals if record.is_ahead(each, wait)]
        is_first = all(record.is_ahead(wait, each) for each in rivals)
        if rivals:
            found.append(HandOver(wait.worker, tuple(overtaken), is_first))
    return found


def _proves(look: events.Line, one: _Wait, other: _Wait) -> bool:
    """True if one was ahead of the other then. Both waits went on until after the look."""
    nodes = {place.worker: place.nodes for place in look.places}
    quorum, here = look.nodes // 2 + 1, nodes.get(one.worker, 0)
    if other.began > look.at:
        return here >= quorum
    if other.began > look.asked or other.worker not in nodes:
        return False
    order = list(nodes)
    together = here + nodes[other.worker] - look.nodes  # at the least
    is_behind = one.worker in nodes and order.index(one.worker) < order.index(other.worker)
    return is_behind and look.nodes - together < quorum


def _pauses(stays: list[Increment]) -> Iterator[float]:
    """Return when somebody entered after nobody had the lock for the length of a claim."""
    ends = accumulate((_end(each) for each in stays), max)
    for end, (_, following) in zip(ends, pairwise(stays), strict=False):
        if following.entered - end >= CLAIM:
            yield following.entered


def _end(stay: Increment) -> float:
    """Return when the lock was free again: a dead worker's lease goes on without it."""
    return stay.until if stay.fate is Fate.KILLED else stay.relied_until
