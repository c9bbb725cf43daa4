"""What a client needs of a keeper, and a keeper of a lease."""

from typing import Protocol

from ..core.effects import Noted
from ..core.holding import Holding


class Ward(Protocol):
    """A lease, as its keeper sees it."""

    _holding: Holding

    def _owner_lives(self) -> bool:
        """True while there is somebody to renew it for."""

    def _hear(self, note: Noted) -> None:
        """Take note of what befell the lease. Must not wait."""


class KeeperPort(Protocol):
    """Looks after leases. Every method may be called on any thread, and returns at once."""

    def keep(self, lease: Ward) -> None:
        """Look after a lease that was just acquired, for as long as somebody refers to it."""

    def drop(self, holding: Holding) -> None:
        """Look after a lease no more: it is about to be released, or has been forgotten."""

    def follow(self, holding: Holding) -> None:
        """See that a release goes behind renewals that are still under way."""

    def held(self) -> int:
        """Return how many leases are looked after."""

    def ready(self, *, needed: bool) -> None:
        """See that leases can be looked after, before one is acquired.

        If that is `needed` and cannot be, raises RuntimeError or OSError; a lease that is not
        renewed can do without.
        """

    def reset(self) -> None:
        """Start anew in a forked child, with nothing to look after."""

    def stop(self, wait: float = 0.0) -> bool:
        """Look after nothing any more; True once nothing of it runs, for which it waits so long.

        The only one that may wait. May be called again.
        """
