"""A loop's connections, its open rounds and their deadlines."""

import asyncio
import contextlib
import threading
from collections.abc import Callable

from ...core.effects import Ask, Command
from ...core.place import Mail
from ...errors import ClientClosed
from ...wire import commands
from ...wire.round import Round
from .. import clock
from ..channel import Channel
from ..fleet import Fleet
from ..roster import Roster
from .carrier import AsyncCarrier

MOST_UNANSWERED = 65_536
"""Per node. All tasks of a loop share a connection: a hung node must not eat the memory."""

GRACE = 0.1
"""Seconds that closing gives a slow node to take what it was told; a hung one never will."""

TICKS = 500
"""Per second. A round ends up to one tick late: 2 ms, a small part of the usual patience."""


class Asked(Round):
    """A round that a task awaits."""

    __slots__ = ("due",)

    due: "dict[Asked, None]"
    """All rounds that must end at the same tick as this."""

    def end(self) -> None:
        """Let no more votes count, and need no deadline."""
        self.open = False
        self.due.pop(self, None)  # at once: what is over should not burden the collector


class Hub:
    """One event loop's way to all nodes. Used on that loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fleet: Fleet) -> None:
        self.loop = loop
        self.roster = Roster(fleet.endpoints)
        self.channels: list[Channel] = []
        self._carriers: list[AsyncCarrier] = []
        for node in range(len(fleet.endpoints)):
            channel = Channel(node, fleet, self.roster, most_unanswered=MOST_UNANSWERED, deaf=False)
            carrier = channel.carrier = AsyncCarrier(loop, channel)
            channel.on_settled = self._look
            self.channels.append(channel)
            self._carriers.append(carrier)
        self._meeting: asyncio.Future[None] | None = None
        self._deadlines: dict[int, dict[Asked, None]] = {}
        self._next = 0
        self._closed = False
        self._closing = False
        self._listens_at = -1.0
        """When to see next whether calls can be heard."""
        self._post = fleet.post
        self._alarm: asyncio.TimerHandle | None = None

    async def meet(self, timeout: float) -> None:
        """Connect to all nodes; return when each is greeted or failed, or the time is up."""
        for channel in self.channels:
            channel.connect(clock.now())
        meeting = self._meeting = self._meeting or self.loop.create_future()
        self._look()
        await asyncio.wait([meeting], timeout=timeout)

    def _look(self) -> None:
        """See whether all nodes are settled, for whoever waits to meet them."""
        meeting = self._meeting
        if meeting is not None and not any(channel.connecting for channel in self.channels):
            self._meeting = None
            if not meeting.done():
                meeting.set_result(None)

    def ask(self, effect: Ask, now: float) -> "tuple[Asked, asyncio.Future[None]]":
        """Say the command to all nodes; return the round, and what comes when it is over.

        Whoever awaits that then ends the round.
        """
        if self._closed:
            raise ClientClosed("the client is closed")
        command = effect.command
        over: asyncio.Future[None] = asyncio.Future(loop=self.loop)
        asked = Asked(command, effect.tally, over, now, effect.until)
        packed = commands.pack(command)
        channels, to = self.channels, effect.to
        for channel in channels if to is None else [channels[node] for node in to]:
            channel.post(asked, packed, now)
        self._expect(effect.until, asked)
        return asked, over

    def tell(self, command: Command, now: float) -> None:
        """Say the command to all nodes, behind what they have not answered yet."""
        if self._closed:
            return
        round_, packed = Round(command), commands.pack(command)
        for channel in self.channels:
            channel.post(round_, packed, now)

    # -- calls ------------------------------------------------------------------------------------

    def hear(self) -> None:
        """Hear calls on the connections to all nodes, from here on.

        Whoever waits while the client is closed leaves the line first.
        """
        if self._closing or self._closed:
            raise ClientClosed("the client is closed")
        if self._listens_at < 0:
            self._post.start_listening()
        if self._listens_at < 0 or not self._post.heard:
            now = clock.now()
            if now >= self._listens_at:
                self._listens_at = now + clock.NAP
                for channel in self.channels:
                    channel.listen(now)

    async def listen(self, until: float) -> None:
        """Hear calls, and wait until it is known of every node whether they can be heard."""
        bell = asyncio.Event()
        ring = self._ringing(bell.set)
        self._post.on_ear.append(ring)
        try:
            self.hear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until - clock.now()):
                    while not self._post.settled:
                        await bell.wait()
                        bell.clear()
        finally:
            self._post.on_ear.remove(ring)

    def _ringing(self, wake: Callable[[], object]) -> Callable[[], object]:
        """Return what calls something on this loop, from any thread."""
        here = threading.get_ident()

        def ring() -> None:
            if threading.get_ident() == here:
                wake()
            else:  # another loop of this client has heard it
                with contextlib.suppress(RuntimeError):  # ours is closed
                    self.loop.call_soon_threadsafe(wake)

        return ring

    async def rest(self, until: float, mail: Mail) -> None:
        """Wait until then, or until there is mail."""
        self.hear()
        over: asyncio.Future[None] = self.loop.create_future()

        def wake() -> None:
            if not over.done():
                over.set_result(None)

        mail.ring = self._ringing(wake)  # first: whoever puts something after we looked rings
        alarm = self.loop.call_later(max(until - clock.now(), 0.0), wake)
        try:
            if not mail.news:
                await over
        finally:
            mail.ring = None
            alarm.cancel()
        if self._closing:
            raise ClientClosed("the client is closed")

    # -- deadlines: one timer for all of them, in ticks -------------------------------------------

    def _expect(self, until: float, asked: "Asked") -> None:
        """Remember when a round must end. Most end long before, so this must cost little."""
        tick = int(until * TICKS) + 1
        due = self._deadlines.get(tick)
        if due is not None:
            asked.due = due
            due[asked] = None
            return
        asked.due = self._deadlines[tick] = {asked: None}
        if self._alarm is None or tick < self._next:
            self._set_alarm(tick)

    def _set_alarm(self, tick: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._next = tick
        self._alarm = self.loop.call_later(tick / TICKS - clock.now(), self._ring)

    def _ring(self) -> None:
        """End the rounds whose time is up."""
        self._alarm, now = None, int(clock.now() * TICKS)
        for tick in [tick for tick in self._deadlines if tick <= now]:
            for asked in list(self._deadlines.pop(tick)):
                if asked.open:
                    asked.close()
        if self._deadlines:
            self._set_alarm(min(self._deadlines))

    def close(self) -> None:
        """Close all connections, and end the rounds that wait for them."""
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for channel in self.channels:
            channel.close()
        for due in self._deadlines.values():
            for asked in list(due):
                asked.close()
        self._deadlines.clear()
        self._look()

    def leave(self) -> None:
        """Let those who wait leave the line, and close soon after."""
        self._closing = True
        self._post.wake()
        self.loop.call_later(GRACE, self.close)

    async def end(self) -> None:
        """Close, and wait until nothing of ours runs on the loop any more.

        Those who wait are given a moment to leave the line.
        """
        self._closing, deadline = True, clock.now() + GRACE
        self._post.wake()
        while self._post.expecting and clock.now() < deadline:
            await asyncio.sleep(0)
        opening = [carrier.opening for carrier in self._carriers if carrier.opening is not None]
        self.close()
        await asyncio.gather(*opening, return_exceptions=True)
        ending = [carrier.ending for carrier in self._carriers if carrier.ending is not None]
        deadline = clock.now() + GRACE
        while any(each.get_write_buffer_size() for each in ending) and clock.now() < deadline:
            await asyncio.sleep(GRACE / 20)
        for each in ending:
            if each.get_write_buffer_size():
                each.abort()
        await asyncio.sleep(0)  # transports end in the turn after they were told to
