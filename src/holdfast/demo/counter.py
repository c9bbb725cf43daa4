"""The counter that the lock protects: a number in a file, and nothing about it is atomic.

Reading and writing are two steps, so two workers at once lose an update. Each step is a single
system call on a line of fixed width, so that a worker killed at any moment leaves the old number
or the new one, and never half of one.
"""

import os
from pathlib import Path

_WIDTH = 12


class Counter:
    """A number in a file."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / "counter", os.O_RDWR | os.O_CREAT, 0o600)

    def read(self) -> int:
        """Return the number; a new file counts as 0."""
        return int(os.pread(self._file, _WIDTH, 0) or b"0")

    def write(self, number: int) -> None:
        """Replace the number."""
        os.pwrite(self._file, f"{number:>{_WIDTH}}\n".encode(), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
