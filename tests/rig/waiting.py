"""Waiting for a condition. The only place in the tests that sleeps."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds. Only a failing test waits this long; a busy machine may need a part of it."""

_POLL = 0.003


def until(condition: Callable[[], T], *, within: float = PATIENCE, what: str = "") -> T:
    """Return the condition's value as soon as it is true; fail if it never is."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {within:g} s in vain {what or condition}")
        time.sleep(_POLL)


def pass_time(seconds: float) -> None:
    """Let time go by, where time itself is the subject: an age, a deadline that must pass."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, within=seconds + PATIENCE)
