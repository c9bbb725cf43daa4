"""Connections between threads of simulated clients and nodes.

They are TCP: in order, and never losing one message and delivering the next. What goes wrong is
delay (a cut holds everything back until it heals, as retransmission does) and breaking: then a
prefix of what was under way may still be executed by the node, and no reply arrives.
"""

from collections import deque
from typing import TYPE_CHECKING, Any

from ..core.effects import Command, Verb
from ..wire.link import Asker
from ..wire.round import Round
from .world import World

if TYPE_CHECKING:
    from .driver import Channel
    from .node import SimNode


class Path:
    """One direction between a client and a node."""

    def __init__(self, world: World, mean: float, tail: float) -> None:
        self._world = world
        self._mean = mean
        self._tail = tail
        """The part of messages that are late: ten to fifty times the mean."""
        self.cut_until = 0.0

    def heal(self) -> None:
        """End cuts and stragglers."""
        self.cut_until = self._tail = 0.0

    def arrival(self) -> float:
        """Draw when a message sent now arrives."""
        random = self._world.random
        delay = self._mean * random.uniform(0.2, 1.8)
        if random.random() < self._tail:
            delay *= random.uniform(10, 50)
        return max(self._world.now, self.cut_until) + delay


class Message:
    """A command on its way to a node."""

    __slots__ = ("command", "dropped", "packed")

    def __init__(self, packed: bytes, command: Command | None) -> None:
        self.packed = packed
        self.command = command
        self.dropped = False


class Connection:
    """A thread's connection to a node. `wire.round.Round` speaks to it as it does to a link."""

    def __init__(self, world: World, channel: "Channel", node: "SimNode") -> None:
        self.node = node.number
        self.broken = False
        self.under_way: deque[Message] = deque()
        """What the node has not executed yet, in order: on the way or in a hung node's backlog."""
        self._world = world
        self._channel = channel
        self._peer = node
        self._awaiting: deque[Asker] = deque()
        self._last_there = channel.back.arrival()  # opening takes a round trip of its own
        self._last_back = 0.0

    def say(self, packed: bytes, asker: Asker) -> None:
        """Send a command; the asker gets its reply."""
        message = Message(packed, asker.command if isinstance(asker, Round) else None)
        self._awaiting.append(asker)
        self.under_way.append(message)
        self._last_there = max(self._last_there, self._channel.there.arrival())
        self._world.at(self._last_there, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        if message.dropped:
            return
        if self._world.tracing and message.command is not None:
            self._world.note(f"{self._channel}: {describe(message.command)} arrives")
        self._peer.receive(self, message.packed)

    def reply(self, reply: Any) -> None:
        """Send a node's reply to what it has just executed."""
        message = self.under_way.popleft()
        if self._world.tracing and message.command is not None:
            self._world.note(f"{self._channel}: {describe(message.command)} → {reply}")
        self._last_back = max(self._last_back, self._channel.back.arrival())
        self._world.at(self._last_back, lambda: self._channel.when_awake(lambda: self._hear(reply)))

    def _hear(self, reply: Any) -> None:
        if not self.broken:
            self._awaiting.popleft().answer(self, reply)  # type: ignore[arg-type]  # see the class
            self._channel.heard()

    def break_off(self, delivered: int) -> None:
        """Break: the node still gets the first few messages under way, the client no reply."""
        if self.broken:
            return
        self.broken = True
        for asker in self._awaiting:
            self._channel.taint(asker)
        for number, message in enumerate(self.under_way):
            message.dropped = number >= delivered
        unanswered, self._awaiting = list(dict.fromkeys(self._awaiting)), deque()
        self._world.at(
            self._channel.back.arrival(),
            lambda: self._channel.when_awake(lambda: self._channel.broke(self, unanswered)),
        )

    def carries_request(self, token: str) -> bool:
        """True if a request with that token is still to be executed."""
        return any(_is(message.command, Verb.REQUEST, token) for message in self.under_way)

    def told_release(self, token: str) -> bool:
        """True if a release of that token was said and is not answered yet."""
        return any(
            isinstance(asker, Round) and _is(asker.command, Verb.RELEASE, token)
            for asker in self._awaiting
        )

    def owes(self, token: str) -> bool:
        """True if anything that was said in this token's name is not answered yet."""
        return any(
            isinstance(asker, Round) and asker.command.token == token for asker in self._awaiting
        )


def _is(command: Command | None, verb: Verb, token: str) -> bool:
    return command is not None and command.verb is verb and command.token == token


def describe(command: Command) -> str:
    """Put a command into few words for the trace."""
    return f"{command.verb.value} {command.token[:6]}"
