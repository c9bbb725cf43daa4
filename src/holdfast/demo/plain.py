"""The view for pipes and logs: a line per happening, and no control codes."""

import sys

from .scene import Scene
from .verdict import Verdict

_LONGEST_LIST = 8
"""Lines. Without a lock there are hundreds of breaches, and a few tell as much."""


class Plain:
    """Prints what is new."""

    def __init__(self) -> None:
        self._told = 0

    def __enter__(self) -> "Plain":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, scene: Scene, now: float) -> None:  # noqa: ARG002  # the screen needs it
        """Print the happenings that were not printed yet."""
        for happening in scene.happenings[self._told :]:
            _say(f"{happening.after:5.2f} s  {happening.text}")
        self._told = len(scene.happenings)

    def conclude(self, verdict: Verdict) -> None:
        """Print the verdict."""
        _say(f"\n{verdict.headline}")
        for label, text in verdict.facts:
            _say(f"  {label + ':':<17}{text}")
        for breach in shortened(verdict.breaches):
            _say(f"  breach: {breach}")


def shortened(lines: tuple[str, ...]) -> list[str]:
    """Return the first lines, and how many more there are."""
    more = len(lines) - _LONGEST_LIST
    return [*lines[:_LONGEST_LIST], *([f"... and {more} more"] if more > 0 else [])]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()  # a reader at the other end of the pipe wants it now
