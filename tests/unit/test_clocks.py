"""What is known of the nodes' clocks: what creeps is followed, what jumps is caught."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.clocks import (
    CREEP,
    JUMP,
    LONGEST_CREEP,
    LOOK_AGAIN,
    STALE,
    Clocks,
    NodeClock,
)
from holdfast.core.tally import quorum_of
from holdfast.core.validity import RATE_ERROR, STEP_TOLERANCE

EPOCH_US = 1_767_225_600_000_000
"""What a node's clock shows when ours shows 0."""

EXACT = 2.0
"""Microseconds. Times are whole ones, and floats of that size are a quarter of one apart."""


class Node:
    """A node with a clock, and what a client makes of it. `now` is on the client's own clock."""

    def __init__(self, *, trusting: bool = False, rate: float = 0.0) -> None:
        self.clock = NodeClock(trusting=trusting)
        self.now = 1000.0
        self.ahead = 0.0
        """How far the clock is ahead of where it began, in seconds."""
        self.rate = rate
        """How many seconds it gains in every second of ours."""

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.ahead += seconds * self.rate

    def shows(self) -> int:
        return EPOCH_US + int((self.now + self.ahead) * 1e6)

    def met(self, *, there: float = 0.0, back: float = 0.0) -> None:
        sent = self.now
        self.passes(there)
        shown = self.shows()
        self.passes(back)
        self.clock.meet(shown, sent, self.now)

    def votes(self, *, there: float = 0.0, back: float = 0.0) -> bool:
        """Let it answer; True if its vote counts."""
        sent = self.now
        self.passes(there)
        shown = self.shows()
        self.passes(back)
        return self.clock.agrees(shown, sent, self.now)

    @property
    def error_us(self) -> float:
        """How far the client is from the truth."""
        offset = self.clock.offset_us
        assert offset is not None
        return offset - EPOCH_US - self.ahead * 1e6


def greeted(**options: float) -> Node:
    node = Node(**options)  # type: ignore[arg-type]  # both options are numbers or flags
    node.met(there=0.0002, back=0.0002)
    return node


# -- what a round trip tells ----------------------------------------------------------------------


@given(there=st.floats(0, 0.5), back=st.floats(0, 0.5))
def test_a_greeting_bounds_the_offset_by_its_round_trip(there: float, back: float) -> None:
    node = Node()
    node.met(there=there, back=back)
    assert node.clock.offset_us == pytest.approx(EPOCH_US + (there - back) * 5e5, abs=EXACT)
    assert abs(node.error_us) <= (there + back) * 5e5 + EXACT


@given(trips=st.lists(st.tuples(st.floats(0, 0.4), st.floats(0, 0.4)), max_size=12))
def test_the_tightest_round_decides(trips: list[tuple[float, float]]) -> None:
    node = Node()
    node.met(there=0.5, back=0.5)
    for there, back in trips:
        assert node.votes(there=there, back=back)
        node.passes(0.001)
    length = min([1.0, *(there + back for there, back in trips)])
    crept = CREEP * (node.now - 1000.0)
    assert abs(node.error_us) <= (length / 2 + crept) * 1e6 + EXACT


def test_a_wide_round_spoils_nothing() -> None:
    node = greeted()
    assert node.votes(there=0.3, back=0.3)
    assert abs(node.error_us) <= (0.0002 + CREEP * 0.6) * 1e6 + EXACT
    node.ahead += 1.0
    assert not node.votes()


def test_a_clock_that_was_never_seen_is_believed_at_once() -> None:
    node = Node()
    assert node.clock.offset_us is None
    assert node.votes(there=0.01, back=0.01)
    assert abs(node.error_us) <= 0.01 * 1e6 + EXACT


# -- what creeps ----------------------------------------------------------------------------------


@given(
    rate=st.floats(-CREEP, CREEP),
    every=st.floats(0.001, LONGEST_CREEP),
    trip=st.floats(0, 0.05),
)
def test_clocks_may_be_wrong_by_as_much_as_is_said(rate: float, every: float, trip: float) -> None:
    """By `RATE_ERROR` on either side; however often it is looked at."""
    node = greeted(rate=rate)
    for _ in range(50):
        node.passes(every)
        assert node.votes(there=trip / 2, back=trip / 2)


@pytest.mark.parametrize("rate", [RATE_ERROR, -RATE_ERROR, CREEP, -CREEP])
def test_creeping_for_a_day_is_followed(rate: float) -> None:
    node = greeted(rate=rate)
    for _ in range(8640):
        node.passes(10.0)
        assert node.votes(there=0.0002, back=0.0002)
    assert abs(node.error_us) <= (JUMP + CREEP * 10) * 1e6


@pytest.mark.parametrize("rate", [0.05, -0.05])
@pytest.mark.parametrize("every", [0.01, 0.1, 1.0])
def test_a_clock_that_runs_wrong_is_found_within_seconds(rate: float, every: float) -> None:
    node = greeted(rate=rate)
    while node.now < 1010.0:
        node.passes(every)
        if not node.votes(there=0.0002, back=0.0002):
            break
    assert node.now <= 1000.0 + JUMP / (0.05 - CREEP) + 2 * every + 0.01


@pytest.mark.parametrize("ahead", [0.02, -0.02])
def test_a_small_step_is_absorbed_slowly(ahead: float) -> None:
    node = greeted()
    node.ahead += ahead
    assert node.votes()
    assert abs(node.error_us) == pytest.approx(20_000, abs=500), "it is not believed at once"
    for _ in range(5):
        node.passes(0.1)
        assert node.votes()
    assert abs(node.error_us) == pytest.approx(20_000 - CREEP * 0.5e6, abs=500)
    for _ in range(10):
        node.passes(0.1)
        assert node.votes()
    assert abs(node.error_us) < 500, "after a second it is"


@pytest.mark.parametrize("sign", [1, -1])
def test_small_steps_do_not_add_up_unseen(sign: int) -> None:
    node = greeted()
    seen = []
    for _ in range(3):
        node.ahead += sign * 0.02
        node.passes(0.1)
        seen.append(node.votes())
    assert seen == [True, False, False]


def test_a_lease_allows_for_a_step_to_either_side() -> None:
    """A clock that was a little behind when it granted may be a little ahead when the key ends."""
    assert 2 * JUMP <= STEP_TOLERANCE


# -- what jumps -----------------------------------------------------------------------------------

JUMPS = [60.0, -60.0, -600.0, 3600.0, 0.04, -0.04]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_is_caught_again_and_again(jump: float) -> None:
    node = greeted()
    node.passes(0.01)
    assert node.votes()
    node.ahead += jump
    assert [node.votes(there=0.0001, back=0.0001) for _ in range(3)] == [False] * 3
    node.ahead -= jump
    assert node.votes(), "nothing was learnt from the wrong time"


@given(
    jump=st.one_of(st.floats(1.5, 1e6), st.floats(-1e6, -1.5)),
    idle=st.floats(0, 10),
    trip=st.floats(0, 0.5),
)
def test_however_the_round_went(jump: float, idle: float, trip: float) -> None:
    """A jump that is longer than the round trips, the tolerance and the creep is always caught."""
    node = Node()
    node.met(there=trip, back=0.0)
    node.passes(idle)
    node.ahead += jump
    assert not node.votes(there=0.0, back=trip)


@pytest.mark.parametrize("idle", [LONGEST_CREEP, STALE - 1])
@pytest.mark.parametrize("jump", [60.0, -600.0])
def test_minutes_of_silence_hide_no_jump(jump: float, idle: float) -> None:
    node = greeted()
    node.passes(idle)
    node.ahead += jump
    assert not node.votes()


def test_minutes_of_silence_are_no_jump() -> None:
    node = greeted(rate=0.0005)  # as fast as clocks are slewed
    node.passes(STALE - 1)
    assert node.votes()


@pytest.mark.parametrize("jump", [0.0, 60.0, -600.0])
def test_what_is_stale_is_worth_nothing(jump: float) -> None:
    """A clock that nobody disciplines is off by more than a jump after an hour."""
    node = greeted()
    node.passes(3600.0)
    node.ahead += jump
    assert node.votes()
    assert abs(node.error_us) <= LONGEST_CREEP * CREEP * 1e6
    node.ahead += 60.0
    assert not node.votes(), "from here on it is known again"


def test_who_need_not_be_safe_follows_every_step() -> None:
    node = greeted(trusting=True)
    for jump in JUMPS:
        node.ahead += jump
        assert node.votes()
        assert abs(node.error_us) <= JUMP * 1e6
    node.ahead += 60.0
    assert node.votes()
    assert abs(node.error_us) <= EXACT


@pytest.mark.parametrize("jump", JUMPS)
def test_how_far_it_jumped_and_when_it_was_last_right(jump: float) -> None:
    node = greeted()
    right = node.shows()
    node.passes(5.0)
    node.ahead += jump
    by_us, right_us = node.clock.jump(node.shows(), node.now, node.now)
    assert by_us == pytest.approx(jump * 1e6, abs=1000)
    assert right_us == pytest.approx(right, abs=1000)


def test_a_clock_that_was_never_seen_has_not_jumped() -> None:
    assert NodeClock(trusting=False).jump(EPOCH_US, 1.0, 2.0) == (0, 0)


# -- new connections, and confirmations -----------------------------------------------------------


@pytest.mark.parametrize("jump", JUMPS)
def test_a_new_connection_hides_no_jump(jump: float) -> None:
    node = greeted()
    node.ahead += jump
    node.met()
    assert not node.votes(), "also if the server was restarted: it may have all its memory"


def test_a_new_connection_tells_of_creeping() -> None:
    node = greeted(rate=CREEP)
    node.passes(30.0)
    node.met()
    assert node.votes()
    assert abs(node.error_us) <= (JUMP + CREEP * 30.0) * 1e6


def test_what_a_node_confirms_is_believed() -> None:
    node = greeted()
    node.ahead += 60.0
    assert not node.votes()
    node.clock.reset(node.shows(), node.now, node.now)
    assert node.votes()
    assert abs(node.error_us) <= EXACT


def test_what_was_sent_before_it_confirmed_does_not_count() -> None:
    """It may have been executed before the node abstained, by the clock that had jumped."""
    node = greeted()
    node.ahead += 60.0
    sent = node.now
    node.passes(0.001)
    node.clock.reset(node.shows(), node.now, node.now)
    node.passes(0.001)
    assert not node.clock.agrees(node.shows(), sent, node.now)
    assert node.votes()


# -- until when -----------------------------------------------------------------------------------


@example(there=0.0, back=0.0, ahead=0.9999, nudge=JUMP, rate=CREEP)
@given(
    there=st.floats(0, 0.5),
    back=st.floats(0, 0.5),
    ahead=st.floats(0, 100),
    nudge=st.floats(-JUMP, JUMP),
    rate=st.floats(-CREEP, CREEP),
)
def test_a_deadline_is_never_too_early(
    there: float, back: float, ahead: float, nudge: float, rate: float
) -> None:
    """When the node's clock shows it, ours is past it; also if it creeps, or was set a little."""
    node = Node()
    node.met(there=there, back=back)
    until = node.now + ahead
    crept = CREEP * min(ahead, LONGEST_CREEP)
    deadline_us = node.clock.deadline_ms(until) * 1000
    right, millisecond = EPOCH_US + until * 1e6, 1000  # nodes are told whole ones
    assert deadline_us > right + (nudge + crept * rate / CREEP) * 1e6 - EXACT
    latest = right + ((there + back) * (1 + CREEP) + JUMP + crept + CREEP) * 1e6
    assert deadline_us <= latest + millisecond + EXACT


def test_a_deadline_by_an_unknown_clock_is_none() -> None:
    assert NodeClock(trusting=False).deadline_ms(7.0) == 0


# -- stamps ---------------------------------------------------------------------------------------


def clocks_of(*aheads: float | None, now: float = 0.0) -> Clocks:
    """Return the clocks of nodes that are so far ahead; None is one that was never met."""
    clocks = Clocks(len(aheads), quorum_of(len(aheads)), trusting=False)
    for clock, ahead in zip(clocks.nodes, aheads, strict=True):
        if ahead is not None:
            clock.meet(EPOCH_US + int((now + ahead) * 1e6), now, now)
    return clocks


@pytest.mark.parametrize(
    ("aheads", "agreed"),
    [
        ((5,), 5),
        ((5, 2), 2),
        ((9, 2, 5), 5),
        ((9, 2, 5, 7), 5),
        ((1000, 2, 5, 7, -1000), 5),
        ((1000, 1000, 5, 7, 6, -1000), 6),
        ((None, 2, 5), 5),
        ((None, None, 5), 5),
        ((None, 9, 2, 5, 7), 7),
        ((None, 9, 2), 9),
        ((None, None, 9, 2, 4), 9),
    ],
)
def test_a_stamp_is_what_a_quorum_has_reached(
    aheads: tuple[float | None, ...], agreed: float
) -> None:
    """As far as that is known: of nodes that were never met it is not."""
    assert clocks_of(*aheads).stamp(0.0) == EPOCH_US + agreed * 1_000_000


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=9))
def test_a_minority_of_wrong_clocks_moves_no_stamp_beyond_the_right_ones(
    aheads: list[int],
) -> None:
    stamp = clocks_of(*aheads).stamp(0.0)
    shown = [EPOCH_US + ahead * 1_000_000 for ahead in aheads]
    assert sum(clock >= stamp for clock in shown) >= quorum_of(len(shown))
    assert stamp in shown


def test_with_no_clock_known_any_number_will_do() -> None:
    clocks = clocks_of(None, None, None)
    assert clocks.stamp(0.0) == 1
    clocks.nodes[1].meet(EPOCH_US, 0.0, 0.0)
    assert clocks.stamp(0.0) == EPOCH_US, "and nobody has to wait for the first that is"


def test_a_stamp_rises_with_our_own_clock() -> None:
    clocks = clocks_of(0, 0, 0)
    stamps = [clocks.stamp(tenth / 10) for tenth in range(50)]
    assert stamps == [EPOCH_US + tenth * 100_000 for tenth in range(50)]


def test_what_was_agreed_is_looked_at_again_soon_and_when_a_node_is_met() -> None:
    clocks = clocks_of(0, 0, 0)
    clocks.stamp(0.0)
    for clock in clocks.nodes:
        clock.reset(EPOCH_US + 7_000_000, 0.0, 0.0)
    assert clocks.stamp(LOOK_AGAIN / 2) < EPOCH_US + 1_000_000
    clocks.reset()
    assert clocks.stamp(LOOK_AGAIN / 2) > EPOCH_US + 7_000_000
    for clock in clocks.nodes:
        clock.reset(EPOCH_US, 0.0, 0.0)
    assert clocks.stamp(2 * LOOK_AGAIN) < EPOCH_US + 1_000_000


@given(
    began=st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)),
    trips=st.lists(st.floats(0, 0.02), min_size=6, max_size=6),
)
def test_two_clients_agree_on_the_time_as_well_as_they_know_it(
    began: tuple[float, float], trips: list[float]
) -> None:
    """Whatever their own clocks show: a stamp is the nodes' time, within half a round trip."""
    now_us, stamps = EPOCH_US + 5_000_000, []
    for client, own in enumerate(began):
        clocks = Clocks(3, 2, trusting=False)
        for clock, trip in zip(clocks.nodes, trips[client * 3 :], strict=False):
            clock.meet(now_us - int(trip * 1e6), own - 2 * trip, own)  # slow to answer
        stamps.append(clocks.stamp(own))
    assert abs(stamps[0] - stamps[1]) <= max(trips) * 1e6 + 2 * EXACT
