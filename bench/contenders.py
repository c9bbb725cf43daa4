"""Who is measured: holdfast, the floor, and the peers as their own documentation uses them.

A contender does *pairs*: acquire a lock and release it. Names are its own, so nothing is contended:
what is measured is the cost of the client and its round trips.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pottery
import redis
import redis.asyncio
import redis_lock
import redlock

import holdfast
import holdfast.aio

from .floor import AsyncFloor, BlockingFloor

TTL = 30.0

logging.getLogger("redlock").setLevel(logging.CRITICAL)
logging.getLogger("pottery").setLevel(logging.CRITICAL)
logging.getLogger("redis_lock").setLevel(logging.CRITICAL)


class Contender:
    """One way to acquire and release, on this thread."""

    def __init__(
        self, name: str, pair: Callable[[], object], close: Callable[[], object] = lambda: None
    ) -> None:
        self.name = name
        self.close = close
        self._pair = pair

    def run(self, pairs: int) -> None:
        """Do so many pairs, one after the other."""
        for _ in range(pairs):
            self._pair()


class AsyncContender:
    """One way to acquire and release, by many tasks on one loop, each with a lock of its own."""

    def __init__(
        self,
        name: str,
        tasks: int,
        open_: Callable[[], Awaitable[Callable[[str], Awaitable[object]]]],
        close: Callable[[], Awaitable[object]],
    ) -> None:
        self.name = name
        self._tasks = tasks
        self._runner = asyncio.Runner()
        self._pair = self._runner.run(_awaited(open_()))
        self._close = close

    def run(self, pairs: int) -> None:
        """Do so many pairs, shared out among the tasks."""
        self._runner.run(self._run(max(1, pairs // self._tasks)))

    async def _run(self, each: int) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._tasks):
                group.create_task(self._worker(f"{self.name}:{number}", each))

    async def _worker(self, name: str, each: int) -> None:
        for _ in range(each):
            await self._pair(name)

    def close(self) -> None:
        """Close the connections and the loop."""
        self._runner.run(_awaited(self._close()))
        self._runner.close()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


# -- blocking -------------------------------------------------------------------------------------


def floor(paths: Sequence[str]) -> Contender:
    """Return the floor."""
    made = BlockingFloor(paths)
    return Contender("floor", lambda: made.pair("floor"), made.close)


def ours(paths: Sequence[str], name: str = "holdfast") -> Contender:
    """Return holdfast: the lock object is made once, each acquire gives its own lease."""
    client = holdfast.connect(*(f"unix://{path}" for path in paths))
    lock = client.lock(name, ttl=TTL)
    return Contender(name, lambda: lock.acquire().release(), client.close)


def redis_py(path: str) -> Contender:
    """Return redis-py's Lock."""
    client = redis.Redis(unix_socket_path=path)
    lock = client.lock("redis-py", timeout=TTL)

    def pair() -> None:
        lock.acquire()
        lock.release()

    return Contender("redis-py Lock", pair, client.close)


def python_redis_lock(path: str) -> Contender:
    """Return python-redis-lock; a lock object of it can be acquired again and again."""
    client = redis.Redis(unix_socket_path=path)
    lock = redis_lock.Lock(client, "python-redis-lock", expire=int(TTL))

    def pair() -> None:
        lock.acquire()
        lock.release()

    return Contender("python-redis-lock", pair, client.close)


def redlock_py(paths: Sequence[str]) -> Contender:
    """Return redlock-py."""
    clients = [redis.Redis(unix_socket_path=path) for path in paths]
    manager = redlock.Redlock(clients)

    def pair() -> None:
        manager.unlock(manager.lock("redlock-py", int(TTL * 1000)))

    return Contender("redlock-py", pair, lambda: [client.close() for client in clients])


def pottery_redlock(paths: Sequence[str]) -> Contender:
    """Return pottery's Redlock."""
    clients = {redis.Redis(unix_socket_path=path) for path in paths}
    lock = pottery.Redlock(key="pottery", masters=clients, auto_release_time=TTL)

    def pair() -> None:
        lock.acquire()
        lock.release()

    return Contender("pottery Redlock", pair, lambda: [client.close() for client in clients])


# -- asyncio --------------------------------------------------------------------------------------


def async_floor(paths: Sequence[str], tasks: int) -> AsyncContender:
    """Return the floor for many tasks."""
    made = AsyncFloor(paths)

    async def open_() -> Callable[[str], Awaitable[object]]:
        await made.open()
        return made.pair

    return AsyncContender("floor", tasks, open_, made.close)


def async_ours(paths: Sequence[str], tasks: int) -> AsyncContender:
    """Return holdfast's asyncio client: one client, a lock object per task."""
    client = holdfast.aio.connect(*(f"unix://{path}" for path in paths))
    locks: dict[str, holdfast.aio.AsyncLock] = {}

    async def pair(name: str) -> None:
        lock = locks.get(name)
        if lock is None:
            lock = locks[name] = client.lock(name, ttl=TTL)
        lease = await lock.acquire()
        await lease.release()

    async def open_() -> Callable[[str], Awaitable[object]]:
        return pair

    return AsyncContender("holdfast", tasks, open_, client.close)


def async_redis_py(path: str, tasks: int) -> AsyncContender:
    """Return redis-py's asyncio Lock: one client, a lock object per task."""
    client = redis.asyncio.Redis(unix_socket_path=path)
    locks: dict[str, Any] = {}

    async def pair(name: str) -> None:
        lock = locks.get(name)
        if lock is None:
            lock = locks[name] = client.lock(name, timeout=TTL)
        await lock.acquire()
        await lock.release()

    async def open_() -> Callable[[str], Awaitable[object]]:
        return pair

    return AsyncContender("redis-py asyncio Lock", tasks, open_, client.aclose)
