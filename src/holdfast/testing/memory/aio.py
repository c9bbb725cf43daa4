"""Run flows in the calling task, over nodes in memory."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

from ...core.effects import Ask, Effect, Flow, Sleep
from ...drivers.health import Health
from ...errors import ClientClosed
from ...wire.endpoint import Endpoint
from .time import POLL, Caller, Step
from .universe import Universe

T = TypeVar("T")

MOST_TURNS = 20
"""Of the loop. Whoever has slept speaks within four of them; this only bounds the courtesy."""


TURNS_TO_HEAR = 4
"""Of the loop, after something has happened: one for what was called on the loop by it (a callback,
a bell, a cancellation), one for whoever was woken by that, and one for whoever waits for those."""


class AsyncMemoryDriver:
    """Runs flows for any number of tasks on any number of loops.

    A round gives the other tasks a turn before the nodes have heard of it, and another one after
    they have answered; at both a cancellation may strike, as it may on a network.
    """

    def __init__(self, universe: Universe, health: Health) -> None:
        self._universe = universe
        self._health = health
        self._closed = False

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The nodes."""
        return self._universe.endpoints

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

    async def wait_for(self, bell: asyncio.Event, until: float) -> None:
        """Wait until the bell rings, or until then: time passes as in any other wait."""
        caller = self._universe.time.enter(blocking=False)
        try:
            await self._wait(until, caller, bell.is_set)
        finally:
            self._universe.time.leave(caller)

    async def _perform(self, effect: Effect, caller: Caller) -> None:
        if isinstance(effect, Sleep):
            await self._wait(effect.until, caller, lambda: self._closed)
            self._ensure_open()
        elif isinstance(effect, Ask):
            await self._let_others_speak(caller)
            self._universe.say(effect.command, effect.tally, self._health, caller, to=effect.to)
            await asyncio.sleep(0)
        else:
            self._universe.say(effect.command, None, self._health, caller)

    async def _let_others_speak(self, caller: Caller) -> None:
        """Give way to those who have waited: who asks again and again must not shut them out."""
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if caller.due or not self._universe.time.others_due(caller):
                return

    async def _wait(self, until: float, caller: Caller, is_over: Callable[[], bool]) -> None:
        loop, rung, time = asyncio.get_running_loop(), asyncio.Event(), self._universe.time

        def ring() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody is there
                loop.call_soon_threadsafe(rung.set)

        time.fall_asleep(caller, until, ring, is_over)
        try:
            await asyncio.sleep(0)  # first let the others run
            # Until nobody is at work, or the grace is over.
            while (step := time.step(caller)) is not Step.AWAKE:
                if step is Step.STUCK:
                    await _ringing(rung, loop)
                else:
                    with time.standing_still():
                        await _hearing()
        finally:
            time.wake(caller)

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")


async def _ringing(rung: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
    """Wait for the bell in real time, for a moment."""
    alarm = loop.call_later(POLL, rung.set)
    try:
        await rung.wait()
    finally:
        alarm.cancel()
    rung.clear()


async def _hearing() -> None:
    """Let the tasks of this loop hear of what has happened."""
    for _ in range(TURNS_TO_HEAR):
        await asyncio.sleep(0)
