"""python -m model: a table on stdout, stories on demand, and an exit code that says it all."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import model.__main__ as command
import pytest
from model.cases import CASES

ROOT = Path(__file__).parents[2]


def test_a_story_is_told_on_demand() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "model", "--quick", "--variant", "no-guard", "--trace"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    header, row, *story = done.stdout.splitlines()
    assert header.split() == ["variant", "bounds", "amnesias", "verdict", "states", "seconds"]
    assert row.split()[:3] == ["no-guard", "no", "guard"]
    assert "violated" in row
    assert any(line.split()[:2] == ["1", "a"] for line in story)
    assert "  broken: mutual exclusion: a and b both have a valid lease" in story


def test_without_trace_there_is_only_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--variant", "floors"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_mistake_that_is_not_found_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    floors = next(case for case in CASES if case.variant == "floors")
    monkeypatch.setattr(command, "CASES", [replace(floors, holds=False)])
    assert command.main([]) == 1
    assert "NOT EXPECTED: it holds" in capsys.readouterr().out


def test_a_law_that_is_broken_is_a_failure_and_its_story_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unguarded = next(case for case in CASES if case.variant == "no-guard")
    monkeypatch.setattr(command, "CASES", [replace(unguarded, holds=True)])
    assert command.main([]) == 1
    out = capsys.readouterr().out
    assert "NOT EXPECTED: it is violated" in out
    assert "broken: mutual exclusion" in out


def test_an_unknown_variant_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(["--variant", "nonsense"])
    assert refused.value.code == 2
    assert "no-guard" in capsys.readouterr().err


def test_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "check", interrupt)
    assert command.main(["--variant", "floors"]) == 130
