"""Looking after nodes: what they remember of themselves, and telling them otherwise.

A node without a marker abstains when it is first asked for a lock, because "new" cannot be told
from "has lost everything". `bootstrap` spares a new set of nodes that wait, if all of them have
been up for so long, and undisturbed, that they cannot have forgotten anything that is still held.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .effects import Ask, Flow, NodeCommand, Verb
from .guard import Guard, abstention_ms
from .tally import Tally
from .votes import Answer, Verdict, Vote

_DISTURBANCES = ("flushall", "flushdb", "swapdb", "replicaof", "slaveof", "restore", "debug")
"""Commands after which a server may remember less than before, or somebody else's memory."""

LEAST_UPTIME, MOST_UPTIME = 3600, 3 * 365 * 86_400
"""Seconds. Servers count their uptime on the wall clock, which is often set soon after a boot: by
seconds if it was about right, by decades if it was not. What is in between may be believed."""


class Poll(Tally):
    """Counts answers, whatever they are: decided when all that were asked have answered."""

    __slots__ = ("_waiting",)

    def __init__(self, nodes: int, asked: Collection[int]) -> None:
        super().__init__(nodes)
        self._waiting = len(asked)
        self.granted = nodes - len(asked)

    def add(self, node: int, vote: Vote) -> None:
        """Count a node's answer."""
        if self.votes[node] is None:
            self.votes[node] = vote
            self.granted += 1
            self._waiting -= 1
            if not self._waiting:
                self.verdict = Verdict.WON


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says of itself."""

    shown_us: int
    """The time on its own clock."""
    run: str
    history: str
    """Whose memory it would be, if it were written now."""
    marker: dict[str, str]
    """What it remembers; empty if it has no marker."""
    info: dict[str, str]
    """What the server says of itself."""

    def abstains_for(self, guard: Guard) -> float:
        """Return for how many seconds it grants nothing, if it is asked now."""
        if not self.is_own:
            return abstention_ms(guard.max_ttl_ms) / 1000 if guard.is_on else 0.0
        return max(int(self.marker.get("until_ms", 0)) / 1000 - self.shown_us / 1e6, 0.0)

    @property
    def is_own(self) -> bool:
        """True if what it remembers is its own memory."""
        return (self.marker.get("run"), self.marker.get("history")) == (self.run, self.history)

    @property
    def uptime(self) -> int:
        """For how many seconds the server has been up, as it says."""
        return int(self.info.get("uptime_in_seconds", 0))

    @property
    def undisturbed(self) -> bool:
        """True if its statistics show nothing that could have taken its memory from it."""
        ran = {name.partition("|")[0] for name in self.info if name.startswith("cmdstat_")}
        return (
            not any(f"cmdstat_{command}" in ran for command in _DISTURBANCES)
            and self.info.get("evicted_keys") == "0"
            and self.info.get("role") == "master"
            and self.info.get("connected_slaves") == "0"
            and not self.info.get("master_replid2", "").strip("0")
        )


def ask_nodes(
    command: NodeCommand, nodes: int, to: Collection[int], *, until: float
) -> Flow[Sequence[Vote | None]]:
    """Say something to some of the nodes, and return what each answered by then."""
    poll = Poll(nodes, to)
    if to:
        yield Ask(command, poll, until, to)
    return poll.votes


def bootstrap(guard: Guard, nodes: int, *, now: float, patience: float) -> Flow[bool]:
    """Initialise nodes that are all new, and have been up for long; True if that was done.

    This credit is never given to a single node among initialised ones: only if *none* has a marker,
    and all can be asked. A node that got one meanwhile is left as it is.
    """
    everybody = range(nodes)
    least = max(LEAST_UPTIME, abstention_ms(guard.max_ttl_ms) / 1000)
    status = NodeCommand(Verb.STATUS, guard)
    votes = yield from ask_nodes(status, nodes, everybody, until=now + patience)
    for vote in votes:
        facts = facts_of(vote)
        if facts is None or facts.marker or not facts.undisturbed:
            return False
        if not least < facts.uptime < MOST_UPTIME:
            return False
    init = NodeCommand(Verb.INIT, guard, "1")
    votes = yield from ask_nodes(init, nodes, everybody, until=now + 2 * patience)
    return all(vote is not None and vote.answer is Answer.TOLD for vote in votes)


def facts_of(vote: Vote | None) -> NodeFacts | None:
    """Return what a node said of itself, None if it did not."""
    if vote is None or vote.answer is not Answer.TOLD or not vote.facts:
        return None
    facts = vote.facts[0]
    return facts if isinstance(facts, NodeFacts) else None
