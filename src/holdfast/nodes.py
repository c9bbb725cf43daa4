"""A client's nodes: what they remember of themselves, and how an operator tells them otherwise."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .core.effects import Flow, NodeCommand, Verb
from .core.nodes import NodeFacts, ask_nodes, facts_of
from .core.votes import Answer, Vote
from .drivers.port import BlockingPort
from .errors import BadInput, NodeReport, NotConfirmed
from .settings import Settings
from .wire import endpoint as endpoints

PATIENCE = 2.0
"""Seconds to wait for a node that an operator asks about, whatever the client's patience is."""


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """What is known of one node now."""

    node: str
    """Its address, without credentials."""
    state: str
    """`ready`, `abstaining`, `unmarked` (it would abstain if it were asked), `unguarded` (nobody
    has asked it yet, and this client's guard is off), or `unreachable`."""
    why: str
    """Why it abstains or cannot be reached, or last abstained; empty if nothing is known."""
    abstains_for: float
    """For how many seconds it would grant nothing, if it were asked now."""
    since: datetime | None
    """When its state was last changed, by its own clock."""
    max_ttl: float | None
    """The longest ttl that its clients may use, in seconds; None if no guarded client has come."""
    floor: int
    """It accepts no fence up to this."""
    version: str
    uptime: float
    """For how many seconds the server says that it has been up."""
    run_id: str
    facts: dict[str, str]
    """All that INFO says, of the sections that matter for locks."""

    def __str__(self) -> str:
        words = f"{self.node}: {self.state}"
        if self.state == "abstaining":
            words += f" for {self.abstains_for:.0f} s" if self.why != "drained" else ""
        return f"{words} ({self.why})" if self.why else words


class NodeBook:
    """What asking nodes has in common, however one waits for them."""

    def __init__(self, port: Any, settings: Settings) -> None:
        self._port = port
        self._settings = settings

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {', '.join(map(str, self._settings.endpoints))}>"

    def _numbers(self, nodes: Sequence[str | int]) -> list[int]:
        """Find nodes by address or number. Raises `BadInput` if there is none."""
        return list(dict.fromkeys(self._number(node) for node in nodes))

    def _number(self, node: str | int) -> int:
        places = self._settings.endpoints
        if isinstance(node, int) and not isinstance(node, bool) and node in _all(places):
            return node
        if isinstance(node, str):
            for number, place in enumerate(places):
                if node == str(place) or endpoints.read(node).address == place.address:
                    return number
        known = ", ".join(f"{number}: {place}" for number, place in enumerate(places))
        raise BadInput(f"there is no node {node!r}; there are {known}")

    def _heeded(self, node: str | int) -> list[int]:
        """Find a node that will heed what it is told."""
        if not self._settings.guard.is_on:
            raise BadInput("this client's guard is off: it does not heed whether nodes abstain")
        return self._numbers([node])

    def _everybody(self) -> range:
        return _all(self._settings.endpoints)

    def _saying(self, verb: Verb, to: Collection[int]) -> Any:
        """Return what makes the flow that says something to nodes."""

        def start(now: float) -> Flow[Sequence[Vote | None]]:
            command = NodeCommand(verb, self._settings.guard)
            nodes = len(self._settings.endpoints)
            return ask_nodes(command, nodes, to, until=now + PATIENCE)

        return start

    def _checked(self, votes: Sequence[Vote | None], to: Collection[int], what: str) -> None:
        """Raise `NotConfirmed` unless all that were told have confirmed it."""
        reports = [
            NodeReport(str(self._settings.endpoints[number]), str(votes[number] or "no answer"))
            for number in to
            if not _was_told(votes[number])
        ]
        if reports:
            raise NotConfirmed(what, reports)

    def _statuses(self, votes: Sequence[Vote | None]) -> list[NodeStatus]:
        return [
            _status(str(endpoint), vote, self._settings)
            for endpoint, vote in zip(self._settings.endpoints, votes, strict=True)
        ]


class Nodes(NodeBook):
    """The nodes of a client. A node is named by its address, or by its number from 0."""

    _port: BlockingPort

    def status(self) -> list[NodeStatus]:
        """Return what is known of every node, in the order they were given."""
        return self._statuses(self._port.run(self._saying(Verb.STATUS, self._everybody())))

    def init(self, *nodes: str | int) -> None:
        """Let nodes vote at once; all of them, if none is named.

        By this you assert that **no lock is held** on them: for new nodes, which otherwise abstain
        until all that they may have forgotten has ended. It is also how `max_ttl` is changed.
        Raises `NotConfirmed` if a node does not confirm it; the others have done it all the same.
        """
        self._settings.guard.disputed_ms = 0
        self._tell(Verb.INIT, self._numbers(nodes) if nodes else self._everybody())

    def admit(self, node: str | int) -> None:
        """Let an abstaining node vote at once, until its next restart.

        By this you assert that it has forgotten nothing that is still held: not that it is up
        again. A node that was restarted has forgotten, unless it is durable.
        """
        self._tell(Verb.ADMIT, self._heeded(node))

    def drain(self, node: str | int) -> None:
        """Let a node grant nothing new until it is admitted, or restarted: before maintenance.

        Leases that it has voted for can be renewed and released. After a restart it abstains as
        any node does, and then votes again by itself.
        """
        self._tell(Verb.DRAIN, self._heeded(node))

    def _tell(self, verb: Verb, to: Collection[int]) -> None:
        self._checked(self._port.run(self._saying(verb, to)), to, verb.value)


def _all(nodes: Sequence[object]) -> range:
    return range(len(nodes))


def _was_told(vote: Vote | None) -> bool:
    return vote is not None and vote.answer is Answer.TOLD


def _status(node: str, vote: Vote | None, settings: Settings) -> NodeStatus:
    facts = facts_of(vote)
    if facts is None:
        why = "no answer" if vote is None else str(vote)
        return NodeStatus(node, "unreachable", why, 0.0, None, None, 0, "", 0.0, "", {})
    marker, info, left = facts.marker, facts.info, facts.abstains_for(settings.guard)
    since, longest = marker.get("since_ms"), marker.get("max_ttl_ms")
    return NodeStatus(
        node=node,
        state=_state(facts, left, settings),
        why=marker.get("why", ""),
        abstains_for=left,
        since=datetime.fromtimestamp(int(since) / 1000, UTC) if since else None,
        max_ttl=int(longest) / 1000 if longest else None,
        floor=int(marker.get("floor_us", 0)),
        version=info.get("valkey_version") or info.get("redis_version", ""),
        uptime=float(facts.uptime),
        run_id=info.get("run_id", ""),
        facts=info,
    )


def _state(facts: NodeFacts, left: float, settings: Settings) -> str:
    if not facts.is_own:
        return "unmarked" if settings.guard.is_on else "unguarded"
    return "abstaining" if left > 0 else "ready"
