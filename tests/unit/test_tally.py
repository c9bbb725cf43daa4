"""Counting votes: every order of every vote, for every small number of nodes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.tally import Tally, quorum_of
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Verdict, Vote, failed

HELD = Vote(Answer.HELD, remaining_ms=1000)
DOWN = failed(Condition.UNREACHABLE)
FORBIDDEN = failed(Condition.FORBIDDEN)
ABSTAINS = Vote(Answer.ABSTAINED, remaining_ms=1000)
OUTBID = Vote(Answer.OUTBID, mark=7)
RESERVED = Vote(Answer.RESERVED, remaining_ms=300)
QUEUED = Vote(Answer.QUEUED, remaining_ms=1000)
OUTRANKED = Vote(Answer.OUTRANKED, mark=7)
VOTES = [
    GRANTED, HELD, MISSING, DOWN, FORBIDDEN, ABSTAINS, OUTBID, RESERVED, QUEUED, OUTRANKED,
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_two_quorums_share_a_node(nodes: int, quorum: int) -> None:
    assert quorum_of(nodes) == quorum
    assert 2 * quorum > nodes


@pytest.mark.parametrize("nodes", range(1, 6))
def test_it_is_decided_as_early_as_it_can_be(nodes: int) -> None:
    quorum = quorum_of(nodes)
    for votes in itertools.product([GRANTED, HELD], repeat=nodes):
        tally = Tally(nodes)
        for node, vote in enumerate(votes):
            tally.add(node, vote)
            granted = votes[: node + 1].count(GRANTED)
            pending = nodes - node - 1
            if granted >= quorum:
                assert tally.verdict is Verdict.WON
            elif granted + pending < quorum:
                assert tally.verdict is Verdict.LOST
            else:
                assert tally.verdict is Verdict.PENDING


@given(st.integers(1, 7).flatmap(lambda n: st.lists(
    st.tuples(st.integers(0, n - 1), st.sampled_from(VOTES)), max_size=20
).map(lambda votes: (n, votes))))  # fmt: skip
def test_only_a_nodes_first_vote_counts(case: tuple[int, list[tuple[int, Vote]]]) -> None:
    nodes, votes = case
    tally, first = Tally(nodes), dict[int, Vote]()
    for node, vote in votes:
        tally.add(node, vote)
        first.setdefault(node, vote)
    assert tally.granted == sum(vote in (GRANTED, RESERVED) for vote in first.values())
    assert tally.votes == [first.get(node) for node in range(nodes)]
    assert (tally.verdict is Verdict.WON) == (tally.granted >= tally.quorum)
    assert (tally.verdict is Verdict.LOST) == (tally.against > nodes - tally.quorum)


def tally_of(*votes: Vote | None, thorough: bool = False) -> Tally:
    tally = Tally(len(votes), thorough=thorough)
    for node, vote in enumerate(votes):
        if vote is not None:
            tally.add(node, vote)
    return tally


@pytest.mark.parametrize(
    ("votes", "cut_off"),
    [
        ((DOWN,), True),
        ((None,), True),
        ((HELD,), False),
        ((DOWN, DOWN, GRANTED), True),
        ((DOWN, HELD, GRANTED), False),
        ((None, None, GRANTED), True),
        ((HELD, HELD, None), False),
        ((HELD, HELD, None, None), False),  # decided early: nobody waited for the last two
        ((DOWN, None, GRANTED, None, GRANTED), True),
        ((DOWN, HELD, DOWN, None, None), False),
        ((ABSTAINS, ABSTAINS, GRANTED), True),
        ((ABSTAINS, DOWN, GRANTED), True),
        ((ABSTAINS, HELD, GRANTED), False),
    ],
)
def test_silence_and_failure_are_not_refusal(votes: tuple[Vote | None, ...], cut_off: bool) -> None:
    assert tally_of(*votes).cut_off is cut_off


def test_denied_takes_more_than_a_minority_of_refusals() -> None:
    assert tally_of(MISSING, MISSING, GRANTED).denied
    assert tally_of(MISSING, HELD, GRANTED).denied
    assert not tally_of(MISSING, DOWN, GRANTED).denied
    assert not tally_of(MISSING, ABSTAINS, GRANTED).denied
    assert not tally_of(MISSING, MISSING, GRANTED, GRANTED, GRANTED).denied


def test_hopeless_is_what_asking_again_does_not_change() -> None:
    assert tally_of(FORBIDDEN, FORBIDDEN, GRANTED).hopeless
    assert not tally_of(FORBIDDEN, DOWN, GRANTED).hopeless
    assert not tally_of(DOWN, DOWN, DOWN).hopeless
    assert not tally_of(ABSTAINS, ABSTAINS, FORBIDDEN).hopeless


@pytest.mark.parametrize(
    ("votes", "abstained"),
    [
        ((ABSTAINS,), True),
        ((ABSTAINS, ABSTAINS, ABSTAINS), True),
        ((ABSTAINS, ABSTAINS, None), True),
        ((ABSTAINS, GRANTED, None), True),
        ((ABSTAINS, DOWN, GRANTED), True),
        ((ABSTAINS, DOWN, DOWN), False),
        ((ABSTAINS, DOWN, None), True),  # decided early: the last one was not waited for
        ((ABSTAINS, None, None), False),
        ((DOWN, DOWN, DOWN), False),
        ((GRANTED, GRANTED, GRANTED), False),
    ],
)
def test_abstained_is_what_would_be_a_quorum(
    votes: tuple[Vote | None, ...], abstained: bool
) -> None:
    assert tally_of(*votes).abstained is abstained


# -- thorough ones --------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", range(1, 6))
@pytest.mark.parametrize("yes", [GRANTED, RESERVED])
@pytest.mark.parametrize("no", [HELD, QUEUED, DOWN])
def test_a_thorough_one_is_lost_when_all_have_answered(nodes: int, yes: Vote, no: Vote) -> None:
    """Who waits wants to know where it is in line; who has won need not wait for the rest."""
    quorum = quorum_of(nodes)
    for votes in itertools.product([yes, no], repeat=nodes):
        tally = Tally(nodes, thorough=True)
        for node, vote in enumerate(votes):
            tally.add(node, vote)
            if votes[: node + 1].count(yes) >= quorum:
                assert tally.verdict is Verdict.WON
            elif node + 1 < nodes:
                assert tally.verdict is Verdict.PENDING
            else:
                assert tally.verdict is Verdict.LOST


@pytest.mark.parametrize(
    ("votes", "cut_off"),
    [
        ((QUEUED, QUEUED, None), False),
        ((QUEUED, None, None), True),
        ((HELD, HELD, None), False),
        ((QUEUED, DOWN, None), True),
        ((QUEUED, OUTRANKED, DOWN), False),
    ],
)
def test_silence_counts_in_a_thorough_one_once_it_is_over(
    votes: tuple[Vote | None, ...], cut_off: bool
) -> None:
    assert tally_of(*votes, thorough=True).cut_off is cut_off


@pytest.mark.parametrize(
    ("votes", "cut_off"),
    [((QUEUED, QUEUED, QUEUED, DOWN), False), ((QUEUED, QUEUED, DOWN, DOWN), True)],
)
def test_who_is_known_to_be_silent_is_not_waited_for_and_yet_missing(
    votes: tuple[Vote, ...], cut_off: bool
) -> None:
    tally = Tally(5, thorough=True, silent=[4])
    for node, vote in enumerate(votes):
        assert tally.verdict is Verdict.PENDING
        tally.add(node, vote)
    assert tally.verdict is Verdict.LOST
    assert tally.cut_off is cut_off


def test_what_was_said_is_counted() -> None:
    tally = tally_of(QUEUED, QUEUED, RESERVED, OUTRANKED, None, thorough=True)
    assert [tally.count(each) for each in (Answer.QUEUED, Answer.RESERVED, Answer.OUTRANKED)] == [
        2, 1, 1,
    ]  # fmt: skip
    assert tally.answers == {Answer.QUEUED, Answer.RESERVED, Answer.OUTRANKED}
    assert not tally.marks, "a mark of a queue stands in the way of no fence"
    assert (tally.granted, tally.against, tally.failed) == (1, 3, 0)


@pytest.mark.parametrize("vote", VOTES)
def test_a_gap_is_where_a_node_does_not_have_it(vote: Vote) -> None:
    gap = vote in (MISSING, ABSTAINS)
    assert tally_of(GRANTED, vote, GRANTED).gaps is gap
    late = tally_of(GRANTED, GRANTED, None)
    late.note_late(vote)
    assert late.gaps is gap
    assert late.votes[2] is None, "it does not count"


def marked(mark: int) -> Vote:
    return Vote(Answer.GRANTED, mark=mark)


@pytest.mark.parametrize(
    ("votes", "accepted", "marks"),
    [
        ((GRANTED, GRANTED, None), True, []),
        ((GRANTED, marked(7), GRANTED), True, [7]),
        ((GRANTED, marked(7), None), False, [7]),
        ((marked(9), marked(7), GRANTED), False, [9, 7]),
        ((GRANTED, marked(7), GRANTED, marked(8)), False, [7, 8]),
        ((GRANTED, OUTBID, HELD), False, [7]),
    ],
)
def test_accepted_is_granted_by_a_quorum_with_nothing_in_the_way(
    votes: tuple[Vote | None, ...], accepted: bool, marks: list[int]
) -> None:
    tally = tally_of(*votes)
    assert (tally.accepted, tally.marks) == (accepted, marks)


def held(milliseconds: int | None) -> Vote:
    return Vote(Answer.HELD, remaining_ms=milliseconds)


@pytest.mark.parametrize(
    ("votes", "seconds"),
    [
        ((held(500),), 0.5),
        ((held(None),), None),
        ((held(900), held(300), held(600)), 0.6),
        ((held(900), held(300), GRANTED), 0.3),
        ((held(900), GRANTED, GRANTED), 0.0),
        ((DOWN, held(400), GRANTED), 0.0),
        ((ABSTAINS, ABSTAINS, GRANTED), 1.0),
        ((ABSTAINS, held(400), GRANTED), 0.4),
        ((ABSTAINS, held(None), held(None)), None),
        ((QUEUED, QUEUED, held(400)), 1.0),
        ((QUEUED, RESERVED, held(400)), 0.4),
        ((OUTRANKED, QUEUED, QUEUED), 1.0),
        ((OUTRANKED, OUTRANKED, QUEUED), None),
    ],
)
def test_when_enough_nodes_may_be_free(votes: tuple[Vote, ...], seconds: float | None) -> None:
    assert tally_of(*votes).remaining() == seconds
