"""The asyncio client: the same names, options and errors as the blocking one, to be awaited.

    import holdfast.aio

    hf = holdfast.aio.connect("redis://a", "redis://b", "redis://c")

    async with hf.lock("invoice:42", ttl=30, wait=10) as lease:
        lease.ensure_held()

All tasks of an event loop share one connection per node. A client may be used on several loops at
once, in several threads; each loop has connections of its own. What is not explained here is
explained at the blocking client's method of the same name, and is copied from there.
"""

import asyncio
import functools
import inspect
import weakref
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from . import client as blocking
from . import lease as blocking_lease
from . import lock as blocking_lock
from .core.acquire import acquire
from .core.effects import Source
from .core.holding import Holding
from .core.outcomes import Acquired, Missed, Released
from .core.terms import Terms
from .drivers.aio import AsyncDriver
from .drivers.port import AsyncPort
from .drivers.source import SystemSource
from .errors import BadInput, Busy
from .forking import after_fork
from .lease import LeaseFacts
from .naming import NameTemplate, name_of
from .options import check_name, check_wait
from .reports import error_of
from .settings import DEFAULT_NODE_TIMEOUT, DEFAULT_TTL, UNSET, Settings, read_settings
from .shelf import Entered, Shelf

__all__ = ["AsyncClient", "AsyncLease", "AsyncLock", "connect"]

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def _documented_like(original: type) -> Callable[[C], C]:
    """Take over the documentation of a blocking class's methods of the same names."""

    def document(mirror: C) -> C:
        for name, method in vars(mirror).items():
            if inspect.isfunction(method) and method.__doc__ is None:
                method.__doc__ = getattr(getattr(original, name, None), "__doc__", None)
        return mirror

    return document


def connect(
    *nodes: Any,
    ttl: float = DEFAULT_TTL,
    wait: float | None = None,
    node_timeout: float = DEFAULT_NODE_TIMEOUT,
) -> "AsyncClient":
    """Describe one node, or a quorum of independent ones, for asyncio.

    Takes what `holdfast.connect` takes, except `connections`: each event loop has one connection
    per node. Needs no running loop: the nodes are met before the first round on each loop, and
    what `holdfast.connect` raises about them is raised there.
    """
    settings = read_settings(nodes, ttl=ttl, wait=wait, node_timeout=node_timeout)
    driver = AsyncDriver(settings.endpoints, node_timeout=settings.node_timeout)
    return AsyncClient(driver, settings)


@_documented_like(blocking_lease.Lease)
class AsyncLease(LeaseFacts):
    """The right to be the only one, until it ends by itself or is released.

    An asynchronous context manager: leaving the block releases, and raises `LeaseLost` if the lease
    did not last that long. If the body has failed already, its own exception goes on and the loss
    is attached to it as a note.

    A lease belongs to the process that acquired it. Any of its tasks may use it, on any loop; a
    forked child may not, and for the child it is not held.
    """

    __slots__ = ()

    _port: AsyncPort

    async def renew(self) -> None:
        flow, begun = self._renewing(), self._port.now()
        self._renewed(await self._port.run(flow), begun)

    async def release(self) -> Released:
        return self._released(await self._port.run(self._releasing))

    async def __aenter__(self) -> Self:
        self.ensure_held()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._may_leave():
            return
        try:
            await self.release()
        except Exception as trouble:
            if error is None:
                raise
            error.add_note(f"holdfast: {trouble}")


@_documented_like(blocking_lock.Lock)
class AsyncLock:
    """Describes a lock; it holds nothing. Every acquisition gives an `AsyncLease` of its own.

    Not fair: waiters ask again after a random pause. Not reentrant: acquiring twice waits for
    oneself. If the holder dies, the lock frees itself when the ttl ends. One `AsyncLock` may be
    used by any number of tasks.
    """

    def __init__(self, client: "AsyncClient", terms: Terms, wait: float | None) -> None:
        self._client = client
        self._terms = terms
        self._wait = wait
        self._entered: Entered[AsyncLease] = Entered()

    @property
    def name(self) -> str:
        """The lock's name."""
        return self._terms.name

    async def acquire(self, *, wait: float | None = UNSET) -> AsyncLease:
        client, terms = self._client, self._terms
        seconds = self._wait if wait is UNSET else check_wait(wait)
        outcome = await client._driver.run(
            lambda now: acquire(terms, client._source, now=now, wait=seconds)
        )
        return client._lease_of(terms, outcome)

    async def try_acquire(self) -> AsyncLease | None:
        try:
            return await self.acquire(wait=0.0)
        except Busy:
            return None

    async def __aenter__(self) -> AsyncLease:
        lease = await self.acquire()
        self._entered.put(_task(), lease)
        return lease

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        lease = self._entered.take(_task(), self.name)
        await lease.__aexit__(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<AsyncLock {self.name!r}, ttl {self._terms.ttl:g} s, {self._terms.nodes} node(s)>"


@_documented_like(blocking.Client)
class AsyncClient:
    """Locks on a set of nodes, for asyncio. Make one per process with `holdfast.aio.connect()`.

    A forked child may go on using it: it starts with fresh connections, and holds nothing.
    """

    def __init__(self, driver: AsyncPort, settings: Settings, source: Source | None = None) -> None:
        self._driver = driver
        self._settings = settings
        self._source = source or SystemSource()
        self._mine = _shelf_variable()
        after_fork(self)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes' addresses, without credentials."""
        return tuple(str(endpoint) for endpoint in self._settings.endpoints)

    def lock(self, name: str, *, ttl: float = UNSET, wait: float | None = UNSET) -> AsyncLock:
        settings = self._settings
        return AsyncLock(self, settings.terms(name, ttl), settings.wait_of(wait))

    async def try_lock(self, name: str, ttl: float = UNSET) -> AsyncLease | None:
        return await self.lock(name, ttl=ttl).try_acquire()

    async def release_lock(self, name: str) -> None:
        """Release the lock of that name that this task acquired last.

        Raises `NotHeld` if this task has none, and `LeaseLost` if it had ended before.
        """
        await self._shelf().latest(check_name(name), "task").release()

    def locked(
        self, template: str, *, ttl: float = UNSET, wait: float | None = UNSET
    ) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
        self.lock("unnamed", ttl=ttl, wait=wait)  # what makes no sense should be heard of at once

        def decorate(
            function: Callable[P, Coroutine[Any, Any, R]],
        ) -> Callable[P, Coroutine[Any, Any, R]]:
            if not inspect.iscoroutinefunction(function):
                raise BadInput(f"{name_of(function)} is not async: use holdfast.connect()")
            names = NameTemplate(template, function)

            @functools.wraps(function)
            async def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                async with self.lock(names.name(args, kwargs), ttl=ttl, wait=wait):
                    return await function(*args, **kwargs)

            return wrapper

        return decorate

    async def close(self) -> None:
        await self._driver.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncClient of {', '.join(self.addresses)}>"

    def _lease_of(self, terms: Terms, outcome: Acquired | Missed) -> AsyncLease:
        if not isinstance(outcome, Acquired):
            raise error_of(self._settings.endpoints, terms.name, outcome)
        shelf = self._shelf()
        holding = Holding(terms, outcome.token, outcome.valid_until)
        lease = AsyncLease(self._driver, holding, shelf.forget)
        shelf.put(lease)
        return lease

    def _shelf(self) -> Shelf[AsyncLease]:
        """What this task holds; gone when the task is."""
        task = _task()
        owner, shelf = self._mine.get()
        if owner() is not task:  # a child task inherits its parent's context, not its leases
            shelf = Shelf()
            self._mine.set((weakref.ref(task), shelf))
        return shelf

    def _after_fork(self) -> None:
        """Start anew in a forked child: nothing of the parent's is ours."""
        self._driver.reset()
        self._mine = _shelf_variable()


def _shelf_variable() -> ContextVar[tuple[Callable[[], object], Shelf[AsyncLease]]]:
    return ContextVar("holdfast leases", default=(_nobody, Shelf()))


def _nobody() -> None:
    """Stand for the owner of a shelf that is nobody's."""


def _task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("locks are acquired inside a task")
    return task
