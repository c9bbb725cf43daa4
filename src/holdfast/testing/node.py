"""A simulated node: the shipped scripts over a store, in a process that can die and hang.

What it remembers can be taken from it in all the ways that befall real ones; see `Recall`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from .server import Server
from .store import Store
from .world import WallClock

if TYPE_CHECKING:
    from .network import Connection, Message


EPOCH_US = 1_767_225_600_000_000
"""When simulated time begins, in microseconds since the Unix epoch: fences look like real ones."""

BACKUPS = 12
"""How many snapshots of its memory are kept: some of them are older than any lease."""

GREETING = b"HELLO"
"""What is said first on a connection: who are you, and what time is it?"""

PROMISED = b"~"
"""What stands before the token of somebody for whom the lock is only reserved."""

SUBSCRIBE = b"SUBSCRIBE"
"""What is said where calls are to be heard."""


class Recall(Enum):
    """What a node remembers when it comes back."""

    ALL = "with everything"
    TAIL_LOST = "without the last writes"
    """The disk had been synced a moment before: the marker survives, the last locks do not."""
    OLD = "with an old data directory"
    NOTHING = "empty"


class SimNode:
    """One server. Its clock is a wall clock: expiry follows it."""

    def __init__(self, number: int, clock: WallClock, lua: Mapping[str, str]) -> None:
        self.number = number
        self.up = True
        self.clock = clock
        self.steady = True
        """False if its clock is set, stands still or runs wrong in this world."""
        self.after_execution: Callable[[SimNode, Message, Any], None] = _nobody_looks
        """What is called after every command, with the reply: the laws."""
        self.server = Server(self._now_us, lua, name=f"node {number + 1}")
        self.forgot_us: int | None = None
        """When it last lost something from its memory, on its own clock."""
        self.brought_back: set[bytes] = set()
        """Tokens that an older memory has brought back: they may have been released since."""
        self._backups: deque[Store] = deque([self.server.store.copy()], maxlen=BACKUPS)
        self._other: Store | None = None
        """The database that it was swapped with."""
        self._swapped_us = 0
        self._others_forgot_us: int | None = None
        self._hung = False
        self._backlog: list[tuple[Connection, bytes]] = []
        self._connections: dict[Connection, None] = {}  # ordered, unlike a set
        self.after_call: Callable[[SimNode, bytes, bool], None] = _nobody_listens
        """What is called after somebody was called up, with the inbox, and whether it is there."""
        self._hearers: dict[bytes, Connection] = {}
        """Who has subscribed to which inbox, as far as the node knows."""
        self.server.on_publish = self._publish

    def __str__(self) -> str:
        return f"node {self.number + 1}"

    def _now_us(self) -> int:
        return EPOCH_US + int(self.clock.now() * 1e6)

    @property
    def store(self) -> Store:
        """What it has stored."""
        return self.server.store

    # -- what befalls it --------------------------------------------------------------------------

    def crash(self) -> None:
        """Die at once: connections break, and whatever was not executed never will be."""
        self.up, self._hung = False, False
        self._backlog.clear()
        for connection in list(self._connections):
            connection.break_off(delivered=0)
        self._connections.clear()
        self._hearers.clear()

    def restart(self, memory: Recall = Recall.ALL) -> None:
        """Come back as a new run of the server. Scripts are forgotten in any case."""
        self.up = True
        self.server.restart(memory=self._remembered(memory))

    def hang(self) -> None:
        """Answer nothing; connections stay."""
        self._hung = True

    def resume(self) -> None:
        """Execute what has arrived meanwhile, in order."""
        self._hung = False
        backlog, self._backlog = self._backlog, []
        for connection, packed in backlog:
            self.receive(connection, packed)

    # -- what befalls its memory ------------------------------------------------------------------

    def back_up(self) -> None:
        """Take a snapshot, as a disk or a replica has one."""
        self._backups.append(self.store.copy())

    def _remembered(self, memory: Recall) -> Store:
        """Return what is left of the memory, and take note of what is not."""
        if memory is Recall.ALL:
            return self.store
        self.forgot_us = self._now_us()
        self._other = None
        if memory is Recall.NOTHING:
            return self.server.empty_store()
        store = self._backups[-1 if memory is Recall.TAIL_LOST else 0].copy()
        self._bring_back(store)
        return store

    def _bring_back(self, store: Store) -> None:
        tokens = {value.removeprefix(PROMISED) for value in store.values()}
        self.brought_back |= tokens | set(store.members())

    def flush(self) -> None:
        """Lose everything while the server runs on."""
        self.forgot_us = self._now_us()
        self._other = None
        self.server.flush()

    def swap(self, *, used: bool, abstention: float) -> None:
        """Have its database swapped with another: an empty one, or one that was `used` as well.

        And back, the next time: the other one is where it was put. It has forgotten something only
        if something was granted meanwhile, which takes an `abstention`.
        """
        now_us, (away_us, forgot_us) = self._now_us(), (self._swapped_us, self._others_forgot_us)
        other, self._other = self._other, self.server.swap(self._other or self.server.empty_store())
        self._swapped_us, self._others_forgot_us = now_us, self.forgot_us
        self.forgot_us = forgot_us
        if other is None or now_us >= away_us + abstention * 1e6:
            self.forgot_us = now_us
        if other is not None:
            self._bring_back(other)
        elif used:
            self.server.initialise(database=1)

    def follow(self, memory: Recall) -> None:
        """Be made a replica of its own replica, which lags behind, and promoted again."""
        self.server.follow(self._remembered(memory))

    def fail_over(self, run: str | None, memory: Recall) -> str:
        """Let a replica that lags behind take over, or that run; returns the run before."""
        self.crash()
        self.up = True
        return self.server.fail_over(run, self._remembered(memory))

    def set_clock(self, seconds: float) -> None:
        """Set its clock, forward or back; what has ended by either clock is gone."""
        self.store.purge()
        self.clock.step(seconds)
        self.store.purge()
        if self.forgot_us is not None:  # by the clock that it counts on from here
            self.forgot_us += int(min(seconds, 0.0) * 1e6)

    # -- what it does -----------------------------------------------------------------------------

    def receive(self, connection: "Connection", packed: bytes) -> None:
        """Execute a command that has arrived, and answer."""
        if not self.up:
            connection.break_off(delivered=0)
            return
        self._connections[connection] = None  # it breaks if the node dies, also while it hangs
        if self._hung:
            self._backlog.append((connection, packed))
        elif packed == GREETING:
            connection.reply((self.server.run, self.server.now_us()))
        elif packed == SUBSCRIBE:
            self._subscribe(connection)
        else:
            reply = self.server.execute(packed)
            self.after_execution(self, connection.reply(reply), reply)

    def _subscribe(self, connection: "Connection") -> None:
        allowed = self.number not in connection.inbox.deaf
        if allowed:
            self._hearers[connection.inbox.name] = connection
        connection.reply(allowed)

    def _publish(self, inbox: bytes, call: bytes) -> int:
        """Pass a call on. Whoever it knows to be gone does not get it; others may be gone, too."""
        hearer = self._hearers.get(inbox)
        there = hearer is not None and not hearer.gone
        if hearer is not None and there:
            hearer.push(call)
        self.after_call(self, inbox, there)
        return int(there)


def _nobody_looks(_: SimNode, __: "Message", ___: Any) -> None:
    """Look at nothing."""


def _nobody_listens(_: SimNode, __: bytes, ___: bool) -> None:
    """Listen to nothing."""
