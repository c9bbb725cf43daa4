"""What a contest for one lock comes to, from when each process had it. No clock, no servers.

A process *holds* the lock from the moment its acquire returned until it calls release. Both are
read from the one monotonic clock that all processes of a machine share, in nanoseconds.

1. A *grant* is one acquire that returned. It counts if it returned within the measured span.
2. A *hand-over* is a grant whose holder before was another process. All other grants *stayed* with
   the process that had just released: that is quick, and nothing was handed over.
3. The *latency* of a hand-over runs from the start of the releasing call until the next holder's
   acquire returned. Grants that stayed have none.
4. *Luck* is how many grants the luckiest process had for each of the unluckiest one's.
5. What processes hold must not overlap. This is looked at from the first grant to the last, and
   what is said about a contest in which it was violated means nothing.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple


class Held(NamedTuple):
    """One grant: who had the lock, from when, and when it began to release."""

    acquired: int
    releasing: int
    process: int


@dataclass(frozen=True)
class Span:
    """A part of a contest; what happens at its end is no longer in it."""

    begin: int
    end: int

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.begin) / 1e9

    def has(self, moment: int) -> bool:
        """True if that moment is in it."""
        return self.begin <= moment < self.end


@dataclass(frozen=True)
class Trial:
    """One contest, as it was recorded."""

    held: Sequence[Held]
    """In the order of the grants."""
    processes: int
    measured: Span
    executed: int
    """Commands that the nodes executed in the measured span, those in scripts as well."""
    counted: Span
    """After the measured span, because watching what nodes receive slows them down."""
    received: int
    """Commands that clients sent to the nodes in the counted span."""

    @classmethod
    def of(cls, recorded: dict[str, Any]) -> "Trial":
        """Read what `contention.py` prints."""
        held = [
            Held(acquired, releasing, process)
            for process, grants in enumerate(recorded["processes"])
            for acquired, releasing in zip(*grants, strict=True)
        ]
        return cls(
            held=sorted(held),
            processes=len(recorded["processes"]),
            measured=Span(*recorded["measured"]),
            executed=recorded["executed"],
            counted=Span(*recorded["counted"]),
            received=recorded["received"],
        )


@dataclass(frozen=True)
class Outcome:
    """What came of one contest, or of several alike. nan: there was nothing to measure."""

    grants: int
    handovers: int
    overlaps: int
    grants_per_s: float
    handovers_per_s: float
    stayed: float
    """The share of the grants that stayed with the process that had released."""
    latency_us_p50: float
    latency_us_p99: float
    held_us_p50: float
    """How long the lock was in fact held: a sleep is never short, and late on a busy machine."""
    luck: float
    commands_per_grant: float
    """What clients sent to the nodes; a script is one command."""
    executed_per_grant: float
    """What the nodes executed by their own account, scripts and the commands in them."""


def outcome(trial: Trial) -> Outcome:
    """Work out what came of one contest."""
    span = trial.measured
    grants = [held for held in trial.held if span.has(held.acquired)]
    pairs = [pair for pair in pairwise(trial.held) if span.has(pair[1].acquired)]
    handed = [(before, after) for before, after in pairs if before.process != after.process]
    latencies = [(after.acquired - before.releasing) / 1e3 for before, after in handed]
    counted = sum(trial.counted.has(held.acquired) for held in trial.held)
    return Outcome(
        grants=len(grants),
        handovers=len(handed),
        overlaps=overlaps(trial.held),
        grants_per_s=len(grants) / span.seconds,
        handovers_per_s=len(handed) / span.seconds,
        stayed=_ratio(len(pairs) - len(handed), len(pairs)),
        latency_us_p50=percentile(latencies, 0.50),
        latency_us_p99=percentile(latencies, 0.99),
        held_us_p50=percentile([(held.releasing - held.acquired) / 1e3 for held in grants], 0.50),
        luck=luck((held.process for held in grants), trial.processes),
        commands_per_grant=_ratio(trial.received, counted),
        executed_per_grant=_ratio(trial.executed, len(grants)),
    )


def overlaps(held: Sequence[Held]) -> int:
    """Return how many grants, in their order, came while another process still held the lock.

    It is another one whenever somebody holds it: a process releases before it asks again.
    """
    found, until = 0, 0
    for grant in held:
        found += grant.acquired < until
        until = max(until, grant.releasing)
    return found


def percentile(samples: Iterable[float], share: float) -> float:
    """Return the smallest sample that this share of all do not exceed; nan if there are none."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def luck(holders: Iterable[int], processes: int) -> float:
    """Return the grants of the luckiest by those of the unluckiest; inf if one had none."""
    grants = Counter(holders)
    least = min(grants[process] for process in range(processes))
    return max(grants.values(), default=0) / least if least else math.inf


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Summarise repeats: medians; but the worst luck, and all the overlaps, grants, hand-overs."""

    def middle(of: Callable[[Outcome], float]) -> float:
        measured = [value for value in map(of, outcomes) if not math.isnan(value)]
        return median(measured) if measured else math.nan

    return Outcome(
        grants=sum(each.grants for each in outcomes),
        handovers=sum(each.handovers for each in outcomes),
        overlaps=sum(each.overlaps for each in outcomes),
        grants_per_s=middle(lambda each: each.grants_per_s),
        handovers_per_s=middle(lambda each: each.handovers_per_s),
        stayed=middle(lambda each: each.stayed),
        latency_us_p50=middle(lambda each: each.latency_us_p50),
        latency_us_p99=middle(lambda each: each.latency_us_p99),
        held_us_p50=middle(lambda each: each.held_us_p50),
        luck=max(each.luck for each in outcomes),
        commands_per_grant=middle(lambda each: each.commands_per_grant),
        executed_per_grant=middle(lambda each: each.executed_per_grant),
    )


def _ratio(some: float, of: float) -> float:
    return some / of if of else math.nan
