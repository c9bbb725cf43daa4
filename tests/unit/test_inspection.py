"""Who has a lock and who waits for it, from what nodes say."""

from datetime import UTC, datetime

import pytest

from holdfast.core.effects import Ask
from holdfast.core.inspect import InLine, Sight, inspect
from holdfast.core.nodes import Poll
from holdfast.core.terms import Terms
from holdfast.core.votes import Answer, Condition, Vote, failed
from holdfast.errors import Unreachable
from holdfast.inspection import Holder, holder_in, sights_in, waiters_in
from holdfast.wire.endpoint import Endpoint
from unit.transcript import Transcript

NOW = 1_767_225_600_000_000
ALIVE = NOW // 1000 + 3000
SECRET = "3f9c" * 10
FOREIGN = "a3b8a9f0-another-program"


def token(number: int, label: str = "web") -> str:
    return f"{SECRET}+host-{number}/{number}/{label}/0000000{number}"


def in_line(number: int, came: int = 0, ends_ms: int = ALIVE) -> InLine:
    """Somebody who waits, and came so many seconds after the first."""
    return InLine(token(number), NOW + came * 1_000_000, ends_ms)


def sight(
    holder: str = "",
    *line: InLine,
    called: str = "",
    left: int | None = 5000,
    fence: int = NOW,
    now: int = NOW,
) -> Sight:
    return Sight(now, holder, called, left if holder or called else None, fence, line)


EMPTY = sight()


# -- the holder -----------------------------------------------------------------------------------


def test_who_has_it_at_a_quorum_has_it() -> None:
    sights = [sight(token(1)), sight(token(1), left=4000), EMPTY]
    assert holder_in(sights, 3) == Holder(
        "host-1", 1, "web", NOW, datetime(2026, 1, 1, tzinfo=UTC), 4.0
    )
    assert str(holder_in(sights, 3)) == "web on host-1, process 1"


@pytest.mark.parametrize(
    "sights",
    [
        [EMPTY, EMPTY, EMPTY],
        [sight(token(1)), EMPTY, EMPTY],
        [sight(token(1)), sight(token(2)), EMPTY],
        [sight(token(1)), sight(token(2)), sight(token(3))],
    ],
)
def test_fewer_have_nothing(sights: list[Sight]) -> None:
    assert holder_in(sights, 3) is None


def test_a_quorum_is_one_of_all_nodes_and_not_of_those_that_answered() -> None:
    assert holder_in([sight(token(1)), sight(token(1))], 5) is None
    assert holder_in([sight(token(1))] * 3, 5) is not None


def test_one_node_is_a_quorum() -> None:
    holder = holder_in([sight(token(1))], 1)
    assert holder is not None
    assert (holder.pid, holder.remaining) == (1, 5.0)


def test_who_is_called_does_not_have_it_yet() -> None:
    reserved = sight("", in_line(1), in_line(2, 1), called=token(1), left=300)
    assert holder_in([reserved] * 3, 3) is None


@pytest.mark.parametrize(
    ("left", "remaining"),
    [
        ((9000, 4000, 1000), 4.0),
        ((9000, None, 1000), 1.0),
        ((None, None, 1000), None),
        ((None, None, None), None),
    ],
)
def test_it_is_kept_for_as_long_as_a_quorum_keeps_it(
    left: tuple[int | None, ...], remaining: float | None
) -> None:
    holder = holder_in([sight(token(1), left=each) for each in left], 3)
    assert holder is not None
    assert holder.remaining == remaining


@pytest.mark.parametrize(
    ("marks", "fence"),
    [
        ((NOW, NOW, NOW), NOW),
        ((NOW, NOW, NOW + 9), NOW),  # left by an attempt that failed
        ((NOW, NOW + 9, 0), NOW + 9),
        ((0, 0, 0), None),
    ],
)
def test_its_fence_is_what_most_have_accepted(marks: tuple[int, ...], fence: int | None) -> None:
    holder = holder_in([sight(token(1), fence=mark) for mark in marks], 3)
    assert holder is not None
    assert holder.fence == fence
    assert (holder.since is None) == (fence is None)


def test_another_program_does_not_say_who_it_is() -> None:
    holder = holder_in([sight(FOREIGN)] * 3, 3)
    assert holder == Holder(None, None, None, None, None, 5.0)
    assert str(holder) == "another program"


# -- those who wait -------------------------------------------------------------------------------


def test_who_waits_in_order_and_at_how_many_nodes() -> None:
    sights = [
        sight(token(9), in_line(1), in_line(2, 1), in_line(3, 2)),
        sight(token(9), in_line(1), in_line(3, 2)),
        sight(token(9), in_line(2, 1), in_line(3, 2)),
    ]
    waiters = waiters_in(sights)
    assert [(waiter.pid, waiter.nodes, waiter.called) for waiter in waiters] == [
        (1, 2, False), (2, 2, False), (3, 3, False),
    ]  # fmt: skip
    assert [waiter.since.second for waiter in waiters] == [0, 1, 2]
    assert str(waiters[1]) == "web on host-2, process 2"


def test_nobody_waits() -> None:
    assert waiters_in([EMPTY, sight(token(1)), EMPTY]) == []


def test_who_is_called_still_waits() -> None:
    reserved = sight("", in_line(1), in_line(2, 1), called=token(1), left=300)
    waiters = waiters_in([reserved, reserved, sight("", in_line(1))])
    assert [(waiter.pid, waiter.called) for waiter in waiters] == [(1, True), (2, False)]


def test_who_has_it_at_one_node_waits_no_longer_at_another() -> None:
    """It was granted there; elsewhere its word is still on its way."""
    sights = [sight(token(1), in_line(2, 1)), sight(token(9), in_line(1), in_line(2, 1))]
    assert [waiter.pid for waiter in waiters_in(sights)] == [2]


def test_who_was_not_heard_of_for_too_long_is_dead() -> None:
    dead = in_line(1, 0, ends_ms=NOW // 1000 - 1)
    last = in_line(2, 1, ends_ms=NOW // 1000)
    assert [waiter.pid for waiter in waiters_in([sight(token(9), dead, last)])] == [2]


def test_each_node_goes_by_its_own_clock() -> None:
    ahead = NOW + 60_000_000
    sights = [
        sight(token(9), in_line(1, ends_ms=ahead // 1000 + 10), now=ahead),
        sight(token(9), in_line(1)),
    ]
    assert [waiter.nodes for waiter in waiters_in(sights)] == [2]


def test_another_programs_name_may_be_in_line() -> None:
    [waiter] = waiters_in([sight("", InLine("odd", NOW, ALIVE))])
    assert (waiter.host, str(waiter)) == (None, "another program")


# -- asking ---------------------------------------------------------------------------------------

TERMS = Terms("x", 10_000, 3, 0.05)
ENDPOINTS = [Endpoint(path=f"/node/{number}") for number in range(3)]


def told(seen: Sight) -> Vote:
    return Vote(Answer.TOLD, facts=(seen,))


def test_every_node_is_asked_and_nobody_is_released() -> None:
    transcript = Transcript()
    flow = inspect(TERMS, now=100.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    assert ask.until == pytest.approx(101.0), "a long line takes a while"
    flow.close()
    votes = [told(sight(token(1))), failed(Condition.UNREACHABLE), None]
    poll = transcript.run(inspect(TERMS, now=100.0), votes)
    assert transcript.said == ["ask inspect -"]
    assert poll.votes == votes


def poll_of(*votes: Vote | None) -> Poll:
    poll = Poll(len(votes), range(len(votes)))
    for node, vote in enumerate(votes):
        if vote is not None:
            poll.add(node, vote)
    return poll


def test_a_quorum_that_answers_is_enough() -> None:
    seen = [sight(token(1)), EMPTY]
    poll = poll_of(told(seen[0]), failed(Condition.UNREACHABLE), told(seen[1]))
    assert sights_in(poll, TERMS, ENDPOINTS, 0.01) == seen


def test_fewer_do_not_know() -> None:
    poll = poll_of(told(EMPTY), failed(Condition.FORBIDDEN, "NOPERM"), None)
    with pytest.raises(Unreachable) as caught:
        sights_in(poll, TERMS, ENDPOINTS, 0.05)
    words = [str(report) for report in caught.value.reports]
    assert words[1:] == [
        "unix:///node/1: permission denied: NOPERM", "unix:///node/2: no answer in time",
    ]  # fmt: skip
