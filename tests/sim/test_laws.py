"""The laws hold in simulated worlds; planted bugs and the known hole are found."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from holdfast.core.effects import Ask
from holdfast.testing import SHIPPED, Scenario, simulate
from holdfast.testing.mutants import mutants
from holdfast.testing.planting import Mutant, stamps_of_one
from holdfast.testing.protocol import Edit, planted
from holdfast.testing.scenario import draw

SEEDS = 80
CHUNK = 20
MUTANTS = mutants()


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_all_laws_are_kept(first: int) -> None:
    runs = [simulate(seed) for seed in range(first, first + CHUNK)]
    assert [(run.seed, run.broken) for run in runs if run.broken] == []
    assert sum(run.acquired for run in runs) > CHUNK, "the worlds must not be idle"
    assert sum(run.renewed for run in runs) > CHUNK, "keepers have something to do"
    assert sum(run.lost for run in runs) > CHUNK / 2, "and cannot always do it"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_bug_is_found_within_200_seeds(mutant: Mutant) -> None:
    assert any(broken.startswith(mutant.law) for broken in _found(mutant, range(200)))


def _found(mutant: Mutant, seeds: range) -> Iterator[str]:
    for seed in seeds:
        scenario = mutant.setting(draw(Random(seed)))
        run = simulate(seed, mutant.protocol, scenario=scenario, outside=mutant.outside)
        yield run.broken or ""


def test_the_known_hole_is_found() -> None:
    """Without a guard, a node that forgets takes leases that are still valid with it."""
    found = (simulate(seed, guard=False).broken or "" for seed in range(200))
    assert any(broken.startswith("mutual exclusion") for broken in found)


def test_fences_need_no_clock() -> None:
    """Clients that always propose the lowest number keep the laws, too: they ask more often."""
    protocol = stamps_of_one()
    runs = [simulate(seed, protocol) for seed in range(12)]
    assert [(run.seed, run.broken) for run in runs if run.broken] == []


def test_an_acquisition_that_nobody_contends_is_one_round() -> None:
    rounds: list[int] = []

    def counting(terms: Any, source: Any, **arguments: Any) -> Any:
        asked, flow = 0, SHIPPED.acquire(terms, source, **arguments)
        try:
            effect = next(flow)
            while True:
                asked += isinstance(effect, Ask)
                effect = flow.send((yield effect))
        except StopIteration as end:
            rounds.append(asked)
            return end.value

    for nodes in (1, 3, 5):
        rounds.clear()
        calm = Scenario(nodes=nodes, clients=1)
        run = simulate(nodes, replace(SHIPPED, acquire=counting), scenario=calm)
        assert run.broken is None
        assert run.acquired == len(rounds) > 5
        assert set(rounds[1:]) == {1}, "the first one knew no clock"


def test_the_same_seed_is_the_same_history() -> None:
    for seed in range(0, 40, 8):
        assert simulate(seed, tracing=True).trace == simulate(seed, tracing=True).trace
    assert simulate(1, tracing=True).trace != simulate(2, tracing=True).trace


def test_tracing_does_not_change_history() -> None:
    assert simulate(7, tracing=True).acquired == simulate(7).acquired


def test_in_a_calm_world_no_keeper_fails() -> None:
    """What is lost was not to be renewed, or was held for as long as it may be."""
    for seed in range(6):
        run = simulate(seed, scenario=Scenario(nodes=3, clients=2), tracing=True)
        assert run.broken is None
        assert not [line for line in run.trace if "unsure" in line or "(unreachable)" in line]


def test_an_edit_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(ValueError, match="exactly once"):
        planted(Edit("renew", "no such line", ""))


def test_a_failure_prints_the_command_that_replays_it() -> None:
    found = _sim("--seeds", "25", "--no-guard", "--jobs", "1")
    assert found.returncode == 1
    seed = found.stdout.split("SEED=")[1].split()[0]
    assert f"replay: make sim SEED={seed} SIM_ARGS='--trace --no-guard'" in found.stdout

    replayed = _sim("--seed", seed, "--trace", "--no-guard")
    assert replayed.returncode == 1
    law = next(line for line in found.stdout.splitlines() if line.startswith("BROKEN"))
    assert replayed.stdout.splitlines()[-1] == law


def test_many_seeds_from_the_command_line() -> None:
    done = _sim("--seeds", "8", "--jobs", "2")
    assert done.returncode == 0
    assert "8 seeds" in done.stdout
    assert "all laws kept" in done.stdout


def _sim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast.testing", *arguments], capture_output=True, text=True
    )
