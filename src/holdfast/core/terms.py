"""What is asked for: one lock's name and times, over so many nodes."""

from . import validity
from .effects import Command, Verb


class Terms:
    """A lock's terms, checked and fixed before the first round, and what follows from them."""

    __slots__ = ("name", "nodes", "patience", "ttl", "ttl_ms", "validity")

    def __init__(self, name: str, ttl_ms: int, nodes: int, node_timeout: float) -> None:
        self.name = name
        self.nodes = nodes
        self.ttl_ms = ttl_ms
        self.ttl = ttl_ms / 1000
        """The ttl in seconds, as the nodes will count it."""
        self.patience = validity.patience(node_timeout, self.ttl)
        """How long a round waits for slow nodes, in seconds."""
        self.validity = validity.valid_until(0.0, self.ttl)
        """How long a lease may be believed in, counted from before its round was sent (L1)."""

    def request(self, token: str) -> Command:
        """Ask for the lock, for an attempt named by `token`."""
        return Command(Verb.REQUEST, self.name, token, self.ttl_ms)

    def renew(self, token: str) -> Command:
        """Ask for the full ttl again."""
        return Command(Verb.RENEW, self.name, token, self.ttl_ms)

    def release(self, token: str) -> Command:
        """Give back whatever that token has."""
        return Command(Verb.RELEASE, self.name, token)
