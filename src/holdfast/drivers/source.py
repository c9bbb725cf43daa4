"""Where flows get tokens, stamps and chance from, outside the simulator."""

import random
from collections.abc import Mapping

from ..core.place import Hearing
from . import clock
from .fleet import Fleet


class SystemSource:
    """The operating system's randomness, the nodes' clocks, and the client's inbox."""

    def __init__(self, fleet: Fleet) -> None:
        self._clocks = fleet.clocks
        self._post = fleet.post
        self.token = fleet.post.token
        self.mail = fleet.post.expect
        self.forget = fleet.post.forget
        self.silent: Mapping[int, float] = {}
        """Nodes that did not answer somebody who waited for all."""

    @property
    def hearing(self) -> Hearing:
        """Whether the client can be called."""
        return self._post.hearing

    def stamp(self) -> int:
        """Return what a quorum of the nodes' clocks shows, in microseconds."""
        return self._clocks.stamp(clock.now())

    def chance(self) -> float:
        """Return a random number in [0, 1). It only spreads questions; it is no secret."""
        return random.random()  # noqa: S311  # see the docstring
