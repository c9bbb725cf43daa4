"""What happened in the end, put together from the events and the counter itself."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from . import events
from .events import Event

E = TypeVar("E")


class Fate(Enum):
    """How an increment ended."""

    OPEN = "never ended"
    """Its worker is gone and nobody killed it."""
    DONE = "done"
    """Its worker says so: it must be in the counter."""
    KILLED = "killed"
    """Its worker was killed before it could say so: it may be in the counter."""
    LOST = "lease lost"
    """Its worker says that it was not protected to the end: it may be in the counter."""


@dataclass(frozen=True, slots=True)
class Increment:
    """One worker's stay inside."""

    worker: int
    entered: float
    until: float
    """When its lease ended at the latest, on our own clock."""
    read: int
    wrote: int | None = None
    left: float | None = None
    fate: Fate = Fate.OPEN
    reason: str = ""
    fence: int | None = None
    """Its lease's; None without a lock."""
    began: float | None = None
    """When its worker began to wait for the lock."""

    @property
    def waited(self) -> float:
        """How many seconds its worker had waited for the lock."""
        return self.entered - self.began if self.began is not None else 0.0

    @property
    def relied_until(self) -> float:
        """When the worker stopped relying on its lease, or had to."""
        return self.until if self.left is None else min(self.left, self.until)

    @property
    def target(self) -> int:
        """The number that the counter shows if this increment was the last to reach it."""
        return self.read + 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the verdict is based on."""

    counter: int
    increments: tuple[Increment, ...]
    intrusions: tuple[events.NotAlone, ...] = ()
    nodes_killed: tuple[events.NodeKilled, ...] = ()
    nodes_restarted: tuple[events.NodeRestarted, ...] = ()
    nodes_voting: tuple[events.NodeVotes, ...] = ()
    """Restarted ones that said that they vote again."""
    workers_killed: tuple[events.WorkerKilled, ...] = ()
    looks: tuple[events.Line, ...] = ()
    """At the line, one after the other."""
    given_up: tuple[events.GaveUp, ...] = ()
    deserters: tuple[events.WorkerGone, ...] = ()
    """Workers that ended in bad order, and nobody had killed them."""

    def of(self, *fates: Fate) -> list[Increment]:
        """Return the increments that ended so."""
        return [increment for increment in self.increments if increment.fate in fates]


@dataclass(slots=True)
class _Gathering:
    """Evidence while it is read from the events."""

    began: dict[int, float] = field(default_factory=dict)
    inside: dict[int, Increment] = field(default_factory=dict)
    ended: list[Increment] = field(default_factory=list)
    killed: dict[int, float] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        match event:
            case events.Waiting(worker, at):
                self.began[worker] = at
            case events.Inside(worker, at, until, read, fence=fence):
                began = self.began.get(worker)
                self.inside[worker] = Increment(worker, at, until, read, fence=fence, began=began)
            case events.Left(worker, at, wrote):
                self.inside[worker] = replace(self.inside[worker], left=at, wrote=wrote)
            case events.Done(worker):
                self._end(worker, Fate.DONE)
            case events.Lost(worker, _, reason):
                self._end(worker, Fate.LOST, reason)
            case events.WorkerKilled(worker, at):
                self.killed[worker] = at

    def _end(self, worker: int, fate: Fate, reason: str = "") -> None:
        increment = self.inside.pop(worker, None)
        if increment is not None:  # else its lease had ended before it went in
            self.ended.append(replace(increment, fate=fate, reason=reason))

    def increments(self) -> tuple[Increment, ...]:
        """Return them in the order in which they began."""
        cut_short = [self._cut_short(increment) for increment in self.inside.values()]
        return tuple(sorted([*self.ended, *cut_short], key=lambda each: each.entered))

    def _cut_short(self, increment: Increment) -> Increment:
        """Close an increment that its worker could not: alive until the kill, and then gone."""
        if increment.worker not in self.killed:
            return increment
        left = increment.left or self.killed[increment.worker]
        return replace(increment, left=left, fate=Fate.KILLED)


def gather(happened: Iterable[Event], counter: int) -> Evidence:
    """Put the evidence together: all events in order, and what the counter shows in the end."""
    happened = list(happened)
    gathering = _Gathering()
    for event in happened:
        gathering.note(event)
    gone = _only(events.WorkerGone, happened)
    return Evidence(
        counter,
        gathering.increments(),
        intrusions=_only(events.NotAlone, happened),
        nodes_killed=_only(events.NodeKilled, happened),
        nodes_restarted=_only(events.NodeRestarted, happened),
        nodes_voting=_only(events.NodeVotes, happened),
        workers_killed=_only(events.WorkerKilled, happened),
        looks=_only(events.Line, happened),
        given_up=_only(events.GaveUp, happened),
        deserters=tuple(each for each in gone if each.code != 0),
    )


def _only(kind: type[E], happened: list[Event]) -> tuple[E, ...]:
    return tuple(event for event in happened if isinstance(event, kind))
