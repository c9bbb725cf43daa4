"""A node without a connection: the shipped Lua on a model of a server, asked as real ones are."""

import itertools
from typing import Any

import hiredis

from holdfast.core.clocks import NodeClock
from holdfast.core.effects import Command, NodeCommand, Verb
from holdfast.core.guard import Guard
from holdfast.core.tally import Tally
from holdfast.core.terms import Terms
from holdfast.core.votes import Answer, Vote
from holdfast.testing.server import Server
from holdfast.wire import commands
from holdfast.wire.peer import Peer
from holdfast.wire.round import Round
from holdfast.wire.scripts import SCRIPTS

STARTED_US = 1_767_225_600_000_000
MINUTE = Guard(60_000)


class Ending(Peer):
    """A peer whose last words are given."""

    def __init__(self) -> None:
        super().__init__(NodeClock(trusting=True), 0)
        self.words = (0, 0)

    def ending(self, until: float) -> bytes:
        database, not_after_ms = self.words
        return b"$%d\r\n%d\r\n$13\r\n%013d\r\n" % (len(str(database)), database, not_after_ms)


class Node:
    """A model server with a clock that is moved by hand. It is asked as real ones are."""

    node = 0

    def __init__(self, guard: Guard = MINUTE) -> None:
        self.guard = guard
        self.now_us = STARTED_US
        self.server = Server(lambda: self.now_us)
        self.peer = Ending()
        self.heard: list[Verb] = []
        """What it was asked, since somebody last cleared this."""
        self._stamps = itertools.count(1)

    def passes(self, milliseconds: float) -> None:
        self.now_us += int(milliseconds * 1000)

    def say(self, packed: bytes, asker: Any) -> None:
        """Answer as a connection would."""
        reply = self.server.execute(packed)
        if not commands.knows_not(reply):
            words = hiredis.Reader()
            words.feed(packed)
            script = words.gets()[1].decode()
            known = (verb for verb, each in SCRIPTS.items() if script in (each.sha, each.text))
            self.heard.append(next(known))
        asker.answer(self, reply)

    def asks(self, command: Command | NodeCommand, *, not_after_ms: int = 0, db: int = 0) -> Vote:
        """Return the node's vote, after whatever it takes to come to one."""
        self.peer.words = (db, not_after_ms)
        round_ = Round(command, Tally(1))
        self.say(commands.pack(command) + self.peer.ending(0), round_)
        assert round_.tally is not None
        [vote] = round_.tally.votes
        assert vote is not None
        return vote

    def requests(self, token: str = "t", *, name: str = "x", **last: int) -> Vote:
        return self.asks(self.terms(name).request(token, self._stamp()), **last)

    def renews(self, token: str = "t", *, name: str = "x", **last: int) -> Vote:
        return self.asks(self.terms(name).renew(token, 0), **last)

    def repairs(self, token: str = "t", *, name: str = "x", **last: int) -> Vote:
        return self.asks(self.terms(name).renew(token, self._stamp()), **last)

    def releases(self, token: str = "t", *, repaired: bool = False) -> Vote:
        return self.asks(self.terms().release(token, repaired=repaired))

    def told(self, verb: Verb, first: str = "0", second: str = "0") -> None:
        assert self.asks(NodeCommand(verb, self.guard, first, second)).answer is Answer.TOLD

    def terms(self, name: str = "x") -> Terms:
        return Terms(name, 10_000, 3, 0.05, guard=self.guard)

    def _stamp(self) -> int:
        return self.now_us + next(self._stamps)

    def floor_us(self) -> int:
        floor = self.server.store.call(b"HGET", b"hf:node", b"floor_us")
        assert isinstance(floor, bytes)
        return int(floor)
