"""The clock shim: a server believes it, in what it says and in what it lets expire."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from rig.shimmed import Clock, Shim, ShimmedNode
from rig.waiting import pass_time, until

CLOSE = 5.0
"""Seconds. Much less than any step here, and more than a busy machine needs to answer."""


@pytest.fixture
def node(shimmed: Callable[[int], list[ShimmedNode]]) -> ShimmedNode:
    return shimmed(1)[0]


def test_a_clock_that_nobody_sets_is_true(node: ShimmedNode) -> None:
    before = time.time()
    assert before - 0.005 <= node.time() <= time.time() + 0.005


@pytest.mark.parametrize("seconds", [60, -600])
def test_a_step_is_seen(node: ShimmedNode, seconds: int) -> None:
    node.clock.step(seconds)
    before = time.time()
    assert before + seconds - 0.005 <= node.time() <= time.time() + seconds + 0.005
    assert node.clock.ahead == seconds


def test_steps_add_up(node: ShimmedNode) -> None:
    node.clock.step(60)
    node.clock.step(-20)
    assert abs(node.time() - time.time() - 40) < CLOSE


def test_a_key_dies_at_once_when_its_node_leaps_over_its_end(node: ShimmedNode) -> None:
    node.call("SET", "key", "value", "PX", "30000")
    assert node.call("GET", "key") == "value"
    node.clock.step(60)
    until(lambda: node.call("EXISTS", "key") == "0", within=CLOSE)


def test_a_key_lingers_when_its_node_falls_back(node: ShimmedNode) -> None:
    node.call("SET", "key", "value", "PX", "30000")
    node.clock.step(-600)
    until(lambda: int(node.call("PTTL", "key") or 0) > 600_000, within=CLOSE)


def read(node: ShimmedNode) -> tuple[float, float]:
    """Return our time and a node's, at nearly the same moment."""

    def try_to() -> tuple[float, float] | None:
        before, theirs, after = time.monotonic(), node.time(), time.monotonic()
        return (before, theirs) if after - before < 0.005 else None

    return until(try_to)


@pytest.mark.parametrize("ppm", [50_000, -50_000])
def test_drift_is_seen(node: ShimmedNode, ppm: int) -> None:
    node.clock.drift(ppm)
    real, theirs = read(node)
    pass_time(1.0)
    real_then, theirs_then = read(node)
    assert abs((theirs_then - theirs) / (real_then - real) - (1 + ppm / 1e6)) < 0.02


def test_drift_goes_on_from_where_the_clock_was(node: ShimmedNode) -> None:
    node.clock.step(60)
    node.clock.drift(50_000)
    pass_time(0.2)
    node.clock.drift(0)
    ahead = node.clock.ahead
    assert 60.01 <= ahead < 60 + CLOSE
    assert abs(node.time() - time.time() - ahead) < CLOSE


def test_a_frozen_clock_stands_still(node: ShimmedNode) -> None:
    node.clock.freeze()
    stood = node.time()
    pass_time(0.05)
    assert abs(node.time() - stood) < 0.005, "a server may go on by itself for a millisecond"
    node.call("SET", "key", "value", "PX", "20")
    pass_time(0.1)
    assert node.call("GET", "key") == "value"


def test_a_clock_stays_as_it_is_over_a_restart(node: ShimmedNode) -> None:
    node.clock.step(60)
    node.restart()
    assert abs(node.time() - time.time() - 60) < CLOSE


def test_other_programs_may_have_one_and_only_real_time_is_touched(shim: Shim, short_dir) -> None:
    clock = Clock(short_dir / "clock")
    clock.step(600)
    program = "import time; print(time.time(), time.monotonic(), time.clock_gettime(7))"
    before = (time.time() + 600, time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=shim.environment(clock),
        capture_output=True,
        text=True,
        check=True,
    )
    after = (time.time() + 600, time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))
    for low, value, high in zip(before, map(float, said.stdout.split()), after, strict=True):
        assert low - 0.001 <= value <= high + 0.001
    clock.close()
