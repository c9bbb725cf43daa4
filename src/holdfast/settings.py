"""How a client was set up, and what its locks take from that: the same for every kind of client."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import options
from .core.terms import Terms
from .errors import BadInput, DuplicateNode
from .wire import endpoint as endpoints
from .wire.endpoint import Endpoint

DEFAULT_TTL = 30.0
"""Seconds. Long enough for a pause of the process, short enough to wait for after a crash."""

DEFAULT_NODE_TIMEOUT = 0.05
"""Seconds. Many round trips within a region; a hung node costs a round no more than this."""

DEFAULT_CONNECTIONS = 8
"""Per node. A thread uses one only for the length of a round, so a few serve very many threads."""

DEFAULT_MAX_HOLD = 86_400.0
"""Seconds. A job that is renewed for longer than a day hangs, more likely than not."""

UNSET: Any = object()
"""Tells "not given" from None, which means to wait for ever."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A client's nodes and defaults, checked."""

    endpoints: tuple[Endpoint, ...]
    ttl: float
    wait: float | None
    node_timeout: float
    renew: bool = True
    max_hold: float | None = DEFAULT_MAX_HOLD

    def terms(
        self, name: object, ttl: object, renew: object, max_hold: object, grace: object
    ) -> Terms:
        """Return the terms of a lock, as this client's unless something else is given."""
        ttl_ms = options.check_ttl(self.ttl if ttl is UNSET else ttl)
        renewing = self.renew if renew is UNSET else options.check_renew(renew)
        bound = self.max_hold if max_hold is UNSET else options.check_max_hold(max_hold)
        return Terms(
            options.check_name(name),
            ttl_ms,
            len(self.endpoints),
            self.node_timeout,
            renewing=renewing,
            max_hold=bound if renewing else None,
            grace=options.check_grace(grace, ttl_ms / 1000),
        )

    def wait_of(self, wait: object) -> float | None:
        """Return how long to wait: as this client does unless something else is given."""
        return self.wait if wait is UNSET else options.check_wait(wait)


def read_settings(
    nodes: Sequence[Any],
    *,
    ttl: object,
    wait: object,
    renew: object,
    max_hold: object,
    node_timeout: object,
) -> Settings:
    """Understand what `connect()` was given. Raises `BadInput` before anything is sent."""
    patience = options.check_node_timeout(node_timeout)
    ttl_ms = options.check_ttl(ttl)
    seconds = options.check_wait(wait)
    renewing, bound = options.check_renew(renew), options.check_max_hold(max_hold)
    places = tuple(endpoints.read(node) for node in nodes or _nodes_from_environment())
    for index, place in enumerate(places):
        for other in places[:index]:
            if place.address == other.address:
                raise DuplicateNode(str(other), str(place))
    return Settings(places, ttl_ms / 1000, seconds, patience, renewing, bound)


def _nodes_from_environment() -> list[str]:
    given = os.environ.get("HOLDFAST_NODES")
    if given is not None:
        nodes = given.replace(",", " ").split()
        if not nodes:
            raise BadInput("$HOLDFAST_NODES is set and names no node")
        return nodes
    from .embedded import shared_server_url  # only then: it starts a server

    return [shared_server_url()]
