"""Run flows on the calling thread, over nodes in memory."""

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


class MemoryDriver:
    """Runs flows for any number of threads. Keeps the promises of `core.effects`."""

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

    def close(self) -> None:
        """Run nothing any more."""
        self._closed = True
        self._universe.part(self._post)

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
            self._universe.leave(caller)

    def wait_for(self, bell: threading.Event, until: float) -> None:
        """Wait until the bell rings, or until then: time passes as in any other wait."""
        caller = self._universe.time.enter(blocking=True)
        try:
            self._wait(until, caller, bell.is_set)
        finally:
            self._universe.leave(caller)

    def _perform(self, effect: Effect, caller: Caller) -> None:
        if isinstance(effect, Sleep):
            mail = effect.mail
            self._wait(
                effect.until, caller, lambda: self._closed or (mail is not None and mail.news)
            )
            self._ensure_open()
        elif isinstance(effect, Ask) and not self._universe.echo(effect, caller):
            self._universe.say(effect.command, effect.tally, self._health, caller, to=effect.to)
        elif isinstance(effect, Tell):
            try:
                self._universe.say(effect.command, None, self._health, caller)
            except BaseException:
                self._universe.say(effect.command, None, self._health, caller)  # twice is once
                raise

    def _wait(self, until: float, caller: Caller, is_over: Callable[[], bool]) -> None:
        rung, time = threading.Event(), self._universe.time
        time.fall_asleep(caller, until, rung.set, is_over)
        try:
            # Until nobody is at work, or the grace is over.
            while (step := time.step(caller)) is not Step.AWAKE:
                if step is Step.STUCK:
                    rung.wait(POLL)
                    rung.clear()
        finally:
            time.wake(caller)

    def _ensure_open(self) -> None:
        if self._closed:
            raise ClientClosed("the client is closed")
