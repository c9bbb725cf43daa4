"""Python processes to be interrupted, forked and killed."""

import contextlib
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest


@pytest.fixture
def python(cleanup: contextlib.ExitStack) -> Callable[..., subprocess.Popen[str]]:
    """Return what starts a Python process that runs some code with some arguments."""

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        cleanup.callback(process.communicate)
        cleanup.callback(process.kill)
        return process

    return start
