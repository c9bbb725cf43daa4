"""Whoever waits for the replies of one round: it reads votes and sends forgotten scripts again.

A round is *open* while its flow waits. Once it is over no reply counts any more; a request that
has to be repeated is then dropped, because its release may already have been told. A release is
always repeated: it can only free.
"""

from typing import Any

from ..core.effects import Command, Verb
from ..core.tally import Tally
from ..core.votes import Vote
from . import commands
from .link import Link

MOST_REPEATS = 2
"""Per node and round: one for a broken connection, one for a forgotten script after it."""


class Round:
    """One command to every node. Without a tally nobody waits for the votes (a `Tell`)."""

    __slots__ = ("_repeats", "command", "open", "tally")

    def __init__(self, command: Command, tally: Tally | None = None) -> None:
        self.command = command
        self.tally = tally
        self.open = tally is not None
        self._repeats: dict[int, int] | None = None

    @property
    def wanted(self) -> bool:
        """True while it still makes sense to send this."""
        return self.open or self.command.verb is Verb.RELEASE

    def count(self, node: int, vote: Vote) -> None:
        """Count a node's vote, unless the round is over."""
        if self.open and self.tally is not None:
            self.tally.add(node, vote)

    def answer(self, link: Link, reply: Any) -> None:
        """Take a node's reply; send the script whole if the node has forgotten it."""
        if commands.knows_not(reply) and self.may_repeat(link.node):
            link.say(commands.pack_whole(self.command), self)
        else:
            self.count(link.node, commands.vote_of(reply))

    def may_repeat(self, node: int) -> bool:
        """True if this should be said to the node once more; counts how often."""
        if not self.wanted:
            return False
        repeats = self._repeats = self._repeats or {}
        repeats[node] = repeats.get(node, 0) + 1
        return repeats[node] <= MOST_REPEATS
