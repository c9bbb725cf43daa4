"""A node's comeback: it was started again, and is asked how it is until it votes.

It has forgotten all locks, so it abstains, from when a worker first asks it for one. Asking how it
is does not count as that.
"""

from collections.abc import Sequence

import holdfast
from holdfast.drivers.clock import now

from . import events
from .plot import TTL

_LOOK = 0.2
"""Seconds between looks: often enough for the eye, and no burden to the nodes."""


class Comeback:
    """One node on its way back, seen through a client of our own."""

    def __init__(self, node: int, urls: Sequence[str]) -> None:
        self._node = node
        self._client = holdfast.connect(*urls, max_ttl=TTL)
        self._next_look = now()

    def news(self) -> events.NodeAbstains | events.NodeVotes | None:
        """Ask the node how it is, if it is time to; None if there is nothing to tell."""
        if now() < self._next_look:
            return None
        status = self._client.nodes.status()[self._node - 1]
        at = now()
        self._next_look = at + _LOOK
        if status.state == "unreachable":
            return None
        if status.state == "ready":
            return events.NodeVotes(self._node, at)
        self._next_look = at + min(status.abstains_for, _LOOK)  # not to miss the end
        return events.NodeAbstains(self._node, at, status.abstains_for)

    def close(self) -> None:
        """Ask no more."""
        self._client.close()
