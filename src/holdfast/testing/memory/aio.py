"""Run flows in the calling task, over nodes in memory."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from ...core.effects import Ask, Effect, Flow, Sleep, Tell
from ...drivers.health import Health
from ...drivers.post import Post
from ...errors import ClientClosed
from ...wire.endpoint import Endpoint
from .time import POLL, Caller, Step
from .universe import Universe

T = TypeVar("T")

TURNS_TO_HEAR = 4
"""Of the loop, after something has happened: one for what was called on the loop by it (a callback,
a bell, a cancellation), one for whoever was woken by that, and one for whoever waits for those."""


class AsyncMemoryDriver:
    """Runs flows for any number of tasks on any number of loops.

    A round gives the other tasks a turn before the nodes have heard of it, and another one after
    they have answered; at both a cancellation may strike, as it may on a network. One that is
    answered without the nodes (`line.py`) does not: its waiter has just slept.
    """

    def __init__(self, universe: Universe, health: Health, post: Post) -> None:
        self._universe = universe
        self._health = health
        self._post = post
        universe.join(post)
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
        self._universe.reset()
        self._post.reset()

    async def close(self) -> None:
        """Run nothing any more."""
        self._closed = True
        self._universe.part(self._post)

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
            self._universe.leave(caller)

    async def wait_for(self, bell: asyncio.Event, until: float) -> None:
        """Wait until the bell rings, or until then: time passes as in any other wait."""
        caller = self._universe.time.enter(blocking=False)
        try:
            await self._wait(until, caller, bell.is_set)
        finally:
            self._universe.leave(caller)

    async def _perform(self, effect: Effect, caller: Caller) -> None:
        if isinstance(effect, Sleep):
            mail = effect.mail
            await self._wait(
                effect.until, caller, lambda: self._closed or (mail is not None and mail.news)
            )
            self._ensure_open()
        elif isinstance(effect, Ask) and not self._universe.echo(effect, caller):
            await asyncio.sleep(0)
            self._universe.say(effect.command, effect.tally, self._health, caller, to=effect.to)
            await asyncio.sleep(0)
        elif isinstance(effect, Tell):
            self._universe.say(effect.command, None, self._health, caller)

    async def _wait(self, until: float, caller: Caller, is_over: Callable[[], bool]) -> None:
        loop, rung, time = asyncio.get_running_loop(), asyncio.Event(), self._universe.time
        here = threading.get_ident()

        def ring() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody is there
                if threading.get_ident() == here:
                    rung.set()
                else:
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
