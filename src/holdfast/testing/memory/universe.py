"""What all clients of one `Memory` share: nodes, time, and who has what or waits for it."""

import time
from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

from ...core.effects import Ask, Command, NodeCommand, Verb
from ...core.tally import Tally
from ...core.votes import Failure
from ...drivers.health import Health
from ...drivers.post import Post
from ...wire.keys import lock_key
from ...wire.round import Round
from ..node import EPOCH_US
from .line import Line
from .node import MemoryNode
from .postman import Postman
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
        self._line = Line(self.time, self._left)
        self._postman = Postman()
        self._stamp = 0
        for node in self.nodes:
            node.server.on_publish = partial(self._postman.take, node.node)

    # -- clients ----------------------------------------------------------------------------------

    def join(self, post: Post) -> None:
        """Let a client hear calls, for as long as it lives."""
        with self.time.mutex:
            self._postman.add(post)

    def part(self, post: Post) -> None:
        """Let a client hear no more calls."""
        with self.time.mutex:
            self._postman.strike_out(post)

    def stamp(self) -> int:
        """Return what the nodes' clocks show, in microseconds; more than ever before."""
        with self.time.mutex:
            self._stamp = max(self._stamp, EPOCH_US + int(self.time.now * 1e6)) + 1
            return self._stamp

    def leave(self, caller: Caller) -> None:
        """End a flow, whatever became of it."""
        with self.time.mutex:
            self._line.leave(caller)
            self.time.leave(caller)

    def reset(self) -> None:
        """Start anew in a forked child: nobody waits there."""
        self.time.reset()
        self._line = Line(self.time, self._left)

    # -- nodes ------------------------------------------------------------------------------------

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
            try:
                failures = self._say(command, tally, caller, to)
            finally:
                self.call_up()
        for number, failure in failures:  # without the mutex: a hook may hear of it
            if failure is None:
                health.up(number)
            else:
                health.down(number, failure)

    def echo(self, ask: Ask, caller: Caller) -> bool:
        """Answer whoever asks in vain whether it is its turn; False if the nodes must be asked."""
        if ask.command.verb is not Verb.WAIT:
            return False
        with self.time.mutex:
            self.time.speaks(caller)
            return self._line.echo(ask.command, ask.tally, self.time.now)

    def _say(
        self,
        command: Command | NodeCommand,
        tally: Tally | None,
        caller: Caller | None,
        to: Collection[int] | None,
    ) -> list[tuple[int, Failure | None]]:
        """Say a command; first, those who wait keep their places. Returns what each node lacks."""
        now = self.time.now
        if isinstance(command, NodeCommand):
            self._line.stir()
            return self._post(command, tally, to)
        for wait in self._line.forgotten(command, now):
            self._post(wait, Tally(len(self.nodes), thorough=True), None)  # nobody counts them
            self._line.kept(wait, now)
        failures = self._post(command, tally, to)
        self._line.note(command, tally, caller, now)
        return failures

    def _post(
        self,
        command: Command | NodeCommand,
        tally: Tally | None,
        to: Collection[int] | None,
    ) -> list[tuple[int, Failure | None]]:
        now = self.time.now
        round_ = Round(command, tally, sent=now, until=now)
        nodes = self.nodes if to is None else [self.nodes[number] for number in to]
        return [(node.node, node.post(round_)) for node in nodes]

    def call_up(self) -> None:
        """Let those wake who were called, or who have to ask."""
        now = self.time.now
        for token in self._postman.deliver(now):
            self._line.called(token, now)
        self.time.rouse()

    def deleted(self, name: str) -> None:
        """Take note that a lock was deleted: those who wait will find out."""
        self._line.stir(name)

    def disturbed(self, node: MemoryNode) -> None:
        """Take note that a node is away, or back, or was restarted. If it can be heard, all ask."""
        self._line.stir()
        if node.reachable:
            self._postman.reconnect(node.node)
            self.call_up()

    def _left(self, name: str) -> float:
        return min(node.left(lock_key(name)) for node in self.nodes)

    def _note_owner(self, command: Command | NodeCommand, caller: Caller | None) -> None:
        if isinstance(command, NodeCommand) or command.verb in (Verb.WAIT, Verb.INSPECT):
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
