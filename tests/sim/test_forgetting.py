"""Every way in which nodes forget: harmless with a guard, and not without."""

from dataclasses import replace

import pytest

from holdfast.testing import Scenario, simulate

FORGETFUL = {
    "restarted with less": Scenario(crashes=True, amnesia=True),
    "flushed": Scenario(flushes=True),
    "swapped": Scenario(swaps=True),
    "failed over": Scenario(failovers=True),
}


@pytest.mark.parametrize("kind", FORGETFUL)
@pytest.mark.parametrize("nodes", [1, 3])
def test_with_a_guard_all_laws_are_kept(kind: str, nodes: int) -> None:
    scenario = replace(FORGETFUL[kind], nodes=nodes, ttl=0.6, cuts=nodes > 1)
    runs = [simulate(seed, scenario=scenario) for seed in range(6)]
    assert [(run.seed, run.broken) for run in runs if run.broken] == []
    assert sum(run.acquired for run in runs) > 12, "they come back"


@pytest.mark.parametrize("kind", FORGETFUL)
def test_without_a_guard_two_hold_the_lock(kind: str) -> None:
    scenario = replace(FORGETFUL[kind], nodes=1, ttl=0.6, guard=False)
    found = (simulate(seed, scenario=scenario).broken or "" for seed in range(100))
    assert any(broken.startswith("mutual exclusion") for broken in found)


def test_durable_nodes_vote_on_after_a_restart() -> None:
    """Where nodes are restarted all the time, those that abstain after it are hardly ever there."""
    restarts = Scenario(nodes=3, ttl=0.6, rolls=True, durable=True)
    durable = [simulate(seed, scenario=restarts) for seed in range(4)]
    others = [simulate(seed, scenario=replace(restarts, durable=False)) for seed in range(4)]
    assert [run.broken for run in durable + others if run.broken] == []
    assert sum(run.acquired for run in durable) > 1.5 * sum(run.acquired for run in others)
