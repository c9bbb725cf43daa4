"""What is asked for: one lock's name and times, over so many nodes."""

from . import validity
from .effects import Command, Verb


class Terms:
    """A lock's terms, checked and fixed before the first round, and what follows from them."""

    __slots__ = ("_patience", "_validity", "name", "nodes", "ttl", "ttl_ms")

    def __init__(self, name: str, ttl_ms: int, nodes: int, node_timeout: float) -> None:
        self.name = name
        self.nodes = nodes
        self.ttl_ms = ttl_ms
        self.ttl = ttl_ms / 1000
        """The ttl in seconds, as the nodes will count it."""
        self._patience = validity.patience(node_timeout, self.ttl)
        self._validity = validity.valid_until(0.0, self.ttl)

    def until(self, sent: float) -> float:
        """Return when a round that began at `sent` is over."""
        return sent + self._patience

    def valid_until(self, sent: float) -> float:
        """Return when a lease won by a round that began at `sent` ends."""
        return sent + self._validity

    def request(self, token: str) -> Command:
        """Ask for the lock, for an attempt named by `token`."""
        return Command(Verb.REQUEST, self.name, token, self.ttl_ms)

    def renew(self, token: str) -> Command:
        """Ask for the full ttl again."""
        return Command(Verb.RENEW, self.name, token, self.ttl_ms)

    def release(self, token: str) -> Command:
        """Give back whatever that token has."""
        return Command(Verb.RELEASE, self.name, token)
