"""What a client needs of a driver. Another driver makes another client of the same face."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ..core.effects import Flow
from ..wire.endpoint import Endpoint

T = TypeVar("T")


class Port(Protocol):
    """What all drivers have."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The nodes."""

    def now(self) -> float:
        """Return the time on our own clock, in seconds."""

    def reset(self) -> None:
        """Start anew in a forked child, and leave what is the parent's alone."""


class BlockingPort(Port, Protocol):
    """A driver that runs flows on the calling thread."""

    def run(self, start: Callable[[float], Flow[T]]) -> T:
        """Run the flow that `start` makes, given the time, to its end."""

    def close(self) -> None:
        """Close all connections."""


class AsyncPort(Port, Protocol):
    """A driver that runs flows in the calling task."""

    def run(self, start: Callable[[float], Flow[T]]) -> Coroutine[Any, Any, T]:
        """Run the flow that `start` makes, given the time, to its end."""

    def close(self) -> Coroutine[Any, Any, None]:
        """Close all connections."""
