"""Run flows on the calling thread."""

import inspect
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ...core.effects import Ask, Command, Effect, Flow, Listen, NodeCommand, Sleep, Tell, Verb
from ...errors import ClientClosed
from .. import clock
from ..fleet import Fleet
from ..roster import Roster
from .bell import Bell
from .line import Line
from .pool import Pool

T = TypeVar("T")

LEAVING = 0.001
"""Seconds between looks whether those who wait have left the line, when a client is closed."""


class BlockingDriver:
    """Runs flows for any number of threads over at most `connections` connections per node."""

    now = staticmethod(clock.now)

    def __init__(self, fleet: Fleet, *, connections: int, node_timeout: float) -> None:
        self.endpoints = fleet.endpoints
        self._fleet = fleet
        self._connections = connections
        self._node_timeout = node_timeout
        self._pool = Pool(self._new_line, connections)
        self._closing = False

    def reset(self) -> None:
        """Start with fresh lines; a forked child does, and leaves its parent's sockets alone."""
        self._fleet.post.reset()
        closed, self._closing = self._pool.closed, False
        self._pool = Pool(self._new_line, self._connections)
        self._pool.closed = closed

    def _new_line(self) -> Line:
        return Line(self._fleet)

    def meet(self, timeout: float) -> Roster:
        """Connect to all nodes, for `timeout` seconds at most. Returns who was met."""
        line = self._pool.take()
        try:
            line.meet(clock.now() + timeout)
        finally:
            self._pool.give_back(line)
        return line.roster

    def run(self, start: Callable[[float], Flow[T]]) -> T:
        """Run the flow that `start` makes, given the time, to its end.

        The flow's time begins when there is a line for it: waiting for one must not use up its
        round. An exception that interrupts it (Ctrl-C, a signal handler's) is thrown into it; what
        it then tells is given a node's patience to leave.
        """
        pool = self._pool
        line: Line | None = None
        unwinding = False
        owed: BaseException | None = None
        try:
            line = pool.take()
            flow = start(clock.now())
            effect: Effect = next(flow)
            while True:  # until the flow ends: its waits are bounded by its effects
                try:
                    if isinstance(effect, Sleep | Listen):
                        # Before it is returned, so that no interruption can return it twice.
                        returned, line = line, None
                        if returned is not None:
                            pool.give_back(returned)
                        self._rest(effect)
                        line = pool.take()
                    else:
                        line = line or pool.take()
                        if not line.consistent:
                            line.close()
                        if isinstance(effect, Ask):
                            line.ask(effect, clock.now())
                            tally = effect.tally
                            if tally.granted + tally.against < tally.nodes:
                                pool.note(effect.command, line)
                                self._pass_on(effect.command, line)
                        else:
                            line.tell(effect.command, clock.now())
                            self._pass_on(effect.command, line)
                        if pool.stragglers:
                            pool.follow(effect.command, line)
                        if unwinding:
                            line.drain(clock.now() + self._node_timeout)
                    if owed is not None:
                        raise owed
                    effect = flow.send(clock.now())
                except StopIteration as end:
                    return end.value  # type: ignore[no-any-return]  # a flow returns its T
                except BaseException as interruption:
                    if inspect.getgeneratorstate(flow) == inspect.GEN_CLOSED:  # the flow's own
                        raise
                    if isinstance(effect, Tell) and not unwinding:
                        owed = interruption  # after telling again: twice is once
                    else:
                        owed = None
                        effect = flow.throw(interruption)
                    unwinding = True
        finally:
            owed = None  # an exception that knows its own frame would keep a lost line alive
            returned, line = line, None
            if returned is not None:
                pool.give_back(returned)

    def _pass_on(self, command: Command | NodeCommand, line: Line) -> None:
        """Let the keeper say a release, too, if it stands in line here: nobody may come again."""
        if command.verb is Verb.RELEASE and isinstance(command, Command):
            line.turn(0)  # a connection may have broken meanwhile
            if line.queued:
                self._fleet.unsaid.append(command)
                self._fleet.on_unsaid()

    def _rest(self, effect: Sleep | Listen) -> None:
        """Wait until then, or until there is mail, or it is known whether it can be heard.

        Whoever waits while the client is closed leaves the line first.
        """
        if self._closing:
            raise ClientClosed("the client is closed")
        if isinstance(effect, Listen):
            self._listen(effect.until)
        elif effect.mail is None:
            time.sleep(max(effect.until - clock.now(), 0.0))
        else:
            bell, mail = Bell(), effect.mail
            mail.ring = bell.ring  # first: whoever puts something after we looked rings
            try:
                if not mail.news:
                    bell.wait(max(effect.until - clock.now(), 0.0))
            finally:
                mail.ring = None
        if self._closing:
            raise ClientClosed("the client is closed")

    def _listen(self, until: float) -> None:
        """Let the keeper listen, and wait until it does."""
        post, bell = self._fleet.post, Bell()
        post.on_ear.append(bell.ring)
        try:
            post.wanted = True
            if post.begin is not None:
                post.begin()
            while not post.settled and (left := until - clock.now()) > 0:
                bell.wait(left)
        finally:
            post.on_ear.remove(bell.ring)

    def wait_for(self, bell: threading.Event, until: float) -> None:
        """Wait until the bell rings, or until then, or for a while."""
        bell.wait(min(max(until - clock.now(), 0.0), clock.NAP))

    def close(self) -> None:
        """Close all connections. Leases that are held lapse by themselves."""
        post, deadline = self._fleet.post, clock.now() + self._node_timeout
        self._closing = True
        post.wake()
        while post.expecting and clock.now() < deadline and not self._pool.closed:
            time.sleep(LEAVING)
        self._pool.close()
