"""A loop's connections, its open rounds and their deadlines."""

import asyncio
import heapq
import itertools
from collections.abc import Sequence

from ...core.effects import Ask, Command
from ...core.votes import Verdict
from ...wire import commands
from ...wire.endpoint import Endpoint
from ...wire.round import Round
from .. import clock
from ..channel import Channel
from ..roster import Roster
from .carrier import AsyncCarrier

MOST_UNANSWERED = 65_536
"""Per node. All tasks of a loop share a connection: a hung node must not eat the memory."""


class Hub:
    """One event loop's way to all nodes. Used on that loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, endpoints: Sequence[Endpoint]) -> None:
        self.loop = loop
        self.roster = Roster(endpoints)
        self.channels = []
        for node, endpoint in enumerate(endpoints):
            channel = Channel(
                node, endpoint, self.roster, most_unanswered=MOST_UNANSWERED, deaf=False
            )
            channel.carrier = AsyncCarrier(loop, channel)
            channel.on_settled = self._look
            self.channels.append(channel)
        self._meeting: asyncio.Future[None] | None = None
        self._deadlines: list[tuple[float, int, Round]] = []
        self._order = itertools.count()
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

    async def ask(self, effect: Ask, now: float) -> None:
        """Say the command to all nodes; return when the tally is decided or the time is up."""
        decided = self.loop.create_future()
        round_ = Round(effect.command, effect.tally, decided)
        self._post(round_, commands.pack(effect.command), now)
        if effect.tally.verdict is Verdict.PENDING:
            self._expect(effect.until, round_, now)
            try:
                await decided
            finally:
                round_.open = False
        else:
            round_.open = False

    def tell(self, command: Command, now: float) -> None:
        """Say the command to all nodes, behind what they have not answered yet."""
        self._post(Round(command), commands.pack(command), now)

    def _post(self, round_: Round, packed: bytes, now: float) -> None:
        for channel in self.channels:
            channel.post(round_, packed, now)

    # -- deadlines: one timer for all of them -----------------------------------------------------

    def _expect(self, until: float, round_: Round, now: float) -> None:
        heapq.heappush(self._deadlines, (until, next(self._order), round_))
        if self._alarm is None:
            self._alarm = self.loop.call_later(until - now, self._ring)
        elif self._deadlines[0][2] is round_:
            self._alarm.cancel()
            self._alarm = self.loop.call_later(until - now, self._ring)

    def _ring(self) -> None:
        """End the rounds whose time is up, and wait for the next that is still open."""
        self._alarm, now = None, clock.now()
        while self._deadlines and (self._deadlines[0][0] <= now or not self._deadlines[0][2].open):
            heapq.heappop(self._deadlines)[2].close()
        if self._deadlines:
            self._alarm = self.loop.call_later(self._deadlines[0][0] - now, self._ring)

    def close(self) -> None:
        """Close all connections, and end the rounds that wait for them."""
        if self._alarm is not None:
            self._alarm.cancel()
        for channel in self.channels:
            channel.close()
        for _, _, round_ in self._deadlines:
            round_.close()
        self._deadlines.clear()
