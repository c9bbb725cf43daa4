"""Fences in Redis and Valkey, with the user's own asyncio client."""

import asyncio
import importlib
import inspect
from types import ModuleType

import pytest
import redis
import redis.asyncio

import holdfast
from holdfast.embedded import ThrowawayNode
from holdfast.fencing import AsyncRedisFences, FencedOff, RedisFences


async def test_a_lower_fence_writes_nothing(
    server: ThrowawayNode, library: ModuleType, name: str
) -> None:
    tasks = importlib.import_module(f"{library.__name__}.asyncio")
    async with tasks.from_url(server.url) as client:
        fences = AsyncRedisFences(client)
        await fences.set(name, "first", fence=5)
        await fences.enter(name, 6)
        with pytest.raises(FencedOff) as caught:
            await fences.set(name, "stale", fence=5)
        assert (caught.value.resource, caught.value.fence, caught.value.last) == (name, 5, 6)
        assert await client.get(name) == b"first"
        await client.script_flush()
        await fences.set(name, "second", fence=6)
        assert await client.get(name) == b"second"
        assert await client.get(fences.key(name)) == b"6"


async def test_lua_of_ones_own_runs_only_for_who_is_let_in(
    server: ThrowawayNode, name: str
) -> None:
    async with redis.asyncio.from_url(server.url) as client:
        fences = AsyncRedisFences(client)
        take = fences.script("return redis.call('DECRBY', KEYS[2], ARGV[2])")
        assert await take(name, 5, keys=[name], args=[3]) == -3
        await fences.enter(name, 6)
        with pytest.raises(FencedOff):
            await take(name, 5, keys=[name], args=[3])
        await client.rpush(f"{name}:list", "x")
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            await take(name, 6, keys=[f"{name}:list"], args=[3])


async def test_many_tasks_write_in_the_order_of_their_fences(
    server: ThrowawayNode, name: str
) -> None:
    async with redis.asyncio.from_url(server.url, max_connections=20) as client:
        log = AsyncRedisFences(client).script("return redis.call('RPUSH', KEYS[2], ARGV[1])")

        async def writer(number: int) -> int:
            refused = 0
            for step in range(60):
                try:
                    await log(name, step * 12 + number, keys=[name])
                except FencedOff:
                    refused += 1
            return refused

        refused = sum(await asyncio.gather(*(writer(number) for number in range(12))))
        written = [int(fence) for fence in await client.lrange(name, 0, -1)]
    assert len(written) + refused == 720
    assert written == sorted(written)


async def test_a_blocking_client_is_refused(server: ThrowawayNode) -> None:
    match = "hint: RedisFences"
    with redis.Redis.from_url(server.url) as client, pytest.raises(holdfast.BadInput, match=match):
        AsyncRedisFences(client)


async def test_a_pipeline_is_refused(server: ThrowawayNode) -> None:
    async with redis.asyncio.from_url(server.url) as client, client.pipeline() as pipe:
        with pytest.raises(holdfast.BadInput, match="pipeline"):
            AsyncRedisFences(pipe)


def test_both_have_the_same_face() -> None:
    public = {name for name in vars(RedisFences) if not name.startswith("_")}
    assert public == {name for name in vars(AsyncRedisFences) if not name.startswith("_")}
    for name in public - {"script"}:
        one, other = getattr(RedisFences, name), getattr(AsyncRedisFences, name)
        assert inspect.signature(one) == inspect.signature(other)
