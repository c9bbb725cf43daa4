"""Who stands in line, and how they keep their places however time passes.

A waiter asks again every heartbeat, and nodes forget whoever does not. Two things are different
here, and nobody can tell:

- A waiter asks on its own thread or in its own task, and `advance()`, or a slow thread, may let
  much time pass before it can. So before the nodes hear anything for which the line matters, those
  whom they might have forgotten say again where they stand, in order. Nobody loses a place because
  another thread was faster.
- A waiter that asks again though nothing has happened gets the same answer from here, and the nodes
  do not hear of it: a day of waiting is very many heartbeats.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...core.effects import Command, NodeCommand, Verb
from ...core.queue import HEARTBEAT
from ...core.tally import Tally
from ...core.votes import Answer, Verdict, Vote
from .time import Caller, VirtualTime

FRESH = 1.5 * HEARTBEAT
"""Seconds for which a waiter that was heard of need not be heard of again. Nodes forget it after
three heartbeats; one that asks by itself is never silent for so long."""

_LOOKS_AT_THE_LINE = (Verb.REQUEST, Verb.WAIT, Verb.RELEASE, Verb.INSPECT)


@dataclass(slots=True)
class Answers:
    """What the nodes have said to a waiter, and until when they would say the same."""

    votes: list[Vote]
    until: float


@dataclass(slots=True)
class Place:
    """One attempt that stands in line."""

    caller: Caller
    command: Command
    """What keeps the place."""
    fresh_until: float
    """Until when no node can have forgotten it."""
    answers: Answers | None
    """What it was told, unless something has happened since."""


class Line:
    """Places by token, for all locks. Whoever uses it has the mutex of the universe's time."""

    def __init__(self, time: VirtualTime, left: Callable[[str], float]) -> None:
        """Be empty. `left` says for how many seconds all nodes will still have a lock."""
        self._time = time
        self._left = left
        self._places: dict[str, Place] = {}

    # -- before the nodes hear a command ----------------------------------------------------------

    def echo(self, command: Command | NodeCommand, tally: Tally, now: float) -> bool:
        """Answer a waiter that asks once more. False if the nodes have to be asked."""
        place = self._places.get(command.token)
        if place is None or place.answers is None or command != place.command:
            return False
        if not self._is_true(place.answers, place.command.name, now):
            return False
        for node, vote in enumerate(place.answers.votes):
            tally.add(node, vote)
        return True

    def _is_true(self, answers: Answers, name: str, now: float) -> bool:
        """True until the last heartbeat before the lock ends, if it is not renewed.

        Before that, who is told to ask when it ends asks after a heartbeat as well.
        """
        if now >= answers.until:
            answers.until = now + self._left(name) - HEARTBEAT
        return now < answers.until

    def forgotten(self, command: Command, now: float) -> list[Command]:
        """Return what is to be said first, in order, to keep places that the command looks at.

        Nobody speaks for those who cannot go on: as anywhere, they are passed over.
        """
        if command.verb not in _LOOKS_AT_THE_LINE:
            return []
        stale = [
            place.command
            for place in self._places.values()
            if place.fresh_until < now
            and place.command.name == command.name
            and self._time.can_go_on(place.caller)
        ]
        if command.verb is Verb.WAIT:  # it keeps a place itself: only those before it come first
            stale = [each for each in stale if each.stamp < command.stamp]
        return sorted(stale, key=lambda each: each.stamp)

    # -- after they have heard it -----------------------------------------------------------------

    def note(
        self, command: Command, tally: Tally | None, caller: Caller | None, now: float
    ) -> None:
        """Take note of what somebody has said, and of how that was answered."""
        won = tally is not None and tally.verdict is Verdict.WON
        if command.verb is Verb.RELEASE or (command.verb is Verb.REQUEST and won):
            self._places.pop(command.token, None)
            self.stir(command.name)
        elif command.place.is_taken and caller is not None:
            wait = replace(command, verb=Verb.WAIT, ttl_ms=0)
            self._places[command.token] = Place(caller, wait, now + FRESH, _answers(tally, now))

    def kept(self, command: Command, now: float) -> None:
        """Take note that a place was kept."""
        self._places[command.token].fresh_until = now + FRESH

    def called(self, token: str, now: float) -> None:
        """Take note that a waiter was called: nodes forget it as soon as its claim is over."""
        place = self._places.get(token)
        if place is not None:
            place.fresh_until = now

    def stir(self, name: str | None = None) -> None:
        """Let everybody ask the nodes again who waits for that lock, or for any."""
        for place in self._places.values():
            if name is None or place.command.name == name:
                place.answers = None

    def leave(self, caller: Caller) -> None:
        """Keep no place for somebody who is gone without a word."""
        gone = [token for token, place in self._places.items() if place.caller is caller]
        for token in gone:
            self.stir(self._places.pop(token).command.name)


def _answers(tally: Tally | None, now: float) -> Answers | None:
    """Return what a waiter may be told again: that it stands in line, and for a while."""
    if tally is None:
        return None
    votes = [vote for vote in tally.votes if vote is not None and _bids_wait(vote)]
    return Answers(votes, now) if len(votes) == tally.nodes else None


def _bids_wait(vote: Vote) -> bool:
    left = vote.remaining_ms
    return vote.answer is Answer.QUEUED and (left is None or left > HEARTBEAT * 1000)
