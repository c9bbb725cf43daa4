"""The laws hold in simulated worlds; planted bugs and the known hole are found."""

import subprocess
import sys

import pytest

from holdfast.testing import Scenario, simulate
from holdfast.testing.mutants import Mutant, mutants
from holdfast.testing.protocol import Edit, planted

SEEDS = 400
CHUNK = 50
MUTANTS = mutants()


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_all_laws_are_kept(first: int) -> None:
    runs = [simulate(seed) for seed in range(first, first + CHUNK)]
    assert [(run.seed, run.broken) for run in runs if run.broken] == []
    assert sum(run.acquired for run in runs) > CHUNK, "the worlds must not be idle"
    assert sum(run.renewed for run in runs) > CHUNK, "keepers have something to do"
    assert sum(run.lost for run in runs) > CHUNK, "and cannot always do it"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_planted_bug_is_found_within_200_seeds(mutant: Mutant) -> None:
    found = (simulate(seed, mutant.protocol).broken or "" for seed in range(200))
    assert any(broken.startswith(mutant.law) for broken in found)


def test_the_known_hole_is_found() -> None:
    """Open: a node that restarts empty forgets leases that are still valid. See SAFETY.md."""
    found = (simulate(seed, amnesia=True).broken or "" for seed in range(200))
    assert any(broken.startswith("mutual exclusion") for broken in found)


def test_the_same_seed_is_the_same_history() -> None:
    for seed in range(0, 40, 8):
        assert simulate(seed, tracing=True).trace == simulate(seed, tracing=True).trace
    assert simulate(1, tracing=True).trace != simulate(2, tracing=True).trace


def test_tracing_does_not_change_history() -> None:
    assert simulate(7, tracing=True).acquired == simulate(7).acquired


def test_in_a_calm_world_no_keeper_fails() -> None:
    """What is lost was not to be renewed, or was held for as long as it may be."""
    for seed in range(8):
        run = simulate(seed, scenario=Scenario(nodes=3, clients=2), tracing=True)
        assert run.broken is None
        assert not [line for line in run.trace if "unsure" in line or "(unreachable)" in line]


def test_an_edit_that_no_longer_fits_is_an_error() -> None:
    with pytest.raises(ValueError, match="exactly once"):
        planted(Edit("renew", "no such line", ""))


def test_a_failure_prints_the_command_that_replays_it() -> None:
    found = _sim("--seeds", "60", "--amnesia", "--jobs", "1")
    assert found.returncode == 1
    seed = found.stdout.split("SEED=")[1].split()[0]
    assert f"replay: make sim SEED={seed} SIM_ARGS='--trace --amnesia'" in found.stdout

    replayed = _sim("--seed", seed, "--trace", "--amnesia")
    assert replayed.returncode == 1
    law = next(line for line in found.stdout.splitlines() if line.startswith("BROKEN"))
    assert replayed.stdout.splitlines()[-1] == law


def test_many_seeds_from_the_command_line() -> None:
    done = _sim("--seeds", "30", "--jobs", "2")
    assert done.returncode == 0
    assert "30 seeds" in done.stdout
    assert "all laws kept" in done.stdout


def _sim(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast.testing", *arguments], capture_output=True, text=True
    )
