"""core/ imports nothing that reads a clock, a socket or chance; the check can tell."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import check_core  # noqa: E402  # it is a tool, not a package


def test_the_core_is_pure() -> None:
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_core.py"], capture_output=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "import socket as s",
        "from random import random",
        "import os.path",
        "import threading",
        "import asyncio",
        "import redis",
        "from hiredis import Reader",
        "from .. import errors",
        "from ..drivers import clock",
        "def f():\n    import secrets",
        "__import__('time')",
    ],
)
def test_an_offence_is_found_wherever_it_is(tmp_path: Path, line: str) -> None:
    (tmp_path / "clean.py").write_text("import math\nfrom .votes import Vote\n")
    assert check_core.offences(tmp_path) == []
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "planted.py").write_text(line)
    assert len(check_core.offences(tmp_path)) == 1
