"""Tests of the test kit. Time is virtual here: nothing sleeps."""

import pytest

from holdfast.testing import Memory


@pytest.fixture
def memory() -> Memory:
    """Return a universe of three nodes."""
    return Memory(3)
