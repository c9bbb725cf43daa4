"""The view for terminals: a live picture, drawn with rich."""

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .picture import picture
from .plain import shortened
from .scene import Scene
from .verdict import Verdict

_FRAME = 1 / 12
"""Seconds between pictures: smooth to the eye, and light on the machine that is being watched."""


class Screen:
    """Draws the scene over and over in the same place."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, scene: Scene, now: float) -> None:
        """Draw, unless the last picture is fresh.

        Calls come with the news, and most news are of somebody who has left; a picture of
        somebody inside is worth another moment's wait.
        """
        age = now - self._drawn
        if scene.ended or age >= 2 * _FRAME or (age >= _FRAME and scene.holders):
            self._drawn = now
            size = self._console.size
            self._live.update(picture(scene, now, size.width, size.height), refresh=True)

    def conclude(self, verdict: Verdict) -> None:
        """Print the verdict below the last picture."""
        self._live.stop()
        self._console.print(summary(verdict))


def summary(verdict: Verdict) -> RenderableType:
    """Return the verdict as it is printed below the last picture."""
    sign, style = ("✔", "bold green") if verdict.held else ("✖", "bold red")
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    facts.add_column(style="dim")
    for label, text in verdict.facts:
        facts.add_row(label, text)
    breaches = [Text(f"  ‼ {each}", "red") for each in shortened(verdict.breaches)]
    return Group(Text(), Text(f"{sign} {verdict.headline}", style), facts, *breaches)
