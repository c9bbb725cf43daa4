"""Python processes to be interrupted, forked and killed."""

import contextlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.servers import GONE, calls, pttl
from rig.waiting import until

STRICT = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]
"""Every warning is an error, but for that of newer Pythons at a fork of a process with threads."""


@pytest.fixture
def python(cleanup: contextlib.ExitStack) -> Callable[..., subprocess.Popen[str]]:
    """Return what starts a Python process that runs some code with some arguments."""
    return lambda code, *arguments: run(cleanup, "-c", textwrap.dedent(code), *arguments)


@pytest.fixture
def program(cleanup: contextlib.ExitStack, short_dir: Path) -> Callable[..., subprocess.Popen[str]]:
    """Return the same for code that its own children must be able to import."""

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        path = short_dir / "program.py"
        path.write_text(textwrap.dedent(code))
        return run(cleanup, str(path), *arguments)

    return start


def run(
    cleanup: contextlib.ExitStack,
    *arguments: str,
    options: Sequence[str] = STRICT,
    **surroundings: object,
) -> subprocess.Popen[str]:
    """Start a Python process that does not outlive the test."""
    process = subprocess.Popen(
        [sys.executable, *options, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **surroundings,
    )
    cleanup.callback(process.communicate)
    cleanup.callback(process.kill)
    return process


def hear(process: subprocess.Popen[str], words: str) -> None:
    """Wait until a process says something; fail with what it complains of if it does not."""
    line = process.stdout.readline()
    assert line == f"{words}\n", line + (process.stderr.read() if not line else "")


def tell(process: subprocess.Popen[str]) -> None:
    """Let a process go on that waits for a line."""
    process.stdin.write("\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str], *, within: float = 30) -> tuple[int, str, str]:
    """Wait for a process to end; return its exit code, and what it has said since."""
    said, complaints = process.communicate(timeout=within)
    return process.returncode, said, complaints


@pytest.fixture(scope="module")
def _own() -> Iterator[ThrowawayNodes]:
    with ThrowawayNodes(3) as nodes:
        yield nodes


ROUNDING_MS = 2
"""Servers count in whole milliseconds, at either end."""


class Witnesses(list[ThrowawayNode]):
    """Nodes of a module's own, and what they have seen."""

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self]

    def renewals(self) -> int:
        """Return how many renewals were granted, at all nodes together."""
        return sum(calls(node, "pexpire") for node in self)

    def releases(self) -> int:
        """Return how many keys were dropped by a release, at all nodes together."""
        return sum(calls(node, "del") for node in self)

    def see_renewals(self, rounds: int = 2) -> None:
        """Wait until somebody has renewed so often."""
        before = self.renewals()
        until(lambda: self.renewals() >= before + rounds * len(self))

    def see_lapse(self, name: str) -> None:
        """Wait until a lock is free; see that nobody renews it, and that it is not free early."""
        before = self.renewals(), self.releases()
        left = [(time.monotonic(), pttl(node, name)) for node in self]
        for node, (now, ms) in zip(self, left, strict=True):
            until(lambda node=node: pttl(node, name) == GONE)
            assert ms == GONE or time.monotonic() >= now + (ms - ROUNDING_MS) / 1000
        assert (self.renewals(), self.releases()) == before


@pytest.fixture
def witnesses(_own: ThrowawayNodes) -> Witnesses:
    """Return three nodes that only this test talks to."""
    return Witnesses(_own)
