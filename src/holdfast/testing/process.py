"""A simulated client's process and its threads: they may be paused, and the process killed."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.clocks import Clocks
from .world import Clock, World

if TYPE_CHECKING:
    from .driver import Channel, SimDriver
    from .inbox import Inbox


class Process:
    """Has a clock, and runs or does not."""

    def __init__(self, world: World, name: str, clock: Clock, clocks: Clocks) -> None:
        self.world = world
        self.clocks = clocks
        """What it knows of the nodes' clocks."""
        self.name = name
        self.alive = True
        self.paused_until = 0.0
        self.threads: list[Thread] = []
        self.inbox: Inbox
        """Where it is called; whoever makes the process gives it one."""
        self._clock = clock

    def now(self) -> float:
        """Return the time on the process's own clock."""
        return self._clock.at(self.world.now)

    def true_time(self, shown: float) -> float:
        """Return by when its clock shows that, for certain."""
        return self._clock.true_time(shown)

    def pause(self, seconds: float) -> None:
        """Stop all threads: nothing is noticed until they go on."""
        if self.alive and self.world.now >= self.paused_until:
            self.paused_until = self.world.now + seconds
            for thread in self.world.random.sample(self.threads, len(self.threads)):
                self.world.at(self.paused_until, thread.wake)

    def kill(self) -> None:
        """End the process; what it has sent goes on."""
        self.alive = False


class Thread:
    """Does things in order while it runs, and has a connection to every node of its own."""

    def __init__(self, process: Process, name: str) -> None:
        self.process = process
        self.world = process.world
        self.name = name
        self.channels: list[Channel] = []
        self.drivers: list[SimDriver] = []
        """Those whose flows wait for something, in the order they began."""
        self.tainted: set[tuple[str, int]] = set()
        """Tokens and nodes between which a connection of this thread broke."""
        self.awake_since = -math.inf
        """When it last woke up, in true time."""
        self._starved_until = 0.0
        self._deferred: list[Callable[[], None]] = []
        process.threads.append(self)

    def now(self) -> float:
        """Return the time on the process's own clock."""
        return self.process.now()

    @property
    def runs(self) -> bool:
        """True unless it is paused or dead, or has not come to what it missed in a pause."""
        now = self.world.now
        return (
            self.process.alive
            and now >= self.process.paused_until
            and now >= self._starved_until
            and not self._deferred
        )

    def starve(self, seconds: float) -> None:
        """Pause this thread alone."""
        if self.process.alive and self.world.now >= self._starved_until:
            self._starved_until = self.world.now + seconds
            self.world.at(self._starved_until, self.wake)

    def wake(self) -> None:
        """Do what was put off, unless something else still keeps it from running."""
        deferred, self._deferred = self._deferred, []
        if self.runs:
            self.awake_since = self.world.now
        for what in deferred:
            self.when_awake(what)

    def when_awake(self, what: Callable[[], None]) -> None:
        """Do something now, or when the thread goes on, or never if its process is dead."""
        if self.runs:
            what()
        elif self.process.alive:
            self._deferred.append(what)

    def at(self, shown: float, what: Callable[[], None]) -> None:
        """Do something when the process's own clock shows that time."""
        if shown < math.inf:
            self.world.at(self.process.true_time(shown), lambda: self.when_awake(what))

    def look(self) -> None:
        """Let every flow go on whose round is decided."""
        for driver in list(self.drivers):
            driver.look()
