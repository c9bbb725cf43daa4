"""Run flows in the calling task, over nodes in memory."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from ...core.effects import Ask, Effect, Flow, Sleep
from ...errors import ClientClosed
from ...wire.endpoint import Endpoint
from .time import POLL, Caller
from .universe import Universe

T = TypeVar("T")

MOST_TURNS = 20
"""Of the loop. Whoever has slept speaks within four of them; this only bounds the courtesy."""


class AsyncMemoryDriver:
    """Runs flows for any number of tasks on any number of loops.

    A round gives the other tasks a turn before the nodes have heard of it, and another one after
    they have answered; at both a cancellation may strike, as it may on a network.
    """

    def __init__(self, universe: Universe) -> None:
        self._universe = universe
        self._closed = False

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The nodes."""
        return tuple(node.endpoint for node in self._universe.nodes)

    def now(self) -> float:
        """Return the virtual time."""
        return self._universe.time.now

    def reset(self) -> None:
        """Start anew in a forked child, in a universe of its own."""
        self._universe.time.reset()

    async def close(self) -> None:
        """Run nothing any more."""
        self._closed = True

    async def run(self, start: Callable[[float], Flow[T]]) -> T:
        """Run the flow that `start` makes, given the time, to its end.

        A cancellation is thrown into the flow; what it then tells is told before this returns to
        the loop.
        """
        self._ensure_open()
        caller = self._universe.time.enter(blocking=False)
        try:
            flow = start(self.now())
            effect = next(flow)
            while True:  # until the flow ends: its waits are bounded by its effects
                try:
                    await self._perform(effect, caller)
                except BaseException as interruption:  # noqa: BLE001  # thrown into the flow
                    effect = flow.throw(interruption)
                else:
                    effect = flow.send(self.now())
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a flow returns its T
        finally:
            self._universe.time.leave(caller)

    async def _perform(self, effect: Effect, caller: Caller) -> None:
        if isinstance(effect, Sleep):
            await self._sleep(effect.until, caller)
        elif isinstance(effect, Ask):
            await self._let_others_speak(caller)
            self._universe.say(effect.command, effect.tally, caller)
            await asyncio.sleep(0)
        else:
            self._universe.say(effect.command, None, caller)

    async def _let_others_speak(self, caller: Caller) -> None:
        """Give way to those who have waited: who asks again and again must not shut them out."""
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if caller.due or not self._universe.time.others_due(caller):
                return

    async def _sleep(self, until: float, caller: Caller) -> None:
        loop, bell, time = asyncio.get_running_loop(), asyncio.Event(), self._universe.time

        def ring() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody is there
                loop.call_soon_threadsafe(bell.set)

        time.fall_asleep(caller, until, ring)
        try:
            await asyncio.sleep(0)  # first let the others run
            while time.sleeps(caller):  # until nobody is at work, or the grace is over
                self._ensure_open()
                alarm = loop.call_later(POLL, bell.set)
                try:
                    await bell.wait()
                finally:
                    alarm.cancel()
                bell.clear()
        finally:
            time.wake(caller)
        self._ensure_open()

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")
