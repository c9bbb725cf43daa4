"""Nodes that forget, and nodes whose clocks are set, on real servers."""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rig.shimmed import CannotBuild, Shim, ShimmedNode
from rig.tasks import pytest_pyfunc_call as pytest_pyfunc_call

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shim() -> Iterator[Shim]:
    """Return the clock shim, built for this session."""
    directory = Path(tempfile.mkdtemp(prefix="hf-shim-", dir="/tmp"))
    try:
        yield Shim(directory)
    except CannotBuild as why:
        pytest.skip(f"no clock shim: {why}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def shimmed(
    shim: Shim, short_dir: Path, cleanup: contextlib.ExitStack
) -> Callable[[int], list[ShimmedNode]]:
    """Return what starts so many nodes with clocks that can be set; they end with the test."""

    def start(count: int) -> list[ShimmedNode]:
        nodes = [shim.node(short_dir / f"c{next(_numbers)}") for _ in range(count)]
        for node in nodes:
            cleanup.callback(node.end)
            node.start()
        return nodes

    return start
