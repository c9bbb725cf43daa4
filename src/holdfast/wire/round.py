"""Whoever waits for the replies of one round: it reads votes and sends forgotten scripts again.

A round is *open* while its flow waits. Once it is over no reply counts any more; a request that
has to be repeated is then dropped, because its release may already have been told. A release is
always repeated: it can only free. If it is repeated because a connection broke, the first one may
have done its work; then a node that does not have the token has been released, whatever it says.
"""

from typing import Any, Protocol

from ..core.effects import Command, Verb
from ..core.tally import Tally
from ..core.votes import GRANTED, Answer, Verdict, Vote
from . import commands
from .link import Link

MOST_REPEATS = 2
"""Per node and round: one for a broken connection, one for a forgotten script after it."""


class Signal(Protocol):
    """How whoever waits for a round hears that it is over; an asyncio future is one."""

    def done(self) -> bool:
        """True if nobody waits any longer."""

    def set_result(self, result: None, /) -> None:
        """Wake whoever waits."""


class Round:
    """One command to every node. Without a tally nobody waits for the votes (a `Tell`)."""

    __slots__ = ("_broken", "_repeats", "_signal", "command", "open", "tally")

    def __init__(
        self, command: Command, tally: Tally | None = None, signal: Signal | None = None
    ) -> None:
        self.command = command
        self.tally = tally
        self.open = tally is not None
        self._signal = signal
        self._repeats: dict[int, int] | None = None
        self._broken: frozenset[int] = frozenset()

    @property
    def wanted(self) -> bool:
        """True while it still makes sense to send this."""
        return self.open or self.command.verb is Verb.RELEASE

    def may_have_reached(self, node: int) -> bool:
        """True if an earlier connection may have carried this to the node."""
        return node in self._broken

    def count(self, node: int, vote: Vote) -> None:
        """Count a node's vote, unless the round is over."""
        tally = self.tally
        if self.open and tally is not None:
            tally.add(node, vote)
            if self._signal is not None and tally.verdict is not Verdict.PENDING:
                self.close()

    def close(self) -> None:
        """End the round: it is decided, or its time is up. Whoever waits for it is told."""
        self.open = False
        if self._signal is not None and not self._signal.done():
            self._signal.set_result(None)

    def answer(self, link: Link, reply: Any) -> None:
        """Take a node's reply; send the script whole if the node has forgotten it."""
        if type(reply) is list and len(reply) == 2 and reply[0] == 1 and type(reply[1]) is int:
            # The usual answer, read at once: this is the hot path.
            tally = self.tally
            if self.open and tally is not None:
                tally.add(link.node, GRANTED)
                signal = self._signal
                if signal is not None and tally.verdict is not Verdict.PENDING:
                    self.open = False
                    if not signal.done():
                        signal.set_result(None)
            return
        if commands.knows_not(reply) and self._once_more(link.node):
            link.say(commands.pack_whole(self.command), self)
            return
        vote = commands.vote_of(reply)
        said_before = self.command.verb is Verb.RELEASE and self.may_have_reached(link.node)
        if said_before and vote.answer in (Answer.HELD, Answer.MISSING):
            vote = GRANTED
        self.count(link.node, vote)

    def may_repeat(self, node: int) -> bool:
        """True if this should be said once more, after a connection broke; counts how often."""
        self._broken |= {node}
        return self._once_more(node)

    def _once_more(self, node: int) -> bool:
        if not self.wanted:
            return False
        repeats = self._repeats = self._repeats or {}
        repeats[node] = repeats.get(node, 0) + 1
        return repeats[node] <= MOST_REPEATS
