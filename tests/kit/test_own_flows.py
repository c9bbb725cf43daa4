"""Flows that somebody else has written, in simulated worlds."""

import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

import holdfast.testing
from holdfast.core.effects import Ask, Sleep, Tell
from holdfast.core.outcomes import Acquired, Miss, Missed
from holdfast.core.tally import Tally
from holdfast.testing import Edit, Protocol, Run, Scenario, first_broken, planted, simulate

Steps = Generator[Any, float, Any]


def once(terms: Any, source: Any, *, now: float, wait: float | None) -> Steps:
    """Try once, as one should."""
    token, stamp, tally, begun = source.token(), source.stamp(), Tally(terms.nodes), now
    try:
        now = yield Ask(terms.request(token, stamp), tally, begun + terms.patience)
    except GeneratorExit:
        raise
    except BaseException:
        yield Tell(terms.release(token))
        raise
    if tally.accepted and now < begun + terms.validity:
        return Acquired(token, begun + terms.validity, tally, stamp)
    yield Tell(terms.release(token))
    return Missed(Miss.BUSY, 0.0, tally)


def forgetful(terms: Any, source: Any, *, now: float, wait: float | None) -> Steps:
    """Try once, and leave what a lost round was granted behind."""
    token, stamp, tally, begun = source.token(), source.stamp(), Tally(terms.nodes), now
    now = yield Ask(terms.request(token, stamp), tally, begun + terms.patience)
    if tally.accepted and now < begun + terms.validity:
        return Acquired(token, begun + terms.validity, tally, stamp)
    return Missed(Miss.BUSY, 0.0, tally)


def credulous(terms: Any, source: Any, *, now: float, wait: float | None) -> Steps:
    """Try once, and believe in it for twice as long as is right."""
    outcome = yield from once(terms, source, now=now, wait=wait)
    if isinstance(outcome, Acquired):
        late = outcome.valid_until + terms.ttl
        return Acquired(outcome.token, late, outcome.tally, outcome.fence)
    return outcome


def test_a_right_flow_keeps_the_laws() -> None:
    assert first_broken(Protocol(acquire=once), range(12)) is None


@pytest.mark.parametrize(
    ("flow", "law"), [(forgetful, "release frees"), (credulous, "mutual exclusion")]
)
def test_a_wrong_flow_is_found(flow: Any, law: str) -> None:
    run = first_broken(Protocol(acquire=flow))
    assert isinstance(run, Run)
    assert run.broken
    assert run.broken.startswith(law)
    assert run.broken in run.trace[-1]
    assert simulate(run.seed, Protocol(acquire=flow)).broken == run.broken


def test_a_planted_bug_is_found_by_the_first_broken() -> None:
    bug = planted(Edit("tally", "return nodes // 2 + 1", "return max(1, nodes // 2)"))
    run = first_broken(bug, range(200))
    assert run is not None
    assert first_broken(bug, []) is None


def test_a_scenario_may_be_given() -> None:
    calm = Scenario(nodes=1, clients=2, ttl=2.0)
    run = simulate(5, scenario=calm)
    assert run.scenario is calm
    assert run.broken is None
    assert run.acquired > 5
    assert simulate(5, scenario=calm) == run


def test_a_wrong_flow_may_be_right_in_a_calm_world() -> None:
    calm = Scenario(nodes=1, clients=1)
    assert first_broken(Protocol(acquire=credulous), range(10), scenario=calm) is None


def test_an_exception_of_a_flow_names_its_world() -> None:
    def faulty(terms: Any, source: Any, *, now: float, wait: float | None) -> Steps:
        yield Sleep(now + 1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        simulate(3, Protocol(acquire=faulty))
    assert "seed 3" in caught.value.__notes__[0]


def test_everything_that_is_promised_is_there() -> None:
    for name in holdfast.testing.__all__:
        assert getattr(holdfast.testing, name)
    with pytest.raises(AttributeError, match="nonsense"):
        holdfast.testing.nonsense  # noqa: B018  # looking is the test


def test_importing_the_package_loads_nothing_else() -> None:
    loaded = _python(
        "import sys, holdfast.testing.pytest_plugin, holdfast.testing;"
        "print([name for name in sys.modules if name.startswith(('lupa', 'holdfast.testing.'))])"
    )
    assert loaded.stdout.strip() == "['holdfast.testing.pytest_plugin']"


def test_a_missing_extra_is_named() -> None:
    failed = _python("import sys; sys.modules['lupa'] = None; from holdfast.testing import Memory")
    assert failed.returncode == 1
    assert 'hint: pip install "holdfast[testing]"' in failed.stderr.splitlines()[-1]


def _python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
