"""A simulated node: the shipped scripts over a store, in a process that can die and hang."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import hiredis

from ..wire.scripts import EXCLUSIVE
from .lua import machine
from .store import Store
from .world import Clock, World

if TYPE_CHECKING:
    from .network import Connection

_SHIPPED = {script.sha: script.text for script in EXCLUSIVE.values()}


class SimNode:
    """One server. Its clock is a wall clock: expiry follows it."""

    def __init__(self, world: World, number: int, clock: Clock, lua: Mapping[str, str]) -> None:
        self.number = number
        self.up = True
        self._world = world
        self._clock = clock
        self._planted = lua
        """Texts to replace in scripts: planted bugs."""
        self._hung = False
        self._backlog: list[tuple[Connection, bytes]] = []
        self._scripts: set[str] = set()
        self._connections: dict[Connection, None] = {}  # ordered, unlike a set
        self.store = self._empty()

    def __str__(self) -> str:
        return f"node {self.number + 1}"

    def _empty(self) -> Store:
        return Store(lambda: int(self._clock.at(self._world.now) * 1000))

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
        self._scripts.clear()
        if empty:
            self.store = self._empty()

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
        elif self._hung:
            self._backlog.append((connection, packed))
        else:
            self._connections[connection] = None
            connection.reply(self._execute(packed))

    def _execute(self, packed: bytes) -> Any:
        reader = hiredis.Reader()
        reader.feed(packed)
        name, script, keys, *rest = reader.gets()
        if name == b"EVAL":
            text = script.decode()
            self._scripts.update(sha for sha, known in _SHIPPED.items() if known == text)
        elif script.decode() in self._scripts:
            text = _SHIPPED[script.decode()]
        else:
            return hiredis.ReplyError("NOSCRIPT No matching script. Please use EVAL.")
        for old, new in self._planted.items():
            text = text.replace(old, new)
        count = int(keys)
        return machine().run(text, rest[:count], rest[count:], self.store)
