"""Nodes that forget: leases outlive it or are lost, and nodes abstain until it is safe."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

import holdfast
from holdfast import LossReason, events
from holdfast.testing import Memory

ABSTENTION = 62.2
"""Seconds, if no ttl is longer than a minute."""

TTL = 30.0
VALID = TTL * 0.98 - 0.002 - 0.05


def run(main: Callable[[], Awaitable[Any]]) -> None:
    """Run a test's coroutine, with a deadline that only a hung one meets."""

    async def bounded() -> None:
        async with asyncio.timeout(40):
            await main()

    asyncio.run(bounded())


def states(client: holdfast.Client) -> list[str]:
    return [status.state for status in client.nodes.status()]


def keepers(memory: Memory, name: str) -> list[bool]:
    """Return which nodes have the lock."""
    return [node.token(f"hf:{{{name}}}") is not None for node in memory._universe.nodes]


# -- what is held ---------------------------------------------------------------------------------


def test_a_lease_outlives_a_node_that_forgot(memory: Memory) -> None:
    with memory.client().lock("a", ttl=TTL) as lease:
        memory.forget(0)
        memory.advance(7200)
        assert lease.is_held


def test_the_node_is_repaired_as_soon_as_it_may_vote(memory: Memory) -> None:
    with memory.client().lock("a", ttl=TTL) as lease:
        memory.forget(0)
        memory.advance(ABSTENTION)
        assert keepers(memory, "a") == [False, True, True]
        memory.advance(3 * TTL)
        assert keepers(memory, "a") == [True, True, True]
        memory.forget(1)
        memory.advance(TTL)
        memory.fail(2)
        memory.advance(3)
        assert lease.is_held
    assert memory.holder("a") is None


def test_so_it_outlives_all_of_them_one_after_the_other(memory: Memory) -> None:
    fence = None
    with memory.client().lock("a", ttl=TTL) as lease:
        for node in (0, 1, 2, 0):
            memory.forget(node)
            memory.advance(ABSTENTION + 3 * TTL)
            assert lease.is_held
            assert keepers(memory, "a") == [True] * 3
            assert fence in (None, lease.fence)
            fence = lease.fence


def test_too_many_at_once_and_it_is_lost(memory: Memory) -> None:
    lease = memory.client().lock("a", ttl=TTL).acquire()
    memory.forget()
    assert lease.is_held, "nobody has asked yet"
    memory.advance(TTL / 3)
    assert lease.lost.reason is LossReason.DELETED


def test_another_one_before_the_first_is_back_and_it_is_lost_at_its_end(memory: Memory) -> None:
    heard: list[tuple[float, object]] = []
    client = memory.client(on_event=lambda event: heard.append((memory.now, event)))
    lease = client.lock("a", ttl=TTL).acquire()
    memory.forget(0)
    memory.advance(20)
    memory.forget(1)
    assert lease.lost.wait() is LossReason.FORGOTTEN
    assert memory.now == pytest.approx(20 + VALID)
    assert heard[-1][1] == events.Lost("a", LossReason.FORGOTTEN, pytest.approx(20 + VALID))
    assert client.stats().failed > 5


def test_admitted_in_time_it_is_not_lost(memory: Memory) -> None:
    client = memory.client()
    with client.lock("a", ttl=TTL) as lease:
        memory.forget(0)
        memory.advance(20)
        memory.forget(1)
        memory.advance(15)
        client.nodes.admit(0)
        memory.advance(60)
        assert lease.is_held
        assert keepers(memory, "a") == [True, False, True]


def test_what_was_forgotten_cannot_be_released(memory: Memory) -> None:
    with pytest.raises(holdfast.LeaseLost) as caught, memory.client().lock("a"):
        memory.forget()
    assert caught.value.reason is LossReason.DELETED


# -- what is asked for ----------------------------------------------------------------------------


def test_who_holds_it_is_not_overtaken(memory: Memory) -> None:
    client = memory.client()
    lease = client.lock("a", ttl=60, renew=False).acquire()
    memory.forget()
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock("a").acquire(wait=0)
    for number, report in enumerate(caught.value.reports):
        assert report.node == f"unix://memory/{number}"
        assert report.answer.startswith("started 0 s ago and has no memory of its locks; abstains")
    assert lease.is_held
    with client.lock("a"):  # waiting for as long as it takes lets time pass
        assert ABSTENTION <= memory.now < ABSTENTION + 0.1
        assert not lease.is_held


def test_waiting_is_over_in_time_all_the_same(memory: Memory) -> None:
    memory.forget(0, 1)
    with pytest.raises(holdfast.Unreachable) as caught:
        memory.client().lock("a").acquire(wait=60)
    assert caught.value.waited == memory.now == 60


def test_an_abstention_ends_by_advancing(memory: Memory) -> None:
    client = memory.client()
    memory.forget()
    assert states(client) == ["unmarked"] * 3
    with pytest.raises(holdfast.Unreachable):
        client.try_lock("a")
    assert states(client) == ["abstaining"] * 3
    memory.advance(ABSTENTION - 0.001)
    with pytest.raises(holdfast.Unreachable):
        client.try_lock("a")
    memory.advance(0.001)
    assert states(client) == ["ready"] * 3
    with client.lock("a", wait=0):
        pass


def test_it_counts_from_when_it_is_first_asked(memory: Memory) -> None:
    client = memory.client()
    memory.forget()
    memory.advance(7200)
    with client.lock("a"):
        assert 7200 + ABSTENTION <= memory.now < 7200 + ABSTENTION + 0.1


def test_unless_all_are_new_to_a_client_and_have_been_up_for_long(memory: Memory) -> None:
    memory.forget()
    memory.advance(7200)
    with memory.client().lock("a", wait=0):
        assert memory.now == 7200


@pytest.mark.parametrize("spared", [0, 2])
def test_of_which_one_that_has_a_memory_is_none(memory: Memory, spared: int) -> None:
    memory.forget(*({0, 1, 2} - {spared}))
    memory.advance(7200)
    with pytest.raises(holdfast.Unreachable):
        memory.client().try_lock("a")


def test_a_minority_that_abstains_does_not_matter(memory: Memory) -> None:
    client = memory.client()
    memory.forget(2)
    with client.lock("a", wait=0):
        assert keepers(memory, "a") == [True, True, False]
    assert memory.now == 0


@pytest.mark.parametrize("max_ttl", [1, 12.5, 300])
def test_it_is_as_long_as_max_ttl_and_a_little(memory: Memory, max_ttl: float) -> None:
    memory.forget()
    with memory.client(max_ttl=max_ttl).lock("a"):
        assert max_ttl * 1.02 + 1 <= memory.now < max_ttl * 1.03 + 1.1


def test_a_fence_rises_whatever_was_forgotten(memory: Memory) -> None:
    client, fences = memory.client(), list[int]()
    for nodes in [(), (0,), (1, 2), (0, 1, 2), ()]:
        if nodes:
            memory.forget(*nodes)
        with client.lock("a") as lease:
            fences.append(lease.fence)
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("nodes", [1, 3])
def test_without_a_guard_two_have_it(nodes: int) -> None:
    memory = Memory(nodes)
    client = memory.client(guard=False)
    first = client.lock("a").acquire()
    memory.forget()
    with client.lock("a", wait=0) as second:
        assert first.is_held
        assert second.is_held
        memory.advance(10)
        assert first.lost.reason is LossReason.TAKEN


def test_one_node_may_have_a_guard_too() -> None:
    memory = Memory()
    client = memory.client(guard=True)
    first = client.lock("a", renew=False).acquire()
    memory.forget()
    with client.lock("a"):
        assert memory.now >= ABSTENTION
        assert not first.is_held


# -- the nodes themselves -------------------------------------------------------------------------


def test_what_is_known_of_nodes(memory: Memory) -> None:
    client = memory.client()
    with client.lock("a"):
        pass
    memory.advance(100)
    memory.forget(1)
    memory.fail(2)
    with pytest.raises(holdfast.Unreachable):
        client.try_lock("a")
    memory.advance(10)
    ready, abstaining, down = client.nodes.status()
    assert [each.node for each in (ready, abstaining, down)] == list(client.addresses)
    assert (ready.state, ready.why, ready.abstains_for) == ("ready", "init", 0)
    assert (ready.max_ttl, ready.uptime) == (60, 110)
    assert (abstaining.state, abstaining.why) == ("abstaining", "new")
    assert abstaining.abstains_for == pytest.approx(ABSTENTION - 10)
    assert abstaining.uptime == 10
    assert ready.since is not None
    assert abstaining.since is not None
    assert abstaining.since - ready.since == timedelta(seconds=100)
    assert (down.state, down.why) == ("unreachable", "unreachable: by memory.fail()")
    assert len({each.run_id for each in (ready, abstaining)}) == 2


def test_each_time_it_is_another_run(memory: Memory) -> None:
    client, runs = memory.client(), set[str]()
    for _ in range(3):
        runs |= {status.run_id for status in client.nodes.status()}
        memory.forget()
    assert len(runs) == 9


def test_somebody_who_knows_better(memory: Memory) -> None:
    client = memory.client()
    memory.forget()
    client.nodes.init()
    assert states(client) == ["ready"] * 3
    with client.lock("a", wait=0):
        pass
    client.nodes.drain(0)
    client.nodes.drain("unix://memory/1")
    with pytest.raises(holdfast.Unreachable, match="drained 0 s ago"):
        client.try_lock("a")
    memory.advance(1000)
    assert states(client) == ["abstaining", "abstaining", "ready"]
    client.nodes.admit(0)
    with client.lock("a", wait=0):
        pass
    assert memory.now == 1000


def test_who_is_unreachable_forgets_as_well(memory: Memory) -> None:
    memory.take("a")
    memory.fail(0)
    memory.forget(0)
    memory.heal(0)
    assert keepers(memory, "a") == [False, True, True]


@pytest.mark.parametrize("node", [3, -1, "0", None])
def test_there_is_no_such_node(memory: Memory, node: Any) -> None:
    memory.take("a")
    with pytest.raises(holdfast.BadInput, match="0 to 2"):
        memory.forget(0, node)
    assert keepers(memory, "a") == [True] * 3, "nothing has happened"


def test_it_may_happen_on_the_way(memory: Memory) -> None:
    lease = memory.client().lock("a", ttl=TTL).acquire()
    memory.after(12, lambda: memory.forget(0))
    memory.after(33, lambda: memory.forget(1, 2))
    assert lease.lost.wait() is LossReason.FORGOTTEN
    assert memory.now == pytest.approx(30 + VALID), "it was last renewed at 30 s"


# -- somebody else --------------------------------------------------------------------------------


def test_somebody_elses_client_agrees_with_ours(memory: Memory) -> None:
    memory.take("a", ttl=5)  # before there is any of ours
    client = memory.client(max_ttl=300)
    with client.lock("b"):
        memory.take("c", ttl=300)
        assert client.try_lock("c") is None
    assert {status.max_ttl for status in client.nodes.status()} == {300}


def test_and_does_not_get_what_we_would_not(memory: Memory) -> None:
    memory.client()
    memory.forget()
    with pytest.raises(holdfast.Unreachable):
        memory.take("a")


def test_clients_that_disagree_are_refused(memory: Memory) -> None:
    with memory.client().lock("a"):
        pass
    with pytest.raises(holdfast.Unreachable, match="was told of another max_ttl: 60 s"):
        memory.client(max_ttl=30).try_lock("a")


# -- asyncio --------------------------------------------------------------------------------------


def test_leases_of_tasks_outlive_it_too(memory: Memory) -> None:
    async def main() -> None:
        async with memory.async_client().lock("a", ttl=TTL) as lease:
            memory.forget(0)
            memory.advance(ABSTENTION + 3 * TTL)
            assert keepers(memory, "a") == [True] * 3
            memory.forget(1)
            assert await lease.lost.wait(100) is None

    run(main)


def test_or_are_lost_too(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client()
        lease = await client.lock("a", ttl=TTL).acquire()
        memory.forget(0)
        memory.advance(20)
        memory.forget(1)
        assert await lease.lost.wait() is LossReason.FORGOTTEN
        assert memory.now == pytest.approx(20 + VALID)
        other = await client.lock("b", ttl=TTL).acquire()  # when the nodes are back
        assert memory.now == pytest.approx(20 + ABSTENTION, abs=0.2)
        memory.forget()
        assert await other.lost.wait() is LossReason.DELETED

    run(main)


def test_tasks_wait_for_nodes_that_abstain(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client()
        async with client.lock("a"):
            pass
        memory.forget()
        with pytest.raises(holdfast.Unreachable, match="abstains for 62 s more"):
            await client.lock("a").acquire(wait=0)
        assert [each.state for each in await client.nodes.status()] == ["abstaining"] * 3
        async with client.lock("a"):
            assert ABSTENTION <= memory.now < ABSTENTION + 0.1

    run(main)


def test_and_look_after_them(memory: Memory) -> None:
    async def main() -> None:
        client = memory.async_client()
        memory.forget()
        await client.nodes.init()
        async with client.lock("a", wait=0):
            await client.nodes.drain(0)
            await client.nodes.admit(0)
        assert [each.why for each in await client.nodes.status()] == ["admitted", "init", "init"]
        assert memory.now == 0

    run(main)


def test_a_tasks_client_also_finds_out_that_all_are_new(memory: Memory) -> None:
    async def main() -> None:
        memory.forget()
        memory.advance(7200)
        async with memory.async_client().lock("a", wait=0):
            assert memory.now == 7200

    run(main)
