"""What is checked, and what must come out: the protocol holds, each mistake is found.

A *control* is the protocol with one mistake in it, or a world that breaks one assumption. It has to
be found, or the check is worth nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from . import fences, floors, guard
from .exclusion import ENDLESS, Exclusion
from .explore import Explored, Model, Progress, explore
from .floors import Floors
from .ordering import Ordering


@dataclass(frozen=True, slots=True)
class Case:
    """One model, within bounds."""

    variant: str
    """What it is called on the command line."""
    says: str
    model: Callable[[], Model]
    bounds: str
    amnesias: str
    holds: bool
    """What must come out."""
    quick: bool = True
    """Whether it takes seconds only."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came out."""

    case: Case
    model: Model
    explored: Explored
    seconds: float
    """Of processor time."""

    @property
    def holds(self) -> bool:
        """True if all states were visited and no law was broken."""
        return self.explored.broken is None

    @property
    def expected(self) -> bool:
        """True if it came out as it must."""
        return self.holds == self.case.holds


def check(case: Case, *, progress: Progress | None = None) -> Finding:
    """Explore one case."""
    began = time.process_time()
    model = case.model()
    explored = explore(model, progress=progress)
    return Finding(case, model, explored, time.process_time() - began)


def _guarded(*, ttl: int, amnesias: int, quick: bool) -> Case:
    return Case(
        "guard",
        "the restart guard",
        lambda: Exclusion(guard.Rules(ttl=ttl), amnesias=amnesias),
        f"ttl {ttl}",
        "any" if amnesias == ENDLESS else str(amnesias),
        holds=True,
        quick=quick,
    )


def _varied(variant: str, says: str, rules: guard.Rules, *, holds: bool = False) -> Case:
    model = lambda: Exclusion(rules, amnesias=1)  # noqa: E731  # it is called later
    return Case(variant, says, model, f"ttl {rules.ttl}", "1", holds=holds)


def _ordered(*, leases: int, largest: int, forgets: bool, quick: bool) -> Case:
    rules = fences.Rules(leases=leases, largest=largest, forgets=forgets)
    return Case(
        "fences",
        "fences",
        lambda: Ordering(rules),
        f"{leases} leases, numbers to {largest}",
        "any" if forgets else "0",
        holds=True,
        quick=quick,
    )


def _disordered(variant: str, says: str, rules: fences.Rules) -> Case:
    bounds = f"{rules.leases} leases, numbers to {rules.largest}"
    amnesias = "any" if rules.forgets else "0"
    return Case(variant, says, lambda: Ordering(rules), bounds, amnesias, holds=False)


def _floored(variant: str, says: str, rules: floors.Rules, *, holds: bool) -> Case:
    return Case(variant, says, lambda: Floors(rules), f"clock to {rules.last}", "any", holds=holds)


CASES = (
    _guarded(ttl=2, amnesias=1, quick=True),
    _guarded(ttl=2, amnesias=2, quick=True),
    _guarded(ttl=2, amnesias=ENDLESS, quick=False),
    _guarded(ttl=3, amnesias=1, quick=False),
    _guarded(ttl=3, amnesias=2, quick=False),
    _varied("no-guard", "no guard", guard.Rules(guarded=False)),
    _varied("short", "abstains for the ttl less a tick", guard.Rules(abstention=1)),
    _varied(
        "marker-only", "a marker is enough, of whichever run", guard.Rules(compares_runs=False)
    ),
    _varied(
        "remembered-run",
        "the client sends the run that it remembers",
        guard.Rules(reads_run_inside=False),
    ),
    _varied(
        "unguarded-repair", "renewals repair without the guard", guard.Rules(guards_repair=False)
    ),
    _varied("clock-back-copy", "a clock set back revives a saved key", guard.Rules(revives=True)),
    _varied(
        "guard-first",
        "the same, and all renewals are guarded",
        guard.Rules(revives=True, guards_renewal=True),
        holds=True,
    ),
    _ordered(leases=2, largest=4, forgets=False, quick=True),
    _ordered(leases=2, largest=4, forgets=True, quick=True),
    _ordered(leases=3, largest=3, forgets=False, quick=True),
    _ordered(leases=3, largest=3, forgets=True, quick=False),
    _ordered(leases=3, largest=4, forgets=False, quick=False),
    _disordered("counters", "nodes count, the largest is the fence", fences.Rules(counts=True)),
    _disordered("one-accepts", "one node that accepts is enough", fences.Rules(accepts=1)),
    _disordered(
        "no-floor", "nodes that forgot have no floor", fences.Rules(forgets=True, floors=False)
    ),
    _disordered(
        "accepted-again", "the mark itself is accepted again", fences.Rules(accepts_again=True)
    ),
    _floored("floors", "the floor of a node that forgot", floors.Rules(), holds=True),
    _floored(
        "no-horizon", "numbers far ahead are accepted", floors.Rules(horizon=False), holds=False
    ),
    _floored("clock-back", "the clock falls too far", floors.Rules(back=3), holds=False),
    _floored(
        "clock-back-twice", "it falls at every restart", floors.Rules(each_time=True), holds=False
    ),
)
