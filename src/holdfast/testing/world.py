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
        """Return a token, as random as the seed: flows get theirs here."""
        return f"{self.random.getrandbits(160):040x}"

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
        return self.random.random()
