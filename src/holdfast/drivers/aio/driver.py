"""Run flows as coroutines, for any number of tasks on any number of event loops."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from ...core.effects import Ask, Flow, Listen, Sleep
from ...errors import ClientClosed
from .. import clock
from ..fleet import Fleet
from ..roster import refuse
from .hub import Hub

T = TypeVar("T")


class AsyncDriver:
    """Runs flows over one connection per node and event loop."""

    now = staticmethod(clock.now)

    def __init__(self, fleet: Fleet, *, node_timeout: float) -> None:
        self.endpoints = fleet.endpoints
        self._fleet = fleet
        self._node_timeout = node_timeout
        self._closed = False
        self.reset()

    def reset(self) -> None:
        """Start with fresh connections; a forked child does, and leaves its parent's alone."""
        self._fleet.post.reset()
        self._hubs: dict[asyncio.AbstractEventLoop, Hub] = {}
        self._here = threading.local()

    async def run(self, start: Callable[[float], Flow[T]]) -> T:
        """Run the flow that `start` makes, given the time, to its end.

        A cancellation is thrown into the flow; what it then tells is written at the end of this
        turn of the loop, and before a close, so that nothing stays behind.
        """
        hub = self._hub() or await self._meet()
        flow = start(clock.now())
        try:
            effect = next(flow)
            while True:  # until the flow ends: its waits are bounded by its effects
                try:
                    if isinstance(effect, Ask):
                        asked, over = hub.ask(effect, clock.now())
                        try:
                            await over
                        finally:
                            asked.end()
                    elif isinstance(effect, Sleep):
                        if effect.mail is None:
                            await asyncio.sleep(effect.until - clock.now())
                        else:
                            await hub.rest(effect.until, effect.mail)
                    elif isinstance(effect, Listen):
                        await hub.listen(effect.until)
                    else:
                        hub.tell(effect.command, clock.now())
                except BaseException as interruption:  # noqa: BLE001  # thrown into the flow
                    effect = flow.throw(interruption)
                else:
                    effect = flow.send(clock.now())
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a flow returns its T

    def _hub(self) -> Hub | None:
        """Return the running loop's hub, if its nodes have been met."""
        hub: Hub | None = getattr(self._here, "hub", None)
        if hub is not None and hub.loop is asyncio.get_running_loop():
            return hub
        return None

    async def _meet(self) -> Hub:
        """Meet the nodes before the first round on a loop: no server may vote twice."""
        if self._closed:
            raise ClientClosed("the client is closed")
        loop = asyncio.get_running_loop()
        hub = self._hubs.get(loop)
        if hub is None:
            for other in list(self._hubs):
                if other.is_closed():
                    self._hubs.pop(other, None)  # its connections went with it
            hub = self._hubs[loop] = Hub(loop, self._fleet)
        await hub.meet(self._node_timeout)
        if self._closed:
            raise ClientClosed("the client is closed")
        refuse(hub.roster)
        self._here.hub = hub
        return hub

    async def wait_for(self, bell: asyncio.Event, until: float) -> None:
        """Wait until the bell rings, or until then, or for a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(until - clock.now(), clock.NAP)):
                await bell.wait()

    async def close(self) -> None:
        """Close all connections. Leases that are held lapse by themselves."""
        self._closed = True
        self._here = threading.local()
        loop = asyncio.get_running_loop()
        hubs, self._hubs = self._hubs, {}
        for other, hub in hubs.items():
            if other is not loop and not other.is_closed():
                other.call_soon_threadsafe(hub.leave)
        if loop in hubs:
            await hubs[loop].end()
