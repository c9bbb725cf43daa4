"""A simulated client: a process with a worker and a keeper, each with connections of its own."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from ..core.clocks import Clocks
from ..core.terms import Terms
from .driver import Channel
from .inbox import Inbox
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
        clocks: Clocks,
        protocol: Protocol,
        terms: Callable[..., Terms],
        laws: Laws,
        deaf: Collection[int] = (),
        lost: float = 0.0,
    ) -> None:
        """Be a client. Nodes to which it is `deaf` cannot call it, and some calls get `lost`."""
        self.name = name
        self._protocol = protocol
        self.process = Process(world, name, clock, clocks)
        self.keeper = SimKeeper(Thread(self.process, f"{name}'s keeper"), protocol, laws)
        self.process.inbox = Inbox(self.keeper.thread, deaf=deaf, lost=lost)
        self.worker = Worker(Thread(self.process, name), self.keeper, protocol, terms, laws)

    def connect(
        self, nodes: Sequence[SimNode], path: Callable[[], Path], *, durable: bool = False
    ) -> None:
        """Give every thread a way to every node. `durable`: after a restart they are adopted."""
        channel = partial(Channel, connect=self._protocol.connection, durable=durable)
        for thread in self.process.threads:
            thread.channels += [channel(thread, node, path(), path()) for node in nodes]

    def kill(self, unnoticed: float) -> None:
        """End its process. Nodes find out, in so many seconds or later, that nobody is there."""
        self.process.kill()
        for channel in self.channels:
            channel.abandon(unnoticed)

    @property
    def channels(self) -> list[Channel]:
        """The ways of all its threads to all nodes."""
        return [channel for thread in self.process.threads for channel in thread.channels]
