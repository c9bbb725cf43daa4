"""How long a waiter pauses before it asks again.

Contenders that split the votes of one round must not meet again in the next, so the pause is
random; and it is at least twice the measured round, so that somebody's round fits in between.
"""

FIRST_SPREAD = 0.01
"""Seconds of randomness after the first miss; it doubles with every further one."""

LARGEST_SPREAD = 0.16
"""A waiter finds a freed lock within this time, plus a round."""


LONGEST_ABSENCE = 1.0
"""Nodes that abstain are asked again after this at the latest: somebody may have admitted them."""


def pause_for(remaining: float, chance: float) -> float:
    """Return the seconds to pause while so many nodes abstain that nobody can be granted."""
    return min(remaining, LONGEST_ABSENCE) + chance * FIRST_SPREAD


def pause(chance: float, measured: float, misses: int, remaining: float | None) -> float:
    """Return the seconds to pause after the `misses`-th miss in a row.

    `chance` is uniform in [0, 1), `measured` how long the last round took, `remaining` when the
    holder's time is up: a waiter need not sleep much longer than that.
    """
    shortest = 2 * measured
    spread = min(FIRST_SPREAD * 2.0 ** min(misses - 1, 10), LARGEST_SPREAD)
    if remaining is not None:
        spread = min(spread, max(remaining, FIRST_SPREAD))
    return shortest + chance * spread
