"""What all clients of one `Memory` share: nodes, time, and who has what."""

import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ...core.effects import Command, NodeCommand, Verb
from ...core.tally import Tally
from ...drivers.health import Health
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
        self.endpoints = tuple(node.endpoint for node in self.nodes)
        self._owners: dict[str, Owner] = {}

    def say(
        self,
        command: Command | NodeCommand,
        tally: Tally | None,
        health: Health,
        caller: Caller | None = None,
        *,
        to: Collection[int] | None = None,
    ) -> None:
        """Say a command to every node, or to some; the votes are there when this returns.

        Without a caller it is a keeper that speaks, which does not mean that the owner is at work.
        """
        with self.time.mutex:
            if caller is not None:
                self.time.speaks(caller)
            self._note_owner(command, caller)
            now = self.time.now
            round_ = Round(command, tally, sent=now, until=now)
            nodes = self.nodes if to is None else [self.nodes[number] for number in to]
            failures = [(node.node, node.post(round_)) for node in nodes]
        for number, failure in failures:  # without the mutex: a hook may hear of it
            if failure is None:
                health.up(number)
            else:
                health.down(number, failure)

    def _note_owner(self, command: Command | NodeCommand, caller: Caller | None) -> None:
        if isinstance(command, NodeCommand):
            return
        if command.verb is Verb.RELEASE:
            self._owners.pop(command.token, None)
        elif caller is not None:
            owner = Owner(caller.who, lock_key(command.name), time.monotonic())
            self._owners[command.token] = owner

    def _holders(self) -> Iterator[tuple[Somebody, float]]:
        """Tell who has something at some node. Those whose time was up are struck out."""
        for token, owner in list(self._owners.items()):
            if any(node.token(owner.key) == token for node in self.nodes):
                yield owner.who, owner.seen
            else:
                self._owners.pop(token, None)
