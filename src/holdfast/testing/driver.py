"""The simulator's driver: runs flows of a simulated thread over its connections.

It keeps the promises of `core.effects` in the way the real drivers do: what is told goes behind
whatever is unanswered on the same connection; a round that is over counts no more votes; what was
under way on a broken connection is said again within its round.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.clocks import NodeClock
from ..core.effects import Ask, Effect, Flow, Sleep, Tell
from ..core.votes import Condition, Verdict, failed
from ..wire.round import Round
from .network import Connection, Path
from .node import SimNode
from .process import Thread

_BACKOFF = 0.05
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

    def __str__(self) -> str:
        return f"{self._thread.name} ↔ {self._node}"

    def post(self, round_: Round) -> None:
        """Say something to the node, connecting if need be."""
        if self.connection is None or self.connection.broken:
            if self._thread.world.now < self._retry_at:
                self.taint(round_)
                round_.count(self._node.number, _BROKEN)
                return
            self.connection = self._connect()
        self.connection.post(round_)

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
        if isinstance(effect, Sleep):
            self.thread.at(effect.until, lambda: self._over(turn))
        else:
            self._ask(effect, turn)

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
