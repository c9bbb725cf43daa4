"""What all leases of one client rely on."""

from collections.abc import Callable
from typing import Generic, TypeVar

from .calls import Caller
from .core.effects import Source
from .drivers.port import Port
from .errors import NotHeld
from .journal import Journal
from .keeper.port import KeeperPort
from .shelf import L, Shelf

P = TypeVar("P", bound=Port)


class Home(Generic[P, L]):
    """A client's driver, keeper, journal and source, and the shelf of whoever asks."""

    __slots__ = ("calls", "common", "journal", "keeper", "port", "shelf", "source")

    def __init__(
        self,
        port: P,
        keeper: KeeperPort,
        journal: Journal,
        calls: Caller,
        shelf: Callable[[], Shelf[L]],
        source: Source,
    ) -> None:
        self.port = port
        self.keeper = keeper
        self.journal = journal
        self.calls = calls
        """For callbacks of leases."""
        self.shelf = shelf
        """Returns what the calling thread or task holds."""
        self.source = source
        self.common: Shelf[L] = Shelf(None)
        """What the whole process holds."""

    def by_name(self, name: str, who: str) -> L:
        """Return the latest lease of a lock that the caller holds, or the process.

        Raises `NotHeld` if there is none.
        """
        lease = self.shelf().latest(name) or self.common.latest(name)
        if lease is None:
            raise NotHeld(name, f"this {who} has not acquired it")
        return lease
