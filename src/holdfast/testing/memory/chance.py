"""Where in-memory clients get tokens, mail, stamps and chance from."""

from collections.abc import Mapping
from random import Random

from ...core.place import Hearing
from ...drivers.post import Post
from .universe import Universe


class SeededSource:
    """Tokens as random as ever; chance from a seed, so that waits are the same every time."""

    def __init__(self, random: Random, universe: Universe, post: Post) -> None:
        self._post = post
        self.chance = random.random
        self.stamp = universe.stamp
        self.token = post.token
        self.mail = post.expect
        self.forget = post.forget
        self.silent: Mapping[int, float] = {}

    @property
    def hearing(self) -> Hearing:
        """Whether the client can be called."""
        return self._post.hearing
