"""Where in-memory clients get tokens and chance from."""

from random import Random

from ...core.retry import LARGEST_SPREAD
from ...drivers.source import SystemSource
from ..node import EPOCH_US
from .time import VirtualTime

LEISURE = 0.01
"""The longest pause of a waiter, as a part of the time that it has waited so far.

Waiters ask about twelve times a second, so that waiting out a lease that is renewed for a day would
take a million rounds. With this it takes some two thousand.
"""


class SeededSource(SystemSource):
    """Tokens as random as ever; chance from a seed, so that waits are the same every time."""

    def __init__(self, seed: int, time: VirtualTime) -> None:
        self._random = Random(seed)
        self._time = time

    def stamp(self) -> int:
        """Return what the nodes' clocks show, in microseconds."""
        return EPOCH_US + int(self._time.now * 1e6) + 1

    def chance(self) -> float:
        """Return a random number in [0, 1), or a larger one for whoever has waited long.

        That makes its next pause longer, and no wait: a flow does not sleep beyond its deadline.
        """
        stretch = self._time.waited() * LEISURE / LARGEST_SPREAD
        return self._random.random() * max(1.0, stretch)
