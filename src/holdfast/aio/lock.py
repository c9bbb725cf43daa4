"""A lock, for asyncio."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from ..core.acquire import acquire
from ..core.holding import Holding
from ..core.inspect import Sight, inspect
from ..core.outcomes import Acquired
from ..core.terms import Terms
from ..errors import Busy
from ..inspection import Holder, Waiter, holder_in, sights_in, waiters_in
from ..lock import Lock
from ..options import check_wait
from ..reports import error_of
from ..settings import UNSET
from ..shelf import Entered
from .documented import documented_like
from .lease import AsyncLease
from .tasks import ACQUIRING, this_task

if TYPE_CHECKING:
    from .client import AsyncClient


@documented_like(Lock)
class AsyncLock:
    """Describes a lock; it holds nothing. Every acquisition gives an `AsyncLease` of its own.

    Fair: who waits stands in line, and nobody is let in before. Not reentrant: acquiring twice
    waits for oneself. A lease is renewed while its owner lives; if the holder dies, the lock frees
    itself when the ttl ends. One `AsyncLock` may be used by any number of tasks.
    """

    def __init__(
        self,
        client: "AsyncClient",
        terms: Terms,
        wait: float | None,
        *,
        tied: bool,
        cancels: bool,
    ) -> None:
        self._client = client
        self._terms = terms
        self._wait = wait
        self._tied = tied
        self._cancels = cancels
        self._entered: Entered[AsyncLease] = Entered()

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._terms.name

    async def acquire(self, *, wait: float | None = UNSET) -> AsyncLease:
        client, terms = self._client, self._terms
        seconds = self._wait if wait is UNSET else check_wait(wait)
        if client._unmet:
            await client._meet()
        since = client._driver.now()
        client._keeper.ready(needed=terms.renewing)
        outcome = await client._driver.run(
            lambda now: acquire(terms, client._source, now=now, wait=seconds)
        )
        if not isinstance(outcome, Acquired):
            raise error_of(client._settings.endpoints, terms.name, outcome, terms.guard)
        holding = Holding(terms, outcome.token, outcome.valid_until, outcome.fence)
        lease = client._lease_of(holding, tied=self._tied, cancels=self._cancels)
        if client._journal.hook is not None:
            client._journal.acquired(holding, client._driver.now() - since)
        return lease

    async def try_acquire(self) -> AsyncLease | None:
        try:
            return await self.acquire(wait=0.0)
        except Busy:
            return None

    async def holder(self) -> Holder | None:
        return holder_in(await self._look(), self._terms.nodes)

    async def waiters(self) -> list[Waiter]:
        return waiters_in(await self._look())

    async def _look(self) -> list[Sight]:
        port, terms = self._client._driver, self._terms
        begun = port.now()
        votes = await port.run(lambda now: inspect(terms, now=now))
        return sights_in(votes, terms, port.endpoints, port.now() - begun)

    async def __aenter__(self) -> AsyncLease:
        lease = await self.acquire()
        lease._enter()
        self._entered.put(this_task(), lease)
        return lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        lease = self._entered.find(this_task(), self.name)
        try:
            await lease.__aexit__(kind, error, traceback)
        finally:
            self._entered.forget(lease)

    def __repr__(self) -> str:
        return f"<AsyncLock {self.name!r}, ttl {self._terms.ttl:g} s, {self._terms.nodes} node(s)>"


ACQUIRING |= {
    method.__code__
    for method in (
        AsyncLock.acquire,
        AsyncLock.try_acquire,
        AsyncLock.__aenter__,
        AsyncExitStack.enter_async_context,
    )
}
