"""Connections between threads of simulated clients and nodes.

They are TCP: in order, and never losing one message and delivering the next. What goes wrong is
delay (a cut holds everything back until it heals, as retransmission does) and breaking: then a
prefix of what was under way may still be executed by the node, and no reply arrives.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ..core.effects import Command, NodeCommand, Verb
from ..core.guard import NO_GUARD
from ..wire import commands
from ..wire.link import Asker
from ..wire.peer import Peer
from ..wire.round import Round, Unheeded
from ..wire.scripts import NODE
from .node import GREETING, SUBSCRIBE
from .world import World

if TYPE_CHECKING:
    from .driver import Channel
    from .inbox import Inbox
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

    __slots__ = ("command", "dropped", "packed", "sent", "wanted_until")

    def __init__(
        self, packed: bytes, command: Command | None, *, sent: float, wanted_until: float
    ) -> None:
        self.packed = packed
        self.command = command
        """What it says about a lock."""
        self.sent = sent
        """When it was sent, on its sender's own clock."""
        self.wanted_until = wanted_until
        """Until when its sender waits for the answer, in true time."""
        self.dropped = False

    @property
    def not_after_ms(self) -> int:
        """Until when it is worth doing, by the node's clock; 0 if that is not known."""
        return int(self.packed[-15:-2])  # its last word, see `Peer.ending`


class Connection:
    """A thread's connection to a node. `wire.round.Round` speaks to it as it does to a link."""

    def __init__(self, world: World, channel: "Channel", node: "SimNode", *, durable: bool) -> None:
        """Open it, and greet the node. `durable`: its memory is adopted after a restart."""
        self.node = node.number
        self.peer = Peer(channel.clock, 0)
        self.broken = False
        self.gone = False
        """True once the node knows that nobody is at the other end."""
        self.under_way: deque[Message] = deque()
        """What the node has not executed yet, in order: on the way or in a hung node's backlog."""
        self._world = world
        self._channel = channel
        self._peer = node
        self._durable = durable
        self._posted: list[Round] = []
        """What is to be said after the greeting."""
        self._awaiting: deque[Asker] = deque()
        self._last_there = channel.back.arrival()  # opening takes a round trip of its own
        self._last_back = 0.0
        self._opened_at = channel.now()
        self._met = False
        self.say(GREETING, _Greeting())

    def post(self, round_: Round) -> None:
        """Say something in a round, after the greeting."""
        if not self._met:
            self._posted.append(round_)
            return
        self.say(round_.finish(commands.pack(round_.command), self.peer), round_)

    def meet(self, run: str, shown_us: int) -> None:
        """Take the answer to the greeting, and say what stands in line."""
        self._met = True
        self.peer.clock.meet(shown_us, self._opened_at, self.peer.heard_at)
        self._channel.met(run)
        if self._durable:
            adopt = NodeCommand(Verb.ADOPT, NO_GUARD, "1")
            self.say(commands.pack_whole(adopt) + self.peer.ending(0.0), Unheeded())
        posted, self._posted = self._posted, []
        for round_ in posted:
            if round_.wanted:
                self.post(round_)

    def say(self, packed: bytes, asker: Asker) -> None:
        """Send a command; the asker gets its reply."""
        until = asker.until if isinstance(asker, Round) and asker.open else 0.0
        message = Message(
            packed,
            _about_a_lock(asker),
            sent=self._channel.now(),
            wanted_until=self._channel.true_time(until),
        )
        self._awaiting.append(asker)
        self.under_way.append(message)
        self._last_there = max(self._last_there, self._channel.there.arrival())
        self._world.at(self._last_there, lambda: self._arrive(message))

    def _arrive(self, message: Message) -> None:
        if message.dropped:
            return
        if self._world.tracing and message.packed not in (GREETING, SUBSCRIBE):
            self._world.note(f"{self._channel}: {describe(message)} arrives")
        self._peer.receive(self, message.packed)

    def reply(self, reply: Any) -> Message:
        """Send a node's reply to what it has just executed, which is returned."""
        message = self.under_way.popleft()
        if self._world.tracing and message.packed != GREETING:
            self._world.note(f"{self._channel}: {describe(message)} → {reply}")
        self._last_back = max(self._last_back, self._channel.back.arrival())
        self._world.at(self._last_back, lambda: self._channel.when_awake(lambda: self._hear(reply)))
        return message

    def _hear(self, reply: Any) -> None:
        if not self.broken:
            self.peer.heard_at = self._channel.now()
            self._awaiting.popleft().answer(self, reply)
            self._channel.heard()

    def break_off(self, delivered: int) -> None:
        """Break: the node still gets the first few messages under way, the client no reply."""
        if self.broken:
            return
        self.broken = True
        askers = [*self._awaiting, *self._posted]
        rounds = list(dict.fromkeys(asker for asker in askers if isinstance(asker, Round)))
        for round_ in rounds:
            self._channel.taint(round_)
        for number, message in enumerate(self.under_way):
            message.dropped = number >= delivered
        self._awaiting.clear()
        self._posted.clear()
        self.abandon()
        self._world.at(
            self._channel.back.arrival(),
            lambda: self._channel.when_awake(lambda: self._channel.broke(self, rounds)),
        )

    def abandon(self, unnoticed: float = 0.0) -> None:
        """Let the node notice that nobody is there, in so many seconds, or later."""
        noticed = self._channel.there.arrival() + unnoticed
        self._world.at(max(self._last_there, noticed), self._notice)

    def _notice(self) -> None:
        self.gone = True

    # -- calls ------------------------------------------------------------------------------------

    @property
    def inbox(self) -> "Inbox":
        """Where calls go to."""
        return self._channel.inbox

    def listen(self) -> None:
        """Subscribe to the inbox."""
        self.say(SUBSCRIBE, _Subscription())

    def push(self, call: bytes) -> None:
        """Send what the node says unasked, behind whatever it has answered before."""
        lost = self._world.random.random() < self.inbox.lost
        if self._world.tracing:
            ends = ", and is lost" if lost else ""
            self._world.note(f"{self._channel}: call {call[:6].decode()}{ends}")
        self._last_back = max(self._last_back, self._channel.back.arrival())
        if not lost:
            put = partial(self._channel.when_awake, partial(self._put, call))
            self._world.at(self._last_back, put)

    def _put(self, call: bytes) -> None:
        if not self.broken:
            self.inbox.put(self.node, call)

    # -- what is under way ------------------------------------------------------------------------

    def carries(self, verb: Verb, token: str) -> bool:
        """True if that, with that token, is still to be executed."""
        return any(_is(message.command, verb, token) for message in self.under_way)

    def told_release(self, token: str) -> bool:
        """True if a release of that token was said, or will be, and is not answered yet."""
        return any(_is(_about_a_lock(asker), Verb.RELEASE, token) for asker in self._unanswered())

    def owes(self, token: str) -> bool:
        """True if anything that was said in this token's name is not answered yet."""
        return any(
            isinstance(asker, Round) and asker.command.token == token
            for asker in self._unanswered()
        )

    def _unanswered(self) -> Iterator[Asker]:
        yield from self._awaiting
        yield from self._posted


class _Greeting:
    """Waits for a node to say who it is."""

    def answer(self, link: Any, reply: Any) -> None:
        """Take the answer."""
        link.meet(*reply)


class _Subscription:
    """Waits for a node to say that calls can be heard from here on, or that they cannot."""

    def answer(self, link: Connection, allowed: bool) -> None:
        """Take the answer."""
        if allowed:
            link.inbox.hears(link.node)
        else:
            link.inbox.cannot(link.node)


def _about_a_lock(asker: Asker) -> Command | None:
    command = asker.command if isinstance(asker, Round) else None
    return command if isinstance(command, Command) else None


def _is(command: Command | None, verb: Verb, token: str) -> bool:
    return command is not None and command.verb is verb and command.token == token


def describe(message: Message) -> str:
    """Put a command into few words for the trace."""
    if message.command is not None:
        return f"{message.command.verb.value} {message.command.token[:6]}"
    if message.packed == SUBSCRIBE:
        return "subscribe"
    return next((verb for mark, verb in _NODE_VERBS if mark in message.packed), "something")


_NODE_VERBS = [
    (mark, verb.value) for verb, script in NODE.items()
    for mark in (script.sha.encode(), script.text.encode())
]  # fmt: skip
