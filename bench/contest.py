"""Who hands one lock over how fast and how fairly, and what should come of it.

Every contest is held by processes that begin with it and end with it. All contenders take turns, in
a new order each time, on the same nodes; the kernel may place everybody, because there are more at
work than cores.
"""

import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from .handover import Outcome, Trial, outcome, together
from .targets import Target, at_least, at_most

CROWDS = (2, 8, 32)
HOLD = 0.001
"""Seconds. The ideal is one grant after the other, each for so long and nothing in between."""
OVERHEAD = 180.0
"""Seconds that a contest may take beyond its span: it has limits of its own, which are shorter."""

ONE, FIVE = "holdfast, one node", "holdfast, five nodes"
DEFAULT = "redis-py, sleep=0.1"
"""What redis-py's Lock does if it is told nothing."""
EAGER = "redis-py, sleep=0.001"
SIGNALLED = "python-redis-lock"
PEERS = (DEFAULT, EAGER, SIGNALLED)


@dataclass(frozen=True)
class Contestant:
    """A contender, as it takes part."""

    title: str
    name: str
    nodes: int = 1


CONTESTANTS = (
    Contestant(ONE, "holdfast"),
    Contestant(FIVE, "holdfast", nodes=5),
    Contestant(DEFAULT, "redis-py"),
    Contestant(EAGER, "redis-py at 1 ms"),
    Contestant(SIGNALLED, "python-redis-lock"),
)


@dataclass
class Handovers:
    """One table of results: so many processes, and what came of it for each contestant."""

    processes: int
    repeats: dict[str, list[Outcome]]
    targets: list[Target] = field(default_factory=list)

    HEADER = (
        "", "hand-overs/s, % of ideal", "grants/s, % of ideal", "stayed",
        "latency ms p50, p99", "luck", "commands sent, executed", "held ms",
    )  # fmt: skip

    @property
    def title(self) -> str:
        """What was compared."""
        return f"hand-over, {self.processes} processes want one lock, held for {HOLD * 1e3:g} ms"

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """All repeats together."""
        return {title: together(each) for title, each in self.repeats.items()}

    def violations(self) -> list[str]:
        """Return who let two processes hold one lock at the same time; nobody, one hopes."""
        return [
            f"{title}, {self.processes} processes: {each.overlaps} of {each.grants} grants came"
            " while ANOTHER PROCESS HELD THE LOCK"
            for title, each in self.outcomes.items()
            if each.overlaps
        ]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return a header and the rows below it."""
        rows = [[title, *_row(each)] for title, each in self.outcomes.items()]
        return list(self.HEADER), rows

    def as_json(self) -> dict[str, object]:
        """Return all figures, together and for each repeat, for machines."""
        return {
            "processes": self.processes,
            "hold_us": HOLD * 1e6,
            "figures": {title: _facts(each) for title, each in self.outcomes.items()},
            "repeats": {title: [*map(_facts, each)] for title, each in self.repeats.items()},
        }


def handovers(
    urls: Sequence[str], *, repeats: int, seconds: float, tick: Callable[[], None]
) -> Iterator[Handovers]:
    """Hold all contests, interleaved."""
    found = {crowd: Handovers(crowd, {each.title: [] for each in CONTESTANTS}) for crowd in CROWDS}
    order = random.Random(0)  # noqa: S311  # the same order in every run
    for repeat, crowd in itertools.product(range(repeats), CROWDS):
        for each in order.sample(CONTESTANTS, len(CONTESTANTS)):
            lock = f"handover:{each.name}:{each.nodes}:{crowd}:{repeat}"
            trial = _hold(each.name, urls[: each.nodes], lock, crowd, seconds)
            found[crowd].repeats[each.title].append(outcome(trial))
            tick()
    largest = found[max(CROWDS)]
    largest.targets += targets(largest.outcomes)
    yield from found.values()


def steps(repeats: int) -> int:
    """Return how many contests there are, for the progress bar."""
    return repeats * len(CROWDS) * len(CONTESTANTS)


def targets(outcomes: Mapping[str, Outcome]) -> list[Target]:
    """Compare: ratios within one run, never times."""
    one, five, signalled = outcomes[ONE], outcomes[FIVE], outcomes[SIGNALLED]
    p50 = _ratio(one.latency_us_p50, signalled.latency_us_p50)
    p99 = _ratio(one.latency_us_p99, signalled.latency_us_p99)
    found = [
        at_most(f"latency p50: {ONE} / {SIGNALLED}", p50, 0.8),
        at_most(f"latency p99: {ONE} / {SIGNALLED}", p99, 0.5),
    ]
    rivals = [(ONE, one, peer) for peer in PEERS] + [(FIVE, five, DEFAULT)]
    for title, ours, peer in rivals:
        theirs = outcomes[peer]
        handed = _ratio(ours.handovers_per_s, theirs.handovers_per_s)
        found.append(at_least(f"hand-overs per second: {title} / {peer}", handed, 1.0))
    found.append(at_most(f"luckiest / unluckiest process: {ONE}", one.luck, 1.2))
    return found


def _hold(name: str, urls: Sequence[str], lock: str, crowd: int, seconds: float) -> Trial:
    command = [sys.executable, "-m", "bench.contention", "--processes", str(crowd)]
    command += ["--span", str(seconds), "--lock", lock, name, *urls]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=seconds + OVERHEAD)
    return Trial.of(json.loads(done.stdout))


def _row(each: Outcome) -> list[str]:
    handed, granted = each.handovers_per_s, each.grants_per_s
    p50, p99 = each.latency_us_p50 / 1e3, each.latency_us_p99 / 1e3
    return [
        f"{handed:.0f}, {handed * HOLD:.0%}",
        f"{granted:.0f}, {granted * HOLD:.0%}",
        f"{each.stayed:.0%}",
        f"{p50:.2f}, {p99:.2f}",
        f"{each.luck:.2f}",
        f"{each.commands_per_grant:.1f}, {each.executed_per_grant:.1f}",
        f"{each.held_us_p50 / 1e3:.2f}",
    ]


def _facts(each: Outcome) -> dict[str, float | None]:
    """Return the fields; JSON has neither nan (nothing measured) nor inf (somebody had none)."""
    return {name: value if math.isfinite(value) else None for name, value in asdict(each).items()}


def _ratio(ours: float, theirs: float) -> float:
    return ours / theirs if theirs else math.inf
