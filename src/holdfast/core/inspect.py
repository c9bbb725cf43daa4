"""Inspect: who has a lock, and who waits for it, as far as a quorum of nodes says."""

from dataclasses import dataclass

from .effects import Ask, Flow
from .nodes import Poll
from .tally import Tally
from .terms import Terms

PATIENCE = 1.0
"""Seconds. Whoever looks is in no hurry, and a long line takes a while."""


@dataclass(frozen=True, slots=True)
class InLine:
    """Who waits at one node."""

    token: str
    stamp: int
    """When it came, about, in microseconds: the place in line."""
    ends_ms: int
    """Until when it counts as alive, by the node's clock."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What one node says of a lock."""

    now_us: int
    holder: str
    """The holder's token; empty if there is none."""
    called: str
    """The token of who is called, for whom it is reserved; empty if nobody is."""
    remaining_ms: int | None
    """How long the node keeps it for the holder; None without a ttl."""
    fence: int
    """The highest that it has accepted; 0 if it knows none."""
    line: tuple[InLine, ...]
    """Who waits there, in order."""


def inspect(terms: Terms, *, now: float) -> Flow[Tally]:
    """Ask every node what it knows of a lock."""
    poll = Poll(terms.nodes, range(terms.nodes))
    yield Ask(terms.inspect(), poll, now + max(terms.patience, PATIENCE))
    return poll
