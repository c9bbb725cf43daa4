"""Run flows on the calling thread, over nodes in memory."""

import threading
from collections.abc import Callable
from typing import TypeVar

from ...core.effects import Ask, Effect, Flow, Sleep
from ...errors import ClientClosed
from ...wire.endpoint import Endpoint
from .time import POLL, Caller
from .universe import Universe

T = TypeVar("T")


class MemoryDriver:
    """Runs flows for any number of threads. Keeps the promises of `core.effects`."""

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

    def close(self) -> None:
        """Run nothing any more."""
        self._closed = True

    def run(self, start: Callable[[float], Flow[T]]) -> T:
        """Run the flow that `start` makes, given the time, to its end.

        An exception that interrupts it (Ctrl-C, a signal handler's) is thrown into it, and what it
        then tells is told.
        """
        self._ensure_open()
        caller = self._universe.time.enter(blocking=True)
        try:
            flow = start(self.now())
            effect = next(flow)
            while True:  # until the flow ends: its waits are bounded by its effects
                try:
                    self._perform(effect, caller)
                except BaseException as interruption:  # noqa: BLE001  # thrown into the flow
                    effect = flow.throw(interruption)
                else:
                    effect = flow.send(self.now())
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # a flow returns its T
        finally:
            self._universe.time.leave(caller)

    def _perform(self, effect: Effect, caller: Caller) -> None:
        if isinstance(effect, Sleep):
            self._sleep(effect.until, caller)
        elif isinstance(effect, Ask):
            self._universe.say(effect.command, effect.tally, caller)
        else:
            try:
                self._universe.say(effect.command, None, caller)
            except BaseException:
                self._universe.say(effect.command, None, caller)  # twice is once
                raise

    def _sleep(self, until: float, caller: Caller) -> None:
        bell, time = threading.Event(), self._universe.time
        time.fall_asleep(caller, until, bell.set)
        try:
            while time.sleeps(caller):  # until nobody is at work, or the grace is over
                self._ensure_open()
                bell.wait(POLL)
                bell.clear()
        finally:
            time.wake(caller)
        self._ensure_open()

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")
