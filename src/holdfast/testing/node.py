"""A simulated node: the shipped scripts over a store, in a process that can die and hang."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .server import Server
from .store import Store
from .world import Clock, World

if TYPE_CHECKING:
    from .network import Connection


class SimNode:
    """One server. Its clock is a wall clock: expiry follows it."""

    def __init__(self, world: World, number: int, clock: Clock, lua: Mapping[str, str]) -> None:
        self.number = number
        self.up = True
        self.after_execution: Callable[[SimNode], None] = _nobody_looks
        """What is called after every command: the laws."""
        self._server = Server(lambda: int(clock.at(world.now) * 1000), lua)
        self._hung = False
        self._backlog: list[tuple[Connection, bytes]] = []
        self._connections: dict[Connection, None] = {}  # ordered, unlike a set

    def __str__(self) -> str:
        return f"node {self.number + 1}"

    @property
    def store(self) -> Store:
        """What it has stored."""
        return self._server.store

    # -- what befalls it --------------------------------------------------------------------------

    def crash(self) -> None:
        """Die at once: connections break, and whatever was not executed never will be."""
        self.up, self._hung = False, False
        self._backlog.clear()
        for connection in list(self._connections):
            connection.break_off(delivered=0)
        self._connections.clear()

    def restart(self, *, empty: bool) -> None:
        """Come back, with what was stored or without. Scripts are forgotten either way."""
        self.up = True
        self._server.restart(empty=empty)

    def hang(self) -> None:
        """Answer nothing; connections stay."""
        self._hung = True

    def resume(self) -> None:
        """Execute what has arrived meanwhile, in order."""
        self._hung = False
        backlog, self._backlog = self._backlog, []
        for connection, packed in backlog:
            self.receive(connection, packed)

    # -- what it does -----------------------------------------------------------------------------

    def receive(self, connection: "Connection", packed: bytes) -> None:
        """Execute a command that has arrived, and answer."""
        if not self.up:
            connection.break_off(delivered=0)
            return
        self._connections[connection] = None  # it breaks if the node dies, also while it hangs
        if self._hung:
            self._backlog.append((connection, packed))
        else:
            connection.reply(self._server.execute(packed))
            self.after_execution(self)


def _nobody_looks(_: SimNode) -> None:
    """Look at nothing."""
