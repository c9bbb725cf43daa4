"""The protocol holds in its models, within their bounds; every planted mistake is found."""

import re
from pathlib import Path

import pytest
from model.cases import CASES, Case, Finding, check
from model.exclusion import Exclusion
from model.explore import explore, story
from model.floors import Floors
from model.guard import CLIENTS, Rules
from model.ordering import Ordering

PROOFS = Path(__file__).parents[2] / "docs" / "proofs.md"
QUICK = [case for case in CASES if case.quick]

LEAST = {"guard": 20_000, "guard-first": 20_000, "fences": 5_000, "floors": 1_000}
"""So many states must have been visited before "it holds" means anything."""


def _name(case: Case) -> str:
    return f"{case.variant}, {case.bounds}, {case.amnesias}"


@pytest.mark.parametrize("case", QUICK, ids=_name)
def test_it_comes_out_as_it_must(case: Case) -> None:
    finding = check(case)
    assert finding.expected, finding.explored.broken
    assert finding.explored.moves > finding.explored.states, "there is more than one way"
    assert _documented(case) == (finding.holds, finding.explored.states)
    if case.holds:
        assert finding.explored.states > LEAST[case.variant]
    else:
        _replay(finding)


def _replay(finding: Finding) -> None:
    """Every step is one that the model allows, from its start, and only the last breaks a law."""
    model, trace = finding.model, finding.explored.trace
    assert trace is not None
    state = model.start
    assert trace.start == state
    for step in trace.steps:
        assert model.broken(state) is None
        assert step in model.moves(state)
        state = step[1]
    assert model.broken(state) == finding.explored.broken
    match model:
        case Exclusion():
            assert all(model.clients.records[state[who]].valid for who in CLIENTS)
        case Ordering():
            fences = [model.leases.records[code].fence for code in state[: model.rules.leases]]
            assert fences[0] >= fences[1] > 0
        case Floors():
            assert trace.steps[-1][0][0] == "execute"


def _documented(case: Case) -> tuple[bool, int]:
    """Return what docs/proofs.md says of that case."""
    cells = re.escape(f"| `{case.variant}` | {case.says} | {case.bounds} | {case.amnesias} |")
    row = re.search(cells + r" (\w+) \| ([\d,]+) \|", PROOFS.read_text())
    assert row, "it has a row in the table of docs/proofs.md"
    return row[1] == "holds", int(row[2].replace(",", ""))


def test_every_case_is_in_the_documentation() -> None:
    for case in CASES:
        assert _documented(case)[0] == case.holds


def test_there_are_the_protocol_and_its_mistakes() -> None:
    guarded = {case.amnesias for case in QUICK if case.variant == "guard"}
    assert guarded == {"1", "2"}
    assert sum(not case.holds for case in QUICK) == 13


@pytest.mark.parametrize("mistake", [{"guarded": False}, {"guards_repair": False}])
def test_only_amnesia_makes_a_guard_necessary(mistake: dict[str, bool]) -> None:
    assert explore(Exclusion(Rules(**mistake), amnesias=0)).broken is None


@pytest.mark.parametrize(
    ("variant", "sentence"),
    [
        ("no-guard", r"node \d restarts empty"),
        ("short", r"node \d executes .*: it abstains"),
        ("marker-only", r"node \d restarts from an older copy"),
        ("remembered-run", r"which names the run that [ab] remembers: granted"),
        ("unguarded-repair", r"node \d executes [ab]'s renewal and repairs: granted"),
        ("clock-back-copy", r"node \d restarts from an older copy"),
        ("counters", r"node \d votes for b, and counts"),
        ("one-accepts", r"node \d votes for b, and does not accept 1"),
        ("no-floor", r"node \d forgets; it accepts what is above 0"),
        ("accepted-again", r"node \d votes for b, and accepts 1"),
        ("no-horizon", r"the node abstains until 4"),
        ("clock-back", r"the clock is set back to 0"),
        ("clock-back-twice", r"the node forgets, and its clock is set back to 0"),
    ],
)
def test_a_story_says_what_went_wrong(variant: str, sentence: str) -> None:
    finding = check(next(case for case in CASES if case.variant == variant))
    assert finding.explored.trace is not None
    told = list(story(finding.model, finding.explored.trace))
    assert any(re.search(sentence, line) for line in told)
    assert [line.split()[0] for line in told[1::2]] == [
        str(number) for number in range(1, len(finding.explored.trace.steps) + 1)
    ]
