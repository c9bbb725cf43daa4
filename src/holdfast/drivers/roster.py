"""Which server answers for which node, and whether it may vote; none ever votes twice.

Two addresses of one server have the same `run_id`. Whichever is met first is the node; the other
is turned away before any lock command is sent to it. A roster is kept for the connections that one
round speaks to, and knows of those that are open: another set of connections says nothing about
them.
"""

from collections.abc import Sequence

from ..core.votes import Condition, Failure
from ..errors import DuplicateNode, EvictingNode
from ..wire.endpoint import Endpoint
from ..wire.greeting import Identity


class Roster:
    """The servers that one connection per node leads to, by node. Used by one thread at a time."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        self._run_ids: dict[int, str] = {}
        self.clash: tuple[str, str] | None = None
        """The addresses of the last two nodes that turned out to be one server."""
        self.evicting: tuple[str, str] | None = None
        """The address and the policy of the last node that may throw away keys."""

    def turn_away(self, node: int, identity: Identity, *, evicting: bool) -> Failure | None:
        """Enter a node's server, or say why it cannot have a vote.

        A server that may throw away keys is no keeper of locks, unless that was allowed.
        """
        if identity.evicts and not evicting:
            self.evicting = str(self._endpoints[node]), identity.evicts
            detail = f"maxmemory-policy {identity.evicts}; hint: noeviction, or allow_eviction=True"
            return Failure(Condition.EVICTING, detail)
        other = self._meet(node, identity)
        return Failure(Condition.DUPLICATE, other) if other is not None else None

    def _meet(self, node: int, identity: Identity) -> str | None:
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


def refuse(roster: Roster) -> None:
    """Raise if servers were met that cannot be nodes."""
    if roster.clash is not None:
        raise DuplicateNode(*roster.clash)
    if roster.evicting is not None:
        raise EvictingNode(*roster.evicting)
