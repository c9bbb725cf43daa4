"""Driving a flow by hand: given votes in, what it said out."""

from collections.abc import Sequence
from typing import Any

from holdfast.core.effects import Ask, Effect, Sleep, Tell
from holdfast.core.votes import Vote

STAMP = 1_767_225_600_000_000
"""The first stamp: microseconds since the epoch, like any other."""

Votes = Sequence[Vote | None]


class Numbered:
    """Tokens in order, one stamp, and no chance at all."""

    def __init__(self) -> None:
        self.drawn = 0

    def token(self) -> str:
        self.drawn += 1
        return f"t{self.drawn}"

    def stamp(self) -> int:
        return STAMP

    def chance(self) -> float:
        return 0.0


class Transcript:
    """Drives a flow with given votes. A round takes 10 ms; one without a verdict its patience."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.said: list[str] = []
        self.pauses: list[float] = []

    def run(self, flow: Any, *rounds: Votes) -> Any:
        """Run a flow to its end, with the votes of each round; return what it ends with."""
        answers = iter(rounds)
        try:
            effect: Effect = next(flow)
            while True:
                self.perform(effect, answers)
                effect = flow.send(self.now)
        except StopIteration as end:
            return end.value

    def perform(self, effect: Effect, answers: Any) -> None:
        """Do what the flow asks for, and write it down."""
        match effect:
            case Ask(command, tally, until):
                self.said.append(f"ask {command.verb.value} {command.token}".rstrip())
                for node, vote in enumerate(next(answers)):
                    if vote is not None:
                        tally.add(node, vote)
                self.now = self.now + 0.01 if tally.verdict.value != "pending" else until
            case Tell(command):
                self.said.append(f"tell {command.verb.value} {command.token}")
            case Sleep(until):
                self.said.append("sleep")
                self.pauses.append(until - self.now)
                self.now = max(self.now, until)
