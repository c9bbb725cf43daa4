"""How a client was set up, and what its locks take from that: the same for every kind of client."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import options
from .core.effects import Flow
from .core.guard import NO_GUARD, Guard
from .core.nodes import bootstrap
from .core.place import CLAIM
from .core.terms import Terms
from .drivers.fleet import Fleet
from .drivers.health import Health
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

DEFAULT_MAX_TTL = 60.0
"""Seconds. A node that may have forgotten abstains for about as long."""

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
    guard: Guard = NO_GUARD
    durable: bool = False
    claim: float = CLAIM
    label: str | None = None

    def fleet(self, health: Health) -> Fleet:
        """Return the nodes, for all connections to share."""
        return Fleet(
            self.endpoints,
            guard=self.guard,
            durable=self.durable,
            health=health,
            label=self.label,
        )

    def bootstrap(self, now: float) -> Flow[bool]:
        """Initialise the nodes if all of them are new and have been up for long."""
        return bootstrap(self.guard, len(self.endpoints), now=now, patience=self.node_timeout)

    def terms(
        self, name: object, ttl: object, renew: object, max_hold: object, grace: object
    ) -> Terms:
        """Return the terms of a lock, as this client's unless something else is given."""
        ttl_ms = options.check_ttl(self.ttl if ttl is UNSET else ttl, self.guard)
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
            guard=self.guard,
            claim=self.claim,
        )

    def wait_of(self, wait: object) -> float | None:
        """Return how long to wait: as this client does unless something else is given."""
        return self.wait if wait is UNSET else options.check_wait(wait)


def read_settings(nodes: Sequence[Any], **given: object) -> Settings:
    """Understand what `connect()` was given. Raises `BadInput` before anything is sent."""
    settings_of((), **given)  # first: what makes no sense should not start a server
    places = tuple(endpoints.read(node) for node in nodes or _nodes_from_environment())
    for index, place in enumerate(places):
        for other in places[:index]:
            if place.address == other.address:
                raise DuplicateNode(str(other), str(place))
    return settings_of(places, **given)


def settings_of(
    places: tuple[Endpoint, ...],
    *,
    ttl: object,
    wait: object,
    renew: object,
    max_hold: object,
    node_timeout: object,
    guard: object,
    max_ttl: object,
    durable: object,
    allow_eviction: object,
    claim: object,
    label: object,
) -> Settings:
    """Check the options of a client of these nodes."""
    guarded = _guard(guard, max_ttl, allow_eviction, len(places))
    if ttl is DEFAULT_TTL and guarded.is_on:  # not given: then it is no longer than allowed
        ttl = min(DEFAULT_TTL, guarded.max_ttl_ms / 1000)
    return Settings(
        endpoints=places,
        ttl=options.check_ttl(ttl, guarded) / 1000,
        wait=options.check_wait(wait),
        node_timeout=options.check_node_timeout(node_timeout),
        renew=options.check_renew(renew),
        max_hold=options.check_max_hold(max_hold),
        guard=guarded,
        durable=_durable(durable, guarded, places),
        claim=options.check_claim(claim),
        label=options.check_label(label),
    )


def _durable(durable: object, guard: Guard, places: Sequence[Endpoint]) -> bool:
    lasting = options.check_flag("durable", durable)
    if lasting and places and not guard.is_on:
        raise BadInput("durable=True is about the guard, which is off here; hint: guard=True")
    if lasting and guard.evicting:
        raise BadInput("nodes that may evict keys are not durable: not both of them")
    return lasting


def _guard(guard: object, max_ttl: object, allow_eviction: object, nodes: int) -> Guard:
    """Return the guard: on for more than one node, unless something else is said."""
    longest = options.check_max_ttl(max_ttl)
    evicting = options.check_flag("allow_eviction", allow_eviction)
    if guard is None:
        guard = nodes > 1
    return Guard(longest if options.check_flag("guard", guard) else 0, evicting=evicting)


def _nodes_from_environment() -> list[str]:
    given = os.environ.get("HOLDFAST_NODES")
    if given is not None:
        nodes = given.replace(",", " ").split()
        if not nodes:
            raise BadInput("$HOLDFAST_NODES is set and names no node")
        return nodes
    from .embedded import shared_server_url  # only then: it starts a server

    return [shared_server_url()]
