"""A node in memory. To a round it looks like a connection that answers at once."""

from collections.abc import Callable

from ...core.votes import Condition, Failure, failed
from ...wire import commands
from ...wire.endpoint import Endpoint
from ...wire.link import Asker
from ...wire.round import Round
from ..server import Server

_UNREACHABLE = failed(Condition.UNREACHABLE, "by memory.fail()")


class MemoryNode:
    """One server, reachable or not. What it has stored stays."""

    def __init__(self, number: int, now: Callable[[], float]) -> None:
        self.node = number
        self.endpoint = Endpoint(path=f"memory/{number}")
        self.reachable = True
        self.server = Server(lambda: int(now() * 1000))

    def post(self, round_: Round) -> Failure | None:
        """Let the node answer a round. Returns why it cannot."""
        if self.reachable:
            self.say(commands.pack(round_.command), round_)
            return None
        round_.count(self.node, _UNREACHABLE)
        return _UNREACHABLE.failure

    def say(self, packed: bytes, asker: Asker) -> None:
        """Execute a command; the asker gets its reply, and may say something else."""
        asker.answer(self, self.server.execute(packed))  # type: ignore[arg-type]  # see the module

    def token(self, key: str) -> str | None:
        """Return the token that the node keeps under a key."""
        value = self.server.store.value(key.encode())
        return value.decode() if value is not None else None

    def delete(self, key: str) -> None:
        """Delete a key, as an administrator would."""
        self.server.store.call(b"DEL", key.encode())
