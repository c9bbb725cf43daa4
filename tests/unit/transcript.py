"""Driving a flow by hand: given votes in, what it said out."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.effects import Ask, Command, Effect, Listen, NodeCommand, Sleep, Tell
from holdfast.core.place import CLAIM, Hearing, Mail
from holdfast.core.votes import Answer, Vote

STAMP = 1_767_225_600_000_000
"""The first stamp: microseconds since the epoch, like any other."""

Votes = Sequence[Vote | None]


@dataclass(frozen=True)
class Heard:
    """What ends a sleep, so many seconds after it began: calls of nodes, or nobody's."""

    nodes: tuple[int, ...] = ()
    after: float = 0.01


def called(*nodes: int, after: float = 0.01) -> Heard:
    """Let a waiter be called by these nodes."""
    return Heard(nodes, after)


WOKEN = Heard()
"""Somebody wakes a waiter that was not called."""

Step = Votes | Heard


class Numbered:
    """Tokens and stamps in order, and no chance at all."""

    def __init__(
        self, *, hearing: Hearing = Hearing.CALLED, chance: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.drawn = 0
        self.shown = STAMP
        self.hearing = hearing
        self.chance = chance
        self.silent: Mapping[int, float] = {}
        self.expected: list[Mail] = []
        """Attempts that may still be called."""

    def token(self) -> str:
        self.drawn += 1
        return f"t{self.drawn}"

    def stamp(self) -> int:
        self.shown += 1
        return self.shown - 1

    def mail(self) -> Mail:
        mail = Mail(self.token(), polls=self.hearing is Hearing.POLLS)
        self.expected.append(mail)
        return mail

    def forget(self, mail: Mail) -> None:
        if mail in self.expected:
            self.expected.remove(mail)


def _placed(vote: Vote, command: Command | NodeCommand) -> Vote:
    """Return the vote of a node that has taken a waiter at its stamp, unless it says another."""
    if vote.answer not in (Answer.QUEUED, Answer.RESERVED) or vote.mark:
        return vote
    assert isinstance(command, Command)
    return replace(vote, mark=command.stamp)


class Transcript:
    """Drives a flow with given votes. A round takes 10 ms; one without a verdict its patience."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now
        self.said: list[str] = []
        self.pauses: list[float] = []

    def run(self, flow: Any, *steps: Step) -> Any:
        """Run a flow to its end, with the votes of each round; return what it ends with.

        A sleep lasts as long as it should, unless the next step says what is heard.
        """
        left = deque(steps)
        try:
            effect: Effect = next(flow)
            while True:
                self.perform(effect, left)
                effect = flow.send(self.now)
        except StopIteration as end:
            return end.value

    def perform(self, effect: Effect, steps: deque[Step]) -> None:
        """Do what the flow asks for, and write it down."""
        match effect:
            case Ask(command, tally, until):
                self.said.append(f"ask {command.verb.value} {command.token}".rstrip())
                votes = steps.popleft()
                assert not isinstance(votes, Heard), "it asks, and does not sleep"
                for node, vote in enumerate(votes):
                    if vote is not None:
                        tally.add(node, _placed(vote, command))
                self.now = self.now + 0.01 if tally.verdict.value != "pending" else until
            case Tell(command):
                self.said.append(f"tell {command.verb.value} {command.token}")
            case Sleep(until, mail):
                self.said.append("sleep")
                self.pauses.append(until - self.now)
                if steps and isinstance(steps[0], Heard) and mail is not None:
                    heard = steps.popleft()
                    assert isinstance(heard, Heard)
                    self.hear(mail, heard)
                else:
                    self.now = max(self.now, until)
            case Listen(until):
                self.said.append("listen")
                self.now = min(self.now + 0.01, until)

    def hear(self, mail: Mail, heard: Heard) -> None:
        """Wake a waiter."""
        self.now += heard.after
        for node in heard.nodes:
            mail.put(node, self.now, CLAIM)
        if not heard.nodes:
            mail.wake()
