"""An independent witness to who is inside: the kernel's lock on a file.

It protects nothing here. Whoever is inside takes it without waiting; if that fails, somebody else
is inside as well. The kernel takes it back from a process that was killed.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Witness:
    """Sees who is inside together. One per process."""

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / "witness", os.O_RDWR | os.O_CREAT, 0o600)

    @contextlib.contextmanager
    def inside(self) -> Iterator[bool]:
        """Stay inside for the length of the block; true if nobody else was there."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
