"""The flows, step by step: what they ask and tell, and what they make of the answers."""

from typing import Any

import pytest

from holdfast.core.acquire import acquire
from holdfast.core.effects import Ask, Tell, Verb
from holdfast.core.guard import NO_GUARD
from holdfast.core.outcomes import (
    Acquired,
    LossReason,
    Lost,
    Miss,
    Missed,
    Released,
    Renewed,
    Unsure,
)
from holdfast.core.place import Hearing
from holdfast.core.queue import OUTAGE_PATIENCE
from holdfast.core.release import release
from holdfast.core.renew import renew
from holdfast.core.retry import LARGEST_SPREAD, LONGEST_ABSENCE
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Failure, Vote, failed
from holdfast.errors import Unreachable
from holdfast.reports import error_of
from holdfast.wire.endpoint import Endpoint
from unit.transcript import STAMP, Numbered, Step, Transcript, Votes

HELD = Vote(Answer.HELD, remaining_ms=5000)
QUEUED = Vote(Answer.QUEUED, remaining_ms=5000)
RESERVED = Vote(Answer.RESERVED, remaining_ms=300)
DOWN = failed(Condition.UNREACHABLE)
FORBIDDEN = failed(Condition.FORBIDDEN)
TERMS = Terms("x", 10_000, 3, 0.05)
VALID = 10 - 0.2 - 0.002
FENCE = 7


def abstains(seconds: float) -> Vote:
    """A node that may have forgotten, and grants nothing for so long."""
    failure = Failure(Condition.ABSTAINING, f"restarted; abstains for {seconds:g} s more")
    return Vote(Answer.ABSTAINED, remaining_ms=int(seconds * 1000), failure=failure)


def acquiring(
    wait: float | None, *steps: Step, nodes: int = 3, hearing: Hearing = Hearing.CALLED
) -> tuple[Any, Transcript]:
    transcript = Transcript()
    terms = Terms("x", 10_000, nodes, 0.05)
    flow = acquire(terms, Numbered(hearing=hearing), now=100.0, wait=wait)
    return transcript.run(flow, *steps), transcript


def test_a_quorum_of_grants_wins_and_counts_from_before_the_round() -> None:
    outcome, transcript = acquiring(0.0, [GRANTED, GRANTED, None])
    assert isinstance(outcome, Acquired)
    assert outcome.valid_until == pytest.approx(100 + VALID)
    assert outcome.fence == STAMP
    assert transcript.said == ["ask request t1"]


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        ([HELD, HELD, None], Miss.BUSY),
        ([GRANTED, HELD, HELD], Miss.BUSY),
        ([GRANTED, HELD, DOWN], Miss.BUSY),
        ([GRANTED, DOWN, DOWN], Miss.UNREACHABLE),
        ([GRANTED, None, None], Miss.UNREACHABLE),
        ([None, None, None], Miss.UNREACHABLE),
    ],
)
def test_whoever_loses_tells_every_node(votes: Votes, why: Miss) -> None:
    outcome, transcript = acquiring(0.0, votes)
    assert isinstance(outcome, Missed)
    assert outcome.why is why
    assert transcript.said == ["ask request t1", "tell release t1"]


def test_who_was_never_called_tries_once_and_then_sees_to_it_that_it_can_be() -> None:
    held, granted = [HELD] * 3, [GRANTED] * 3
    outcome, transcript = acquiring(5.0, held, granted, hearing=Hearing.UNKNOWN)
    assert outcome.token == "t2"
    assert transcript.said == ["ask request t1", "tell release t1", "listen", "ask request t2"]


def test_who_finds_the_lock_free_needs_no_inbox() -> None:
    outcome, transcript = acquiring(5.0, [GRANTED] * 3, hearing=Hearing.UNKNOWN)
    assert isinstance(outcome, Acquired)
    assert transcript.said == ["ask request t1"]


@pytest.mark.parametrize("hearing", list(Hearing))
def test_one_try_is_one_try_whoever_may_be_called(hearing: Hearing) -> None:
    outcome, transcript = acquiring(0.0, [HELD] * 3, hearing=hearing)
    assert outcome.why is Miss.BUSY
    assert transcript.said == ["ask request t1", "tell release t1"]


def test_a_quorum_that_is_seen_too_late_is_no_lease() -> None:
    terms = Terms("x", 20, 3, 0.05)
    flow = acquire(terms, Numbered(), now=100.0, wait=0.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    for node in range(3):
        ask.tally.add(node, GRANTED)
    told = flow.send(100.02)  # its validity is over
    assert isinstance(told, Tell)
    with pytest.raises(StopIteration) as end:
        flow.send(100.02)
    assert isinstance(end.value.value, Missed)


@pytest.mark.parametrize("hearing", list(Hearing))
def test_a_wait_shorter_than_a_round_has_timed_out(hearing: Hearing) -> None:
    votes = [HELD] * 3 if hearing is Hearing.UNKNOWN else [QUEUED] * 3
    outcome, transcript = acquiring(0.001, votes, hearing=hearing)
    assert outcome.why is Miss.TIMED_OUT
    assert transcript.said == ["ask request t1", "tell release t1"]


@pytest.mark.parametrize("hearing", list(Hearing))
def test_what_cannot_get_better_ends_the_wait(hearing: Hearing) -> None:
    outcome, transcript = acquiring(None, [FORBIDDEN, FORBIDDEN, GRANTED], hearing=hearing)
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said == ["ask request t1", "tell release t1"]


@pytest.mark.parametrize("hearing", list(Hearing))
def test_an_outage_ends_even_an_endless_wait(hearing: Hearing) -> None:
    outcome, transcript = acquiring(None, *[[DOWN, DOWN, QUEUED]] * 5000, hearing=hearing)
    assert outcome.why is Miss.UNREACHABLE
    assert OUTAGE_PATIENCE <= transcript.now - 100 < OUTAGE_PATIENCE + 1


def test_an_outage_that_ends_is_waited_for() -> None:
    down, queued = [DOWN, DOWN, DOWN], [QUEUED, QUEUED, QUEUED]
    steps = ([down] * 50 + [queued]) * 20
    outcome, transcript = acquiring(None, *steps, [RESERVED] * 3, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert transcript.now - 100 > OUTAGE_PATIENCE / 2


def test_an_outage_with_a_deadline_is_waited_for_until_then() -> None:
    outcome, transcript = acquiring(2 * OUTAGE_PATIENCE, *[[DOWN] * 3] * 9000)
    assert outcome.why is Miss.UNREACHABLE
    assert 0 <= transcript.now - 100 - 2 * OUTAGE_PATIENCE < 0.1


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_nodes_that_are_down_are_asked_again_after_a_pause(chance: float) -> None:
    transcript = Transcript()
    flow = acquire(TERMS, Numbered(chance=lambda: chance), now=100.0, wait=5.0)
    transcript.run(flow, *[[DOWN] * 3] * 500)
    *pauses, _ = transcript.pauses  # the last one ends with the wait
    assert all(0.02 - 1e-9 <= pause <= 0.02 + LARGEST_SPREAD for pause in pauses)


# -- nodes that abstain ---------------------------------------------------------------------------


def abstaining(seconds: float, *others: Vote | None) -> list[Votes]:
    """Rounds in which nodes abstain for ever shorter, asked once a second: until they grant."""
    left = [abstains(seconds - turn) for turn in range(int(seconds))]
    return [[each] * (3 - len(others)) + list(others) for each in left]


@pytest.mark.parametrize("others", [(), (QUEUED,), (DOWN,), (None,)])
def test_who_abstains_is_waited_for_beyond_any_outage(others: Votes) -> None:
    steps = [*abstaining(62.0, *others), [RESERVED] * 3, [GRANTED] * 3]
    outcome, transcript = acquiring(None, *steps)
    assert isinstance(outcome, Acquired)
    assert transcript.now - 100 > 2 * OUTAGE_PATIENCE - 1
    assert len(transcript.pauses) >= 61
    assert transcript.pauses == [pytest.approx(LONGEST_ABSENCE)] * len(transcript.pauses), (
        "once a second: it may be admitted"
    )


@pytest.mark.parametrize("seconds", [0.5, 0.03, 0.001])
def test_at_its_end_it_is_asked_at_once(seconds: float) -> None:
    outcome, transcript = acquiring(None, [abstains(seconds)] * 3, [RESERVED] * 3, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)
    assert transcript.pauses == [pytest.approx(seconds)]


def test_the_soonest_that_make_up_a_quorum_decide() -> None:
    votes = [abstains(0.9), abstains(0.3), abstains(0.6)]
    _, transcript = acquiring(None, votes, [RESERVED] * 3, [GRANTED] * 3)
    assert transcript.pauses == [pytest.approx(0.6)]


def test_an_abstention_that_is_just_over_is_no_busy_loop() -> None:
    _, transcript = acquiring(None, [abstains(0.0)] * 3, [RESERVED] * 3, [GRANTED] * 3)
    assert 0 < transcript.pauses[0] <= LARGEST_SPREAD


def test_a_minority_that_abstains_does_not_matter() -> None:
    outcome, _ = acquiring(0.0, [GRANTED, abstains(60), GRANTED])
    assert isinstance(outcome, Acquired)
    outcome, _ = acquiring(0.0, [HELD, abstains(60), HELD])
    assert outcome.why is Miss.BUSY
    soon = Vote(Answer.QUEUED, remaining_ms=400)
    steps = [[soon, abstains(60), soon], [RESERVED, abstains(60), RESERVED]]
    outcome, transcript = acquiring(None, *steps, [GRANTED, abstains(60), GRANTED])
    assert isinstance(outcome, Acquired)
    assert transcript.pauses == [pytest.approx(0.4)], "when the holder's time is up"


def test_an_outage_with_an_abstention_is_an_outage() -> None:
    outcome, transcript = acquiring(None, *[[abstains(60), DOWN, DOWN]] * 5000)
    assert outcome.why is Miss.UNREACHABLE
    assert OUTAGE_PATIENCE <= transcript.now - 100 < OUTAGE_PATIENCE + 1


def test_an_outage_counts_from_when_nobody_abstained_any_more() -> None:
    outcome, transcript = acquiring(None, *abstaining(40.0), *[[DOWN] * 3] * 5000)
    assert outcome.why is Miss.UNREACHABLE
    assert 39 + OUTAGE_PATIENCE <= transcript.now - 100 < 42 + OUTAGE_PATIENCE


@pytest.mark.parametrize(("wait", "sleeps"), [(0.0, 0), (2.5, 3)])
def test_whoever_waits_no_longer_hears_what_the_nodes_said(wait: float, sleeps: int) -> None:
    outcome, transcript = acquiring(wait, *[[abstains(60), abstains(50), None]] * 9)
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said.count("sleep") == sleeps
    assert transcript.said[-1].startswith("tell release")
    nodes = [Endpoint(path=f"/node/{number}") for number in range(3)]
    error = error_of(nodes, "x", outcome, NO_GUARD)
    assert isinstance(error, Unreachable)
    assert [str(report) for report in error.reports] == [
        "unix:///node/0: restarted; abstains for 60 s more",
        "unix:///node/1: restarted; abstains for 50 s more",
        "unix:///node/2: no answer in time",
    ]


@pytest.mark.parametrize(
    ("nodes", "granted", "won"), [(2, 1, False), (2, 2, True), (4, 2, False), (4, 3, True)]
)
def test_even_numbers_of_nodes(nodes: int, granted: int, won: bool) -> None:
    votes = [GRANTED] * granted + [HELD] * (nodes - granted)
    outcome, _ = acquiring(0.0, votes, nodes=nodes)
    assert isinstance(outcome, Acquired) is won


def test_an_interrupted_round_is_released_and_nothing_else_is_waited_for() -> None:
    flow = acquire(TERMS, Numbered(), now=100.0, wait=None)
    next(flow)
    told = flow.throw(KeyboardInterrupt())
    assert isinstance(told, Tell)
    assert (told.command.verb, told.command.token) == (Verb.RELEASE, "t1")
    with pytest.raises(KeyboardInterrupt):
        flow.send(100.0)


def test_an_interruption_after_the_grant_is_released_too() -> None:
    class Striking(float):
        def __lt__(self, other: object) -> bool:
            raise KeyboardInterrupt

    flow = acquire(TERMS, Numbered(), now=100.0, wait=None)
    ask = next(flow)
    assert isinstance(ask, Ask)
    for node in range(3):
        ask.tally.add(node, GRANTED)
    told = flow.send(Striking(100.0))  # strikes where the flow looks at the time
    assert isinstance(told, Tell)
    assert told.command.verb is Verb.RELEASE
    with pytest.raises(KeyboardInterrupt):
        flow.send(100.0)


def test_a_wait_counts_from_when_it_began() -> None:
    transcript = Transcript()
    flow = acquire(TERMS, Numbered(), now=100.0, wait=1.0, since=99.5)
    outcome = transcript.run(flow, [QUEUED] * 3, [HELD] * 3)
    assert outcome.why is Miss.TIMED_OUT
    assert 1.0 <= outcome.waited < 1.02
    assert 100.5 <= transcript.now < 100.52


def test_a_flow_can_simply_be_dropped() -> None:
    flow = acquire(TERMS, Numbered(), now=100.0, wait=None)
    next(flow)
    flow.close()


def renewing(
    votes: Votes, *, valid_until: float = 105.0, now: float = 100.0
) -> tuple[Any, list[str]]:
    transcript = Transcript(now)
    flow = renew(TERMS, "t", fence=FENCE, valid_until=valid_until, now=now)
    return transcript.run(flow, votes), transcript.said


def test_renewal_takes_a_quorum() -> None:
    outcome, said = renewing([GRANTED, None, GRANTED])
    assert isinstance(outcome, Renewed)
    assert outcome.valid_until == pytest.approx(100 + VALID)
    assert not outcome.tally.gaps
    assert said == ["ask renew t"]


@pytest.mark.parametrize(
    "votes", [[GRANTED, DOWN, DOWN], [GRANTED, None, None], [GRANTED, MISSING, DOWN]]
)
def test_too_few_answers_leave_the_lease_as_it_is(votes: Votes) -> None:
    outcome, said = renewing(votes)
    assert isinstance(outcome, Unsure)
    assert said == ["ask renew t"]


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        ([MISSING, MISSING, GRANTED], LossReason.DELETED),
        ([HELD, MISSING, GRANTED], LossReason.TAKEN),
        ([HELD, HELD, HELD], LossReason.TAKEN),
    ],
)
def test_a_denied_renewal_is_a_loss_and_is_cleared(votes: Votes, reason: LossReason) -> None:
    outcome, said = renewing(votes)
    assert outcome == Lost(reason)
    assert said == ["ask renew t", "tell release t"]


def test_votes_that_are_missing_in_the_minority_do_not_matter() -> None:
    outcome, said = renewing([GRANTED, MISSING, GRANTED])
    assert isinstance(outcome, Renewed)
    assert outcome.valid_until == pytest.approx(100 + VALID)
    assert outcome.tally.gaps, "the next one should repair it"
    assert said == ["ask renew t"]


@pytest.mark.parametrize("fence", [0, FENCE])
def test_a_renewal_bears_the_fence_if_it_repairs_and_its_release_is_noted(fence: int) -> None:
    flow = renew(TERMS, "t", fence=fence, valid_until=105.0, now=100.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    assert (ask.command.verb, ask.command.stamp) == (Verb.RENEW, fence)
    for node in range(3):
        ask.tally.add(node, MISSING)
    told = flow.send(100.01)
    assert isinstance(told, Tell)
    assert told.command.ttl_ms > TERMS.ttl_ms, "an earlier renewal may have repaired it"


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        ([abstains(60)] * 3, LossReason.FORGOTTEN),
        ([GRANTED, abstains(60), abstains(60)], LossReason.FORGOTTEN),
        ([GRANTED, abstains(60), None], LossReason.FORGOTTEN),
        ([GRANTED, abstains(60), DOWN], LossReason.FORGOTTEN),
        ([GRANTED, abstains(60), MISSING], LossReason.FORGOTTEN),
        ([abstains(60), DOWN, DOWN], LossReason.UNREACHABLE),
        ([GRANTED, MISSING, DOWN], LossReason.UNREACHABLE),
        ([GRANTED, None, None], LossReason.UNREACHABLE),
    ],
)
def test_who_abstains_denies_nothing(votes: Votes, why: LossReason) -> None:
    outcome, said = renewing(votes)
    assert isinstance(outcome, Unsure)
    assert outcome.why is why
    assert said == ["ask renew t"], "the lease is left alone"


def test_a_lease_that_has_ended_is_not_even_asked_about() -> None:
    outcome, said = renewing([GRANTED] * 3, valid_until=100.0)
    assert outcome == Lost(LossReason.EXPIRED)
    assert said == []


def test_a_renewal_that_is_seen_too_late_revives_nothing() -> None:
    outcome, said = renewing([GRANTED] * 3, valid_until=100.005)
    assert outcome == Lost(LossReason.EXPIRED)
    assert said == ["ask renew t"]  # and no release: somebody else may have renewed it meanwhile


def test_a_renewal_waits_no_longer_than_the_lease_lasts() -> None:
    flow = renew(TERMS, "t", fence=FENCE, valid_until=100.02, now=100.0)
    ask = next(flow)
    assert isinstance(ask, Ask)
    assert ask.until == 100.02
    flow.close()


@pytest.mark.parametrize(
    ("votes", "outcome"),
    [
        ([GRANTED, GRANTED, MISSING], Released.FREED),
        ([GRANTED, DOWN, None], Released.LAPSING),
        ([GRANTED, MISSING, DOWN], Released.LAPSING),
        ([MISSING, MISSING, GRANTED], Lost(LossReason.DELETED)),
        ([HELD, HELD, MISSING], Lost(LossReason.TAKEN)),
    ],
)
def test_release_goes_to_all_and_says_how_it_went(votes: Votes, outcome: object) -> None:
    transcript = Transcript()
    flow = release(TERMS, "t", valid_until=105.0, now=100.0)
    assert transcript.run(flow, votes) == outcome
    assert transcript.said == ["ask release t"]


def test_release_after_the_end_is_a_loss_but_frees() -> None:
    transcript = Transcript()
    flow = release(TERMS, "t", valid_until=99.0, now=100.0)
    assert transcript.run(flow, [GRANTED] * 3) == Lost(LossReason.EXPIRED)
    assert transcript.said == ["ask release t"]


def test_an_interrupted_release_is_told_again() -> None:
    flow = release(TERMS, "t", valid_until=105.0, now=100.0)
    next(flow)
    told = flow.throw(KeyboardInterrupt())
    assert isinstance(told, Tell)
    assert told.command.verb is Verb.RELEASE
    with pytest.raises(KeyboardInterrupt):
        flow.send(100.0)
