"""Validity and pauses: the arithmetic that everything rests on."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import validity
from holdfast.core.retry import FIRST_SPREAD, LARGEST_SPREAD, pause

ttls = st.floats(validity.MIN_TTL, validity.MAX_TTL)
RATE = validity.RATE_ERROR


@given(ttls, st.floats(-RATE, RATE), st.floats(-RATE, RATE))
def test_the_holder_stops_before_any_node_lets_go(ttl: float, ours: float, theirs: float) -> None:
    """Whatever the two clocks' rates, and with a node that rounds a millisecond away."""
    believed = (validity.valid_until(0.0, ttl)) / (1 + ours)
    kept = (ttl - 0.001) / (1 + theirs)
    assert believed < kept


@given(ttls)
def test_there_is_always_something_left_of_the_ttl(ttl: float) -> None:
    left = validity.valid_until(0.0, ttl) - validity.patience(1e9, ttl)
    assert left > 0.5 * ttl


@given(st.floats(0.001, 10), ttls)
def test_patience_is_short_and_a_small_part_of_the_ttl(node_timeout: float, ttl: float) -> None:
    assert validity.patience(node_timeout, ttl) <= min(node_timeout, ttl / 4)


chances = st.floats(0, 1, exclude_max=True)


@given(chances, st.floats(0, 5), st.integers(0, 10_000))
def test_a_pause_is_at_least_twice_the_round_and_bounded(
    chance: float, measured: float, misses: int
) -> None:
    length = pause(chance, measured, misses)
    assert 2 * measured <= length <= 2 * measured + LARGEST_SPREAD


@given(chances, chances)
def test_different_chances_are_different_pauses(one: float, other: float) -> None:
    lengths = {pause(one, 0.001, 5), pause(other, 0.001, 5)}
    assert len(lengths) == len({one * LARGEST_SPREAD + 0.002, other * LARGEST_SPREAD + 0.002})


def test_pauses_grow_with_every_miss() -> None:
    growing = [pause(0.999, 0.0, misses) for misses in range(1, 8)]
    assert growing == sorted(growing)
    assert growing[0] < FIRST_SPREAD < growing[-1]
