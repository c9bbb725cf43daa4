"""The onlooker: asks the nodes now and then who is in line, as anybody may."""

from collections.abc import Sequence

import holdfast
from holdfast.drivers.clock import now
from holdfast.inspection import Waiter

from . import events
from .plot import LOCK, TTL, name_of

_LOOK = 0.02
"""Seconds between looks: about as often as the lock is handed over. It is little compared with what
the workers ask of the nodes."""


class Onlooker:
    """Sees the line through a client of its own. It takes no part."""

    def __init__(self, workers: int, urls: Sequence[str]) -> None:
        self._client = holdfast.connect(*urls, max_ttl=TTL, label="onlooker")
        self._lock = self._client.lock(LOCK, ttl=TTL)
        self._nodes = len(urls)
        self._numbers = {name_of(number): number for number in range(1, workers + 1)}
        self._next_look = now()

    def look(self) -> events.Line | None:
        """Say who is in line, if it is time to look; None if there is nothing to tell."""
        asked = now()
        if asked < self._next_look:
            return None
        try:
            waiters = self._lock.waiters()
        except holdfast.Unreachable:
            return None  # whether the nodes are there is for others to say
        finally:
            self._next_look = now() + _LOOK
        return events.Line(asked, now(), self._nodes, self._places(waiters))

    def _places(self, waiters: Sequence[Waiter]) -> tuple[events.Place, ...]:
        """Return each worker's place. Who is there twice is about to give up the one in front."""
        places: dict[int, events.Place] = {}
        for waiter in reversed(waiters):
            number = self._numbers.get(waiter.label or "")
            if number is not None:
                places.setdefault(number, events.Place(number, waiter.nodes))
        return tuple(reversed(places.values()))

    def close(self) -> None:
        """Look no more."""
        self._client.close()
