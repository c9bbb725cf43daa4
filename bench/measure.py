"""Interleaved repeats: every contender in turn, in a new order each time, so that whatever else the
machine does falls on all of them alike.
"""

import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .cores import pin


@dataclass(frozen=True)
class Entry:
    """A contender, as it takes part in a suite."""

    title: str
    name: str
    urls: Sequence[str]
    tasks: int = 0
    hiredis: bool = True


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


class Worker:
    """A contender's process."""

    def __init__(self, entry: Entry) -> None:
        flags = ["--tasks", str(entry.tasks)] + ["--without-hiredis"] * (not entry.hiredis)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", *flags, entry.name, *entry.urls],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def seconds(self, pairs: int) -> float:
        """Return how long so many pairs take."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{pairs}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a contender ended by itself: {self._process.args}")
        return float(answer)

    def calibrate(self, seconds: float) -> int:
        """Return how many pairs take about so long; warms the contender up as well."""
        pairs = 200
        while (spent := self.seconds(pairs)) < seconds / 4 and pairs < 1_000_000:
            pairs *= 4
        return max(200, int(pairs * seconds / spent))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def kept(leases: int, ttl: float, urls: Sequence[str]) -> float:
    """Return what it costs to keep so many leases, in percent of a core."""
    command = [sys.executable, "-m", "bench.keeping", str(leases), str(ttl), *urls]
    measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    if measured["lost"]:
        raise RuntimeError(f"leases were lost, so nothing was measured: {measured}")
    return float(measured["percent_of_a_core"])


def interleaved(
    entries: Sequence[Entry],
    *,
    repeats: int,
    seconds: float,
    tick: Callable[[], None],
    cores: set[int],
    around: Callable[[Entry, Callable[[], float]], float] = lambda _, go: go(),
) -> dict[str, Figure]:
    """Measure all contenders, `repeats` times each for about `seconds`, on these cores."""
    workers = [(entry, Worker(entry)) for entry in entries]
    for _, worker in workers:
        pin(worker.pid, cores)
    try:
        pairs = {entry.title: worker.calibrate(seconds) for entry, worker in workers}
        samples: dict[str, list[float]] = {entry.title: [] for entry in entries}
        order = random.Random(0)  # noqa: S311  # the same order for everybody
        for _ in range(repeats):
            order.shuffle(workers)
            for entry, worker in workers:
                count = pairs[entry.title]
                spent = around(entry, lambda worker=worker, count=count: worker.seconds(count))
                samples[entry.title].append(spent / count * 1e6)
                tick()
    finally:
        for _, worker in workers:
            worker.close()
    return {title: Figure.of(values) for title, values in samples.items()}
