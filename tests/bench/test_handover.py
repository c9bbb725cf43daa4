"""What a contest comes to: worked out by hand, and against the plainest way to say it."""

import math
from dataclasses import replace
from itertools import combinations, permutations

import pytest
from bench.handover import (
    Held,
    Outcome,
    Span,
    Trial,
    luck,
    outcome,
    overlaps,
    percentile,
    together,
)
from hypothesis import given
from hypothesis import strategies as st

MS = 1_000_000
A, B, C = range(3)


def ms(process: int, acquired: float, releasing: float) -> Held:
    return Held(int(acquired * MS), int(releasing * MS), process)


def trial(*held: Held, span: tuple[int, int] = (0, 1000), processes: int = 2) -> Trial:
    begin, end = span
    return Trial(
        held=held,
        processes=processes,
        measured=Span(begin * MS, end * MS),
        executed=0,
        counted=Span(end * MS, end * MS),
        received=0,
    )


# -- latency, and what is no hand-over ---------------------------------------------------------


def test_latency_runs_from_the_releasing_call_to_the_next_holder() -> None:
    found = outcome(trial(ms(A, 0, 1), ms(B, 1.25, 2.25), ms(A, 3, 4)))
    assert (found.handovers, found.overlaps) == (2, 0)
    assert (found.latency_us_p50, found.latency_us_p99) == (250, 750)


def test_a_grant_that_stays_is_no_handover_and_has_no_latency() -> None:
    found = outcome(trial(ms(A, 0, 1), ms(A, 1.01, 2), ms(A, 2.01, 3), ms(B, 3.5, 4.5)))
    assert (found.grants, found.handovers) == (4, 1)
    assert found.stayed == pytest.approx(2 / 3), "nobody had it before the first"
    assert (found.latency_us_p50, found.latency_us_p99) == (500, 500)


def test_a_lock_that_never_leaves_has_no_latency_and_all_the_bad_luck() -> None:
    found = outcome(trial(ms(A, 0, 1), ms(A, 1, 2)))
    assert math.isnan(found.latency_us_p50)
    assert math.isnan(found.latency_us_p99)
    assert (found.stayed, found.luck) == (1.0, math.inf)


# -- the measured span -------------------------------------------------------------------------


def test_only_grants_of_the_measured_span_count() -> None:
    early, first, last, late = ms(A, 9, 10), ms(B, 10, 11), ms(A, 19.5, 21), ms(B, 21.5, 22)
    found = outcome(trial(early, first, last, late, span=(10, 20)))
    assert (found.grants, found.handovers) == (2, 2), "the first one was handed over, too"
    assert found.grants_per_s == found.handovers_per_s == 2 / 0.010
    assert found.luck == 1.0
    assert found.held_us_p50 == 1000


def test_what_overlaps_before_the_span_is_an_overlap_all_the_same() -> None:
    assert outcome(trial(ms(A, 1, 3), ms(B, 2, 4), ms(A, 12, 13), span=(10, 20))).overlaps == 1


def test_commands_are_divided_by_the_grants_of_their_own_span() -> None:
    contest = replace(
        trial(ms(A, 1, 2), ms(B, 3, 4), ms(A, 11, 12), ms(B, 21, 22), span=(0, 20)),
        executed=30, received=5, counted=Span(20 * MS, 30 * MS),
    )  # fmt: skip
    found = outcome(contest)
    assert (found.executed_per_grant, found.commands_per_grant) == (10, 5)
    nobody = outcome(replace(contest, counted=Span(30 * MS, 40 * MS)))
    assert math.isnan(nobody.commands_per_grant)


def test_it_is_read_as_it_was_recorded_in_the_order_of_the_grants() -> None:
    recorded = {
        "processes": [[[5, 20], [8, 25]], [[10], [15]], [[], []]],
        "measured": [0, 100], "executed": 7, "counted": [100, 200], "received": 3,
    }  # fmt: skip
    read = Trial.of(recorded)
    assert read.held == [Held(5, 8, A), Held(10, 15, B), Held(20, 25, A)]
    assert (read.processes, read.executed, read.received) == (3, 7, 3)
    assert outcome(read).luck == math.inf, "the third process never had it"


# -- mutual exclusion --------------------------------------------------------------------------


def test_one_after_the_other_does_not_overlap_even_without_a_pause() -> None:
    assert overlaps([Held(0, 10, A), Held(10, 20, B), Held(20, 30, A)]) == 0


def test_a_long_hold_overlaps_with_all_that_come_meanwhile() -> None:
    assert overlaps([Held(0, 100, A), Held(10, 20, B), Held(30, 40, C), Held(100, 110, B)]) == 2


@st.composite
def contests(draw: st.DrawFn) -> list[Held]:
    """Processes that each hold a lock that may not exclude anybody, one time after the other."""
    held = []
    for process in (A, B, C):
        moments = draw(st.lists(st.integers(0, 60), max_size=8, unique=True).map(sorted))
        held += [Held(*pair, process) for pair in zip(moments[::2], moments[1::2], strict=False)]
    return sorted(held)


@given(contests())
def test_an_overlap_is_found_exactly_if_two_hold_at_once(held: list[Held]) -> None:
    together = {
        later
        for earlier, later in combinations(held, 2)
        if earlier.process != later.process and later.acquired < earlier.releasing
    }
    assert overlaps(held) == len(together)


# -- figures -----------------------------------------------------------------------------------


def test_a_percentile_is_a_sample() -> None:
    for samples in permutations([1.0, 2.0, 3.0]):
        assert percentile(samples, 0.5) == 2.0
    hundred = [float(number) for number in range(1, 101)]
    assert (percentile(hundred, 0.5), percentile(hundred, 0.99)) == (50, 99)
    assert percentile([*hundred, 1000.0], 0.99) == 100
    assert percentile([7.0], 0.99) == 7
    assert math.isnan(percentile([], 0.5))


def test_luck_counts_those_that_got_nothing() -> None:
    assert luck([A, B, A, B], 2) == 1.0
    assert luck([A, A, A, B, B], 2) == 1.5
    assert luck([A, B, A, B], 3) == math.inf
    assert luck([], 2) == math.inf


BASE = Outcome(
    grants=10, handovers=8, overlaps=0, grants_per_s=100, handovers_per_s=80, stayed=0.2,
    latency_us_p50=300, latency_us_p99=900, held_us_p50=1050, luck=1.1,
    commands_per_grant=4, executed_per_grant=9,
)  # fmt: skip


def test_repeats_are_medians_but_of_luck_the_worst_and_of_overlaps_all() -> None:
    found = together([
        BASE,
        replace(BASE, latency_us_p50=500, luck=1.4, overlaps=1),
        replace(BASE, latency_us_p50=400, luck=1.0, overlaps=2),
    ])  # fmt: skip
    assert (found.latency_us_p50, found.luck, found.overlaps) == (400, 1.4, 3)
    assert (found.grants, found.handovers, found.grants_per_s) == (30, 24, 100)


def test_a_repeat_without_handovers_does_not_hide_the_others() -> None:
    nothing = replace(BASE, latency_us_p50=math.nan)
    assert together([nothing, BASE]).latency_us_p50 == 300
    assert math.isnan(together([nothing, nothing]).latency_us_p50)
