"""What a flow may ask of its driver. Every effect resumes the flow with the time now.

- `Ask` every node, and resume when the tally is decided or `until` has passed, whichever is first.
  Late replies still belong to the round; the driver lets none of them count.
- `Tell` every node, without waiting for any answer: the only effect allowed while unwinding (L7).
  What is told goes behind whatever the node has not answered yet on the same connection, so that
  a release can never overtake its own request.
- `Sleep` until a time.

A driver that is interrupted (Ctrl-C, cancellation) throws the exception into the flow, performs
the `Tell`s that follow, and lets the exception out.

Effects and commands are made in every round, so they are plain dataclasses: frozen ones cost three
times as much, named tuples twice. Nobody changes them.
"""

from collections.abc import Collection, Generator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from .guard import NO_GUARD, Guard
from .outcomes import Endangered, Kept, Lost, Unsure
from .tally import Tally


class Verb(Enum):
    """What is said to a node: about a lock, and then about the node itself."""

    REQUEST = "request"
    RAISE = "raise"
    RENEW = "renew"
    RELEASE = "release"

    EXAMINE = "examine"
    STATUS = "status"
    INIT = "init"
    ADMIT = "admit"
    DRAIN = "drain"
    SUSPECT = "suspect"
    ADOPT = "adopt"

    @property
    def is_about_a_lock(self) -> bool:
        """True if it is about a lock, False if it is about the node itself."""
        return self in (Verb.REQUEST, Verb.RAISE, Verb.RENEW, Verb.RELEASE)

    __hash__ = object.__hash__  # members are single: their identity is the cheapest hash


@dataclass(slots=True)
class Command:
    """One sentence to a node. Saying it twice with the same token is saying it once."""

    verb: Verb
    name: str
    token: str
    ttl_ms: int = 0
    stamp: int = 0
    """Proposed as a fence; with a renewal, the lease's own."""
    guard: Guard = NO_GUARD


@dataclass(slots=True)
class NodeCommand:
    """One sentence to a node about itself."""

    verb: Verb
    guard: Guard
    first: str = "0"
    second: str = "0"
    """What else the verb needs."""
    token: str = ""
    """Nothing: it is not about a lease."""


@dataclass(slots=True)
class Ask:
    """Say `command` to every node and count the votes."""

    command: Command | NodeCommand
    tally: Tally
    until: float
    to: Collection[int] | None = None
    """Only to these nodes, if it is not None."""


@dataclass(slots=True)
class Tell:
    """Say `command` to every node and go on."""

    command: Command


@dataclass(slots=True)
class Sleep:
    """Do nothing until then."""

    until: float


Effect = Ask | Tell | Sleep

Noted = Kept | Unsure | Endangered | Lost
"""What the keeper's flow says about a lease."""


@dataclass(slots=True)
class Note:
    """Let whoever the flow works for know of something, and go on. Only the keeper's flow does."""

    what: Noted


T = TypeVar("T")
Flow = Generator[Effect, float, T]


class Source(Protocol):
    """Where a flow gets what it cannot compute. Given, so that the simulator can give its own."""

    def token(self) -> str:
        """Return a secret that nobody can guess and nobody ever had before."""

    def stamp(self) -> int:
        """Return a number of microseconds that a quorum of the nodes' clocks has reached."""

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
