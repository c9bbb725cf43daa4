"""Who is measured: holdfast, the floor, and the peers as their own documentation uses them.

A contender does *pairs*: acquire a lock and release it. Nothing is contended: what is measured is
the cost of the client and its round trips. Or it is *contended*: many processes want one lock
(`contention.py`). Each runs in a process of its own (`worker.py`) and
imports only what it needs, so that a peer can be measured without hiredis, as `pip install redis`
gives it, and with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

TTL = 30.0

for noisy in ("redlock", "pottery", "redis_lock"):
    logging.getLogger(noisy).setLevel(logging.CRITICAL)

Pair = Callable[[], object]
AsyncPair = Callable[[str], Awaitable[object]]
Release = Callable[[], object]
Acquire = Callable[[], Release]


# -- blocking: a function that does one pair ------------------------------------------------------


def floor(urls: Sequence[str]) -> Pair:
    """Return the floor."""
    from .floor import BlockingFloor

    made = BlockingFloor(urls)
    return lambda: made.pair("floor")


def ours(urls: Sequence[str], *, guard: bool | None = None) -> Pair:
    """Return holdfast: the lock object is made once, each acquire gives a lease of its own."""
    import holdfast

    lock = holdfast.connect(*urls, guard=guard).lock("holdfast", ttl=TTL)
    return lambda: lock.acquire().release()


def redis_py(urls: Sequence[str]) -> Pair:
    """Return redis-py's Lock; the lock object is made once."""
    import redis

    return _twice(redis.Redis.from_url(urls[0]).lock("redis-py", timeout=TTL))


def python_redis_lock(urls: Sequence[str]) -> Pair:
    """Return python-redis-lock; the lock object is made once."""
    import redis
    import redis_lock

    client = redis.Redis.from_url(urls[0])
    return _twice(redis_lock.Lock(client, "python-redis-lock", expire=int(TTL)))


def redlock_py(urls: Sequence[str]) -> Pair:
    """Return redlock-py."""
    import redlock

    manager = redlock.Redlock(list(urls))
    return lambda: manager.unlock(manager.lock("redlock-py", int(TTL * 1000)))


def pottery_redlock(urls: Sequence[str]) -> Pair:
    """Return pottery's Redlock; the lock object is made once."""
    import pottery
    import redis

    masters = {redis.Redis.from_url(url) for url in urls}
    return _twice(pottery.Redlock(key="pottery", masters=masters, auto_release_time=TTL))


def _twice(lock: Any) -> Pair:
    def pair() -> None:
        lock.acquire()
        lock.release()

    return pair


# -- asyncio: a function that does one pair for a task --------------------------------------------


async def async_floor(urls: Sequence[str]) -> AsyncPair:
    """Return the floor for many tasks."""
    from .floor import AsyncFloor

    made = AsyncFloor(urls)
    await made.open()
    return made.pair


async def async_ours(urls: Sequence[str], *, guard: bool | None = None) -> AsyncPair:
    """Return holdfast's asyncio client: one client, a lock object per task."""
    import holdfast.aio

    client = holdfast.aio.connect(*urls, guard=guard)
    locks: dict[str, holdfast.aio.AsyncLock] = {}

    async def pair(name: str) -> None:
        lock = locks.get(name)
        if lock is None:
            lock = locks[name] = client.lock(name, ttl=TTL)
        lease = await lock.acquire()
        await lease.release()

    return pair


async def async_redis_py(urls: Sequence[str]) -> AsyncPair:
    """Return redis-py's asyncio Lock: one client, a lock object per task."""
    import redis.asyncio

    client = redis.asyncio.Redis.from_url(urls[0])
    locks: dict[str, Any] = {}

    async def pair(name: str) -> None:
        lock = locks.get(name)
        if lock is None:
            lock = locks[name] = client.lock(name, timeout=TTL)
        await lock.acquire()
        await lock.release()

    return pair


BLOCKING: dict[str, Callable[[Sequence[str]], Pair]] = {
    "floor": floor,
    "holdfast": ours,
    "holdfast without guard": partial(ours, guard=False),
    "redis-py": redis_py,
    "python-redis-lock": python_redis_lock,
    "redlock-py": redlock_py,
    "pottery": pottery_redlock,
}

ASYNC: dict[str, Callable[[Sequence[str]], Awaitable[AsyncPair]]] = {
    "floor": async_floor,
    "holdfast": async_ours,
    "holdfast without guard": partial(async_ours, guard=False),
    "redis-py": async_redis_py,
}


async def share_out(pair: AsyncPair, tasks: int, pairs: int) -> None:
    """Let so many tasks do so many pairs, each with a lock of its own."""

    async def work(name: str) -> None:
        for _ in range(max(1, pairs // tasks)):
            await pair(name)

    async with asyncio.TaskGroup() as group:
        for number in range(tasks):
            group.create_task(work(f"bench:{number}"))


# -- contended: a function that acquires, however long it takes, and returns one that releases ----


@dataclass(frozen=True)
class Contended:
    """How to want one lock, and the module that it takes."""

    module: str
    make: Callable[[Sequence[str], str], Acquire]


def contended_ours(urls: Sequence[str], name: str) -> Acquire:
    """Return holdfast: the lock object is made once, each acquire gives a lease of its own."""
    import holdfast

    lock = holdfast.connect(*urls).lock(name, ttl=TTL)
    return lambda: lock.acquire().release


def contended_redis_py(urls: Sequence[str], name: str, *, sleep: float = 0.1) -> Acquire:
    """Return redis-py's Lock, which asks again after `sleep` seconds; 0.1 is its default."""
    import redis

    return _kept(redis.Redis.from_url(urls[0]).lock(name, timeout=TTL, sleep=sleep))


def contended_python_redis_lock(urls: Sequence[str], name: str) -> Acquire:
    """Return python-redis-lock.

    It waits by BLPOP for as long as the ttl, and redis-py 8 would give up reading after 5 s.
    """
    import redis
    import redis_lock

    client = redis.Redis.from_url(urls[0], socket_timeout=None)
    return _kept(redis_lock.Lock(client, name, expire=int(TTL)))


def _kept(lock: Any) -> Acquire:
    release = lock.release

    def acquire() -> Release:
        if not lock.acquire():
            raise RuntimeError(f"{lock} came back without the lock")
        return release  # type: ignore[no-any-return]  # of whatever peer this is

    return acquire


CONTENDED = {
    "holdfast": Contended("holdfast", contended_ours),
    "redis-py": Contended("redis", contended_redis_py),
    "redis-py at 1 ms": Contended("redis", partial(contended_redis_py, sleep=0.001)),
    "python-redis-lock": Contended("redis_lock", contended_python_redis_lock),
}
