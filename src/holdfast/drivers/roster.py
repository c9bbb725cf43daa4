"""Which server answers for which node, so that no server ever votes twice.

Two addresses of one server have the same `run_id`. Whichever is met first is the node; the other
is turned away before any lock command is sent to it. A roster is kept for the connections that one
round speaks to, and knows of those that are open: another set of connections says nothing about
them.
"""

from collections.abc import Sequence

from ..wire.endpoint import Endpoint
from ..wire.greeting import Identity


class Roster:
    """The servers that one connection per node leads to, by node. Used by one thread at a time."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        self._run_ids: dict[int, str] = {}
        self.clash: tuple[str, str] | None = None
        """The addresses of the last two nodes that turned out to be one server."""

    def meet(self, node: int, identity: Identity) -> str | None:
        """Enter a node's server. Return the address under which it is known already, if it is."""
        run_id = identity.run_id
        if run_id is None:  # it may not be asked (ACL), so it cannot be compared
            return None
        for other, known in self._run_ids.items():
            if known == run_id and other != node:
                first, second = sorted((node, other))
                self.clash = str(self._endpoints[first]), str(self._endpoints[second])
                return str(self._endpoints[other])
        self._run_ids[node] = run_id
        return None

    def forget(self, node: int) -> None:
        """Strike a node whose connection broke: another server may answer there now."""
        self._run_ids.pop(node, None)
