"""What one node answered in one round.

A node grants, refuses, abstains, or fails. A failure (unreachable, wrong password, out of memory,
…) is *not* a refusal: it says nothing about who holds the lock. Nor does a node that abstains,
because it may have forgotten. A node that has not answered has no vote at all.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any


class Answer(Enum):
    """The things a node can say."""

    GRANTED = "granted"
    HELD = "held by somebody else"
    MISSING = "no longer there"
    OUTBID = "has accepted a higher fence"
    RESERVED = "reserved for us"
    QUEUED = "held by somebody else, we are in line"
    OUTRANKED = "somebody else waits, and has a higher stamp"
    TOLD = "told"
    DOUBTFUL = "must be examined"
    ABSTAINED = "abstains"
    FAILED = "failed"


class Condition(Enum):
    """Why a node could not vote, as users should read it.

    A *lasting* condition does not go away by asking again, so nobody should wait for it to.
    """

    label: str
    lasting: bool

    def __new__(cls, label: str, lasting: bool) -> "Condition":
        """Let `Condition.OOM.label` and `.lasting` be plain attributes."""
        self = object.__new__(cls)
        self._value_ = label
        self.label = label
        self.lasting = lasting
        return self

    UNREACHABLE = ("unreachable", False)
    BROKEN = ("connection lost", False)
    SWAMPED = ("too many unanswered requests", False)
    TLS = ("TLS handshake failed", True)
    AUTHENTICATION = ("authentication failed", True)
    FORBIDDEN = ("permission denied", True)
    WRONG_TYPE = ("the key holds another type of value", True)
    EVICTING = ("evicts keys", True)
    MAX_TTL = ("was told of another max_ttl", True)
    DATABASE = ("no such database", True)
    DUPLICATE = ("the same server as another node", True)
    ABSTAINING = ("abstains", False)
    STEPPED = ("its clock has jumped", False)
    LATE = ("came too late", False)
    READ_ONLY = ("read-only replica", False)
    OUT_OF_MEMORY = ("out of memory", False)
    LOADING = ("loading its data set", False)
    NOT_PERSISTING = ("cannot persist to disk", False)
    SCRIPT_RUNNING = ("busy running another script", False)
    OVERCROWDED = ("no more connections accepted", False)
    CLUSTER = ("cluster answers for another slot", True)
    PROTOCOL = ("unintelligible reply", False)
    SERVER_ERROR = ("server error", False)


@dataclass(frozen=True, slots=True)
class Failure:
    """A condition and the server's or the system's own words for it."""

    condition: Condition
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.condition.label}: {self.detail}" if self.detail else self.condition.label


@dataclass(frozen=True, slots=True)
class Vote:
    """One node's answer in one round."""

    answer: Answer
    remaining_ms: int | None = None
    """HELD: how long the holder's key still lives; None if it has no ttl.
    RESERVED: for how long. QUEUED: when to ask again; None if there is no need to.
    ABSTAINED: for how long."""
    failure: Failure | None = None
    """FAILED, ABSTAINED: why."""
    mark: int = 0
    """GRANTED, OUTBID: the mark that stands in the way of the proposed fence; 0 if it is accepted.
    OUTRANKED: the mark that stands in the way of the proposed place in line. QUEUED, RESERVED: the
    stamp at which we stand in line."""
    rank: int = 0
    """QUEUED: how many wait before us."""
    facts: tuple[Any, ...] = ()
    """TOLD: what the node says."""

    def __str__(self) -> str:
        if self.failure is not None:
            words = self.answer is Answer.ABSTAINED
            return self.failure.detail if words else str(self.failure)
        if self.answer is Answer.OUTBID:
            return (
                f"has accepted a fence as high as {self.mark}; hint: are the nodes' clocks right?"
            )
        if self.answer is Answer.QUEUED:
            return f"held by somebody else, {self.rank} in line before us"
        if self.answer is not Answer.HELD:
            return str(self.answer.value)
        if self.remaining_ms is None:
            return f"{self.answer.value}, without a ttl"
        return f"{self.answer.value}, {self.remaining_ms / 1000:.3f} s left"


GRANTED = Vote(Answer.GRANTED)
MISSING = Vote(Answer.MISSING)
DOUBTFUL = Vote(Answer.DOUBTFUL)


def failed(condition: Condition, detail: str = "") -> Vote:
    """Return the vote of a node that could not vote."""
    return Vote(Answer.FAILED, failure=Failure(condition, detail))


class Verdict(Enum):
    """What a tally says so far."""

    PENDING = "pending"
    WON = "won"
    LOST = "lost"
