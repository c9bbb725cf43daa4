"""The node at the other end of a connection: its clock, and its database."""

from collections.abc import Callable
from typing import Any, Protocol

from ..core.clocks import NodeClock
from ..core.votes import Vote


class Peer:
    """What is known of the node, besides what it answers."""

    __slots__ = ("_db", "clock", "heard_at", "on_abstention", "suspected")

    def __init__(
        self, clock: NodeClock, db: int, on_abstention: Callable[[Vote], object] | None = None
    ) -> None:
        self.clock = clock
        self.on_abstention = on_abstention
        """Who wants to hear that it abstains, if somebody does."""
        self.heard_at = 0.0
        """When something was last heard of it, on our own clock."""
        self.suspected = False
        """True while it is being told that its clock has jumped."""
        self._db = b"$%d\r\n%d\r\n" % (len(str(db)), db)

    def agrees(self, shown_us: int, sent: float) -> bool:
        """True unless its clock has jumped, by a reply that was just heard."""
        return self.clock.agrees(shown_us, sent, self.heard_at)

    def jump(self, shown_us: int, sent: float) -> tuple[int, int]:
        """Return how far its clock has jumped, and what it had last shown before that."""
        return self.clock.jump(shown_us, sent, self.heard_at)

    def ending(self, until: float) -> bytes:
        """Return the last words of everything: the database, and until when it is worth doing, by
        the node's own clock. A release is always worth it.
        """
        return b"%s$13\r\n%013d\r\n" % (self._db, self.clock.deadline_ms(until))


class Correspondent(Protocol):
    """A connection to a node, as whoever waits for a reply sees it."""

    node: int
    peer: Peer

    def say(self, packed: bytes, asker: Any) -> None:
        """Send a command; the asker gets its reply."""
