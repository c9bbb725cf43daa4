"""Where flows get tokens and chance from, outside the simulator."""

import os
import random

_TOKEN_BYTES = 20
"""What the Redlock paper asks for: as many random bytes as nobody can guess or meet by accident."""


class SystemSource:
    """The operating system's randomness."""

    def token(self) -> str:
        """Return 20 random bytes in hexadecimal. Safe across forks: nothing is kept in between."""
        return os.urandom(_TOKEN_BYTES).hex()

    def chance(self) -> float:
        """Return a random number in [0, 1). It only spreads retries; it is no secret."""
        return random.random()  # noqa: S311  # see the docstring
