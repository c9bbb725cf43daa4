"""The trap: makes the next worker that comes in so slow that it can be killed in mid-increment.

An increment takes milliseconds, too short a time to aim at from another process.
"""

from pathlib import Path


class Trap:
    """A file that the next one inside takes away."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "trap"

    def lay(self) -> None:
        """Wait for the next worker that comes in."""
        self._file.touch()

    def catches(self) -> bool:
        """Tell a worker whether it is the one. It can catch no second one."""
        try:
            self._file.unlink()
        except FileNotFoundError:
            return False
        return True
