"""Every code block of docs/testing.md runs as it stands."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

GUIDE = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
CONFTEST = [code for code in PYTHON if code.startswith("# conftest.py\n")]
TESTS = [code for code in PYTHON if "\ndef test_" in code]
PROGRAMS = [code for code in PYTHON if code not in TESTS + CONFTEST]


def test_the_guide_has_blocks_of_every_kind() -> None:
    assert {language for language, _ in BLOCKS} <= {"python", "ini", "sh"}
    assert len(CONFTEST) == 1
    assert len(TESTS) > 2
    assert len(PROGRAMS) > 2


@pytest.mark.parametrize("code", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_runs(code: str) -> None:
    exec(compile(code, f"{GUIDE.name}", "exec"), {"__name__": "guide"})


def test_the_tests_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST[0])
    pytester.makefile(".ini", pytest=next(code for language, code in BLOCKS if language == "ini"))
    pytester.makepyfile(**{f"test_block_{number}": code for number, code in enumerate(TESTS)})
    expected = sum(code.count("\ndef test_") for code in TESTS)
    pytester.runpytest_subprocess().assert_outcomes(passed=expected)
