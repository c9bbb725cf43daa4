"""A simulated client: a process with a worker and a keeper, each with connections of its own."""

from collections.abc import Callable, Sequence

from ..core.terms import Terms
from .driver import Channel
from .keeper import SimKeeper
from .laws import Laws
from .network import Path
from .node import SimNode
from .process import Process, Thread
from .protocol import Protocol
from .worker import Worker
from .world import Clock, World


class SimClient:
    """One of those who contend for the lock."""

    def __init__(
        self,
        world: World,
        name: str,
        clock: Clock,
        *,
        protocol: Protocol,
        terms: Callable[..., Terms],
        laws: Laws,
    ) -> None:
        self.name = name
        self.process = Process(world, name, clock)
        self.keeper = SimKeeper(Thread(self.process, f"{name}'s keeper"), protocol, laws)
        self.worker = Worker(Thread(self.process, name), self.keeper, protocol, terms, laws)

    def connect(self, nodes: Sequence[SimNode], path: Callable[[], Path]) -> None:
        """Give every thread a way to every node."""
        for thread in self.process.threads:
            thread.channels += [Channel(thread, node, path(), path()) for node in nodes]

    @property
    def channels(self) -> list[Channel]:
        """The ways of all its threads to all nodes."""
        return [channel for thread in self.process.threads for channel in thread.channels]
