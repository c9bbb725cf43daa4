"""`lease.lost`, for asyncio."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ..core.outcomes import LossReason
from ..hearers import Hearers
from ..lost import LossFacts, deadline_of

if TYPE_CHECKING:
    from .lease import AsyncLease


class AsyncLossSignal(LossFacts):
    """The loss of an `AsyncLease`."""

    __slots__ = ()

    _lease: "AsyncLease"

    async def wait(self, timeout: float | None = None) -> LossReason | None:
        """Wait until the lease is lost, for `timeout` seconds at most; return why.

        None if it was released, or is still held when the time is up. A loss is noticed at the
        lease's end on our own clock at the latest, whatever the keeper does.
        """
        port, bell, loop = self._lease._home.port, asyncio.Event(), asyncio.get_running_loop()
        deadline = deadline_of(port.now(), timeout)

        def ring() -> None:
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits there
                loop.call_soon_threadsafe(bell.set)

        hearers: Hearers[object] = Hearers.of(self._lease)
        hearers.on_ended(ring)  # first: an end after we looked is heard
        try:
            while not self._is_over() and port.now() < deadline:
                await port.wait_for(bell, self._next_look(deadline))
        finally:
            hearers.forget(ring)
        return self.reason
