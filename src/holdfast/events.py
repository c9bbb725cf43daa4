"""What a client's `on_event` hook receives: one frozen record for everything worth counting.

The hook is called on a thread of its own, one record after the other, and never on the thread or
event loop that was at work. If it is so slow that records pile up, the newest are dropped and
counted in `client.stats().events_dropped`.
"""

from dataclasses import dataclass

from .core.outcomes import LossReason
from .core.outcomes import Released as Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """The parent of all records."""


@dataclass(frozen=True, slots=True)
class Acquired(Event):
    """A lock was acquired."""

    name: str
    waited: float
    """Seconds from asking to having."""


@dataclass(frozen=True, slots=True)
class Renewed(Event):
    """The keeper has renewed a lease."""

    name: str
    valid_for: float
    """How many seconds it may be relied upon from here."""


@dataclass(frozen=True, slots=True)
class RenewedLate(Renewed):
    """The same, but the keeper came to it late: something starves this process."""

    late_by: float
    """Seconds between when the renewal was due and when it began."""


@dataclass(frozen=True, slots=True)
class Lost(Event):
    """A lease has ended without being released."""

    name: str
    reason: LossReason
    held_for: float


@dataclass(frozen=True, slots=True)
class Released(Event):
    """A lease was released."""

    name: str
    outcome: Outcome
    held_for: float


@dataclass(frozen=True, slots=True)
class NodeDown(Event):
    """A node could not be reached, or does not answer."""

    node: str
    """Its address, without credentials."""
    why: str


@dataclass(frozen=True, slots=True)
class NodeUp(Event):
    """A node that was down can be reached again."""

    node: str


@dataclass(frozen=True, slots=True)
class NodeAbstains(Event):
    """A node may have forgotten locks, and grants nothing for a while."""

    node: str
    why: str
    """What happened, for how long it abstains, and what can be done."""
