"""What one thread or task holds, by the names of the locks, for releasing by name."""

import contextlib
from typing import Generic, TypeVar

from .errors import NotHeld
from .lease import LeaseFacts

L = TypeVar("L", bound=LeaseFacts)


class Shelf(Generic[L]):
    """Leases by name, the latest last. Any thread may take one off."""

    def __init__(self) -> None:
        self._leases: dict[str, list[L]] = {}

    def put(self, lease: L) -> None:
        """Add a lease."""
        self._leases.setdefault(lease.name, []).append(lease)

    def latest(self, name: str, who: str) -> L:
        """Return the latest lease of a lock. Raises `NotHeld` if there is none."""
        leases = self._leases.get(name)
        if not leases:
            raise NotHeld(name, f"this {who} has not acquired it")
        return leases[-1]

    def forget(self, lease: L) -> None:
        """Take a lease off, if it is still there."""
        leases = self._leases.get(lease.name, [])
        with contextlib.suppress(ValueError):
            leases.remove(lease)
        if not leases:
            self._leases.pop(lease.name, None)
