"""What all clients of one `Memory` share: nodes, time, and who has what."""

import time
from collections.abc import Iterator
from typing import NamedTuple

from ...core.effects import Command, Verb
from ...core.tally import Tally
from ...wire.keys import lock_key
from ...wire.round import Round
from .node import MemoryNode
from .somebody import Somebody
from .time import Caller, VirtualTime


class Owner(NamedTuple):
    """Who spoke last for a token, and when in real time."""

    who: Somebody
    key: str
    seen: float


class Universe:
    """One or several nodes under one clock. Thread-safe: one round at a time."""

    def __init__(self, nodes: int, grace: float) -> None:
        self.time = VirtualTime(grace, self._holders)
        self.nodes = [MemoryNode(number, lambda: self.time.now) for number in range(nodes)]
        self._owners: dict[str, Owner] = {}

    def say(self, command: Command, tally: Tally | None, caller: Caller) -> None:
        """Say a command to every node; the votes are there when this returns."""
        with self.time.mutex:
            self.time.speaks(caller)
            if command.verb is Verb.RELEASE:
                self._owners.pop(command.token, None)
            else:
                key = lock_key(command.name)
                self._owners[command.token] = Owner(caller.who, key, time.monotonic())
            round_ = Round(command, tally)
            for node in self.nodes:
                node.post(round_)

    def _holders(self) -> Iterator[tuple[Somebody, float]]:
        """Tell who has something at some node. Those whose time was up are struck out."""
        for token, owner in list(self._owners.items()):
            if any(node.token(owner.key) == token for node in self.nodes):
                yield owner.who, owner.seen
            else:
                self._owners.pop(token, None)
