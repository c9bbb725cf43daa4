"""The asyncio client: for tasks."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from ..calls import Caller, SideBySide
from ..client import FAREWELL, Client
from ..core.effects import Source
from ..core.holding import Holding
from ..core.place import CLAIM
from ..drivers import clock
from ..drivers.aio import AsyncDriver
from ..drivers.port import AsyncPort
from ..drivers.source import SystemSource
from ..errors import BadInput
from ..events import Event
from ..forking import after_fork
from ..home import Home
from ..journal import Journal, Stats
from ..keeper.keeper import Keeper
from ..keeper.port import KeeperPort
from ..naming import NameTemplate, name_of
from ..options import check_cancel_on_lost, check_name, check_on_event, check_owner
from ..settings import (
    DEFAULT_MAX_HOLD,
    DEFAULT_MAX_TTL,
    DEFAULT_NODE_TIMEOUT,
    DEFAULT_TTL,
    UNSET,
    Settings,
    read_settings,
)
from ..shelf import Shelf
from .documented import documented_like
from .lease import AsyncLease
from .lock import AsyncLock
from .nodes import AsyncNodes
from .tasks import ACQUIRING, Mine, this_task

P = ParamSpec("P")
R = TypeVar("R")


def connect(
    *nodes: Any,
    ttl: float = DEFAULT_TTL,
    wait: float | None = None,
    renew: bool = True,
    max_hold: float | None = DEFAULT_MAX_HOLD,
    node_timeout: float = DEFAULT_NODE_TIMEOUT,
    guard: bool | None = None,
    max_ttl: float = DEFAULT_MAX_TTL,
    durable: bool = False,
    allow_eviction: bool = False,
    claim: float = CLAIM,
    label: str | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> "AsyncClient":
    """Describe one node, or a quorum of independent ones, for asyncio.

    Takes what `holdfast.connect` takes, except `connections`: each event loop has one connection
    per node. Needs no running loop: the nodes are met before the first round on each loop, and
    what `holdfast.connect` raises about them is raised there.
    """
    hook = check_on_event(on_event)
    settings = read_settings(
        nodes,
        ttl=ttl,
        wait=wait,
        renew=renew,
        max_hold=max_hold,
        node_timeout=node_timeout,
        guard=guard,
        max_ttl=max_ttl,
        durable=durable,
        allow_eviction=allow_eviction,
        claim=claim,
        label=label,
    )
    journal = Journal(settings.endpoints, hook)
    fleet = settings.fleet(journal)
    driver = AsyncDriver(fleet, node_timeout=settings.node_timeout)
    return AsyncClient(driver, settings, Keeper(fleet), journal, source=SystemSource(fleet))


@documented_like(Client)
class AsyncClient:
    """Locks on a set of nodes, for asyncio. Make one per process with `holdfast.aio.connect()`.

    A forked child may go on using it: it starts with fresh connections, and holds nothing.
    """

    def __init__(
        self,
        driver: AsyncPort,
        settings: Settings,
        keeper: KeeperPort,
        journal: Journal,
        *,
        source: Source,
        calls: Caller | None = None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._keeper = keeper
        self._journal = journal
        self._source = source
        self._unmet = settings.guard.is_on
        """True until somebody has seen whether the nodes are new."""
        self._mine: ContextVar[Mine] = ContextVar("holdfast leases")
        calls = calls or SideBySide("holdfast-callback")
        self._home = Home(driver, keeper, journal, calls, self._shelf, source)
        after_fork(self)

    @property
    def nodes(self) -> AsyncNodes:
        """The nodes themselves: what they remember, and how to tell them otherwise."""
        return AsyncNodes(self._driver, self._settings)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes' addresses, without credentials."""
        return tuple(str(endpoint) for endpoint in self._settings.endpoints)

    def lock(
        self,
        name: str,
        *,
        ttl: float = UNSET,
        wait: float | None = UNSET,
        renew: bool = UNSET,
        max_hold: float | None = UNSET,
        grace: float | None = None,
        owner: Literal["caller"] | None = "caller",
        cancel_on_lost: bool = False,
    ) -> AsyncLock:
        """Describe an exclusive lock. Nothing is sent until it is acquired.

        - `ttl`: seconds after which the nodes free the lock unless it was renewed or released.
        - `wait`: seconds that acquiring may wait; 0 is one try, None as long as it takes.
        - `renew`: False for a lease that simply ends after its ttl.
        - `max_hold`: seconds after which renewal stops and the lease is lost; None is never.
        - `grace`: how many seconds before its end a lease that could not be renewed counts as
          endangered; a sixth of the ttl if it is not given.
        - `owner`: as long as whom leases are renewed: the task that acquires them, or with None
          the whole process. A task that does nothing else, as `asyncio.wait_for(lock.acquire())`
          makes, is no owner: then it is the process as well.
        - `cancel_on_lost`: True to cancel the task inside an `async with` block when the lease is
          lost; leaving the block then raises `LeaseLost`.
        """
        settings = self._settings
        terms = settings.terms(name, ttl, renew, max_hold, grace)
        return AsyncLock(
            self,
            terms,
            settings.wait_of(wait),
            tied=check_owner(owner),
            cancels=check_cancel_on_lost(cancel_on_lost),
        )

    async def try_lock(
        self,
        name: str,
        ttl: float = UNSET,
        *,
        renew: bool = UNSET,
        max_hold: float | None = UNSET,
        grace: float | None = None,
        owner: Literal["caller"] | None = "caller",
        cancel_on_lost: bool = False,
    ) -> AsyncLease | None:
        lock = self.lock(
            name,
            ttl=ttl,
            renew=renew,
            max_hold=max_hold,
            grace=grace,
            owner=owner,
            cancel_on_lost=cancel_on_lost,
        )
        lease = await lock.try_acquire()
        if lease is not None:
            lease._shelf.keep(lease)
        return lease

    async def release_lock(self, name: str) -> None:
        """Release the lock of that name that this task (or `owner=None`) acquired last.

        Raises `NotHeld` if this task has none, and `LeaseLost` if it had ended before. A lease of
        `try_lock` is known by name until then; one of `Lock.acquire` as long as you refer to it.
        """
        await self._home.by_name(check_name(name), "task").release()

    def locked(
        self,
        template: str,
        *,
        ttl: float = UNSET,
        wait: float | None = UNSET,
        renew: bool = UNSET,
        max_hold: float | None = UNSET,
        grace: float | None = None,
        owner: Literal["caller"] | None = "caller",
        cancel_on_lost: bool = False,
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
        lock = functools.partial(
            self.lock,
            ttl=ttl,
            wait=wait,
            renew=renew,
            max_hold=max_hold,
            grace=grace,
            owner=owner,
            cancel_on_lost=cancel_on_lost,
        )
        lock("unnamed")  # what makes no sense should be heard of at once

        def decorate(
            function: Callable[P, Coroutine[Any, Any, R]],
        ) -> Callable[P, Coroutine[Any, Any, R]]:
            if not inspect.iscoroutinefunction(function):
                raise BadInput(f"{name_of(function)} is not async: use holdfast.connect()")
            names = NameTemplate(template, function)

            @functools.wraps(function)
            async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                async with lock(names.name(args, kwargs)):
                    return await function(*args, **kwargs)

            return wrapper

        return decorate

    def stats(self) -> Stats:
        return self._journal.stats(self._keeper.held())

    async def close(self) -> None:
        await self._driver.close()
        deadline = clock.now() + FAREWELL
        while not self._keeper.stop() and clock.now() < deadline:
            await asyncio.sleep(0.001)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __reduce__(self) -> str:
        raise TypeError("a client belongs to its process: make one in each, do not pickle it")

    def __repr__(self) -> str:
        return f"<AsyncClient of {', '.join(self.addresses)}>"

    async def _meet(self) -> None:
        """Look at the nodes before the first request: if all are new, they are initialised."""
        await self._driver.run(self._settings.bootstrap)
        self._unmet = False

    def _lease_of(self, holding: Holding, *, tied: bool, cancels: bool) -> AsyncLease:
        shelf = self._shelf() if tied else self._home.common
        lease = AsyncLease(self._home, holding, shelf, cancels=cancels)
        shelf.put(lease)
        self._keeper.keep(lease)
        return lease

    def _shelf(self) -> Shelf[AsyncLease]:
        """What this task holds; gone when the task is."""
        task, mine = this_task(), self._mine.get(None)
        if mine is None or mine.task() is not task:  # a child task inherits its parent's context
            mine = Mine.of(task, self._home.common)
            self._mine.set(mine)
        return mine.shelf

    def _after_fork(self) -> None:
        """Start anew in a forked child: nothing of the parent's is ours."""
        self._driver.reset()
        self._keeper.reset()
        self._journal.reset()
        self._home.calls.reset()
        self._mine = ContextVar("holdfast leases")


ACQUIRING |= {AsyncClient.try_lock.__code__}
