"""What a client needs of a driver. Another driver makes another client of the same face."""

import asyncio
import threading
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

    def wait_for(self, bell: threading.Event, until: float) -> None:
        """Wait until the bell rings, or until then; perhaps less, so look again."""

    def close(self) -> None:
        """Close all connections."""


class AsyncPort(Port, Protocol):
    """A driver that runs flows in the calling task."""

    def run(self, start: Callable[[float], Flow[T]]) -> Coroutine[Any, Any, T]:
        """Run the flow that `start` makes, given the time, to its end."""

    def wait_for(self, bell: asyncio.Event, until: float) -> Coroutine[Any, Any, None]:
        """Wait until the bell rings, or until then; perhaps less, so look again."""

    def close(self) -> Coroutine[Any, Any, None]:
        """Close all connections."""
