"""Waiting in line, step by step: what a waiter says to the nodes, when, and under which name."""

from collections import deque
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.acquire import acquire
from holdfast.core.effects import Ask, Effect, Sleep, Tell, Verb
from holdfast.core.guard import Guard
from holdfast.core.outcomes import Acquired, Miss, Missed
from holdfast.core.place import CLAIM, Hearing, Place
from holdfast.core.queue import HEARTBEAT, MOST_STAMPS, OUTAGE_PATIENCE, PATIENCE_SHARE, POLL
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, Answer, Condition, Failure, Vote, failed
from unit.transcript import STAMP, WOKEN, Heard, Numbered, Step, Transcript, Votes, called

HELD = Vote(Answer.HELD, remaining_ms=5000)
DOWN = failed(Condition.UNREACHABLE)
FORBIDDEN = failed(Condition.FORBIDDEN)
ABSTAINS = Vote(
    Answer.ABSTAINED, remaining_ms=5000, failure=Failure(Condition.ABSTAINING, "restarted")
)
VALID = 10 - 0.2 - 0.002


def queued(milliseconds: int | None = None, rank: int = 0) -> Vote:
    """In line, and to ask again then."""
    return Vote(Answer.QUEUED, remaining_ms=milliseconds, rank=rank)


def reserved(milliseconds: int = 300) -> Vote:
    return Vote(Answer.RESERVED, remaining_ms=milliseconds)


def outranked(mark: int) -> Vote:
    return Vote(Answer.OUTRANKED, mark=mark)


def marked(mark: int) -> Vote:
    """Granted, and the stamp refused."""
    return Vote(Answer.GRANTED, mark=mark)


QUEUED, RESERVED = queued(), reserved()


class InLine(Transcript):
    """Also writes down the place in line, and stamps as so much more than the first one."""

    def perform(self, effect: Effect, steps: deque[Step]) -> None:
        super().perform(effect, steps)
        if isinstance(effect, Ask) and effect.command.verb in (Verb.REQUEST, Verb.WAIT):
            command: Any = effect.command
            self.said[-1] += f" {command.place.name} {command.stamp - STAMP:+d}"

    def unwind(self, flow: Any) -> None:
        """Interrupt the flow, and do what it tells then."""
        effect = flow.throw(KeyboardInterrupt())
        while True:
            assert isinstance(effect, Tell), "it waits for nothing any more"
            self.perform(effect, deque())
            effect = flow.send(self.now)


def waiting(
    wait: float | None,
    *steps: Step,
    nodes: int = 3,
    source: Numbered | None = None,
    guard: Guard | None = None,
) -> tuple[Any, InLine]:
    """Wait for a lock; what became of it, and what was said."""
    transcript, source = InLine(), source or Numbered()
    options = {} if guard is None else {"guard": guard}
    terms = Terms("x", 10_000, nodes, 0.05, **options)
    outcome = transcript.run(acquire(terms, source, now=100.0, wait=wait), *steps)
    assert not source.expected, "nobody waits for mail any more"
    return outcome, transcript


def names(said: list[str], words: str) -> list[str]:
    """Return whom something was said for, in order, each once."""
    return list(dict.fromkeys(line.split()[2] for line in said if line.startswith(words)))


# -- in and out -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "place"), [(1, "LAST"), (3, "ABOVE"), (5, "ABOVE")])
def test_a_free_lock_is_granted_at_once(nodes: int, place: str) -> None:
    outcome, transcript = waiting(5.0, [GRANTED] * nodes, nodes=nodes)
    assert isinstance(outcome, Acquired)
    assert (outcome.token, outcome.fence) == ("t1", STAMP)
    assert outcome.valid_until == pytest.approx(100 + VALID)
    assert transcript.said == [f"ask request t1 {place} +0"]


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_who_is_called_asks_for_the_lock_and_has_it_from_then_on(nodes: int) -> None:
    quorum = nodes // 2 + 1
    calls = called(*range(quorum), after=0.5)
    outcome, transcript = waiting(5.0, [QUEUED] * nodes, calls, [GRANTED] * nodes, nodes=nodes)
    assert isinstance(outcome, Acquired)
    assert outcome.token == "t1"
    assert outcome.fence == STAMP + 1, "proposed with the request that is granted"
    assert outcome.valid_until == pytest.approx(100 + 0.01 + 0.5 + VALID)
    place = "LAST" if nodes == 1 else "ABOVE"
    assert transcript.said == [f"ask request t1 {place} +0", "sleep", "ask request t1 KEPT +1"]


def test_a_reservation_that_is_told_in_answer_is_a_call() -> None:
    steps = [[QUEUED] * 3, [RESERVED, RESERVED, QUEUED], [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "sleep", "ask wait t1 SETTLED +0", "ask request t1 KEPT +2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("votes", "marks"), [([marked(STAMP + 9)] * 3, 10), ([GRANTED, marked(STAMP + 9), HELD], 10)]
)
def test_the_fence_of_who_is_called_is_raised_as_anybodys(votes: Votes, marks: int) -> None:
    outcome, transcript = waiting(5.0, [QUEUED] * 3, called(0, 1), votes, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert outcome.fence == STAMP + marks
    assert transcript.said[-2:] == ["ask request t1 KEPT +1", "ask raise t1"]


def test_a_confirmation_that_is_seen_too_late_is_no_lease() -> None:
    flow = acquire(Terms("x", 20, 1, 0.05), Numbered(), now=100.0, wait=5.0)
    first = next(flow)
    assert isinstance(first, Ask)
    first.tally.add(0, QUEUED)
    sleep = flow.send(100.01)
    assert isinstance(sleep, Sleep)
    assert sleep.mail is not None
    sleep.mail.put(0, 100.02, CLAIM)
    confirm = flow.send(100.02)
    assert isinstance(confirm, Ask)
    confirm.tally.add(0, GRANTED)
    anew = flow.send(100.02 + 0.018)
    assert isinstance(anew, Ask), "its time is up: it may be granted, and is asked for anew"
    assert (anew.command.verb, anew.command.token) == (Verb.WAIT, "t2")


# -- calls ----------------------------------------------------------------------------------------


def test_a_minority_that_calls_is_followed_by_others() -> None:
    steps = [[QUEUED] * 5, called(0, after=0.2), called(3), called(4), [GRANTED] * 5]
    outcome, transcript = waiting(5.0, *steps, nodes=5)
    assert isinstance(outcome, Acquired)
    assert transcript.said == ["ask request t1 ABOVE +0", *["sleep"] * 3, "ask request t1 KEPT +1"]


def test_or_the_others_are_asked_while_the_first_calls_still_count() -> None:
    steps = [[QUEUED] * 3, called(2, after=0.05), [RESERVED, QUEUED, RESERVED], [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "sleep", "sleep", "ask wait t1 SETTLED +0",
        "ask request t1 KEPT +2",
    ]  # fmt: skip
    assert transcript.pauses[1] == pytest.approx(CLAIM * PATIENCE_SHARE)


def test_calls_add_up_over_a_question() -> None:
    """What a node has said in answer counts together with what others say later."""
    steps = [[QUEUED] * 3, WOKEN, [RESERVED, QUEUED, QUEUED], called(1), [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said[-2:] == ["sleep", "ask request t1 KEPT +2"]


def test_who_is_woken_without_a_call_asks_at_once() -> None:
    steps = [[QUEUED] * 3, WOKEN, [RESERVED] * 3, [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said[1:3] == ["sleep", "ask wait t1 SETTLED +0"]
    assert transcript.now == pytest.approx(100.04)


def test_calls_of_an_earlier_request_do_not_count_for_the_next() -> None:
    steps = [
        [QUEUED] * 3, called(0, 1), [HELD] * 3,  # somebody else was faster
        [QUEUED] * 3, called(2), [RESERVED, QUEUED, RESERVED], [GRANTED] * 3,
    ]  # fmt: skip
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "sleep", "ask request t1 KEPT +1",
        "ask wait t1 SETTLED +0", "sleep", "sleep", "ask wait t1 SETTLED +0",
        "ask request t1 KEPT +3",
    ]  # fmt: skip


# -- when to ask again ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "pause"),
    [
        ((queued(400), queued(400), queued(400)), 0.4),
        ((queued(900), queued(200), queued(600)), 0.6),  # a quorum may be free then
        ((queued(200), queued(), queued()), HEARTBEAT),
        ((queued(7000), queued(8000), queued(9000)), HEARTBEAT),
        ((queued(200), queued(300), DOWN), 0.3),
        ((queued(200), queued(300), HELD), 0.3),
        ((queued(1), queued(1), queued(1)), 0.01),  # not before a round's time has passed
    ],
)
def test_when_the_holders_time_is_up_and_once_a_heartbeat(votes: Votes, pause: float) -> None:
    _, transcript = waiting(5.0, votes, [RESERVED] * 3, [GRANTED] * 3)
    assert transcript.pauses == [pytest.approx(pause)]
    assert transcript.said[2].startswith("ask wait t1")


def test_a_waiter_asks_again_and_again_before_it_counts_as_dead() -> None:
    outcome, transcript = waiting(9.5, *[[QUEUED] * 3] * 11, [HELD] * 3)
    assert outcome.why is Miss.TIMED_OUT
    assert transcript.said.count("ask wait t1 SETTLED +0") == 9
    assert max(transcript.pauses) == pytest.approx(HEARTBEAT)


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_who_cannot_be_called_asks_several_times_in_a_claim(chance: float) -> None:
    source = Numbered(hearing=Hearing.POLLS, chance=lambda: chance)
    steps = [[QUEUED] * 3, [QUEUED] * 3, [RESERVED] * 3, [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps, source=source)
    assert isinstance(outcome, Acquired)
    pause = POLL * (1 + chance) / 2
    assert transcript.pauses == [pytest.approx(pause)] * 2
    assert pause + 0.05 < CLAIM, "in time, also after a slow round"


def test_who_can_be_called_no_longer_takes_a_name_that_says_so() -> None:
    """A token that promises to hear would be passed over by nodes that call it in vain."""
    source = Numbered()
    flow = acquire(Terms("x", 10_000, 3, 0.05), source, now=100.0, wait=5.0)
    transcript, steps = InLine(), deque[Step]([[QUEUED] * 3, [QUEUED] * 3, [QUEUED] * 3])
    effect = next(flow)
    for _ in range(2):
        transcript.perform(effect, steps)
        effect = flow.send(transcript.now)
    source.hearing = Hearing.POLLS
    for _ in range(2):
        transcript.perform(effect, steps)
        effect = flow.send(transcript.now)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "sleep", "ask wait t1 SETTLED +0", "ask wait t2 SETTLED +0",
    ]  # fmt: skip
    assert isinstance(effect, Tell)
    assert effect.command.token == "t1"
    assert [mail.polls for mail in source.expected] == [True]
    flow.close()


# -- a new name -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "votes", [[GRANTED, None, None], [GRANTED, HELD, HELD], [GRANTED, DOWN, DOWN]]
)
def test_who_has_been_granted_in_part_goes_on_under_another_token(votes: Votes) -> None:
    steps = [[QUEUED] * 3, called(0, 1), votes, [RESERVED] * 3, [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert outcome.token == "t2"
    assert transcript.said == [
        "ask request t1 ABOVE +0", "sleep", "ask request t1 KEPT +1",
        "ask wait t2 SETTLED +0",  # first in line under the new name,
        "tell release t1",  # and then out of it under the old one
        "ask request t2 KEPT +2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "votes",
    [
        [HELD] * 3,
        [HELD, HELD, DOWN],
        [HELD, ABSTAINS, ABSTAINS],
        [HELD, HELD, None],  # decided before the last one was waited for
        [None] * 3,
    ],
)
def test_who_was_not_granted_anywhere_keeps_its_name_and_its_place(votes: Votes) -> None:
    steps = [[QUEUED] * 3, called(0, 1), votes, [RESERVED] * 3, [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert outcome.token == "t1"
    assert transcript.said[2:] == [
        "ask request t1 KEPT +1", "ask wait t1 SETTLED +0", "ask request t1 KEPT +2",
    ]  # fmt: skip


def test_who_hears_too_little_asks_where_it_stands_before_it_gives_up_its_place() -> None:
    outcome, transcript = waiting(5.0, [QUEUED, None, None], [RESERVED] * 3, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "ask wait t1 ABOVE +0", "ask request t1 KEPT +1",
    ]  # fmt: skip


def test_a_vote_that_was_granted_too_late_to_be_heard_is_given_back() -> None:
    stray = Vote(Answer.RESERVED, remaining_ms=9000, mark=STAMP)
    steps = [[QUEUED, QUEUED, None], [QUEUED, QUEUED, stray], [RESERVED] * 3, [GRANTED] * 3]
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "ask wait t1 SETTLED +0", "ask wait t2 SETTLED +0",
        "tell release t1", "ask request t2 KEPT +1",
    ]  # fmt: skip


def test_a_first_request_that_is_granted_in_part_is_given_back_too() -> None:
    votes = [GRANTED, QUEUED, QUEUED]
    outcome, transcript = waiting(5.0, votes, [RESERVED] * 3, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "ask wait t2 SETTLED +0", "tell release t1",
        "ask request t2 KEPT +1",
    ]  # fmt: skip


def test_a_new_name_has_new_mail() -> None:
    """Calls for the old token count no more, and nobody expects them."""
    source = Numbered()
    flow = acquire(Terms("x", 10_000, 3, 0.05), source, now=100.0, wait=5.0)
    first = next(flow)
    assert isinstance(first, Ask)
    [old] = source.expected
    first.tally.add(0, GRANTED)
    anew = flow.send(100.05)
    assert isinstance(anew, Ask)
    [new] = source.expected
    assert (old.token, new.token, anew.command.token) == ("t1", "t2", "t2")
    for node in range(3):
        old.put(node, 100.05, CLAIM)
        anew.tally.add(node, QUEUED)
    assert isinstance(flow.send(100.06), Tell)
    sleep = flow.send(100.06)
    assert isinstance(sleep, Sleep)
    assert sleep.mail is new
    flow.close()
    assert not source.expected


# -- stamps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "above"),
    [
        ([outranked(STAMP + 50), outranked(STAMP + 70), QUEUED], STAMP + 71),
        ([outranked(STAMP + 50), HELD, DOWN], STAMP + 51),
        ([outranked(STAMP - 50), outranked(STAMP - 70), outranked(STAMP)], STAMP + 1),
    ],
)
def test_who_is_outranked_takes_a_higher_stamp_and_another_name(votes: Votes, above: int) -> None:
    outcome, transcript = waiting(5.0, votes, [QUEUED] * 3, called(0, 1), [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert transcript.said[:4] == [
        "ask request t1 ABOVE +0", f"ask wait t2 ABOVE {above - STAMP:+d}", "tell release t1",
        "sleep",
    ]  # fmt: skip


def test_also_if_that_is_found_out_while_it_waits() -> None:
    steps = [
        [QUEUED, DOWN, DOWN], [QUEUED, outranked(STAMP + 50), DOWN],
        [QUEUED, QUEUED, DOWN], [RESERVED, RESERVED, DOWN], [GRANTED, GRANTED, DOWN],
    ]  # fmt: skip
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0", "sleep", "ask wait t1 ABOVE +0",
        "ask wait t2 ABOVE +51", "tell release t1", "sleep",
        "ask wait t2 SETTLED +51", "ask request t2 KEPT +4",
    ]  # fmt: skip


def test_it_may_be_outranked_again_and_again() -> None:
    steps = [[outranked(STAMP + mark)] * 3 for mark in (50, 90, 150)]
    outcome, transcript = waiting(5.0, *steps, [QUEUED] * 3, called(0, 1, 2), [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1 ABOVE +0",
        "ask wait t2 ABOVE +51", "tell release t1",
        "ask wait t3 ABOVE +91", "tell release t2",
        "ask wait t4 ABOVE +151", "tell release t3",
        "sleep", "ask request t4 KEPT +4",
    ]  # fmt: skip


def test_it_gets_further_ahead_of_the_others_each_time_by_chance() -> None:
    source = Numbered(chance=lambda: 0.5)
    steps = [[outranked(STAMP + mark)] * 3 for mark in (5_000, 20_000, 90_000)]
    steps += [[QUEUED] * 3, called(0, 1, 2), [GRANTED] * 3]
    _, transcript = waiting(5.0, *steps, source=source)
    stamps = [int(line.split()[4]) for line in transcript.said if line.startswith("ask wait")]
    assert stamps == [5_001 + 500, 20_001 + 1000, 90_001 + 2000]


def test_but_not_for_ever_without_a_pause() -> None:
    many = [[outranked(STAMP + 10 * turn)] * 3 for turn in range(2 * MOST_STAMPS + 3)]
    source = Numbered(chance=lambda: 0.5)
    outcome, transcript = waiting(0.5, *many, *[[HELD] * 3] * 9, source=source)
    assert outcome.why is Miss.TIMED_OUT
    assert transcript.said.index("sleep") == 1 + 2 * MOST_STAMPS
    assert 0 < transcript.pauses[0] < 0.5


@pytest.mark.parametrize(
    "votes", [[QUEUED, QUEUED, outranked(STAMP + 50)], [QUEUED, RESERVED, outranked(STAMP + 50)]]
)
def test_what_a_quorum_has_taken_is_settled_and_never_given_up(votes: Votes) -> None:
    steps = [
        votes, [outranked(STAMP + 90)] * 3, called(0, 1),  # nodes that forgot it
        [GRANTED, None, None], [outranked(STAMP + 99), QUEUED, None], [RESERVED] * 3, [GRANTED] * 3,
    ]  # fmt: skip
    outcome, transcript = waiting(5.0, *steps)
    assert isinstance(outcome, Acquired)
    asked = [line for line in transcript.said if line.startswith("ask wait")]
    assert asked == [
        "ask wait t1 SETTLED +0", "ask wait t2 SETTLED +0", "ask wait t2 SETTLED +0",
    ]  # fmt: skip


def test_fewer_than_a_quorum_settle_nothing() -> None:
    steps = [[QUEUED, QUEUED, DOWN, DOWN, DOWN], [QUEUED, QUEUED, QUEUED, DOWN, DOWN]]
    _, transcript = waiting(5.0, *steps, [RESERVED] * 5, [GRANTED] * 5, nodes=5)
    asked = [line for line in transcript.said if line.startswith("ask wait")]
    assert asked == ["ask wait t1 ABOVE +0", "ask wait t1 SETTLED +0"]


def test_one_node_settles_by_itself_and_may_raise_the_stamp() -> None:
    raised = replace(QUEUED, mark=STAMP + 40)
    _, transcript = waiting(5.0, [raised], [None], [RESERVED], [GRANTED], nodes=1)
    asked = [line for line in transcript.said if line.startswith("ask wait")]
    assert asked == ["ask wait t1 SETTLED +40"] * 2, "should it forget, it is not put in last"


def test_one_node_that_has_not_answered_has_settled_nothing() -> None:
    _, transcript = waiting(5.0, [DOWN], [DOWN], [RESERVED], [GRANTED], nodes=1)
    asked = [line for line in transcript.said if line.startswith("ask wait")]
    assert asked == ["ask wait t1 LAST +0"] * 2


@pytest.mark.parametrize("place", list(Place))
def test_who_is_in_line_already_is_not_taken_into_it(place: Place) -> None:
    assert place.is_taken == (place in (Place.ABOVE, Place.SETTLED, Place.LAST))


# -- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_at_the_deadline_the_lock_is_asked_for_once_more(nodes: int) -> None:
    outcome, transcript = waiting(0.5, [QUEUED] * nodes, [HELD] * nodes, nodes=nodes)
    assert isinstance(outcome, Missed)
    assert outcome.why is Miss.TIMED_OUT
    assert outcome.waited == pytest.approx(0.51)
    assert transcript.said[1:] == ["sleep", "ask request t1 KEPT +1", "tell release t1"]


def test_and_may_be_had() -> None:
    outcome, transcript = waiting(0.5, [QUEUED] * 3, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert outcome.valid_until == pytest.approx(100.5 + VALID)
    assert transcript.said[1:] == ["sleep", "ask request t1 KEPT +1"]


def test_a_question_ends_with_the_wait_and_the_last_request_does_not() -> None:
    outcome, transcript = waiting(1.03, [QUEUED] * 3, [None] * 3, [None] * 3)
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said[1:] == [
        "sleep", "ask wait t1 SETTLED +0", "ask request t1 KEPT +2", "tell release t1",
    ]  # fmt: skip
    assert outcome.waited == pytest.approx(1.03 + 0.05)


def test_a_request_that_is_answered_after_the_deadline_was_the_last() -> None:
    outcome, transcript = waiting(0.5, [QUEUED] * 3, called(0, 1, after=0.485), [HELD, HELD, None])
    assert outcome.why is Miss.TIMED_OUT
    assert transcript.said[1:] == ["sleep", "ask request t1 KEPT +1", "tell release t1"]


def test_who_gives_up_under_a_new_name_has_given_back_the_old_one() -> None:
    outcome, transcript = waiting(0.5, [GRANTED, QUEUED, QUEUED], [QUEUED] * 3, [HELD] * 3)
    assert outcome.why is Miss.TIMED_OUT
    assert [line for line in transcript.said if line.startswith("tell")] == [
        "tell release t1", "tell release t2",
    ]  # fmt: skip


@pytest.mark.parametrize("before", [[], [[QUEUED] * 3], [[QUEUED] * 3, [QUEUED] * 3]])
def test_what_cannot_get_better_ends_the_wait_at_any_time(before: list[Votes]) -> None:
    outcome, transcript = waiting(None, *before, [FORBIDDEN, FORBIDDEN, QUEUED])
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said[-1] == "tell release t1"
    assert transcript.said.count("sleep") == len(before)


def test_a_max_ttl_that_is_disputed_ends_it() -> None:
    guard = Guard(60_000)
    guard.dispute(90_000)
    outcome, transcript = waiting(None, [GRANTED] * 3, guard=guard)
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said == ["ask request t1 ABOVE +0", "tell release t1"]


def test_nodes_that_went_away_end_an_endless_wait() -> None:
    steps = [*[[QUEUED] * 3] * 100, *[[DOWN, DOWN, QUEUED]] * 5000]
    outcome, transcript = waiting(None, *steps)
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said[-1] == "tell release t1"
    assert 99 + OUTAGE_PATIENCE <= transcript.now - 100 < 103 + OUTAGE_PATIENCE


# -- interruptions --------------------------------------------------------------------------------

LONG: list[Step] = [
    [QUEUED, QUEUED, outranked(STAMP + 5)], called(0), called(1),
    [GRANTED, None, None], [QUEUED] * 3, WOKEN, [RESERVED, QUEUED, QUEUED],
    [RESERVED] * 3, [marked(STAMP + 9)] * 3, [None] * 3, [QUEUED] * 3,
    called(0, 1, 2), [HELD] * 3, [QUEUED] * 3, called(0, 2), [GRANTED] * 3,
]  # fmt: skip
"""A waiter that goes through much, under three names, until it has the lock."""


class Interrupted(InLine):
    """Interrupts the flow at one of its effects; what it tells then, and nothing else, is done."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def run(self, flow: Any, *steps: Step) -> Any:
        left = deque(steps)
        effect: Effect = next(flow)
        for _ in range(self._at):
            self.perform(effect, left)
            effect = flow.send(self.now)
        if isinstance(effect, Ask):
            self.said.append(f"ask {effect.command.verb.value} {effect.command.token}")
        elif isinstance(effect, Tell):
            self.perform(effect, left)
        with pytest.raises(KeyboardInterrupt):
            self.unwind(flow)


def test_the_long_way_leads_to_the_lock() -> None:
    outcome, transcript = waiting(None, *LONG)
    assert isinstance(outcome, Acquired)
    assert names(transcript.said, "ask") == ["t1", "t2", "t3"]
    assert names(transcript.said, "tell release") == ["t1", "t2"]


@pytest.mark.parametrize("at", range(len(waiting(None, *LONG)[1].said)))
def test_whenever_it_is_interrupted_every_name_that_is_in_line_is_taken_out(at: int) -> None:
    transcript, source = Interrupted(at), Numbered()
    transcript.run(acquire(Terms("x", 10_000, 3, 0.05), source, now=100.0, wait=None), *LONG)
    assert names(transcript.said, "tell release") == names(transcript.said, "ask")
    assert not source.expected


@pytest.mark.parametrize("hearing", [Hearing.CALLED, Hearing.POLLS])
@pytest.mark.parametrize("at", range(6))
def test_a_flow_can_be_dropped_at_any_time(at: int, hearing: Hearing) -> None:
    source = Numbered(hearing=hearing)
    flow = acquire(Terms("x", 10_000, 3, 0.05), source, now=100.0, wait=None)
    transcript = InLine()
    steps: deque[Step] = deque([[GRANTED, None, None], *[[QUEUED] * 3] * 9])
    effect = next(flow)
    for _ in range(at):
        transcript.perform(effect, steps)
        effect = flow.send(transcript.now)
    flow.close()
    assert not source.expected


# -- whatever is answered -------------------------------------------------------------------------

answers = st.lists(
    st.sampled_from([GRANTED, HELD, QUEUED, queued(100), RESERVED, DOWN, ABSTAINS, None])
    | st.integers(STAMP - 9, STAMP + 99).map(outranked)
    | st.integers(STAMP - 9, STAMP + 99).map(marked),
    min_size=3,
    max_size=3,
)
heard = st.builds(
    lambda nodes, after: Heard(tuple(nodes), after),
    st.lists(st.integers(0, 2), unique=True),
    st.floats(0.0, 0.5),
)


class Fuzzed(InLine):
    """Whatever is asked is answered, until the answers are used up: then it is interrupted."""

    def perform(self, effect: Effect, steps: deque[Step]) -> None:
        while isinstance(effect, Ask) and steps and isinstance(steps[0], Heard):
            steps.popleft()
        if isinstance(effect, Ask) and not steps:
            self.said.append(f"ask {effect.command.verb.value} {effect.command.token}")
            raise KeyboardInterrupt
        super().perform(effect, steps)


@given(st.lists(answers | heard, max_size=30), st.none() | st.floats(0.01, 3.0))
def test_nothing_is_left_in_line_and_settled_stamps_stay(
    steps: list[Step], wait: float | None
) -> None:
    transcript, source = Fuzzed(), Numbered()
    flow = acquire(Terms("x", 10_000, 3, 0.05), source, now=100.0, wait=wait)
    outcome = None
    try:
        outcome = transcript.run(flow, *steps)
    except KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            transcript.unwind(flow)
    kept = [outcome.token] if isinstance(outcome, Acquired) else []
    said = transcript.said
    assert names(said, "tell release") + kept == names(said, "ask"), "in order, and every one"
    assert said.count("sleep") < 200
    asked = [line.split()[3:] for line in said if line.startswith("ask wait") and " +" in line]
    assert len({stamp for place, stamp in asked if place == "SETTLED"}) <= 1, "it is never given up"
    places = [place for place, _ in asked]
    assert places == sorted(places), "and stays settled"
    assert not source.expected
