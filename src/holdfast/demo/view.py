"""What a view is: the screen for terminals, plain lines for everything else."""

from types import TracebackType
from typing import Protocol, Self

from .scene import Scene
from .verdict import Verdict


class View(Protocol):
    """Shows the play to the user, as a context manager."""

    def show(self, scene: Scene, now: float) -> None:
        """Show what is new."""

    def conclude(self, verdict: Verdict) -> None:
        """Show the verdict."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
