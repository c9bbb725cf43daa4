"""A contest for real: processes, a node, and a lock that locks or does not."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.handover import Trial, outcome

from holdfast.embedded import ThrowawayNodes

ROOT = Path(__file__).parents[2]

NO_LOCK = """
from bench import contention
from bench.contenders import CONTENDED, Contended

CONTENDED["nothing"] = Contended("time", lambda urls, name: lambda: lambda: None)
contention.main()
"""

BROKEN = NO_LOCK.replace("lambda: lambda: None", "1 / 0")


@pytest.fixture
def url() -> Iterator[str]:
    with ThrowawayNodes(1) as nodes:
        yield nodes.urls[0]


def contest(url: str, contender: str, *program: str) -> subprocess.CompletedProcess[str]:
    flags = ["--processes", "3", "--span", "0.3", "--lock", "contended", contender, url]
    return subprocess.run(
        [sys.executable, *program, *flags], cwd=ROOT, capture_output=True, text=True, timeout=50
    )


@pytest.mark.parametrize("contender", ["holdfast", "redis-py at 1 ms"])
def test_a_lock_excludes(url: str, contender: str) -> None:
    done = contest(url, contender, "-m", "bench.contention")
    assert done.returncode == 0, done.stderr
    found = outcome(Trial.of(json.loads(done.stdout)))
    assert found.overlaps == 0
    assert found.grants > 0
    assert found.held_us_p50 >= 1000, "a sleep is never short"
    assert found.commands_per_grant > 1, "there are a request and a release at least"


def test_a_lock_that_excludes_nobody_is_found_out(url: str) -> None:
    done = contest(url, "nothing", "-c", NO_LOCK)
    assert done.returncode == 0, done.stderr
    found = outcome(Trial.of(json.loads(done.stdout)))
    assert found.overlaps > found.grants / 2
    assert (found.commands_per_grant, found.executed_per_grant) == (0, 0)


def test_a_contender_that_fails_ends_it_and_says_why(url: str) -> None:
    done = contest(url, "nothing", "-c", BROKEN)
    assert done.returncode != 0
    assert done.stdout == ""
    assert "ZeroDivisionError" in done.stderr
