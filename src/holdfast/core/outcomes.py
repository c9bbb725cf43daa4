"""What a flow ends with. Outcomes are facts; shells turn some of them into exceptions."""

from dataclasses import dataclass
from enum import Enum

from .tally import Tally


class Miss(Enum):
    """Why a lock was not acquired."""

    BUSY = "busy"
    """One try, and somebody else has it (or others split the votes)."""
    TIMED_OUT = "timed out"
    """Waited as long as asked; somebody else still had it at the last try."""
    UNREACHABLE = "unreachable"
    """Too few nodes answered to know."""


class LossReason(Enum):
    """Why a lease was lost."""

    EXPIRED = "expired"
    """Its time was up on our own clock before it was renewed or released."""
    TAKEN = "taken"
    """Somebody else has the lock."""
    DELETED = "deleted"
    """The key is gone: deleted from outside, or forgotten by the nodes."""
    UNREACHABLE = "unreachable"
    """Too few nodes answered its renewals until its time was up."""
    FORGOTTEN = "forgotten"
    """So many nodes have lost their memory, and abstain, that it could not be renewed in time."""
    OWNER_DIED = "owner died"
    """The thread or task that had acquired it has ended, and it was not renewed any more."""
    MAX_HOLD = "held for too long"
    """It was renewed for as long as `max_hold` allows."""


@dataclass(slots=True)
class Acquired:
    """The lock is ours until `valid_until`."""

    token: str
    valid_until: float
    tally: Tally
    fence: int
    """Above that of every lease that this lock had before."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The lock is not ours, and every node has been told so."""

    why: Miss
    waited: float
    tally: Tally


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease holds on until `valid_until`."""

    valid_until: float
    tally: Tally


@dataclass(frozen=True, slots=True)
class Unsure:
    """Too few nodes answered the renewal: the lease holds until its old `valid_until`."""

    tally: Tally

    @property
    def why(self) -> LossReason:
        """Why the lease will be lost if that goes on."""
        return LossReason.FORGOTTEN if self.tally.abstained else LossReason.UNREACHABLE


@dataclass(frozen=True, slots=True)
class Kept:
    """The keeper has renewed a lease; it holds on until `valid_until`."""

    valid_until: float
    late_by: float
    """How long after it was due the renewal began: the keeper was kept from its work."""


@dataclass(frozen=True, slots=True)
class Endangered:
    """A lease could not be renewed so far: it may end at `valid_until`."""

    valid_until: float


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease has ended without a release of ours."""

    reason: LossReason


class Released(Enum):
    """How a release went."""

    FREED = "freed"
    """A quorum of nodes has dropped the key: the next one can have it now."""
    LAPSING = "lapsing"
    """All nodes were told but too few answered: the key goes with its ttl at the latest."""
