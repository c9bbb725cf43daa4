"""Where leases wait to be released: by the lock's name, or at the end of a `with` block."""

from typing import Generic, TypeVar

from .errors import NotHeld
from .lease import LeaseFacts

L = TypeVar("L", bound=LeaseFacts)

_SWEEP = 64
"""How many leases may gather on a shelf before it is looked through."""


class Shelf(Generic[L]):
    """Leases in the order of acquiring. Any thread may take one off."""

    def __init__(self) -> None:
        self._leases: dict[L, None] = {}  # ordered, unlike a set
        self._sweep_at = _SWEEP

    def put(self, lease: L) -> None:
        """Add a lease. Now and then, those that were left to lapse are taken off."""
        self._leases[lease] = None
        if len(self._leases) >= self._sweep_at:
            for other in list(self._leases):
                if not other.is_held:
                    self.forget(other)
            self._sweep_at = 2 * len(self._leases) + _SWEEP

    def latest(self, name: str, who: str) -> L:
        """Return the latest lease of a lock. Raises `NotHeld` if there is none."""
        for lease in reversed(list(self._leases)):
            if lease.name == name:
                return lease
        raise NotHeld(name, f"this {who} has not acquired it")

    def forget(self, lease: L) -> None:
        """Take a lease off, if it is still there."""
        self._leases.pop(lease, None)


class Entered(Generic[L]):
    """The leases of the `with` blocks that one lock object was entered by, innermost last."""

    def __init__(self) -> None:
        self._leases: list[tuple[object, L]] = []

    def put(self, owner: object, lease: L) -> None:
        """Note a lease of a thread or task that has entered."""
        self._leases.append((owner, lease))

    def take(self, owner: object, name: str) -> L:
        """Return the lease of whoever leaves.

        A block may be left by another thread or task than entered it (a framework's doing); that
        is fine as long as there is only one it can mean.
        """
        entered = list(self._leases)
        for entry in reversed(entered):
            if entry[0] == owner or len(entered) == 1:
                self._leases.remove(entry)
                return entry[1]
        raise NotHeld(name, "entered elsewhere; hint: lease = lock.acquire(), then `with lease:`")
