"""What is asked for: one lock's name and times, over so many nodes."""

from dataclasses import dataclass

from . import validity
from .effects import Command, Verb


@dataclass(frozen=True, slots=True)
class Terms:
    """A lock's terms, checked and fixed before the first round."""

    name: str
    ttl_ms: int
    nodes: int
    node_timeout: float

    @property
    def ttl(self) -> float:
        """The ttl in seconds, as the nodes will count it."""
        return self.ttl_ms / 1000

    def until(self, sent: float) -> float:
        """Return when a round that began at `sent` is over."""
        return sent + validity.patience(self.node_timeout, self.ttl)

    def valid_until(self, sent: float) -> float:
        """Return when a lease won by a round that began at `sent` ends."""
        return validity.valid_until(sent, self.ttl)

    def request(self, token: str) -> Command:
        """Ask for the lock, for an attempt named by `token`."""
        return Command(Verb.REQUEST, self.name, token, self.ttl_ms)

    def renew(self, token: str) -> Command:
        """Ask for the full ttl again."""
        return Command(Verb.RENEW, self.name, token, self.ttl_ms)

    def release(self, token: str) -> Command:
        """Give back whatever that token has."""
        return Command(Verb.RELEASE, self.name, token)
