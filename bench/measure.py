"""Interleaved repeats: every contender in turn, in a new order each time, so that whatever else the
machine does falls on all of them alike.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol


class Runnable(Protocol):
    """What can be measured."""

    name: str

    def run(self, pairs: int) -> None:
        """Do so many pairs."""


@dataclass(frozen=True)
class Figure:
    """Microseconds per pair, over all repeats."""

    median: float
    low: float
    """The first quartile."""
    high: float
    """The third quartile."""

    @classmethod
    def of(cls, samples: list[float]) -> "Figure":
        """Summarise samples."""
        low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
        return cls(median, low, high)


def calibrate(subject: Runnable, seconds: float) -> int:
    """Return how many pairs take about so long; warms the subject up as well."""
    pairs = 100
    while True:
        spent = _timed(subject, pairs)
        if spent >= seconds / 4 or pairs >= 1_000_000:
            return max(100, int(pairs * seconds / spent))
        pairs *= 4


def _timed(subject: Runnable, pairs: int) -> float:
    started = time.perf_counter()
    subject.run(pairs)
    return time.perf_counter() - started


def interleaved(
    subjects: Iterable[Runnable],
    *,
    repeats: int,
    seconds: float,
    tick: Callable[[], None],
    around: Callable[[Runnable, Callable[[], None]], None] = lambda _, go: go(),
) -> dict[str, Figure]:
    """Measure all subjects, `repeats` times each for about `seconds`."""
    subjects = list(subjects)
    pairs = {subject.name: calibrate(subject, seconds) for subject in subjects}
    samples: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    order = random.Random(0)  # noqa: S311  # the same order for everybody
    for _ in range(repeats):
        order.shuffle(subjects)
        for subject in subjects:

            def go(subject: Runnable = subject) -> None:
                count = pairs[subject.name]
                samples[subject.name].append(_timed(subject, count) / count * 1e6)

            around(subject, go)
            tick()
    return {name: Figure.of(values) for name, values in samples.items()}
