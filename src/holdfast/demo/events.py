"""What happens, as facts: reports of workers, deeds of the stage, and what nodes say of themselves.

`at` is a time on our own clock, which all processes of a machine share. Reports travel as lines of
JSON through one pipe. A worker says `Left` before it releases, so whoever comes next reports after
it: the order in the pipe is the order of things.
"""

import json
from dataclasses import asdict, dataclass

LONGEST_LINE = 512
"""Bytes. Lines up to PIPE_BUF (POSIX: at least 512) are written whole, or not at all."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has connected to the nodes."""

    worker: int
    at: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A worker began to wait for the lock."""

    worker: int
    at: float


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A worker has waited for the lock in vain, and will begin anew."""

    worker: int
    at: float


@dataclass(frozen=True, slots=True)
class Inside:
    """A worker got the lock at `at` and has read the counter."""

    worker: int
    at: float
    until: float
    """How long it may rely on its lease."""
    read: int
    dawdles: bool
    """It is in the trap, and will be slow."""
    fence: int | None
    """Its lease's; None without a lock."""


@dataclass(frozen=True, slots=True)
class NotAlone:
    """A worker that has the lock found somebody else inside."""

    worker: int
    at: float


@dataclass(frozen=True, slots=True)
class Left:
    """A worker is about to release. `wrote` is None if it found its lease lost before writing."""

    worker: int
    at: float
    wrote: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """A worker has released, and its lease had lasted: the increment counts."""

    worker: int
    at: float


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker was told that its lease had ended before it released: the increment is in doubt."""

    worker: int
    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A worker could not ask for the lock, and goes on trying."""

    worker: int
    at: float
    what: str


@dataclass(frozen=True, slots=True)
class NodeKilled:
    """The stage killed a node."""

    node: int
    at: float


@dataclass(frozen=True, slots=True)
class NodeRestarted:
    """The stage started a killed node again, empty."""

    node: int
    at: float


@dataclass(frozen=True, slots=True)
class NodeAbstains:
    """A node that is back says that it grants nothing for so many seconds, if it is asked now."""

    node: int
    at: float
    left: float


@dataclass(frozen=True, slots=True)
class NodeVotes:
    """A node that is back says that it votes again."""

    node: int
    at: float


@dataclass(frozen=True, slots=True)
class WorkerKilled:
    """The stage killed a worker. `at` is just before: until then it was alive for certain."""

    worker: int
    at: float


@dataclass(frozen=True, slots=True)
class WorkerGone:
    """A worker that nobody had killed has ended; 0 is in good order."""

    worker: int
    at: float
    code: int
    last_words: str


@dataclass(frozen=True, slots=True)
class Place:
    """A worker's place in line."""

    worker: int
    nodes: int
    """At how many nodes it is in line."""


@dataclass(frozen=True, slots=True)
class Line:
    """The nodes said who was in line, in order: each at some moment between `asked` and `at`."""

    asked: float
    at: float
    nodes: int
    """How many nodes there are."""
    places: tuple[Place, ...]


Report = Ready | Waiting | GaveUp | Inside | NotAlone | Left | Done | Lost | Trouble
NodeNews = NodeKilled | NodeRestarted | NodeAbstains | NodeVotes
Event = Report | NodeNews | WorkerKilled | WorkerGone | Line

_REPORTS: dict[str, type[Report]] = {
    kind.__name__: kind
    for kind in (Ready, Waiting, GaveUp, Inside, NotAlone, Left, Done, Lost, Trouble)
}


def to_line(report: Report) -> bytes:
    """Return a report as one line."""
    return json.dumps({"kind": type(report).__name__} | asdict(report)).encode() + b"\n"


def from_line(line: bytes) -> Report:
    """Return the report that a line stands for."""
    fields = json.loads(line)
    return _REPORTS[fields.pop("kind")](**fields)
