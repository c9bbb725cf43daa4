"""A client's nodes, and what all its connections to them share."""

from collections import deque
from collections.abc import Callable, Sequence

from ..core.clocks import Clocks
from ..core.effects import Command
from ..core.guard import NO_GUARD, Guard
from ..core.tally import quorum_of
from ..wire.endpoint import Endpoint
from .health import Health, NobodyAsks
from .post import Post

MOST_UNSAID = 10_000
"""Beyond that the oldest are left to their connections, or to the ttl."""


class Fleet:
    """The nodes of one client: where they are, what their clocks show, who hears of their ills."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        guard: Guard = NO_GUARD,
        durable: bool = False,
        health: Health | None = None,
        label: str | None = None,
    ) -> None:
        """Describe nodes. `durable`: those that sync every write need not abstain after a restart,
        if they really do so. `label`: what the client is called where others look at its locks.
        """
        self.endpoints = tuple(endpoints)
        self.guard = guard
        self.durable = durable
        self.health = health or NobodyAsks()
        self.unsaid: deque[Command] = deque(maxlen=MOST_UNSAID)
        """Releases that stand in line on connections which nobody may use again for long: the
        keeper says them as well."""
        self.on_unsaid: Callable[[], object] = _nobody
        """Wakes the keeper."""
        self.post = Post(len(self.endpoints), self.health, label)
        nodes, longest = len(self.endpoints), guard.max_ttl_ms / 1000
        self.clocks = Clocks(nodes, quorum_of(nodes), trusting=not guard.is_on, longest_ttl=longest)


def _nobody() -> None:
    """Wake nobody: where somebody always listens, nothing stays unsaid."""
