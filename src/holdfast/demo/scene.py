"""The scene: who holds, who waits, which nodes vote, and what just happened.

Pure state, fed with events; the views draw it. The verdict does not rely on it.
"""

from dataclasses import dataclass, field
from enum import Enum

from . import events
from .actor import Actor, State
from .events import Event, NodeNews
from .node import Node, NodeState
from .plot import LOCK, TTL, Plot
from .timeline import Timeline
from .words import count, queue


class Tone(Enum):
    """What kind of news it is."""

    PLAIN = "plain"
    BLOW = "blow"
    CAUTION = "caution"
    RECOVERY = "recovery"
    BREACH = "breach"


@dataclass(frozen=True, slots=True)
class Happening:
    """Something worth a line: when, in seconds since the start, and what."""

    after: float
    text: str
    tone: Tone


@dataclass(slots=True)
class Scene:
    """Everything that can be seen now. Times are on our own clock."""

    plot: Plot
    started: float
    actors: dict[int, Actor] = field(init=False)
    nodes: dict[int, Node] = field(init=False)
    counter: int = 0
    happenings: list[Happening] = field(default_factory=list)
    ended: bool = False
    _blow: events.NodeKilled | events.WorkerKilled | None = None
    """What nobody has recovered from yet."""
    _intruded: bool = False
    _line: tuple[events.Place, ...] = ()
    """As the nodes told it last."""
    _ranks: dict[int, int] = field(default_factory=dict)
    """Where workers were last seen in line since the last blow; 0 is first."""

    def __post_init__(self) -> None:
        self.actors = {
            number: Actor(number, Timeline(self.plot.seconds))
            for number in range(1, self.plot.workers + 1)
        }
        self.nodes = {number: Node(number) for number in range(1, self.plot.nodes + 1)}

    @property
    def holders(self) -> list[Actor]:
        """Workers that are inside and alive. More than one is a breach."""
        return [actor for actor in self.actors.values() if actor.state is State.HOLDING]

    @property
    def line(self) -> list[int]:
        """Workers in line, in order, as the nodes told it last; without those who are in by now."""
        waiting = (self.actors[each.worker] for each in self._line)
        return [actor.number for actor in waiting if actor.state is State.WAITING]

    @property
    def trapped(self) -> int | None:
        """The worker that dawdles inside, if there is one."""
        for actor in self.holders:
            if actor.stay is not None and actor.stay.dawdles:
                return actor.number
        return None

    @property
    def recovered(self) -> bool:
        """True if somebody acquired the lock after the last blow."""
        return self._blow is None

    @property
    def nodes_returning(self) -> bool:
        """True while a node that was started again does not vote yet."""
        return any(node.returning for node in self.nodes.values())

    @property
    def unready(self) -> int:
        """How many workers have yet to start."""
        return sum(actor.state is State.STARTING for actor in self.actors.values())

    def orphan(self, now: float) -> Actor | None:
        """Return the dead worker whose lease has not ended yet, if there is one."""
        for actor in self.actors.values():
            if actor.state is State.DEAD and actor.stay and now < actor.stay.until:
                return actor
        return None

    def nodes_up(self, at: float) -> None:
        """Note that the nodes have started."""
        plot = self.plot
        self._tell(at, f"{plot.nodes} nodes are up; a lock needs a quorum of {plot.quorum} of them")

    def begin(self, at: float) -> None:
        """Start the clock: all workers are there."""
        self.started = at
        contend = f"contend for lock {LOCK!r} with a ttl of {TTL:g} s"
        if not self.plot.locked:
            contend = "do without a lock, to see what happens then"
        self._tell(at, f"{count(self.plot.workers, 'worker')} {contend}")

    def send_home(self, at: float) -> None:
        """Note that the workers were told to finish."""
        self._tell(at, "that is enough: the workers finish and go home")
        self.ended = True

    def note(self, event: Event) -> None:
        """Take in what happened."""
        match event:
            case events.Inside() | events.Left() | events.Waiting() | events.Ready():
                self._note_move(event)
            case events.Line():
                self._note_line(event)
            case (
                events.Done()
                | events.Lost()
                | events.NotAlone()
                | events.Trouble()
                | events.GaveUp()
            ):
                self._note_news(event)
            case events.WorkerKilled() | events.WorkerGone():
                self._note_end(event)
            case _:
                self._note_node(event)

    def _note_move(
        self, event: events.Inside | events.Left | events.Waiting | events.Ready
    ) -> None:
        actor = self.actors[event.worker]
        if actor.state is State.DEAD:
            return  # said before it died, heard after
        match event:
            case events.Inside():
                actor.turn(State.HOLDING, event.at)
                actor.stay = event
                self._recover(event)
            case events.Left():
                actor.turn(State.RESTING, event.at)
                self._leave(actor, event)
            case events.Waiting():
                actor.turn(State.WAITING, event.at)
            case events.Ready():
                actor.turn(State.RESTING, event.at)

    def _note_line(self, event: events.Line) -> None:
        """Take in who is in line; if a holder was killed, tell who waits for its end."""
        self._line = event.places
        if self._blow is None or event.asked <= self._blow.at:
            return
        if isinstance(self._blow, events.WorkerKilled) and self.line and not self._ranks:
            self._tell(event.at, f"in line: {queue(self.line)}")
        self._ranks |= {place.worker: rank for rank, place in enumerate(event.places)}

    def _note_news(
        self,
        event: events.Done | events.Lost | events.NotAlone | events.Trouble | events.GaveUp,
    ) -> None:
        who = f"worker {event.worker}"
        match event:
            case events.Done():
                self.actors[event.worker].done += 1
            case events.Lost():
                self._tell(event.at, f"{who} lost its lease: {event.reason}", Tone.BLOW)
            case events.NotAlone():
                self._note_intrusion(event)
            case events.Trouble():
                self._tell(event.at, f"{who}: {event.what}", Tone.BLOW)
            case events.GaveUp():
                self._tell(event.at, f"{who} waited in vain", Tone.BREACH)

    def _note_intrusion(self, event: events.NotAlone) -> None:
        """Tell of the first one. Where there is one there are many; the verdict has them all."""
        if not self._intruded:
            what = f"worker {event.worker} is inside and not alone: the first of its kind"
            self._tell(event.at, what, Tone.BREACH)
        self._intruded = True

    def _note_end(self, event: events.WorkerKilled | events.WorkerGone) -> None:
        match event:
            case events.WorkerKilled():
                self._note_worker_killed(event)
            case events.WorkerGone():
                self.actors[event.worker].turn(State.HOME, event.at)
                if event.code != 0:
                    what = f"worker {event.worker} ended by itself: {event.last_words}"
                    self._tell(event.at, what, Tone.BREACH)

    def _note_node(self, event: NodeNews) -> None:
        who, is_new = f"node {event.node}", self.nodes[event.node].note(event)
        match event:
            case events.NodeKilled():
                self._strike(event)
                self._tell(event.at, f"{who} killed (SIGKILL): {self._remaining()}", Tone.BLOW)
            case events.NodeAbstains() if is_new:
                why = f"{who} restarted, empty: it may have forgotten locks"
                self._tell(event.at, f"{why}, so it abstains for {event.left:.1f} s", Tone.CAUTION)
            case events.NodeVotes() if is_new:
                self._tell(event.at, f"{who} votes again", Tone.RECOVERY)

    def _remaining(self) -> str:
        """Say how many nodes are left, and whether that will do."""
        up = sum(node.state is NodeState.UP for node in self.nodes.values())
        return f"{up} of {self.plot.nodes} are left, {self.plot.quorum} are enough"

    def _note_worker_killed(self, event: events.WorkerKilled) -> None:
        actor = self.actors[event.worker]
        if actor.stay is not None:
            actor.timeline.add(actor.since - self.started, event.at - self.started)
        actor.turn(State.DEAD, event.at)
        actor.died = event.at
        self._strike(event)
        stay = actor.stay
        during = f" in mid-increment from {stay.read} to {stay.read + 1}" if stay else ""
        self._tell(event.at, f"worker {event.worker} killed (SIGKILL){during}", Tone.BLOW)

    def _strike(self, blow: events.NodeKilled | events.WorkerKilled) -> None:
        self._blow = blow
        self._ranks = {}

    def _leave(self, actor: Actor, event: events.Left) -> None:
        if actor.stay is not None:
            actor.timeline.add(actor.stay.at - self.started, event.at - self.started)
        actor.stay = None
        if event.wrote is not None:
            self.counter = event.wrote

    def _recover(self, event: events.Inside) -> None:
        """Note the first acquisition after a blow."""
        blow = self._blow
        if blow is None or event.at <= blow.at:
            return
        self._blow = None
        self.counter = event.read  # the dead worker may have written before it died
        who = f"worker {event.worker}"
        if isinstance(blow, events.WorkerKilled) and self._ranks.get(event.worker) == 0:
            who += ", first in line,"
        later = f"{who} got in {_span(event.at - blow.at)} later"
        self._tell(event.at, f"{later}, {self._way_in(blow)}", Tone.RECOVERY)

    def _way_in(self, blow: events.NodeKilled | events.WorkerKilled) -> str:
        if not self.plot.locked:
            return "without asking"
        if isinstance(blow, events.NodeKilled):
            return f"without node {blow.node}"
        return "when the dead one's lease had ended"

    def _tell(self, at: float, text: str, tone: Tone = Tone.PLAIN) -> None:
        self.happenings.append(Happening(max(at - self.started, 0.0), text, tone))


def _span(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
