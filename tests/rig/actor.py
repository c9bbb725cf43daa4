"""What a conformance test does with a client, as plain calls.

The blocking client's adapter translates nothing. A client of another colour joins the suite with an
adapter that runs its calls to their end behind the same names.
"""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Protocol

import holdfast
import holdfast.aio


class HeldLease(Protocol):
    """A lease, as a test sees it."""

    name: str
    token: str
    ttl: float
    valid_for: float
    is_held: bool

    def ensure_held(self) -> None: ...
    def renew(self) -> None: ...
    def release(self) -> holdfast.Released: ...


class Actor(Protocol):
    """Somebody who wants locks, with a client of its own.

    `options` are those of `client.lock` that few tests are about: `renew`, `max_hold`, `grace`,
    `owner`.
    """

    def acquire(
        self, name: str, *, ttl: float = 10, wait: float | None = 10, **options: Any
    ) -> HeldLease: ...
    def try_acquire(self, name: str, *, ttl: float = 10, **options: Any) -> HeldLease | None: ...
    def holding(
        self, name: str, *, ttl: float = 10, wait: float | None = 10, **options: Any
    ) -> AbstractContextManager[HeldLease]: ...
    def try_lock(self, name: str, ttl: float = 10, **options: Any) -> HeldLease | None: ...
    def release_lock(self, name: str) -> None: ...
    def locked(self, template: str, **options: Any) -> Callable[..., Callable[..., Any]]: ...
    def close(self) -> None: ...


class BlockingActor:
    """The blocking client's adapter."""

    def __init__(self, *nodes: str, **options: Any) -> None:
        self.client = holdfast.connect(*nodes, **options)

    def acquire(
        self, name: str, *, ttl: float = 10, wait: float | None = 10, **options: Any
    ) -> HeldLease:
        return self.client.lock(name, ttl=ttl, **options).acquire(wait=wait)

    def try_acquire(self, name: str, *, ttl: float = 10, **options: Any) -> HeldLease | None:
        return self.client.lock(name, ttl=ttl, **options).try_acquire()

    def holding(
        self, name: str, *, ttl: float = 10, wait: float | None = 10, **options: Any
    ) -> AbstractContextManager[HeldLease]:
        return self.client.lock(name, ttl=ttl, wait=wait, **options)

    def try_lock(self, name: str, ttl: float = 10, **options: Any) -> HeldLease | None:
        return self.client.try_lock(name, ttl=ttl, **options)

    def release_lock(self, name: str) -> None:
        self.client.release_lock(name)

    def locked(self, template: str, **options: Any) -> Callable[..., Callable[..., Any]]:
        return self.client.locked(template, **options)

    def close(self) -> None:
        self.client.close()


class AsyncActor:
    """The asyncio client's adapter: a loop on a thread of its own, and a task per calling thread.

    What is a thread's for the blocking client is a task's here, so each thread speaks through a
    task that stays the same.
    """

    def __init__(self, *nodes: str, **options: Any) -> None:
        self.client = holdfast.aio.connect(*nodes, **options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._mine = threading.local()
        self._tasks: list[asyncio.Task[None]] = []

    def call(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run something in this thread's task; return what it returns."""
        if not hasattr(self._mine, "work"):
            self._mine.work = self._run(self._start())
        done: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._mine.work.put_nowait, (work, done))
        return done.result()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _start(self) -> asyncio.Queue[Any]:
        work: asyncio.Queue[Any] = asyncio.Queue()
        self._tasks.append(asyncio.create_task(self._serve(work)))
        return work

    async def _serve(self, queue: asyncio.Queue[Any]) -> None:
        while True:
            work, done = await queue.get()
            try:
                done.set_result(await work())
            except Exception as error:  # noqa: BLE001  # handed to the caller
                done.set_exception(error)
            del work, done

    def acquire(
        self, name: str, *, ttl: float = 10, wait: float | None = 10, **options: Any
    ) -> HeldLease:
        lock = self.client.lock(name, ttl=ttl, **options)
        return AsyncHeldLease(self, self.call(lambda: lock.acquire(wait=wait)))

    def try_acquire(self, name: str, *, ttl: float = 10, **options: Any) -> HeldLease | None:
        lease = self.call(self.client.lock(name, ttl=ttl, **options).try_acquire)
        return AsyncHeldLease(self, lease) if lease else None

    def holding(
        self, name: str, *, ttl: float = 10, wait: float | None = 10, **options: Any
    ) -> AbstractContextManager[HeldLease]:
        return AsyncBlock(self, self.client.lock(name, ttl=ttl, wait=wait, **options))

    def try_lock(self, name: str, ttl: float = 10, **options: Any) -> HeldLease | None:
        lease = self.call(lambda: self.client.try_lock(name, ttl=ttl, **options))
        return AsyncHeldLease(self, lease) if lease else None

    def release_lock(self, name: str) -> None:
        self.call(lambda: self.client.release_lock(name))

    def locked(self, template: str, **options: Any) -> Callable[..., Callable[..., Any]]:
        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            async def colour(*args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            locked = self.client.locked(template, **options)(colour)

            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:
                return self.call(lambda: locked(*args, **kwargs))

            return call

        return decorate

    def close(self) -> None:
        self._run(self.client.close())
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class AsyncBlock:
    """An `async with` block whose entering and leaving are run to their end."""

    def __init__(self, actor: AsyncActor, lock: holdfast.aio.AsyncLock) -> None:
        self._actor = actor
        self._lock = lock

    def __enter__(self) -> HeldLease:
        return AsyncHeldLease(self._actor, self._actor.call(self._lock.__aenter__))

    def __exit__(self, *failure: Any) -> None:
        self._actor.call(lambda: self._lock.__aexit__(*failure))


class AsyncHeldLease:
    """An asyncio lease whose calls are run to their end."""

    def __init__(self, actor: AsyncActor, lease: holdfast.aio.AsyncLease) -> None:
        self._actor = actor
        self._lease = lease

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lease, name)

    def renew(self) -> None:
        self._actor.call(self._lease.renew)

    def release(self) -> holdfast.Released:
        return self._actor.call(self._lease.release)


ACTORS: dict[str, Callable[..., Actor]] = {"blocking": BlockingActor, "asyncio": AsyncActor}
