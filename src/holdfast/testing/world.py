"""Virtual time: a queue of things to happen, a seeded generator, and a trace."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

CERTAIN = 1e-9
"""Seconds: more than clocks are wrong by because floating-point numbers are rounded."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Somebody's own clock: it started somewhere and runs a little fast or slow."""

    offset: float
    rate: float

    def at(self, true_time: float) -> float:
        """Return what this clock shows at a true time."""
        return self.offset + self.rate * true_time

    def true_time(self, shown: float) -> float:
        """Return by when this clock shows that, for certain."""
        return (shown - self.offset) / self.rate + CERTAIN


class WallClock:
    """A node's clock: like anybody's, until it is set, stands still, or runs at another rate."""

    def __init__(self, world: "World", offset: float, rate: float) -> None:
        self._world = world
        self._rate = rate
        self._running = rate
        self._shown = offset
        self._since = world.now
        self.highest = offset
        """The latest time that it has ever shown, in seconds, before it was last set."""

    def now(self) -> float:
        """Return what it shows, in seconds."""
        return self._shown + self._running * (self._world.now - self._since)

    def _anchor(self, ahead: float = 0.0) -> None:
        self.highest = max(self.highest, self.now())
        self._shown, self._since = self.now() + ahead, self._world.now

    def step(self, seconds: float) -> None:
        """Be set, forward or back."""
        self._anchor(seconds)

    def run_at(self, factor: float) -> None:
        """Run at so many times the usual rate: 0 is standing still, 1 the end of that."""
        self._anchor()
        self._running = self._rate * factor


class World:
    """The universe of one simulated run: the same seed is the same history, to the last event."""

    def __init__(self, seed: int, *, tracing: bool = False) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.tracing = tracing
        self.trace: list[str] = []
        self.after_event: list[Callable[[], None]] = []
        """What is called after every event: the laws."""
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._counted = itertools.count(1)

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Let something happen at a true time, or now if that is past."""
        heapq.heappush(self._queue, (max(when, self.now), next(self._order), what))

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """Let something happen after a delay."""
        self.at(self.now + delay, what)

    def run(self, until: float) -> None:
        """Let everything happen up to a true time."""
        while self._queue and self._queue[0][0] <= until:
            self.now, _, what = heapq.heappop(self._queue)
            what()
            for check in self.after_event:
                check()
        self.now = until

    def note(self, line: str) -> None:
        """Write a line into the trace. Callers ask `tracing` first: lines cost time."""
        self.trace.append(f"{self.now:10.4f}  {line}")

    def token(self) -> str:
        """Return a token, as random as the seed: the secret of whoever gets it."""
        return f"{self.random.getrandbits(160):040x}"

    def count(self) -> int:
        """Return 1, 2, 3 and so on: what is named by it is named like nothing else."""
        return next(self._counted)

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
        return self.random.random()
