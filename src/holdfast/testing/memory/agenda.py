"""What is to happen at a virtual time, in order."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

Action = Callable[[], object]

_SWEEP = 64
"""How many entries may gather before those that were called off are thrown out."""


@dataclass(order=True, slots=True)
class Entry:
    """Something to happen. What is due at the same time happens in the order of entering."""

    when: float
    order: int
    action: Action | None = field(compare=False)

    def call_off(self) -> None:
        """Let it not happen. Takes no lock: a lease that is collected may call this anywhere."""
        self.action = None


class Agenda:
    """Entries by when they are due. Whoever uses it has the mutex of its time."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._order = itertools.count()
        self._sweep_at = _SWEEP

    def enter(self, when: float, action: Action) -> Entry:
        """Add something to happen."""
        entry = Entry(when, next(self._order), action)
        heapq.heappush(self._entries, entry)
        if len(self._entries) >= self._sweep_at:
            self._sweep()
        return entry

    def is_due(self, end: float) -> bool:
        """True if there is something to happen until then."""
        while self._entries and self._entries[0].action is None:
            heapq.heappop(self._entries)
        return bool(self._entries) and self._entries[0].when <= end

    def take(self) -> Entry:
        """Take out what is to happen first."""
        return heapq.heappop(self._entries)

    def _sweep(self) -> None:
        self._entries = [entry for entry in self._entries if entry.action is not None]
        heapq.heapify(self._entries)
        self._sweep_at = 2 * len(self._entries) + _SWEEP
