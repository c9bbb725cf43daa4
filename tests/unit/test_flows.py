"""The flows, step by step: what they ask and tell, and what they make of the answers."""

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.core.acquire import OUTAGE_PATIENCE, acquire
from holdfast.core.effects import Ask, Effect, Sleep, Tell, Verb
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
from holdfast.core.release import release
from holdfast.core.renew import renew
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Vote, failed

HELD = Vote(Answer.HELD, remaining_ms=5000)
DOWN = failed(Condition.UNREACHABLE)
FORBIDDEN = failed(Condition.FORBIDDEN)
TERMS = Terms("x", 10_000, 3, 0.05)
VALID = 10 - 0.2 - 0.002

Votes = Sequence[Vote | None]


class Numbered:
    """Tokens in order, and no chance at all."""

    def __init__(self) -> None:
        self.drawn = 0

    def token(self) -> str:
        self.drawn += 1
        return f"t{self.drawn}"

    def chance(self) -> float:
        return 0.0


class Transcript:
    """Drives a flow with given votes. A round takes 10 ms; one without a verdict its patience."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.said: list[str] = []

    def run(self, flow: Any, *rounds: Votes) -> Any:
        answers = iter(rounds)
        try:
            effect: Effect = next(flow)
            while True:
                self.perform(effect, answers)
                effect = flow.send(self.now)
        except StopIteration as end:
            return end.value

    def perform(self, effect: Effect, answers: Any) -> None:
        match effect:
            case Ask(command, tally, until):
                self.said.append(f"ask {command.verb.value} {command.token}")
                for node, vote in enumerate(next(answers)):
                    if vote is not None:
                        tally.add(node, vote)
                self.now = self.now + 0.01 if tally.verdict.value != "pending" else until
            case Tell(command):
                self.said.append(f"tell {command.verb.value} {command.token}")
            case Sleep(until):
                self.said.append("sleep")
                self.now = max(self.now, until)


def acquiring(wait: float | None, *rounds: Votes, nodes: int = 3) -> tuple[Any, Transcript]:
    transcript = Transcript()
    terms = Terms("x", 10_000, nodes, 0.05)
    return transcript.run(acquire(terms, Numbered(), now=100.0, wait=wait), *rounds), transcript


def test_a_quorum_of_grants_wins_and_counts_from_before_the_round() -> None:
    outcome, transcript = acquiring(0.0, [GRANTED, GRANTED, None])
    assert isinstance(outcome, Acquired)
    assert outcome.valid_until == pytest.approx(100 + VALID)
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


def test_the_next_attempt_has_a_new_token() -> None:
    outcome, transcript = acquiring(5.0, [HELD, HELD, HELD], [GRANTED, GRANTED, GRANTED])
    assert outcome.token == "t2"
    assert transcript.said == ["ask request t1", "tell release t1", "sleep", "ask request t2"]


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


def test_the_last_try_is_made_at_the_deadline() -> None:
    busy = [[HELD, HELD, HELD]] * 1000
    outcome, transcript = acquiring(1.0, *busy)
    assert outcome.why is Miss.TIMED_OUT
    assert 1.0 <= outcome.waited < 1.01 + 1e-6
    assert transcript.said[-3:-1] == ["sleep", f"ask request t{transcript.said.count('sleep') + 1}"]


def test_a_wait_shorter_than_a_round_has_timed_out() -> None:
    outcome, _ = acquiring(0.001, [HELD, HELD, HELD])
    assert outcome.why is Miss.TIMED_OUT


def test_what_cannot_get_better_ends_the_wait() -> None:
    outcome, transcript = acquiring(None, [FORBIDDEN, FORBIDDEN, GRANTED])
    assert outcome.why is Miss.UNREACHABLE
    assert transcript.said == ["ask request t1", "tell release t1"]


def test_an_outage_ends_even_an_endless_wait() -> None:
    outcome, transcript = acquiring(None, *[[DOWN, DOWN, GRANTED]] * 5000)
    assert outcome.why is Miss.UNREACHABLE
    assert OUTAGE_PATIENCE <= transcript.now - 100 < OUTAGE_PATIENCE + 1


def test_an_outage_that_ends_is_waited_for() -> None:
    down, held = [DOWN, DOWN, DOWN], [HELD, HELD, HELD]
    outcome, _ = acquiring(None, *([down] * 50 + [held]) * 20, [GRANTED] * 3)
    assert isinstance(outcome, Acquired)


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
    outcome = transcript.run(flow, *[[HELD, HELD, HELD]] * 1000)
    assert outcome.why is Miss.TIMED_OUT
    assert 1.0 <= outcome.waited < 1.02
    assert 100.5 <= transcript.now < 100.52


def test_an_interrupted_sleep_has_nothing_to_release() -> None:
    flow = acquire(TERMS, Numbered(), now=100.0, wait=None)
    ask = next(flow)
    assert isinstance(ask, Ask)
    for node in range(3):
        ask.tally.add(node, HELD)
    flow.send(100.01)
    assert isinstance(flow.send(100.01), Sleep)
    with pytest.raises(KeyboardInterrupt):
        flow.throw(KeyboardInterrupt())


def test_a_flow_can_simply_be_dropped() -> None:
    flow = acquire(TERMS, Numbered(), now=100.0, wait=None)
    next(flow)
    flow.close()


def renewing(
    votes: Votes, *, valid_until: float = 105.0, now: float = 100.0
) -> tuple[Any, list[str]]:
    transcript = Transcript(now)
    flow = renew(TERMS, "t", valid_until=valid_until, now=now)
    return transcript.run(flow, votes), transcript.said


def test_renewal_takes_a_quorum() -> None:
    outcome, said = renewing([GRANTED, None, GRANTED])
    assert outcome == Renewed(pytest.approx(100 + VALID))
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


def test_a_lease_that_has_ended_is_not_even_asked_about() -> None:
    outcome, said = renewing([GRANTED] * 3, valid_until=100.0)
    assert outcome == Lost(LossReason.EXPIRED)
    assert said == []


def test_a_renewal_that_is_seen_too_late_revives_nothing() -> None:
    outcome, said = renewing([GRANTED] * 3, valid_until=100.005)
    assert outcome == Lost(LossReason.EXPIRED)
    assert said == ["ask renew t"]  # and no release: somebody else may have renewed it meanwhile


def test_a_renewal_waits_no_longer_than_the_lease_lasts() -> None:
    flow = renew(TERMS, "t", valid_until=100.02, now=100.0)
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
