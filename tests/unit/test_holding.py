"""What we know of a lease: it ends once, by our own clock or by word, and never comes back."""

import pytest

from holdfast.core.holding import Holding, State
from holdfast.core.outcomes import LossReason
from holdfast.core.tally import Tally
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Vote


@pytest.fixture
def holding() -> Holding:
    return Holding(Terms("x", 10_000, 3, 0.05), "t", valid_until=100.0, fence=7)


def test_it_ends_by_the_clock_alone(holding: Holding) -> None:
    assert holding.is_held(99.9)
    assert holding.loss(99.9) is None
    assert not holding.is_held(100.0)
    assert holding.loss(100.0) is LossReason.EXPIRED


def test_a_renewal_lengthens_and_never_shortens(holding: Holding) -> None:
    holding.renewed(110.0)
    assert holding.is_held(109.0)
    holding.renewed(105.0)
    assert holding.is_held(109.0)


def test_what_is_lost_stays_lost_for_its_first_reason(holding: Holding) -> None:
    holding.lose(LossReason.TAKEN)
    holding.lose(LossReason.DELETED)
    holding.renewed(200.0)
    holding.release()
    assert (holding.state, holding.reason) == (State.LOST, LossReason.TAKEN)
    assert not holding.is_held(50.0)


def test_what_is_released_is_neither_held_nor_lost(holding: Holding) -> None:
    holding.release()
    holding.renewed(200.0)
    holding.lose(LossReason.TAKEN)
    assert holding.state is State.RELEASED
    assert not holding.is_held(50.0)
    assert holding.loss(50.0) is None
    assert holding.loss(150.0) is None


@pytest.mark.parametrize("why", [LossReason.UNREACHABLE, LossReason.FORGOTTEN, LossReason.MAX_HOLD])
def test_what_is_over_says_why_it_could_not_be_renewed(holding: Holding, why: LossReason) -> None:
    if why is LossReason.MAX_HOLD:
        holding.hold_until = 100.0
        holding.unsure = LossReason.UNREACHABLE
    else:
        holding.unsure = why
    assert holding.loss(99.9) is None
    assert holding.loss(100.0) is why
    assert holding.reason is None, "nobody has said so yet"


def test_a_renewal_that_counts_makes_sure(holding: Holding) -> None:
    holding.unsure = LossReason.FORGOTTEN
    holding.renewed(110.0)
    assert holding.loss(110.0) is LossReason.EXPIRED


def tally_of(*votes: Vote) -> Tally:
    tally = Tally(len(votes))
    for node, vote in enumerate(votes):
        tally.add(node, vote)
    return tally


def test_it_is_repaired_where_nodes_are_known_to_be_without_it(holding: Holding) -> None:
    assert (holding.repair(), holding.repaired) == (0, False), "nobody has asked yet"
    holding.renewed(110.0, tally_of(GRANTED, GRANTED, GRANTED))
    assert (holding.repair(), holding.repaired) == (0, False)
    holding.renewed(120.0, tally_of(GRANTED, GRANTED, MISSING))
    assert holding.repair() == 7, "its own fence"
    assert holding.repair() == 7, "until a renewal finds it everywhere"
    holding.renewed(130.0, tally_of(GRANTED, GRANTED, GRANTED))
    assert holding.repair() == 0
    assert holding.repaired, "what was sent may still be under way"


def test_a_vote_that_comes_late_tells_of_a_gap_too(holding: Holding) -> None:
    tally = tally_of(GRANTED, GRANTED)
    holding.renewed(110.0, tally)
    assert holding.repair() == 0
    tally.note_late(MISSING)
    assert holding.repair() == 7
