"""Whoever waits for the replies of one round: it reads votes and sends forgotten scripts again.

A round is *open* while its flow waits. Once it is over no reply counts any more; a request that
has to be repeated is then dropped, because its release may already have been told. A release is
always repeated: it can only free. If it is repeated because a connection broke, the first one may
have done its work; then a node that does not have the token has been released, whatever it says.

A node that doubts whether it may grant is examined, and then asked again: see `lua/guard.lua`.

A vote counts only if the node's clock agrees with what we know of it. If it has jumped, keys may
have ended there too early: the vote is dropped, and the node is told to abstain. Until it has
confirmed that, nothing it grants counts.
"""

from typing import Any, Protocol

from ..core.clocks import JUMP
from ..core.effects import Command, NodeCommand, Verb
from ..core.tally import Tally
from ..core.votes import DOUBTFUL, GRANTED, Answer, Condition, Verdict, Vote, failed
from . import commands
from .link import Link
from .peer import Correspondent, Peer

MOST_REPEATS = 3
"""Per node and round: one for a broken connection, one for a forgotten script after it, one after
an examination.
"""


class Signal(Protocol):
    """How whoever waits for a round hears that it is over; an asyncio future is one."""

    def done(self) -> bool:
        """True if nobody waits any longer."""

    def set_result(self, result: None, /) -> None:
        """Wake whoever waits."""


class Round:
    """One command to every node. Without a tally nobody waits for the votes (a `Tell`)."""

    __slots__ = ("_broken", "_repeats", "_signal", "command", "open", "sent", "tally", "until")

    def __init__(
        self,
        command: Command | NodeCommand,
        tally: Tally | None = None,
        signal: Signal | None = None,
        sent: float = 0.0,
        until: float = 0.0,
    ) -> None:
        """Begin a round that is `sent` now and lasts `until` then, on our own clock."""
        self.command = command
        self.tally = tally
        self.sent = sent
        self.until = until
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

    def answer(self, link: Correspondent, reply: Any) -> None:
        """Take a node's reply; send the script whole if the node has forgotten it."""
        if type(reply) is list and len(reply) > 2 and type(reply[1]) is int:
            if reply[1] and not link.peer.agrees(reply[1], self.sent) and self._minds(link, reply):
                return
            if reply[0] == 1 and reply[2] == 0:  # the usual answer, read at once: the hot path
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
            link.say(self.finish(commands.pack_whole(self.command), link.peer), self)
            return
        vote = commands.vote_of(reply)
        if self._is_too_early(vote) and self._once_more(link.node):
            link.say(self.finish(commands.pack(self.command), link.peer), self)
            return
        said_before = self.command.verb is Verb.RELEASE and self.may_have_reached(link.node)
        if said_before and vote.answer in (Answer.HELD, Answer.MISSING):
            vote = GRANTED
        if vote is DOUBTFUL:
            self._examine(link)
        self._take(link.node, vote)

    def _is_too_early(self, vote: Vote) -> bool:
        """True if a node calls us late while we wait: what we knew of its clock was wrong.

        It is mended by now.
        """
        failure = vote.failure
        return self.open and failure is not None and failure.condition is Condition.LATE

    def _take(self, node: int, vote: Vote) -> None:
        if not self.open:
            if self.tally is not None:
                self.tally.note_late(vote)
        elif vote is not DOUBTFUL:
            self.count(node, vote)

    def _examine(self, link: Correspondent) -> None:
        """Have a node decide whether it may grant, also if that is too late for this round."""
        examine = NodeCommand(Verb.EXAMINE, self.command.guard)
        link.say(commands.pack(examine) + link.peer.ending(0.0), Examination(examine, self))

    def examined(self, link: Correspondent, vote: Vote) -> None:
        """Ask the node again if it may grant; otherwise that was its vote."""
        if vote.answer is not Answer.TOLD:
            if vote.failure is not None and vote.failure.condition is Condition.MAX_TTL:
                self.command.guard.dispute(vote.remaining_ms or 0)
            if vote.answer is Answer.ABSTAINED and link.peer.on_abstention is not None:
                link.peer.on_abstention(vote)
            self._take(link.node, vote)
        elif self._once_more(link.node):
            link.say(self.finish(commands.pack(self.command), link.peer), self)
        else:
            self.count(link.node, failed(Condition.SERVER_ERROR, "examined again and again"))

    def _minds(self, link: Correspondent, reply: list[Any]) -> bool:
        """Count no vote of a node whose clock has jumped, and tell it to abstain.

        What an operator does is done, and what a node says of itself is heard, whatever it shows.
        """
        if isinstance(self.command, NodeCommand):
            if self.command.verb in (Verb.INIT, Verb.ADMIT):
                link.peer.clock.reset(reply[1], self.sent, link.peer.heard_at)
            return False
        jump_us, right_us = link.peer.jump(reply[1], self.sent)
        failure = f"by {jump_us / 1e6:+.3f} s; its vote does not count, and it is told to abstain"
        if abs(jump_us) <= JUMP * 1e6:  # another connection has told it meanwhile
            failure = "and it has just been told to abstain"
        self.count(link.node, failed(Condition.STEPPED, failure))
        if not link.peer.suspected and abs(jump_us) > JUMP * 1e6:
            link.peer.suspected = True
            command = NodeCommand(
                Verb.SUSPECT, self.command.guard, str(jump_us), str(max(right_us, 0))
            )
            suspicion = _Suspicion(command, link.peer.heard_at)
            link.say(commands.pack(command) + link.peer.ending(0.0), suspicion)
        return True

    def finish(self, packed: bytes, peer: Peer) -> bytes:
        """Return a packed command with its last words."""
        return packed + peer.ending(self.until)

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


class _Suspicion:
    """Waits for a node to confirm that it abstains; only then its clock is believed again."""

    def __init__(self, command: NodeCommand, sent: float) -> None:
        self._command = command
        self._sent = sent

    def answer(self, link: Correspondent, reply: Any) -> None:
        """Believe the clock if the node abstains; otherwise its next vote is dropped as well."""
        if commands.knows_not(reply):
            link.say(commands.pack_whole(self._command) + link.peer.ending(0.0), self)
            return
        link.peer.suspected = False
        if commands.vote_of(reply).answer is Answer.TOLD:
            link.peer.clock.reset(reply[1], self._sent, link.peer.heard_at)


class Examination:
    """Waits for a node to decide whether it may grant, on behalf of a round."""

    def __init__(self, command: NodeCommand, round_: Round) -> None:
        self._command = command
        self.round = round_

    def answer(self, link: Correspondent, reply: Any) -> None:
        """Pass the decision on."""
        if commands.knows_not(reply):
            link.say(commands.pack_whole(self._command) + link.peer.ending(0.0), self)
        else:
            self.round.examined(link, commands.vote_of(reply))


class Unheeded:
    """Waits for an answer that changes nothing."""

    def answer(self, link: object, reply: object) -> None:
        """Do nothing."""


def rounds_in(link: Link | None) -> list[Round]:
    """Return the rounds that wait for an answer, or for an examination; each once, in order."""
    askers = link.awaiting if link is not None else ()
    waiting = (each.round if isinstance(each, Examination) else each for each in askers)
    return [each for each in dict.fromkeys(waiting) if isinstance(each, Round)]
