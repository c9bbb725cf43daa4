"""Run flows on the calling thread."""

import time
from collections.abc import Sequence
from typing import TypeVar

from ...core.effects import Ask, Flow, Sleep, Tell, Verb
from ...errors import ClientClosed
from ...wire.endpoint import Endpoint
from .. import clock
from ..roster import Roster
from .line import Line
from .pool import Pool

T = TypeVar("T")


class BlockingDriver:
    """Runs flows for any number of threads over at most `connections` connections per node."""

    now = staticmethod(clock.now)

    def __init__(
        self, endpoints: Sequence[Endpoint], *, connections: int, node_timeout: float
    ) -> None:
        self.endpoints = tuple(endpoints)
        self._connections = connections
        self._node_timeout = node_timeout
        self.reset()

    def reset(self) -> None:
        """Start with fresh lines; a forked child does, and leaves its parent's sockets alone."""
        self.roster = Roster()
        self._pool = Pool(self._new_line, self._connections)

    def _new_line(self) -> Line:
        return Line(self.endpoints, self.roster)

    def meet(self, timeout: float) -> tuple[int, int] | None:
        """Connect to all nodes, for `timeout` seconds at most.

        Returns two nodes that are the same server, if there are such.
        """
        line = self._pool.take()
        try:
            line.meet(clock.now() + timeout)
        finally:
            self._pool.give_back(line)
        return self.roster.clash

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end.

        An exception that interrupts it (Ctrl-C, a signal handler's) is thrown into it; what it then
        tells is given a node's patience to leave.
        """
        pool = self._pool
        if pool.closed:
            flow.close()
            raise ClientClosed("the client is closed")
        line: Line | None = None
        unwinding = False
        try:
            effect = next(flow)
            now = clock.now()
            while True:
                try:
                    if isinstance(effect, Sleep):
                        if line is not None:
                            pool.give_back(line)
                            line = None
                        time.sleep(max(effect.until - now, 0.0))
                    else:
                        line = line or pool.take()
                        _perform(effect, line, pool, now)
                        if unwinding:
                            line.drain(now + self._node_timeout)
                except BaseException as interruption:  # noqa: BLE001  # thrown into the flow
                    unwinding = True
                    effect = flow.throw(interruption)
                    now = clock.now()
                    continue
                now = clock.now()
                effect = flow.send(now)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a flow returns its T
        finally:
            if line is not None:
                pool.give_back(line)

    def close(self) -> None:
        """Close all connections. Leases that are held lapse by themselves."""
        self._pool.close()


def _perform(effect: Ask | Tell, line: Line, pool: Pool, now: float) -> None:
    if not line.consistent:
        line.close()
    command = effect.command
    if command.verb is Verb.RELEASE:
        pool.follow(command, line)
    if isinstance(effect, Tell):
        line.tell(command, now)
        return
    line.ask(effect, now)
    if command.verb is not Verb.RELEASE and line.unanswered(command.token):
        pool.note(command.token, line)
