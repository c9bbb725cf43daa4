"""How long a waiter pauses before it asks again, while too few nodes can vote.

Nodes that come back should not be asked by everybody at once, so the pause is random.
"""

FIRST_SPREAD = 0.01
"""Seconds of randomness after the first miss; it doubles with every further one."""

LARGEST_SPREAD = 0.16
"""A waiter finds nodes that are back within this time, plus a round."""

LONGEST_ABSENCE = 1.0
"""Nodes that abstain are asked again after this at the latest: somebody may have admitted them."""


def pause_for(remaining: float, chance: float) -> float:
    """Return the seconds to pause while so many nodes abstain that nobody can be granted."""
    return min(remaining, LONGEST_ABSENCE) + chance * FIRST_SPREAD


def pause(chance: float, measured: float, misses: int) -> float:
    """Return the seconds to pause after the `misses`-th miss in a row.

    `chance` is uniform in [0, 1), `measured` how long the last round took.
    """
    spread = min(FIRST_SPREAD * 2.0 ** min(misses - 1, 10), LARGEST_SPREAD)
    return 2 * measured + chance * spread
