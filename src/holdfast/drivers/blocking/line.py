"""A line: one connection to every node, on one poller, used by one thread at a time."""

import contextlib
import socket
import weakref
from collections import deque
from collections.abc import Callable, Collection, Sequence

from ...core.effects import Ask, Command, NodeCommand, Verb
from ...core.votes import Verdict
from ...wire import commands
from ...wire.round import Round
from .. import clock
from ..channel import Channel
from ..fleet import Fleet
from ..roster import Roster
from .carrier import BlockingCarrier
from .poller import READ, Poller

MOST_UNANSWERED = 64
"""Per connection. A line has one round at a time, so only a hung node ever owes as many."""


class Line:
    """All nodes, as one thread speaks to them."""

    carriers: Sequence[BlockingCarrier] = ()
    _bell: tuple[socket.socket, socket.socket] | None = None

    def __init__(
        self,
        fleet: Fleet,
        *,
        most_unanswered: int = MOST_UNANSWERED,
        listening: bool = False,
    ) -> None:
        """Describe the nodes. `listening`: somebody turns all the time, and flushes at the end."""
        self.roster = Roster(fleet.endpoints)
        self.consistent = True
        """False while connections are being changed: an exception then leaves them unusable."""
        self.debts: deque[Command] = deque()
        """What others want told behind unanswered requests here; appended by any thread."""
        self._poller = Poller()
        self.channels = [
            Channel(node, fleet, self.roster, most_unanswered=most_unanswered, deaf=not listening)
            for node in range(len(fleet.endpoints))
        ]
        self.carriers = [
            BlockingCarrier(self, channel, gathering=listening) for channel in self.channels
        ]
        for channel, carrier in zip(self.channels, self.carriers, strict=True):
            channel.carrier = carrier

    def ask(self, effect: Ask, now: float) -> None:
        """Say the command to all nodes; return when the tally is decided or the time is up.

        What has arrived by then counts, however late we come to look: a process that did not run
        for a while has not heard its nodes, and they have answered all the same.
        """
        command, tally, until = effect.command, effect.tally, effect.until
        round_ = Round(command, tally, None, now, until)
        packed, left = commands.pack(command), until - now
        try:
            self.consistent = False
            for channel in self.channels if effect.to is None else self._those(effect.to):
                channel.post(round_, packed, now)
            self.consistent = True
            while tally.verdict is Verdict.PENDING:  # until the time is up
                self.turn(left)
                if left <= 0:
                    break
                left = until - clock.now()
        finally:
            round_.open = False

    def _those(self, nodes: Collection[int]) -> list[Channel]:
        return [self.channels[node] for node in nodes]

    def tell(self, command: Command, now: float) -> None:
        """Say the command to all nodes, behind what they have not answered yet."""
        round_, packed = Round(command), commands.pack(command)
        self.consistent = False
        for channel in self.channels:
            channel.post(round_, packed, now)
        self.consistent = True

    @property
    def queued(self) -> bool:
        """True if something stands in line for a connection that is on its way."""
        return any(channel.queued for channel in self.channels)

    def drain(self, until: float) -> None:
        """Give connections until then to take what they were told."""
        while any(carrier.unsent for carrier in self.carriers) or self.queued:
            if (left := until - clock.now()) <= 0:
                break
            self.turn(left)

    def meet(self, until: float) -> None:
        """Connect to all nodes; return when each is greeted or failed, or the time is up."""
        self.consistent = False
        for channel in self.channels:
            channel.connect(clock.now())
        self.consistent = True
        while any(channel.connecting for channel in self.channels):
            if (left := until - clock.now()) <= 0:
                break
            self.turn(left)

    def unanswered(self, command: Command | NodeCommand) -> bool:
        """True if some node owes an answer to what was just asked, so that a release of the same
        lease would have to go behind it.
        """
        if command.verb is not Verb.RELEASE:
            for channel in self.channels:
                if channel.owes_last(command):
                    return True
        return False

    def close(self) -> None:
        """Close all connections."""
        for channel in self.channels:
            channel.close()
        for end in self._bell or ():
            self._poller.forget(end)
            end.close()
        self._bell = None
        self._poller = Poller()  # whatever interrupted us may have left the old one in disorder
        self.consistent = True

    def drop(self) -> None:
        """Close the sockets and no more: in a forked child, what they carry is the parent's."""
        for carrier in self.carriers:
            carrier.drop()
        for end in self._bell or ():
            end.close()

    def __del__(self) -> None:
        self.drop()  # nobody has it any more

    def flush(self) -> None:
        """Write what was gathered, in one piece per node."""
        for carrier in self.carriers:
            carrier.flush()

    def turn(self, timeout: float) -> None:
        """Wait for something to happen, and move on whatever it is about."""
        poller = self._poller
        ready = poller.wait(timeout * 1000 + 1 if timeout > 0 else 0)
        self.consistent = False
        for descriptor, _ in ready:
            on_event = poller.calls.get(descriptor)
            if on_event is not None:  # else an earlier event of this turn has ended it
                on_event()
        self.consistent = True

    # -- what carriers call -----------------------------------------------------------------------

    def watch(self, sock: socket.socket, mask: int, carrier: BlockingCarrier) -> None:
        """Look for `mask` on a connection."""
        self._poller.watch(sock, mask, carrier.on_event)

    def unwatch(self, sock: socket.socket) -> None:
        """Look for nothing on a connection any more."""
        self._poller.forget(sock)

    def bell(self) -> Callable[[], None]:
        """Return what another thread calls to end the poller's wait: a look-up is done."""
        if self._bell is None:
            self._bell = socket.socketpair()
            for end in self._bell:
                end.setblocking(False)
            answer = weakref.WeakMethod(self._answer_bell)  # no cycle: a lost line ends at once
            self._poller.watch(self._bell[0], READ, lambda: _call(answer()))
        return self._ring

    def _ring(self) -> None:
        bell = self._bell
        if bell is not None:  # else the line was closed meanwhile
            with contextlib.suppress(OSError):
                bell[1].send(b"!")

    def _answer_bell(self) -> None:
        assert self._bell is not None  # noqa: S101  # for the type checker: it has just rung
        with contextlib.suppress(BlockingIOError):
            self._bell[0].recv(1024)
        for carrier in self.carriers:
            carrier.on_lookup()


def _call(method: Callable[[], None] | None) -> None:
    if method is not None:
        method()
