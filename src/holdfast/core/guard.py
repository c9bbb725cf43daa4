"""The restart guard: what every node is told of it, and how long a node abstains.

A node that may have forgotten a lock grants nothing until every lease it may have forgotten has
ended. That is decided on the node, by `wire/lua/node/examine.lua`. Here is what its clients must
agree on.
"""

from math import ceil

from .validity import RATE_ERROR, STEP_TOLERANCE

SLACK_MS = 1000
"""Added to the longest ttl, for whatever is rounded: nobody is in a hurry after a crash."""


def abstention_ms(max_ttl_ms: int) -> int:
    """Return for how long a node abstains if no lease is longer than that; the script does so too.

    The holder of a forgotten lease stops believing in it `ttl·(1 − 2ρ)` on its own clock after it
    asked, and the node counts from the first time it is asked after it forgot, which is later.
    """
    return ceil(max_ttl_ms * (1 + 2 * RATE_ERROR)) + SLACK_MS


class Guard:
    """One client's terms of the guard, the same for all its locks. Compared by identity."""

    __slots__ = ("disputed_ms", "evicting", "horizon_us", "is_on", "max_ttl_ms", "tolerance")

    def __init__(self, max_ttl_ms: int, *, evicting: bool = False) -> None:
        """Describe a guard; a `max_ttl_ms` of 0 is none. `evicting`: servers may evict keys."""
        self.max_ttl_ms = max_ttl_ms
        self.evicting = evicting
        self.is_on = max_ttl_ms > 0
        self.disputed_ms = 0
        """A longer `max_ttl` that a node was told of by others: then nodes that have forgotten may
        have abstained too short because of us, and nothing is acquired any more."""
        self.tolerance = STEP_TOLERANCE if self.is_on else 0.0
        """How far a node's clock may jump without anybody noticing: leases end so much earlier."""
        self.horizon_us = abstention_ms(max_ttl_ms or _USUAL_MAX_TTL_MS) * 500
        """How far ahead of its clock a node accepts a fence, in microseconds."""

    def dispute(self, max_ttl_ms: int) -> None:
        """Take note that a node was told of another `max_ttl`. A shorter one does us no harm."""
        if max_ttl_ms > self.max_ttl_ms:
            self.disputed_ms = max_ttl_ms


_USUAL_MAX_TTL_MS = 60_000

NO_GUARD = Guard(0)
