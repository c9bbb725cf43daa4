"""In-memory clients are the shipped ones, and what they wait for costs no real time."""

import asyncio
import inspect
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.testing import Memory


def test_they_are_the_shipped_classes(memory: Memory) -> None:
    client, lock = memory.client(), memory.client().lock("a")
    assert type(client) is holdfast.Client
    assert type(lock) is holdfast.Lock
    with lock as lease:
        assert type(lease) is holdfast.Lease
    assert type(memory.take("b")) is holdfast.Lease
    assert client.addresses == ("unix://memory/0", "unix://memory/1", "unix://memory/2")


def test_so_are_those_of_asyncio(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client()
        assert type(client) is holdfast.aio.AsyncClient
        assert type(client.lock("a")) is holdfast.aio.AsyncLock
        async with client.lock("a") as lease:
            assert type(lease) is holdfast.aio.AsyncLease
            assert memory.holder("a") == lease.token

    asyncio.run(main())


@pytest.mark.parametrize("nodes", [0, -1, 1.5, True, "3"])
def test_a_number_of_nodes_that_makes_no_sense(nodes: object) -> None:
    with pytest.raises(holdfast.BadInput):
        Memory(nodes)  # type: ignore[arg-type]  # on purpose


BAD_OPTIONS = [
    {"ttl": 0}, {"wait": -1}, {"renew": 1}, {"max_hold": 0}, {"node_timeout": 0}, {"on_event": 1},
    {"guard": 1}, {"max_ttl": 0}, {"ttl": 61}, {"ttl": 31, "max_ttl": 30}, {"ttl": 0.09},
]  # fmt: skip


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_options_are_checked_as_by_connect(memory: Memory, options: dict[str, Any]) -> None:
    with pytest.raises(holdfast.BadInput):
        memory.client(**options)
    with pytest.raises(holdfast.BadInput):
        memory.async_client(**options)


def test_options_are_the_locks_defaults(memory: Memory) -> None:
    memory.take("busy")
    client = memory.client(ttl=7, wait=2, renew=False)
    lease = client.lock("free").acquire()
    assert lease.ttl == 7
    with pytest.raises(holdfast.TimedOut) as caught:
        client.lock("busy").acquire()
    assert caught.value.waited == 2
    memory.advance(5)
    assert not lease.is_held, "renew=False"


def test_the_options_of_connect_are_there(memory: Memory) -> None:
    def options(function: Callable[..., object]) -> dict[str, object]:
        known = inspect.signature(function).parameters.values()
        return {each.name: each.default for each in known if each.kind is each.KEYWORD_ONLY}

    real = options(holdfast.connect)
    for option in ("connections", "durable", "allow_eviction"):
        del real[option]  # these are about servers
    assert options(memory.client) == options(memory.async_client) == real


@pytest.mark.parametrize(
    ("nodes", "guard", "tolerance"),
    [(1, None, 0.0), (1, True, 0.05), (3, None, 0.05), (3, False, 0.0), (5, True, 0.05)],
)
def test_a_lease_is_exactly_as_long_as_its_terms(
    nodes: int, guard: bool | None, tolerance: float
) -> None:
    memory = Memory(nodes)
    lease = memory.client(guard=guard).lock("a", ttl=10, renew=False).acquire()
    assert lease.valid_for == pytest.approx(10 - 0.2 - 0.002 - tolerance)
    memory.advance(4)
    assert lease.valid_for == pytest.approx(6 - 0.2 - 0.002 - tolerance)


def test_a_minute_of_waiting_takes_no_real_time(memory: Memory) -> None:
    memory.take("a", ttl=50)
    begun = time.monotonic()
    with memory.client().lock("a", wait=60):
        assert 50 < memory.now < 51
    assert time.monotonic() - begun < 20


def test_a_wait_that_is_over_takes_no_real_time(memory: Memory) -> None:
    memory.take("a", ttl=300)
    begun = time.monotonic()
    with pytest.raises(holdfast.TimedOut) as caught:
        memory.client().lock("a").acquire(wait=60)
    assert caught.value.waited == 60
    assert memory.now == 60
    assert time.monotonic() - begun < 20


def test_an_hour_without_nodes_takes_a_moment(memory: Memory) -> None:
    memory.fail()
    with pytest.raises(holdfast.Unreachable):
        memory.client().lock("a").acquire(wait=3600)
    assert memory.now == 3600


def test_nodes_that_are_back_are_noticed_at_once(memory: Memory) -> None:
    memory.fail(0, 1)
    memory.after(100, lambda: memory.heal(1))
    with memory.client().lock("a", wait=200):
        assert memory.now == 100


def test_waiting_for_ever_for_nodes_ends_like_anywhere(memory: Memory) -> None:
    memory.fail()
    with pytest.raises(holdfast.Unreachable):
        memory.client().lock("a").acquire(wait=None)
    assert 30 <= memory.now < 32


def test_the_same_seed_waits_the_same() -> None:
    def wait(seed: int) -> float:
        memory = Memory(seed=seed)
        memory.fail()
        with pytest.raises(holdfast.Unreachable):
            memory.client().lock("a").acquire(wait=None)
        return memory.now

    assert wait(1) == wait(1)
    assert wait(1) != wait(2)


def test_acquiring_twice_waits_for_oneself(memory: Memory) -> None:
    client = memory.client()
    with pytest.raises(holdfast.LeaseLost), client.lock("a", ttl=10, renew=False):
        client.lock("a", ttl=10, renew=False).acquire()
    assert 9.7 < memory.now < 11


def test_acquiring_twice_is_found_out_when_the_lease_is_held_for_too_long(memory: Memory) -> None:
    client = memory.client(max_hold=3600)
    with (
        pytest.raises(holdfast.LeaseLost) as caught,
        client.lock("a"),
        client.lock("a"),
    ):
        assert 3600 <= memory.now < 3600 * 1.02
    assert caught.value.reason is holdfast.LossReason.MAX_HOLD


def test_the_longest_wait_is_over_in_time(memory: Memory) -> None:
    other = memory.take("a", renew=True)
    with pytest.raises(holdfast.TimedOut) as caught:
        memory.client().lock("a").acquire(wait=10_000)
    assert caught.value.waited == memory.now == 10_000
    other.release()


def test_two_universes_do_not_meet() -> None:
    assert Memory().take("a").is_held
    assert Memory().take("a").is_held


def test_a_closed_client_says_so(memory: Memory) -> None:
    with memory.client() as client:
        lease = client.lock("a", renew=False).acquire()
    with pytest.raises(holdfast.ClientClosed):
        lease.release()
    with pytest.raises(holdfast.ClientClosed):
        client.lock("b").acquire()

    async def main() -> None:
        async with memory.async_client() as client:
            pass
        with pytest.raises(holdfast.ClientClosed):
            await client.lock("b").acquire()

    asyncio.run(main())


def test_a_client_that_is_closed_while_somebody_waits(memory: Memory) -> None:
    memory.take("a")
    client = memory.client()
    memory.after(3, client.close)
    with pytest.raises(holdfast.ClientClosed):
        client.lock("a").acquire(wait=20)
    assert 3 <= memory.now < 4


def test_a_forked_child_has_a_universe_of_its_own(memory: Memory) -> None:
    client = memory.client()
    lease = client.lock("a").acquire()
    child = os.fork()
    if child == 0:  # nothing may escape from here into the test run
        try:
            alone = not lease.is_held and client.try_lock("b") is not None
            os._exit(0 if alone else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory.holder("b") is None
    lease.release()
