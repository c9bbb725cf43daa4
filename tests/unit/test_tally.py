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
VOTES = [GRANTED, HELD, MISSING, DOWN, FORBIDDEN]


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
    assert tally.granted == list(first.values()).count(GRANTED)
    assert tally.votes == [first.get(node) for node in range(nodes)]
    assert (tally.verdict is Verdict.WON) == (tally.granted >= tally.quorum)
    assert (tally.verdict is Verdict.LOST) == (tally.against > nodes - tally.quorum)


def tally_of(*votes: Vote | None) -> Tally:
    tally = Tally(len(votes))
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
    ],
)
def test_silence_and_failure_are_not_refusal(votes: tuple[Vote | None, ...], cut_off: bool) -> None:
    assert tally_of(*votes).cut_off is cut_off


def test_denied_takes_more_than_a_minority_of_refusals() -> None:
    assert tally_of(MISSING, MISSING, GRANTED).denied
    assert tally_of(MISSING, HELD, GRANTED).denied
    assert not tally_of(MISSING, DOWN, GRANTED).denied
    assert not tally_of(MISSING, MISSING, GRANTED, GRANTED, GRANTED).denied


def test_hopeless_is_what_asking_again_does_not_change() -> None:
    assert tally_of(FORBIDDEN, FORBIDDEN, GRANTED).hopeless
    assert not tally_of(FORBIDDEN, DOWN, GRANTED).hopeless
    assert not tally_of(DOWN, DOWN, DOWN).hopeless


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
    ],
)
def test_when_enough_nodes_may_be_free(votes: tuple[Vote, ...], seconds: float | None) -> None:
    assert tally_of(*votes).remaining() == seconds
