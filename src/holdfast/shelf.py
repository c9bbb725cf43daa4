"""What one thread or task holds, for releasing by the lock's name."""

from typing import Generic, TypeVar

from .errors import NotHeld
from .lease import LeaseFacts

L = TypeVar("L", bound=LeaseFacts)


class Shelf(Generic[L]):
    """Leases in the order of acquiring. Any thread may take one off."""

    def __init__(self) -> None:
        self._leases: dict[L, None] = {}  # ordered, unlike a set

    def put(self, lease: L) -> None:
        """Add a lease."""
        self._leases[lease] = None

    def latest(self, name: str, who: str) -> L:
        """Return the latest lease of a lock. Raises `NotHeld` if there is none."""
        for lease in reversed(list(self._leases)):
            if lease.name == name:
                return lease
        raise NotHeld(name, f"this {who} has not acquired it")

    def forget(self, lease: L) -> None:
        """Take a lease off, if it is still there."""
        self._leases.pop(lease, None)
