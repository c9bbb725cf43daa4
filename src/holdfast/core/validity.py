"""How long a lease may be believed: all the arithmetic of time, in one place.

A node counts the ttl on its own clock from when it executes the request. The holder counts on its
own clock from before it sent it (L1). Between the two lie only clock rates and rounding: with both
clocks within `RATE_ERROR` of true time, a holder that stops believing at `valid_until` has stopped
before any node lets somebody else in. The delay of messages needs no bound.

Where clocks may also be set by up to `STEP_TOLERANCE` (the guard), that is taken off as well.

Proof: the holder believes for `ttl·(1 − 2ρ) − 2 ms` on its clock, at most
`ttl·(1 − 2ρ) / (1 − ρ)` of true time; a node keeps the key for at least `ttl / (1 + ρ)`, less a
rounding of its clock. And `(1 − 2ρ)(1 + ρ) = 1 − ρ − 2ρ² < 1 − ρ`.
"""

import math

RATE_ERROR = 0.01
"""ρ, the largest rate error of any clock involved. Clocks are slewed by 0.0005 as a rule; by chrony
faster, unless it is told otherwise: see docs/time.md."""

ROUNDING = 0.002
"""Servers count in whole milliseconds: one at either end of the ttl."""

STEP_TOLERANCE = 0.05
"""How far a node's clock may be set, in seconds, without anybody noticing: votes of nodes whose
clocks jumped further do not count. Where that is checked, leases end so much earlier."""

MIN_TTL = 0.02
"""Below this a round on a loaded machine takes longer than the lease it asks for."""

MIN_GUARDED_TTL = 0.1
"""Where clocks are checked, half of this is already given to `STEP_TOLERANCE`."""

MAX_TTL = 86_400.0
"""Whoever needs a lock for longer should renew it, or a crash blocks it for all that time."""

PATIENCE_SHARE = 0.25
"""At most this part of the ttl is spent on waiting for slow nodes."""

RENEW_SHARE = 1 / 3
"""The part of the ttl after which a lease is renewed: as the papers' watchdog does."""

RETRY_SHARE = 1 / 15
"""The part of the ttl after which a renewal that did not count is tried again: about ten times."""

ROUND_SHARE = 1 / 6
"""The part of the ttl for which a renewal waits for slow nodes: no user waits for it."""

GRACE_SHARE = 1 / 6
"""The part of the ttl that is left when a lease counts as endangered: most tries have failed."""

GRAINS = 64
"""How many turns of the keeper there are in a renewal interval: leases due in one go together."""


def drift(ttl: float) -> float:
    """Return what must be taken off the ttl for clock rates and rounding."""
    return 2 * RATE_ERROR * ttl + ROUNDING


def valid_until(sent: float, ttl: float) -> float:
    """Return when a holder must stop believing, if `sent` is before its first byte was sent."""
    return sent + ttl - drift(ttl)


def patience(node_timeout: float, ttl: float) -> float:
    """Return how long a round waits for nodes: short, and never a large part of the ttl."""
    return min(node_timeout, ttl * PATIENCE_SHARE)


def grain(ttl: float) -> float:
    """Return the keeper's turn for leases of that ttl: a power of two, so that all ttls' meet."""
    return 2.0 ** math.floor(math.log2(ttl * RENEW_SHARE / GRAINS))
