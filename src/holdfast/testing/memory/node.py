"""A node in memory. To a round it looks like a connection that answers at once."""

from collections.abc import Callable

from ...core.clocks import NodeClock
from ...core.votes import Condition, Failure, failed
from ...wire import commands
from ...wire.endpoint import Endpoint
from ...wire.link import Asker
from ...wire.peer import Peer
from ...wire.round import Round
from ..node import EPOCH_US
from ..server import Server

_UNREACHABLE = failed(Condition.UNREACHABLE, "by memory.fail()")


class MemoryNode:
    """One server, reachable or not. What it has stored stays."""

    def __init__(self, number: int, now: Callable[[], float]) -> None:
        self.node = number
        self.endpoint = Endpoint(path=f"memory/{number}")
        self.reachable = True
        self.server = Server(lambda: EPOCH_US + int(now() * 1e6), name=f"node {number}")
        self.peer = Peer(NodeClock(trusting=True), 0)
        self._now = now

    def post(self, round_: Round) -> Failure | None:
        """Let the node answer a round. Returns why it cannot."""
        if self.reachable:
            self.say(round_.finish(commands.pack(round_.command), self.peer), round_)
            return None
        round_.count(self.node, _UNREACHABLE)
        return _UNREACHABLE.failure

    def say(self, packed: bytes, asker: Asker) -> None:
        """Execute a command; the asker gets its reply, and may say something else."""
        self.peer.heard_at = self._now()
        asker.answer(self, self.server.execute(packed))

    def forget(self) -> None:
        """Be restarted without a memory: a new run, which nobody has initialised."""
        self.server.restart()

    def token(self, key: str) -> str | None:
        """Return the token that the node keeps under a key."""
        value = self.server.store.value(key.encode())
        return value.decode() if value is not None else None

    def left(self, key: str) -> float:
        """Return for how many seconds the node keeps a key; less than none if it need not end."""
        left = self.server.store.call(b"PTTL", key.encode())
        assert isinstance(left, int)
        return left / 1000

    def delete(self, key: str) -> None:
        """Delete a key, as an administrator would."""
        self.server.store.call(b"DEL", key.encode())
