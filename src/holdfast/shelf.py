"""Where leases wait to be released: by the lock's name, or at the end of a `with` block."""

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from .core.holding import Holding
from .errors import NotHeld
from .keeper.owner import Owner

if TYPE_CHECKING:
    from .lease import LeaseFacts

L = TypeVar("L", bound="LeaseFacts")

_SWEEP = 64
"""How many leases may gather on a shelf before it is looked through."""


class Shelf(Generic[L]):
    """Leases in the order of acquiring. Any thread may take one off.

    It does not keep a lease alive, so that one which was forgotten is found out; unless it is told
    to, for those that are released by name.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        """Who its leases are renewed for."""
        self._leases: dict[Holding, Callable[[], L | None]] = {}
        self._sweep_at = _SWEEP

    def put(self, lease: L) -> None:
        """Add a lease. Now and then, those that were left to lapse are taken off."""
        self._leases[lease._holding] = weakref.ref(lease)
        if len(self._leases) >= self._sweep_at:
            for holding in list(self._leases):  # no tuples: the collector may take leases off
                known = self._leases.get(holding)
                other = known() if known is not None else None
                if other is None or not other.is_held:
                    self._leases.pop(holding, None)
            self._sweep_at = 2 * len(self._leases) + _SWEEP

    def keep(self, lease: L) -> None:
        """Keep a lease alive until it is taken off: it will be asked for by name."""
        if lease._holding in self._leases:
            self._leases[lease._holding] = lambda: lease

    def move(self, lease: L, other: "Shelf[L]") -> None:
        """Put a lease onto another shelf, which keeps it alive if this one did."""
        known = self._leases.pop(lease._holding, None)
        other.put(lease)
        if known is not None and not isinstance(known, weakref.ref):
            other.keep(lease)

    def latest(self, name: str) -> L | None:
        """Return the latest lease of a lock, None if there is none."""
        for known in reversed(list(self._leases.values())):
            lease = known()
            if lease is not None and lease.name == name:
                return lease
        return None

    def forget(self, lease: L) -> None:
        """Take a lease off, if it is still there."""
        self._leases.pop(lease._holding, None)


class Entered(Generic[L]):
    """The leases of the `with` blocks that one lock object was entered by, innermost last.

    A `with` statement keeps its lock object for as long as the block lasts. If that goes while a
    lease is still here, an interruption has struck before the block's end could release it: it is
    left to lapse, whoever still refers to it.
    """

    def __init__(self) -> None:
        self._leases: list[tuple[object, L]] = []

    def put(self, owner: object, lease: L) -> None:
        """Note a lease of a thread or task that has entered."""
        self._leases.append((owner, lease))

    def find(self, owner: object, name: str) -> L:
        """Return the lease of whoever leaves.

        A block may be left by another thread or task than entered it (a framework's doing); that
        is fine as long as there is only one it can mean.
        """
        entered = list(self._leases)
        for entry in reversed(entered):
            if entry[0] == owner or len(entered) == 1:
                return entry[1]
        raise NotHeld(name, "entered elsewhere; hint: lease = lock.acquire(), then `with lease:`")

    def forget(self, lease: L) -> None:
        """Take a lease off that has ended."""
        if lease._is_over():
            self._leases = [entry for entry in self._leases if entry[1] is not lease]

    def __del__(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._leases and not _finalizing():
            for _, lease in self._leases:
                lease._abandon()
