"""What a flow may ask of its driver. Every effect resumes the flow with the time now.

- `Ask` every node, and resume when the tally is decided or `until` has passed, whichever is first.
  Late replies still belong to the round; the driver lets none of them count.
- `Tell` every node, without waiting for any answer: the only effect allowed while unwinding (L7).
  What is told goes behind whatever the node has not answered yet on the same connection, so that
  a release can never overtake its own request.
- `Sleep` until a time, or until there is mail.
- `Listen`: see that mail can be heard, on every node that can be reached, or until a time.

A driver that is interrupted (Ctrl-C, cancellation) throws the exception into the flow, performs
the `Tell`s that follow, and lets the exception out.

Effects and commands are made in every round, so they are plain dataclasses: frozen ones cost three
times as much, named tuples twice. Nobody changes them.
"""

from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from .guard import NO_GUARD, Guard
from .outcomes import Endangered, Kept, Lost, Unsure
from .place import Hearing, Mail, Place
from .tally import Tally


class Verb(Enum):
    """What is said to a node: about a lock, and then about the node itself."""

    REQUEST = "request"
    WAIT = "wait"
    RAISE = "raise"
    RENEW = "renew"
    RELEASE = "release"
    INSPECT = "inspect"

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
        return self in _ABOUT_A_LOCK

    __hash__ = object.__hash__  # members are single: their identity is the cheapest hash


_ABOUT_A_LOCK = frozenset(
    (Verb.REQUEST, Verb.WAIT, Verb.RAISE, Verb.RENEW, Verb.RELEASE, Verb.INSPECT)
)


@dataclass(slots=True)
class Command:
    """One sentence to a node. Saying it twice with the same token is saying it once."""

    verb: Verb
    name: str
    token: str
    ttl_ms: int = 0
    stamp: int = 0
    """Proposed as a fence: for the next lease, with a release. With a renewal, the lease's own; a
    waiter's place in line."""
    guard: Guard = NO_GUARD
    place: Place = Place.NOWHERE
    claim_ms: int = 0
    """For how long a lock is reserved for whom it is handed over to."""

    @property
    def is_first(self) -> bool:
        """True if nothing was said in this token's name before."""
        return self.verb is Verb.REQUEST and self.place is not Place.KEPT


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
    """Do nothing until then, or until there is mail."""

    until: float
    mail: Mail | None = None


@dataclass(slots=True)
class Listen:
    """See that mail can be heard: resume when it is known of every node whether it can, or then."""

    until: float


Effect = Ask | Tell | Sleep | Listen

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

    silent: Mapping[int, float]
    """Nodes that did not answer somebody who waited for all, and until when nobody need wait for
    them. Flows put another mapping there."""

    @property
    def hearing(self) -> Hearing:
        """Whether mail can be heard."""

    def mail(self) -> Mail:
        """Begin an attempt: return where its mail will be put, until it is forgotten."""

    def forget(self, mail: Mail) -> None:
        """Expect no more mail for an attempt."""

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
