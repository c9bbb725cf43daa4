"""Where flows get tokens, stamps and chance from, outside the simulator."""

import os
import random

from ..core.clocks import Clocks
from . import clock

_TOKEN_BYTES = 20
"""What the Redlock paper asks for: as many random bytes as nobody can guess or meet by accident."""


class SystemSource:
    """The operating system's randomness, and the nodes' clocks."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks

    def stamp(self) -> int:
        """Return what a quorum of the nodes' clocks shows, in microseconds."""
        return self._clocks.stamp(clock.now())

    def token(self) -> str:
        """Return 20 random bytes in hexadecimal. Safe across forks: nothing is kept in between."""
        return os.urandom(_TOKEN_BYTES).hex()

    def chance(self) -> float:
        """Return a random number in [0, 1). It only spreads retries; it is no secret."""
        return random.random()  # noqa: S311  # see the docstring
