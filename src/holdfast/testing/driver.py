"""The simulator's driver: runs flows of a simulated thread over its connections.

It keeps the promises of `core.effects` in the way the real drivers do: what is told goes behind
whatever is unanswered on the same connection; a round that is over counts no more votes; what was
under way on a broken connection is said again within its round.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.clocks import NodeClock
from ..core.effects import Ask, Effect, Flow, Listen, Sleep, Tell
from ..core.place import Mail
from ..core.votes import Condition, Verdict, failed
from ..wire.round import Round
from .inbox import Inbox
from .network import Connection, Path
from .node import SimNode
from .process import Thread

_BACKOFF = 0.05

_LISTEN_AGAIN = 0.2
"""Seconds after which a broken connection is opened again for calls alone."""

_BROKEN = failed(Condition.BROKEN)


class Interrupted(BaseException):
    """What a simulated Ctrl-C throws into a flow."""


class Channel:
    """One thread's way to one node: the connection of the moment."""

    def __init__(
        self,
        thread: Thread,
        node: SimNode,
        there: Path,
        back: Path,
        *,
        connect: type[Connection] = Connection,
        durable: bool = False,
    ) -> None:
        self.there = there
        self.back = back
        self.connection: Connection | None = None
        self.first_run = ""
        """Which run of the server was met first."""
        self._thread = thread
        self._node = node
        self._connect = partial(connect, thread.world, self, node, durable=durable)
        self._retry_at = 0.0
        self._listening = False

    def __str__(self) -> str:
        return f"{self._thread.name} ↔ {self._node}"

    def post(self, round_: Round) -> None:
        """Say something to the node, connecting if need be."""
        connection = self._open()
        if connection is None:
            self.taint(round_)
            round_.count(self._node.number, _BROKEN)
        else:
            connection.post(round_)

    def _open(self) -> Connection | None:
        """Return the connection, a new one if need be; None if it is too early for that."""
        if self.connection is None or self.connection.broken:
            if self._thread.world.now < self._retry_at:
                return None
            self.connection = self._connect()
            if self._listening:
                self.connection.listen()
        return self.connection

    def listen(self) -> None:
        """Hear calls from here on, on this connection and those to come."""
        if not self._listening:
            self._listening = True
            if self.connection is not None and not self.connection.broken:
                self.connection.listen()
            else:
                self._listen_again()

    def _listen_again(self) -> None:
        if self._open() is None:
            self._thread.at(self.now() + _LISTEN_AGAIN, self._listen_again)

    @property
    def inbox(self) -> Inbox:
        """Where the thread's process is called."""
        return self._thread.process.inbox

    def abandon(self, unnoticed: float) -> None:
        """Let the node notice, in so many seconds or later, that the process is dead."""
        if self.connection is not None and not self.connection.broken:
            self.connection.abandon(unnoticed)

    def owes(self, token: str) -> bool:
        """True if the node has not answered something that was said in this token's name."""
        return self.connection is not None and self.connection.owes(token)

    def told_release(self, token: str) -> bool:
        """True if a release of that token was said and is not answered yet."""
        return self.connection is not None and self.connection.told_release(token)

    def broke(self, connection: Connection, unanswered: Sequence[Round]) -> None:
        """Notice that a connection broke: repeat on a new one what is still wanted."""
        if self.connection is connection:
            self.connection = None
            self._retry_at = self._thread.world.now + (0 if self._node.up else _BACKOFF)
        for round_ in unanswered:
            if round_.may_repeat(self._node.number):
                self.post(round_)
            else:
                round_.count(self._node.number, _BROKEN)
        if self._listening:
            self.inbox.away(self._node.number)
            self._thread.at(self.now() + _LISTEN_AGAIN, self._listen_again)
        self.heard()

    def taint(self, round_: Round) -> None:
        """Note that nobody can say what the node has executed of this: no law binds it there."""
        self._thread.tainted.add((round_.command.token, self._node.number))

    @property
    def clock(self) -> NodeClock:
        """What the thread's process knows of the node's clock."""
        return self._thread.process.clocks.nodes[self._node.number]

    def now(self) -> float:
        """Return the time on the process's own clock."""
        return self._thread.now()

    def true_time(self, shown: float) -> float:
        """Return by when the process's own clock shows that."""
        return self._thread.process.true_time(shown)

    def met(self, run: str) -> None:
        """Take note that a run of the server was met."""
        self.first_run = self.first_run or run
        self._thread.process.clocks.reset()

    def heard(self) -> None:
        """Let the thread's drivers see whether their rounds are decided."""
        self._thread.look()

    def when_awake(self, what: Callable[[], None]) -> None:
        """Do something when the thread runs."""
        self._thread.when_awake(what)


class SimDriver:
    """Runs flows one at a time, on a thread that may be paused, interrupted or killed."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.channels = thread.channels
        self._flow: Flow[Any] | None = None
        self._done: Callable[[Any], None] = lambda _: None
        self._round: Round | None = None
        self._mail: Mail | None = None
        self._turn = 0

    @property
    def busy(self) -> bool:
        """True while a flow is running."""
        return self._flow is not None

    def run(self, flow: Flow[Any], done: Callable[[Any], None]) -> None:
        """Run a flow; `done` gets its outcome, or `Interrupted` itself."""
        assert self._flow is None, "one flow at a time"
        self._flow, self._done = flow, done
        self.thread.drivers.append(self)
        self._advance(lambda: next(flow))

    def interrupt(self) -> None:
        """Throw into the flow that is running, if there is one."""
        flow = self._flow
        if flow is not None:
            self._close_round()
            self._advance(lambda: flow.throw(Interrupted()))

    def drop(self) -> None:
        """Run the flow no further. Its round is over; what was sent goes on."""
        if self._flow is not None:
            self._close_round()
            self._leave()

    def look(self) -> None:
        """Go on if the round is decided."""
        tally = self._round.tally if self._round is not None else None
        if tally is not None and tally.verdict is not Verdict.PENDING:
            self._over(self._turn)

    def _advance(self, step: Callable[[], Effect]) -> None:
        """Take steps of the flow until one has to wait."""
        flow = self._flow
        assert flow is not None
        try:
            effect = step()
            while isinstance(effect, Tell):
                self.tell(effect)
                effect = flow.send(self.thread.now())
        except (StopIteration, Interrupted) as end:
            self._leave()
            self._done(end.value if isinstance(end, StopIteration) else end)
            return
        self._turn += 1
        turn = self._turn
        if isinstance(effect, Ask):
            self._ask(effect, turn)
            return
        self.thread.at(effect.until, lambda: self._over(turn))
        if isinstance(effect, Listen):
            self._listen()
        elif isinstance(effect, Sleep) and effect.mail is not None:
            self._await(effect.mail)

    def _await(self, mail: Mail) -> None:
        """Go on when there is mail."""
        self._mail, mail.ring = mail, partial(self._soon, self._turn)
        if mail.news:
            self._soon(self._turn)

    def _soon(self, turn: int) -> None:
        """Go on after what happens at this moment, when the thread runs."""
        self.thread.at(self.thread.now(), lambda: self._over(turn))

    def _listen(self) -> None:
        """Let the keeper listen, and go on when it does."""
        self.thread.process.inbox.on_ear.append(self._look_at_ears)
        self.thread.process.inbox.listen()
        self._look_at_ears()

    def _look_at_ears(self) -> None:
        if self.thread.process.inbox.settled:
            self._soon(self._turn)

    def _ask(self, effect: Ask, turn: int) -> None:
        now = self.thread.now()
        round_ = self._round = Round(effect.command, effect.tally, sent=now, until=effect.until)
        for channel in self.channels:
            channel.post(round_)
        self.thread.at(effect.until, lambda: self._over(turn))
        self.look()

    def tell(self, effect: Tell) -> None:
        """Say it to every node, behind what is unanswered."""
        for channel in self.channels:
            channel.post(Round(effect.command))

    def _over(self, turn: int) -> None:
        """Resume the flow: its round is decided, its deadline has passed, or it has slept."""
        flow = self._flow
        if turn == self._turn and flow is not None:
            self._close_round()
            self._advance(lambda: flow.send(self.thread.now()))

    def _leave(self) -> None:
        self._flow = None
        self.thread.drivers.remove(self)

    def _close_round(self) -> None:
        self._turn += 1  # whatever else was to wake this step is too late now
        if self._round is not None:
            self._round.open = False
            self._round = None
        if self._mail is not None:
            self._mail.ring = None
            self._mail = None
        ears = self.thread.process.inbox.on_ear
        if self._look_at_ears in ears:
            ears.remove(self._look_at_ears)
