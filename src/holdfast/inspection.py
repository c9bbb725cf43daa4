"""Who has a lock and who waits for it, as `lock.holder()` and `lock.waiters()` say."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .core.inspect import Sight
from .core.tally import Tally, quorum_of
from .core.terms import Terms
from .errors import Unreachable
from .reports import reports_of
from .wire.endpoint import Endpoint
from .wire.who import Who, who_of


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a lock, as far as a quorum of nodes says."""

    host: str | None
    """Where it runs; None if another program has the lock, which does not say who it is."""
    pid: int | None
    label: str | None
    """What its client is called: `connect(label=…)`, or the program's name."""
    fence: int | None
    """Its lease's fence, if it has one."""
    since: datetime | None
    """When it acquired the lock, by the nodes' clocks; None if nobody knows."""
    remaining: float | None
    """For how many seconds the nodes keep the lock for it, unless it renews; None: for ever."""

    def __str__(self) -> str:
        return _in_words(self.host, self.pid, self.label)


@dataclass(frozen=True, slots=True)
class Waiter:
    """Who waits for a lock."""

    host: str | None
    pid: int | None
    label: str | None
    since: datetime
    """When it came, by the nodes' clocks: its place in line."""
    nodes: int
    """In how many nodes' queues it is."""
    called: bool
    """True if the lock is reserved for it on some node: it is about to have it."""

    def __str__(self) -> str:
        return _in_words(self.host, self.pid, self.label)


def _in_words(host: str | None, pid: int | None, label: str | None) -> str:
    return f"{label} on {host}, process {pid}" if host is not None else "another program"


def sights_in(
    poll: Tally, terms: Terms, endpoints: Sequence[Endpoint], waited: float
) -> list[Sight]:
    """Return what those nodes say that have answered.

    Raises `Unreachable` if those are too few to know.
    """
    told = [vote.facts for vote in poll.votes if vote is not None and vote.facts]
    sights = [facts[0] for facts in told if isinstance(facts[0], Sight)]
    if len(sights) < terms.quorum:
        raise Unreachable(terms.name, reports_of(endpoints, poll), waited)
    return sights


def holder_in(sights: Sequence[Sight], nodes: int) -> Holder | None:
    """Return who has the lock at a quorum of the nodes; None if nobody has."""
    held = [sight for sight in sights if sight.holder]
    if not held:
        return None
    token, votes = Counter(sight.holder for sight in held).most_common(1)[0]
    if votes < quorum_of(nodes):
        return None
    mine = [sight for sight in held if sight.holder == token]
    who, fence = who_of(token), _fence(mine)
    return Holder(
        *_named(who),
        fence=fence if who is not None else None,
        since=_time(fence) if who is not None and fence else None,
        remaining=_remaining(mine, nodes),
    )


def waiters_in(sights: Sequence[Sight]) -> list[Waiter]:
    """Return who waits, in order."""
    places: dict[str, int] = {}
    nodes: Counter[str] = Counter()
    called = {sight.called for sight in sights}
    holding = {sight.holder for sight in sights}
    for sight in sights:
        for each in sight.line:
            if each.ends_ms * 1000 >= sight.now_us and each.token not in holding:
                places[each.token] = max(each.stamp, places.get(each.token, 0))
                nodes[each.token] += 1
    return [
        Waiter(
            *_named(who_of(token)),
            since=_time(places[token]),
            nodes=nodes[token],
            called=token in called,
        )
        for token in sorted(places, key=lambda token: (places[token], token))
    ]


def _named(who: Who | None) -> tuple[str | None, int | None, str | None]:
    return (who.host, who.pid, who.label) if who is not None else (None, None, None)


def _fence(sights: Sequence[Sight]) -> int | None:
    """Return the fence that most of them have accepted: failed attempts may have left others."""
    marks = Counter(sight.fence for sight in sights if sight.fence)
    return max(marks, key=lambda mark: (marks[mark], mark)) if marks else None


def _remaining(sights: Sequence[Sight], nodes: int) -> float | None:
    """Return for how many seconds a quorum still has it."""
    left = sorted(
        (sight.remaining_ms / 1000 for sight in sights if sight.remaining_ms is not None),
        reverse=True,
    )
    return left[quorum_of(nodes) - 1] if len(left) >= quorum_of(nodes) else None


def _time(stamp_us: int) -> datetime:
    return datetime.fromtimestamp(stamp_us / 1e6, UTC)
