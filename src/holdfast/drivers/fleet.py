"""A client's nodes, and what all its connections to them share."""

from collections.abc import Sequence

from ..core.clocks import Clocks
from ..core.guard import NO_GUARD, Guard
from ..core.tally import quorum_of
from ..wire.endpoint import Endpoint
from .health import Health, NobodyAsks


class Fleet:
    """The nodes of one client: where they are, what their clocks show, who hears of their ills."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        *,
        guard: Guard = NO_GUARD,
        durable: bool = False,
        health: Health | None = None,
    ) -> None:
        """Describe nodes. `durable`: those that sync every write need not abstain after a restart,
        if they really do so.
        """
        self.endpoints = tuple(endpoints)
        self.guard = guard
        self.durable = durable
        self.health = health or NobodyAsks()
        nodes, longest = len(self.endpoints), guard.max_ttl_ms / 1000
        self.clocks = Clocks(nodes, quorum_of(nodes), trusting=not guard.is_on, longest_ttl=longest)
