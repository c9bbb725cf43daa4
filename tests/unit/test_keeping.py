"""The keeping flow, as transcripts: when it asks, what it says, and how it ends."""

import contextlib
import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.effects import Ask, Note, Sleep, Tell
from holdfast.core.holding import Holding, State
from holdfast.core.keeping import keep
from holdfast.core.outcomes import Endangered, Kept, LossReason, Lost, Unsure
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Vote, failed

TTL = 30.0
VALID = TTL - 0.6 - 0.002
ALL, NONE, GONE = [GRANTED] * 3, [None] * 3, [MISSING] * 3
DOWN = [failed(Condition.UNREACHABLE)] * 3
TAKEN = [Vote(Answer.HELD, remaining_ms=9000)] * 3
FORGOTTEN = [GRANTED] + [Vote(Answer.ABSTAINED, remaining_ms=62_000)] * 2
BEGAN = 1000.0
FENCE = 7

Votes = Sequence[Vote | None]


def holding_of(**terms: Any) -> Holding:
    return Holding(Terms("x", int(TTL * 1000), 3, 0.05, **terms), "t", BEGAN + VALID, FENCE)


class Owner:
    """Somebody who lives and remembers until they are told not to."""

    alive = remembering = True

    def lives(self) -> bool:
        return self.alive

    def remembers(self) -> bool:
        return self.remembering


class Keeper:
    """Runs the flow with given votes. A decided round takes 10 ms; another one its patience."""

    def __init__(self, holding: Holding, **at: Callable[["Keeper"], None]) -> None:
        """`at` says what happens at a second of the lease's life, when the flow next wakes."""
        self.now = BEGAN + 0.01
        self.holding = holding
        self.owner = Owner()
        self.log: list[str] = []
        self._events = sorted((float(when[1:]), what) for when, what in at.items())

    def run(self, *rounds: Votes, wakes: int = 300) -> list[str]:
        answers = iter([*rounds] or repeat(ALL))
        flow = keep(self.holding, self.owner)
        try:
            effect = next(flow)
            for _ in range(wakes):
                self._perform(effect, answers)
                effect = flow.send(self.now)
        except StopIteration:
            pass
        return self.log

    def _perform(self, effect: Any, answers: Any) -> None:
        match effect:
            case Sleep(until):
                self.now = max(self.now, until)
                while self._events and self._events[0][0] <= self.now - BEGAN:
                    self._events.pop(0)[1](self)
            case Ask(command, tally, until):
                self._say(command.verb.value)
                for node, vote in enumerate(next(answers, NONE)):
                    if vote is not None:
                        tally.add(node, vote)
                self.now = self.now + 0.01 if tally.verdict.value != "pending" else until
            case Tell(command):
                self._say(f"tell {command.verb.value}")
            case Note(Kept()):
                self._say("kept")
            case Note(Unsure()):
                self._say("unsure")
            case Note(Endangered()):
                self._say("endangered")
            case Note(Lost(reason)):
                self._say(f"lost: {reason.value}")

    def _say(self, what: str) -> None:
        self.log.append(f"{self.now - BEGAN:.1f} {what}")


def test_renews_at_a_third_of_the_ttl_and_again() -> None:
    keeper = Keeper(holding_of())
    assert keeper.run(ALL, ALL, wakes=6) == ["9.9 renew", "9.9 kept", "19.9 renew", "19.9 kept"]
    assert keeper.holding.valid_until == pytest.approx(BEGAN + 19.9 + VALID, abs=0.2)


def test_waits_long_for_answers_asks_again_and_warns_in_time() -> None:
    keeper = Keeper(holding_of())
    assert keeper.run(*repeat(NONE, 30)) == [
        "9.9 renew",
        "14.9 unsure",
        "14.9 renew",
        "19.9 unsure",
        "19.9 renew",
        "24.4 unsure",
        "24.4 endangered",
        "24.4 renew",
        "29.4 lost: unreachable",
        "29.4 tell release",
    ]
    assert keeper.holding.reason is LossReason.UNREACHABLE


def test_asks_again_and_again_where_nodes_fail_at_once() -> None:
    keeper = Keeper(holding_of())
    log = keeper.run(*repeat(DOWN, 30))
    asked = [float(line.split()[0]) for line in log if line.endswith("renew")]
    assert asked == [pytest.approx(9.9 + 2 * turn, abs=0.2) for turn in range(10)]
    assert [line for line in log if "endangered" in line] == ["24.4 endangered"]
    assert log[-2:] == ["29.4 lost: unreachable", "29.4 tell release"]


def test_what_too_many_nodes_have_forgotten_is_lost_at_its_end_and_not_before() -> None:
    keeper = Keeper(holding_of())
    log = keeper.run(*repeat(FORGOTTEN, 30))
    assert [line for line in log if "endangered" in line] == ["24.4 endangered"]
    assert log[-2:] == ["29.4 lost: forgotten", "29.4 tell release"]
    assert keeper.holding.reason is LossReason.FORGOTTEN


def test_the_last_try_says_why_it_is_lost() -> None:
    keeper = Keeper(holding_of())
    assert keeper.run(*repeat(FORGOTTEN, 5), *repeat(DOWN, 30))[-2].endswith("lost: unreachable")
    keeper = Keeper(holding_of())
    assert keeper.run(*repeat(DOWN, 5), *repeat(FORGOTTEN, 30))[-2].endswith("lost: forgotten")


def test_what_was_unsure_and_is_renewed_is_not_forgotten() -> None:
    holding = holding_of(max_hold=60.0)
    keeper = Keeper(holding)
    log = keeper.run(FORGOTTEN, *repeat(ALL, 30))
    assert log[:4] == ["9.9 renew", "9.9 unsure", "11.9 renew", "11.9 kept"]
    assert holding.unsure is None
    assert holding.reason is LossReason.MAX_HOLD


def test_what_is_missing_in_the_minority_is_repaired_the_next_time() -> None:
    gap = [GRANTED, GRANTED, MISSING]
    stamps: list[int] = []

    class Noting(Keeper):
        def _perform(self, effect: Any, answers: Any) -> None:
            super()._perform(effect, answers)
            if isinstance(effect, Ask):
                stamps.append(effect.command.stamp)
            elif isinstance(effect, Tell):
                stamps.append(effect.command.ttl_ms)

    keeper = Noting(holding_of())
    keeper.run(ALL, gap, DOWN, gap, ALL, ALL, GONE)
    noted = int(TTL * 1000) + 1000
    assert stamps == [0, 0, FENCE, FENCE, FENCE, 0, 0, noted]
    keeper = Noting(holding_of())
    stamps.clear()
    keeper.run(gap, GONE)
    assert stamps == [0, FENCE, noted], "its release outlives the repair"
    keeper = Noting(holding_of())
    stamps.clear()
    keeper.run(gap, ALL, *repeat(DOWN, 30))
    assert stamps[-1] == TTL * 1000 + 1000, "also if it is lost for another reason, later"


def test_recovers_and_warns_anew_the_next_time() -> None:
    keeper = Keeper(holding_of())
    log = keeper.run(*repeat(DOWN, 9), ALL, *repeat(DOWN, 30))
    words = [line.split(" ", 1)[1] for line in log]
    assert words.count("endangered") == 2
    assert words.index("endangered") < words.index("kept")
    assert words[-2:] == ["lost: unreachable", "tell release"]


def test_renewed_by_hand_while_its_own_round_is_unanswered_it_is_not_lost() -> None:
    holding = holding_of()
    keeper = Keeper(holding, s26=lambda keeper: holding.renewed(BEGAN + 26 + VALID))
    log = keeper.run(*repeat(NONE, 4), ALL, wakes=16)
    assert not any("lost" in line or "tell" in line for line in log)
    assert log[-1].endswith("kept")


def test_brought_to_its_bound_by_hand_it_is_not_asked_for_any_more() -> None:
    holding = holding_of(max_hold=35.0)
    keeper = Keeper(holding, s5=lambda keeper: holding.renewed(BEGAN + 5 + VALID + 2))
    assert keeper.run(ALL)[-2:] == ["35.0 lost: held for too long", "35.0 tell release"]


@pytest.mark.parametrize(("votes", "reason"), [(GONE, "deleted"), (TAKEN, "taken")])
def test_what_the_nodes_deny_is_lost_at_once(votes: Votes, reason: str) -> None:
    keeper = Keeper(holding_of())
    assert keeper.run(votes) == ["9.9 renew", "9.9 tell release", f"9.9 lost: {reason}"]


def test_a_dead_owners_lease_is_left_to_lapse() -> None:
    keeper = Keeper(holding_of(), s12=lambda keeper: setattr(keeper.owner, "alive", False))
    assert keeper.run(ALL) == ["9.9 renew", "9.9 kept", "19.9 lost: owner died"]


def test_a_forgotten_lease_needs_no_care() -> None:
    keeper = Keeper(holding_of(), s1=lambda keeper: setattr(keeper.owner, "remembering", False))
    assert keeper.run() == []
    assert keeper.holding.state is State.HELD


def test_a_released_lease_is_not_renewed() -> None:
    keeper = Keeper(holding_of(), s1=lambda keeper: keeper.holding.release())
    assert keeper.run() == []


@pytest.mark.parametrize("votes", [ALL, NONE, GONE])
def test_what_is_released_while_it_is_being_renewed_is_not_lost(votes: Votes) -> None:
    holding = holding_of()
    flow = keep(holding, Owner())
    next(flow)
    ask = flow.send(BEGAN + 10)
    assert isinstance(ask, Ask)
    assert holding.asked
    holding.release()
    for node, vote in enumerate(votes):
        if vote is not None:
            ask.tally.add(node, vote)
    said = [effect.what for effect in rest_of(flow, BEGAN + 10.05) if isinstance(effect, Note)]
    assert not any(isinstance(note, Lost | Endangered) for note in said)
    assert holding.state is State.RELEASED


def rest_of(flow: Any, now: float) -> list[Any]:
    effects = []
    with contextlib.suppress(StopIteration):
        while True:
            effects.append(flow.send(now))
    return effects


def test_a_keeper_that_was_away_for_too_long_tells_at_once() -> None:
    keeper = Keeper(holding_of(), s5=lambda keeper: setattr(keeper, "now", BEGAN + 40))
    assert keeper.run() == ["40.0 lost: expired", "40.0 tell release"]


def test_a_late_keeper_first_tries_and_says_how_late() -> None:
    late: list[float] = []
    flow = keep(holding_of(), Owner())
    next(flow)
    ask = flow.send(BEGAN + 27)  # less than the grace is left
    assert isinstance(ask, Ask)
    for node in range(3):
        ask.tally.add(node, GRANTED)
    note = flow.send(BEGAN + 27.01)
    assert isinstance(note, Note)
    assert isinstance(note.what, Kept)
    late.append(note.what.late_by)
    assert late == [pytest.approx(17, abs=0.2)]


def test_a_late_first_try_that_is_not_answered_leaves_time_for_a_warning() -> None:
    keeper = Keeper(holding_of(), s5=lambda keeper: setattr(keeper, "now", BEGAN + 24.5))
    assert keeper.run(*repeat(NONE, 9))[:4] == [
        "24.5 renew",
        "24.5 unsure",
        "24.5 endangered",
        "26.5 renew",
    ]


def test_a_lease_that_is_not_renewed_needs_no_owner() -> None:
    keeper = Keeper(holding_of(renewing=False))
    keeper.owner.alive = False
    assert keeper.run() == ["24.4 endangered", "29.4 lost: expired", "29.4 tell release"]


def test_max_hold_bounds_renewal_and_warns() -> None:
    keeper = Keeper(holding_of(max_hold=35.0))
    assert keeper.run() == [
        "9.9 renew",
        "9.9 kept",
        "30.0 endangered",
        "35.0 lost: held for too long",
        "35.0 tell release",
    ]


def test_a_lease_that_is_not_renewed_simply_ends() -> None:
    keeper = Keeper(holding_of(renewing=False))
    assert keeper.run() == ["24.4 endangered", "29.4 lost: expired", "29.4 tell release"]


def test_no_grace_no_warning() -> None:
    keeper = Keeper(holding_of(renewing=False, grace=0.0))
    assert keeper.run() == ["29.4 lost: expired", "29.4 tell release"]


def test_leases_of_all_ttls_are_due_on_one_grid() -> None:
    dues = set()
    for began in range(1000, 1100):
        holding = Holding(Terms("x", 30_000, 1, 0.05), "t", began / 100 + VALID, FENCE)
        sleep = next(keep(holding, Owner()))
        assert isinstance(sleep, Sleep)
        assert 0 <= began / 100 + 10 - sleep.until < 10 / 64
        dues.add(sleep.until)
    assert len(dues) < 12  # one second's acquisitions are renewed in a few turns


@given(
    began=st.floats(0, 1e7),
    ttl_ms=st.integers(20, 86_400_000),
    max_hold=st.none() | st.floats(0.02, 1e6),
    renewing=st.booleans(),
)
def test_woken_when_it_asked_to_be_it_never_sleeps_until_then_again(
    began: float, ttl_ms: int, max_hold: float | None, renewing: bool
) -> None:
    terms = Terms("x", ttl_ms, 3, 0.05, renewing=renewing, max_hold=max_hold)
    flow = keep(Holding(terms, "t", began + terms.validity, FENCE), Owner())
    slept_until, now = -math.inf, began
    effect = next(flow)
    for _ in range(40):
        if isinstance(effect, Sleep):
            assert effect.until > slept_until
            slept_until = effect.until
        if isinstance(effect, Ask):
            slept_until = -math.inf
        now = max(now, effect.until) if isinstance(effect, Sleep | Ask) else now
        try:
            effect = flow.send(now)
        except StopIteration:
            return
