"""A waiter's place in line, and the mail that says that it is its turn."""

from collections.abc import Callable
from enum import Enum

CLAIM = 0.3
"""Seconds for which a lock is reserved for whom it is handed over to, if nothing else is said."""


class Place(Enum):
    """How a waiter wants to be taken into a node's queue; see `wire/lua/queue.lua`."""

    NOWHERE = "0"
    """Not at all: this is one try."""
    ABOVE = "1"
    """At its stamp, if that is above all that the node has taken before."""
    SETTLED = "2"
    """At its stamp, whatever came after it: a quorum of nodes has taken it."""
    LAST = "3"
    """Behind all that wait: there is no other node that would have to agree."""
    KEPT = "4"
    """Where it is: it stands in line, and asks for the lock itself."""

    @property
    def is_taken(self) -> bool:
        """True if whoever asks is to be in line after it, who was not before."""
        return self is not Place.NOWHERE and self is not Place.KEPT

    __hash__ = object.__hash__  # members are single: their identity is the cheapest hash


class Hearing(Enum):
    """Whether a client can be called when it is its turn."""

    UNKNOWN = "unknown"
    """It has not tried, or not heard of every node yet: `Listen` first."""
    CALLED = "called"
    """A quorum of nodes can call it, and no node forbids it."""
    POLLS = "polls"
    """They cannot: it must ask again and again."""


class Mail:
    """What has come for one attempt of a waiter. Any thread puts, its waiter looks.

    A call says that a node has reserved the lock. It is no more than a reason to ask for it: what
    counts is what the nodes answer then.
    """

    __slots__ = ("_calls", "news", "polls", "ring", "token")

    def __init__(self, token: str, *, polls: bool = False) -> None:
        self.token = token
        """The attempt that it is for."""
        self.polls = polls
        """True if its token says that nobody need call."""
        self.ring: Callable[[], object] | None = None
        """Wakes whoever waits for mail, if somebody does."""
        self.news = False
        """True if something came since its waiter looked."""
        self._calls: dict[int, float] = {}

    def put(self, node: int, now: float, claim: float) -> None:
        """Take note that a node has reserved the lock, for `claim` seconds."""
        self._calls[node] = now + claim
        self.wake()

    def wake(self) -> None:
        """Wake whoever waits for mail: there is some, or it may have been missed."""
        self.news = True
        ring = self.ring
        if ring is not None:
            ring()

    def calls(self, now: float) -> int:
        """Return how many nodes' calls still count."""
        self.news = False
        for node, until in list(self._calls.items()):
            if now >= until:
                self._calls.pop(node, None)
        return len(self._calls)

    def clear(self) -> None:
        """Forget all calls: the lock is asked for."""
        self._calls.clear()
