"""Where in-memory clients get tokens and chance from."""

from random import Random

from ...drivers.source import SystemSource


class SeededSource(SystemSource):
    """Tokens as random as ever; chance from a seed, so that waits are the same every time."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
        return self._random.random()
