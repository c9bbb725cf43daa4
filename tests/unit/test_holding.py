"""What we know of a lease: it ends once, by our own clock or by word, and never comes back."""

import pytest

from holdfast.core.holding import Holding, State
from holdfast.core.outcomes import LossReason
from holdfast.core.terms import Terms


@pytest.fixture
def holding() -> Holding:
    return Holding(Terms("x", 10_000, 3, 0.05), "t", valid_until=100.0)


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
