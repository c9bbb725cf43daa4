"""Looking after nodes: what they say of themselves, and when new ones may vote at once."""

import dataclasses
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.core.effects import Ask, NodeCommand, Verb
from holdfast.core.guard import NO_GUARD, Guard
from holdfast.core.nodes import NodeFacts, Poll, ask_nodes, bootstrap, facts_of
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Verdict, Vote, failed
from holdfast.errors import BadInput, NotConfirmed
from holdfast.nodes import PATIENCE, Nodes
from holdfast.settings import Settings
from holdfast.wire.endpoint import Endpoint
from unit.transcript import Transcript, Votes

MINUTE = Guard(60_000)
SHOWN_US = 1_767_225_600_000_000
DOWN = failed(Condition.UNREACHABLE)
DONE = Vote(Answer.TOLD, facts=(True,))
NOT_DONE = Vote(Answer.TOLD, facts=(False,))

INFO = {
    "run_id": "run",
    "redis_version": "7.0.1",
    "uptime_in_seconds": "3601",
    "evicted_keys": "0",
    "role": "master",
    "connected_slaves": "0",
    "master_replid2": "0" * 40,
    "cmdstat_evalsha": "calls=1",
}
"""What a server says that has been up for just long enough, and undisturbed."""

MARKER = {
    "run": "run",
    "history": "history:0",
    "until_ms": "0",
    "floor_us": "77",
    "max_ttl_ms": "60000",
    "why": "init",
    "since_ms": str(SHOWN_US // 1000 - 5000),
}


def facts(*, marker: dict[str, str] | None = None, **info: str) -> NodeFacts:
    return NodeFacts(SHOWN_US, "run", "history:0", marker or {}, INFO | info)


def said(what: NodeFacts) -> Vote:
    return Vote(Answer.TOLD, facts=(what,))


NEW = said(facts())


# -- polls ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", range(1, 5))
def test_a_poll_is_decided_when_all_that_were_asked_have_answered(nodes: int) -> None:
    votes = itertools.cycle([DONE, DOWN, GRANTED, MISSING])
    for asked in itertools.product([True, False], repeat=nodes):
        numbers = [node for node, is_asked in enumerate(asked) if is_asked]
        poll = Poll(nodes, numbers)
        for left, node in enumerate(reversed(numbers)):
            assert poll.verdict is Verdict.PENDING
            poll.add(node, next(votes))
            assert (poll.verdict is Verdict.WON) == (left == len(numbers) - 1)


def test_only_a_nodes_first_answer_counts() -> None:
    poll = Poll(3, [0, 1])
    poll.add(0, DONE)
    poll.add(0, DOWN)
    assert poll.verdict is Verdict.PENDING
    assert poll.votes == [DONE, None, None]


def test_some_are_asked_and_nobody_else() -> None:
    flow = ask_nodes(NodeCommand(Verb.ADMIT, MINUTE), 3, [2], until=7.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    assert (ask.to, ask.until, ask.command.verb) == ([2], 7.0, Verb.ADMIT)
    ask.tally.add(2, DONE)
    with pytest.raises(StopIteration) as end:
        flow.send(1.0)
    assert end.value.value == [None, None, DONE]


def test_asking_nobody_is_over_at_once() -> None:
    with pytest.raises(StopIteration) as end:
        next(ask_nodes(NodeCommand(Verb.STATUS, MINUTE), 3, [], until=7.0))
    assert end.value.value == [None] * 3


@pytest.mark.parametrize("vote", [None, DOWN, GRANTED, DONE, NOT_DONE, Vote(Answer.TOLD)])
def test_who_says_nothing_of_itself(vote: Vote | None) -> None:
    assert facts_of(vote) is None


# -- bootstrap ------------------------------------------------------------------------------------


def bootstrapping(*rounds: Votes, nodes: int = 3) -> tuple[bool, list[str]]:
    transcript = Transcript()
    flow = bootstrap(MINUTE, nodes, now=100.0, patience=0.05)
    return transcript.run(flow, *rounds), transcript.said


@pytest.mark.parametrize("nodes", [1, 2, 3, 5])
def test_nodes_that_are_all_new_and_long_up_are_initialised(nodes: int) -> None:
    done, asked = bootstrapping([NEW] * nodes, [DONE] * nodes, nodes=nodes)
    assert done
    assert asked == ["ask status", "ask init"]


def test_only_where_there_is_no_marker_by_then() -> None:
    flow = bootstrap(MINUTE, 3, now=100.0, patience=0.05)
    status = next(flow)
    assert isinstance(status, Ask)
    for node in range(3):
        status.tally.add(node, NEW)
    init = flow.send(100.01)
    assert isinstance(init, Ask)
    assert (init.command.verb, init.command.guard) == (Verb.INIT, MINUTE)
    assert isinstance(init.command, NodeCommand)
    assert init.command.first == "1"
    assert list(init.to or ()) == [0, 1, 2]


ODD_ONES = {
    "marked": said(facts(marker=MARKER)),
    "marked by another run": said(facts(marker=MARKER | {"run": "another"})),
    "up for just as long": said(facts(uptime_in_seconds="3600")),
    "up for longer than can be": said(facts(uptime_in_seconds="1767225600")),
    "not long up": said(facts(uptime_in_seconds="5")),
    "silent about its uptime": said(
        dataclasses.replace(
            facts(), info={key: INFO[key] for key in INFO if key != "uptime_in_seconds"}
        )
    ),
    "flushed": said(facts(cmdstat_flushall="calls=1")),
    "flushed in one database": said(facts(cmdstat_flushdb="calls=1")),
    "swapped": said(facts(cmdstat_swapdb="calls=1")),
    "restored": said(facts(cmdstat_restore="calls=1")),
    "debugged": said(facts(**{"cmdstat_debug|reload": "calls=1"})),
    "once a replica": said(facts(cmdstat_replicaof="calls=1")),
    "a replica": said(facts(role="slave")),
    "replicated": said(facts(connected_slaves="1")),
    "promoted": said(facts(master_replid2="ab" * 20)),
    "evicting": said(facts(evicted_keys="1")),
    "silent about evictions": said(facts(evicted_keys="")),
    "silent": None,
    "down": DOWN,
    "odd": DONE,
}


@pytest.mark.parametrize("what", ODD_ONES)
@pytest.mark.parametrize("at", range(3))
def test_one_that_may_have_forgotten_is_enough_to_leave_all_as_they_are(what: str, at: int) -> None:
    votes: list[Vote | None] = [NEW] * 3
    votes[at] = ODD_ONES[what]
    assert bootstrapping(votes) == (False, ["ask status"])


@pytest.mark.parametrize("votes", [[DONE, DONE, DOWN], [DONE, None, DONE]])
def test_who_does_not_confirm_is_not_initialised(votes: Votes) -> None:
    assert bootstrapping([NEW] * 3, votes) == (False, ["ask status", "ask init"])


def test_what_is_asked_about_subcommands_is_their_command() -> None:
    assert facts(**{"cmdstat_config|get": "calls=1"}).undisturbed
    assert not facts(**{"cmdstat_debug|sleep": "calls=1"}).undisturbed


# -- status ---------------------------------------------------------------------------------------


class Answering:
    """A port that gives votes to whoever asks, and keeps the question."""

    def __init__(self, *votes: Vote | None) -> None:
        self.votes = votes
        self.asked: Ask | None = None

    def run(self, start: Any) -> Any:
        flow = start(100.0)
        self.asked = next(flow)
        for node, vote in enumerate(self.votes):
            if vote is not None and node in (self.asked.to or ()):
                self.asked.tally.add(node, vote)
        try:
            flow.send(100.1)
        except StopIteration as end:
            return end.value


def nodes_of(*votes: Vote | None, guard: Guard = MINUTE) -> tuple[Nodes, Answering]:
    endpoints = tuple(Endpoint(path=f"/node/{number}") for number in range(len(votes)))
    settings = Settings(endpoints, ttl=30.0, wait=None, node_timeout=0.05, guard=guard)
    port = Answering(*votes)
    return Nodes(port, settings), port


def test_what_is_known_of_every_node() -> None:
    abstaining = MARKER | {"until_ms": str(SHOWN_US // 1000 + 12_500), "why": "restarted"}
    nodes, port = nodes_of(
        said(facts(marker=MARKER)),
        said(facts(marker=abstaining)),
        NEW,
        DOWN,
        None,
    )
    ready, abstains, unmarked, down, silent = nodes.status()
    assert port.asked is not None
    assert port.asked.until == 100.0 + PATIENCE
    assert [each.node for each in (ready, silent)] == ["unix:///node/0", "unix:///node/4"]
    assert (ready.state, ready.why, ready.abstains_for) == ("ready", "init", 0.0)
    assert (ready.max_ttl, ready.floor, ready.version, ready.uptime) == (60.0, 77, "7.0.1", 3601.0)
    assert ready.since == datetime.fromtimestamp(SHOWN_US / 1e6 - 5, UTC)
    assert (abstains.state, abstains.abstains_for) == ("abstaining", pytest.approx(12.5))
    assert (unmarked.state, unmarked.abstains_for) == ("unmarked", 62.2)
    assert (unmarked.since, unmarked.max_ttl, unmarked.floor) == (None, None, 0)
    assert (down.state, down.why) == ("unreachable", "unreachable")
    assert (silent.state, silent.why) == ("unreachable", "no answer")


def test_in_words() -> None:
    drained = MARKER | {"until_ms": "9007199254740991", "why": "drained"}
    abstaining = MARKER | {"until_ms": str(SHOWN_US // 1000 + 12_500), "why": "restarted"}
    nodes, _ = nodes_of(*(said(facts(marker=each)) for each in (MARKER, abstaining, drained)), NEW)
    assert [str(status) for status in nodes.status()] == [
        "unix:///node/0: ready (init)",
        "unix:///node/1: abstaining for 12 s (restarted)",
        "unix:///node/2: abstaining (drained)",
        "unix:///node/3: unmarked",
    ]


@pytest.mark.parametrize("other", [{"run": "another"}, {"history": "history:1"}])
def test_somebody_elses_marker_is_none(other: dict[str, str]) -> None:
    nodes, _ = nodes_of(said(facts(marker=MARKER | other)))
    assert nodes.status()[0].state == "unmarked"


def test_who_does_not_guard_does_not_call_it_unmarked() -> None:
    nodes, _ = nodes_of(NEW, guard=NO_GUARD)
    [status] = nodes.status()
    assert (status.state, status.abstains_for) == ("unguarded", 0.0)


# -- telling them otherwise -----------------------------------------------------------------------


def test_nodes_are_named_by_address_or_number() -> None:
    nodes, port = nodes_of(DONE, DONE, DONE)
    nodes.admit("unix:///node/1")
    assert port.asked is not None
    assert list(port.asked.to or ()) == [1]
    nodes.drain(2)
    assert list(port.asked.to or ()) == [2]
    assert port.asked.command.verb is Verb.DRAIN
    nodes.init(0, "unix:///node/2")
    assert list(port.asked.to or ()) == [0, 2]
    nodes.init()
    assert list(port.asked.to or ()) == [0, 1, 2]
    assert isinstance(port.asked.command, NodeCommand)
    assert port.asked.command.first == "0", "whether or not there is a marker"


@pytest.mark.parametrize("node", ["unix:///node/9", 3, -1, True, None, 1.0])
def test_there_is_no_such_node(node: Any) -> None:
    nodes, port = nodes_of(DONE, DONE, DONE)
    with pytest.raises(BadInput, match="0: unix:///node/0, 1: unix"):
        nodes.admit(node)
    assert port.asked is None


def test_who_does_not_confirm_is_named_whether_or_not_there_is_a_quorum() -> None:
    nodes, _ = nodes_of(DONE, DOWN, None, DONE, DONE)
    with pytest.raises(NotConfirmed) as caught:
        nodes.init()
    assert [str(report) for report in caught.value.reports] == [
        "unix:///node/1: unreachable",
        "unix:///node/2: no answer",
    ]
