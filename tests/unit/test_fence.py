"""Fences: which number is proposed next, and how a holder comes by one that a quorum accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.acquire import acquire, attempt
from holdfast.core.effects import Ask, Tell, Verb
from holdfast.core.fence import MOST_RAISES, raise_fence, raised
from holdfast.core.guard import NO_GUARD, Guard, abstention_ms
from holdfast.core.outcomes import Acquired, Miss, Missed
from holdfast.core.tally import Tally, quorum_of
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Vote, failed
from unit.transcript import STAMP, Numbered, Transcript, Votes

HORIZON = 31_100_000
"""Microseconds: half of what a node abstains for if nobody's ttl is longer than a minute."""

TERMS = Terms("x", 10_000, 3, 0.05, guard=Guard(60_000))
VALID = 10 - 0.2 - 0.002 - 0.05
HELD = Vote(Answer.HELD, remaining_ms=5000)
RESERVED = Vote(Answer.RESERVED, remaining_ms=300)
DOWN = failed(Condition.UNREACHABLE)
ABSTAINS = Vote(Answer.ABSTAINED, remaining_ms=5000)


def marked(mark: int) -> Vote:
    """Granted, and the stamp refused."""
    return Vote(Answer.GRANTED, mark=mark)


def outbid(mark: int) -> Vote:
    return Vote(Answer.OUTBID, mark=mark)


def tally_of(*votes: Vote | None) -> Tally:
    tally = Tally(len(votes))
    for node, vote in enumerate(votes):
        if vote is not None:
            tally.add(node, vote)
    return tally


# -- which number ---------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [NO_GUARD, Guard(60_000)])
def test_the_horizon_is_half_an_abstention(guard: Guard) -> None:
    assert guard.horizon_us == HORIZON == abstention_ms(60_000) * 500


@pytest.mark.parametrize(
    ("marks", "above"),
    [
        ((STAMP + 5, 0, 0), STAMP + 5),
        ((STAMP + 5, STAMP + 9, 0), STAMP + 9),
        ((STAMP + 5, STAMP + 9, STAMP + 7), STAMP + 9),
        ((STAMP - 9, 0, 0), STAMP),  # refused as too far ahead of that node's clock
        ((STAMP + HORIZON, 0, 0), STAMP + HORIZON),
        ((STAMP + HORIZON + 1, 0, 0), STAMP),
        ((STAMP + HORIZON + 1, STAMP + 5, 0), STAMP + 5),
        ((STAMP + 9 * HORIZON, STAMP + 2 * HORIZON, 0), STAMP + 2 * HORIZON),
        ((STAMP + 9 * HORIZON, STAMP + 3 * HORIZON, STAMP + 2 * HORIZON), STAMP + 3 * HORIZON),
    ],
)
def test_the_next_number_is_above_all_but_what_a_broken_clock_has_left(
    marks: tuple[int, ...], above: int
) -> None:
    votes = [marked(mark) for mark in marks]
    assert raised(tally_of(*votes), STAMP, HORIZON) == above + 1


@pytest.mark.parametrize(
    ("nodes", "passed_over"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)]
)
def test_as_many_marks_are_passed_over_as_a_quorum_can_do_without(
    nodes: int, passed_over: int
) -> None:
    poisoned = [STAMP + HORIZON * (2 + node) for node in range(nodes)]
    most = raised(tally_of(*map(marked, poisoned)), STAMP, HORIZON)
    assert most == poisoned[nodes - 1 - passed_over] + 1
    some = tally_of(
        *map(marked, poisoned[:passed_over]), *[marked(STAMP + 3)] * (nodes - passed_over)
    )
    assert raised(some, STAMP, HORIZON) == STAMP + 4


def test_one_node_is_always_followed() -> None:
    assert raised(tally_of(marked(STAMP + 9 * HORIZON)), STAMP, HORIZON) == STAMP + 9 * HORIZON + 1


@given(st.lists(st.integers(1, 2 * STAMP), min_size=1, max_size=7))
def test_it_rises_and_a_quorum_should_accept_it(marks: list[int]) -> None:
    number = raised(tally_of(*map(marked, marks)), STAMP, HORIZON)
    assert number > STAMP
    assert sum(number > mark for mark in marks) >= quorum_of(len(marks))


# -- one round, if all goes well ------------------------------------------------------------------


def attempting(*rounds: Votes, terms: Terms = TERMS) -> tuple[Acquired | Tally, list[str]]:
    """Ask once; what became of it, and what was said with which number after the first stamp."""
    transcript = Stamped()
    result, _ = transcript.run(attempt(terms, "t", STAMP, 100.0), *rounds)
    return result, transcript.said


class Stamped(Transcript):
    """Also writes down the stamps, as so much more than the first one."""

    def perform(self, effect, answers) -> None:
        super().perform(effect, answers)
        if isinstance(effect, Ask):
            self.said[-1] += f" {effect.command.stamp - STAMP:+d}"


@pytest.mark.parametrize(
    "votes",
    [
        [GRANTED, GRANTED, None],
        [GRANTED, GRANTED, GRANTED],
        [GRANTED, GRANTED, HELD],
        [GRANTED, GRANTED, ABSTAINS],
        [marked(STAMP + 9), GRANTED, GRANTED],
        [GRANTED, marked(STAMP + 9 * HORIZON), GRANTED],
    ],
)
def test_what_a_quorum_has_accepted_is_the_fence(votes: Votes) -> None:
    result, said = attempting(votes)
    assert isinstance(result, Acquired)
    assert (result.fence, result.token) == (STAMP, "t")
    assert said == ["ask request t +0"]


def test_one_node_is_a_quorum() -> None:
    result, said = attempting([GRANTED], terms=Terms("x", 10_000, 1, 0.05))
    assert isinstance(result, Acquired)
    assert result.fence == STAMP
    assert said == ["ask request t +0"]


# -- raising --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "votes", [[GRANTED, marked(STAMP + 9), None], [marked(STAMP + 9), marked(STAMP + 4), HELD]]
)
def test_too_few_accept_so_the_holder_raises(votes: Votes) -> None:
    result, said = attempting(votes, [GRANTED, GRANTED, None])
    assert isinstance(result, Acquired)
    assert result.fence == STAMP + 10
    assert result.valid_until == pytest.approx(100 + VALID), "from before the first round"
    assert said == ["ask request t +0", "ask raise t +10"]


def test_it_may_be_outbid_twice() -> None:
    result, said = attempting(
        [marked(STAMP + 9), GRANTED, None],
        [outbid(STAMP + 20), outbid(STAMP + 15), GRANTED],
        [outbid(STAMP + 40), outbid(STAMP + 30), None],
        [GRANTED, GRANTED, None],
    )
    assert isinstance(result, Acquired)
    assert result.fence == STAMP + 41
    assert said == ["ask request t +0", "ask raise t +10", "ask raise t +21", "ask raise t +41"]


def test_but_not_for_ever() -> None:
    outbidding = [[outbid(STAMP + 10 * turn)] * 3 for turn in range(2, 9)]
    result, said = attempting([marked(STAMP + 9)] * 3, *outbidding)
    assert isinstance(result, Tally)
    assert len(said) == 1 + MOST_RAISES + 1
    assert said[-1] == "tell release t"


def test_a_broken_clock_is_not_followed() -> None:
    result, said = attempting(
        [marked(STAMP + 9 * HORIZON), marked(STAMP + 5), GRANTED],
        [outbid(STAMP + 9 * HORIZON), GRANTED, GRANTED],
    )
    assert isinstance(result, Acquired)
    assert result.fence == STAMP + 6
    assert said == ["ask request t +0", "ask raise t +6"]


@pytest.mark.parametrize(
    "votes",
    [
        [None, None, None],
        [GRANTED, None, None],
        [GRANTED, DOWN, DOWN],
        [MISSING, MISSING, GRANTED],
        [HELD, HELD, GRANTED],
        [ABSTAINS, ABSTAINS, GRANTED],
    ],
)
def test_cut_off_in_the_midst_it_is_given_back_everywhere(votes: Votes) -> None:
    result, said = attempting([marked(STAMP + 9)] * 3, votes)
    assert isinstance(result, Tally)
    assert said == ["ask request t +0", "ask raise t +10", "tell release t"]


@pytest.mark.parametrize(
    "raises",
    [
        [[None, None, None]],
        [[GRANTED, None, None]],
        [[GRANTED, DOWN, DOWN]],
        [[DOWN, DOWN, DOWN]],
        [[outbid(STAMP + 10 * turn)] * 3 for turn in range(2, 2 + MOST_RAISES)],
    ],
    ids=["silence", "a grant and silence", "a grant", "failure", "outbid"],
)
def test_who_waits_goes_on_under_another_token_and_may_win(raises: list[Votes]) -> None:
    """Nodes have granted the first one: it is given back, and not before the next is in line."""
    transcript = Transcript()
    flow = acquire(TERMS, Numbered(), now=100.0, wait=5.0)
    rounds = [[marked(STAMP + 9)] * 3, *raises, [RESERVED] * 3, [GRANTED] * 3]
    outcome = transcript.run(flow, *rounds)
    assert isinstance(outcome, Acquired)
    assert transcript.said == [
        "ask request t1", *["ask raise t1"] * len(raises),
        "ask wait t2", "tell release t1", "ask request t2",
    ]  # fmt: skip


def test_a_lock_without_a_fence_is_not_ours() -> None:
    transcript = Transcript()
    flow = acquire(TERMS, Numbered(), now=100.0, wait=0.0)
    outcome = transcript.run(flow, [marked(STAMP + 9)] * 3, [DOWN] * 3)
    assert isinstance(outcome, Missed)
    assert outcome.why in (Miss.BUSY, Miss.UNREACHABLE)


def test_a_raise_that_is_seen_too_late_is_no_lease() -> None:
    terms = Terms("x", 100, 3, 0.05, guard=Guard(60_000))
    flow = attempt(terms, "t", STAMP, 100.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    for node in range(3):
        ask.tally.add(node, marked(STAMP + 9))
    again = flow.send(100.01)
    assert isinstance(again, Ask)
    assert again.until <= 100.0 + terms.validity, "no round outlasts what it is about"
    for node in range(3):
        again.tally.add(node, GRANTED)
    told = flow.send(100.0 + terms.validity)
    assert isinstance(told, Tell)
    assert told.command.verb is Verb.RELEASE


def test_an_interrupted_raise_is_given_back() -> None:
    flow = attempt(TERMS, "t", STAMP, 100.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    for node in range(3):
        ask.tally.add(node, marked(STAMP + 9))
    assert isinstance(flow.send(100.01), Ask)
    told = flow.throw(KeyboardInterrupt())
    assert isinstance(told, Tell)
    assert (told.command.verb, told.command.token) == (Verb.RELEASE, "t")
    with pytest.raises(KeyboardInterrupt):
        flow.send(100.01)


def raising(*rounds: Votes, valid_until: float = 110.0) -> tuple[int | Tally, list[str], float]:
    transcript = Stamped()
    tally = tally_of(marked(STAMP + 9), marked(STAMP + 3), GRANTED)
    flow = raise_fence(TERMS, "t", tally, stamp=STAMP, valid_until=valid_until, now=100.0)
    (fence, now), said = transcript.run(flow, *rounds), transcript.said
    assert now == transcript.now
    return fence, said, now


def test_the_flow_returns_what_was_accepted_and_the_time() -> None:
    assert raising([GRANTED] * 3) == (STAMP + 10, ["ask raise t +10"], pytest.approx(100.01))


def test_a_quorum_is_enough_whatever_the_others_say() -> None:
    assert raising([outbid(STAMP + 70), GRANTED, GRANTED])[0] == STAMP + 10


def test_without_marks_a_higher_number_is_of_no_use() -> None:
    votes, said, now = raising([HELD, HELD, GRANTED])
    assert isinstance(votes, Tally)
    assert votes.denied
    assert (said, now) == (["ask raise t +10"], pytest.approx(100.01))


def test_it_waits_no_longer_than_the_lease_lasts() -> None:
    fence, said, now = raising([None] * 3, valid_until=100.02)
    assert isinstance(fence, Tally)
    assert (said, now) == (["ask raise t +10"], 100.02)
    fence, said, now = raising([outbid(STAMP + 20)] * 3, valid_until=100.005)
    assert isinstance(fence, Tally)
    assert said == ["ask raise t +10"]


@given(
    st.lists(
        st.lists(
            st.sampled_from([GRANTED, HELD, DOWN, MISSING, ABSTAINS, None])
            | st.integers(1, 2 * STAMP).map(outbid),
            min_size=3,
            max_size=3,
        ),
        min_size=MOST_RAISES,
        max_size=MOST_RAISES,
    )
)
def test_a_fence_was_accepted_by_a_quorum_and_is_above_what_was_asked(rounds: list[Votes]) -> None:
    fence, said, _ = raising(*rounds)
    stamps = [int(line.split()[-1]) for line in said]
    assert stamps == sorted(set(stamps)), "every proposal is higher than the one before"
    accepted = rounds[len(said) - 1].count(GRANTED) >= 2
    assert isinstance(fence, int) == accepted
    if isinstance(fence, int):
        assert fence == STAMP + stamps[-1] > STAMP
