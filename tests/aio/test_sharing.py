"""One connection per node for all tasks of a loop, written once per turn; loops do not meet."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode, ThrowawayNodes

CALM = 5.0


def info(node: ThrowawayNode, section: str, field: str) -> int:
    facts = dict(
        line.split(":", 1)
        for line in (node.call("INFO", section) or "").splitlines()
        if ":" in line
    )
    return int(facts[field])


async def test_a_thousand_tasks_share_one_connection_per_node(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    nodes = own_nodes(3)
    before = [info(node, "stats", "total_connections_received") for node in nodes]
    async with holdfast.aio.connect(*nodes.urls, node_timeout=CALM) as client:

        async def work(number: int) -> None:
            async with client.lock(f"{name}:{number}", ttl=30):
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for number in range(1000):
                group.create_task(work(number))
        opened = [
            info(node, "stats", "total_connections_received") - count
            for node, count in zip(nodes, before, strict=True)
        ]
    # Ours, and the one that asks for the count.
    assert opened == [2, 2, 2]


async def test_what_tasks_say_in_one_turn_is_written_at_once(
    own_nodes: Callable[..., ThrowawayNodes], name: str
) -> None:
    [node] = own_nodes(1)
    async with holdfast.aio.connect(node.url, node_timeout=CALM) as client:
        await (await client.lock(name).acquire()).release()
        before = info(node, "stats", "total_reads_processed")
        leases = await asyncio.gather(*(client.lock(f"{name}:{n}").acquire() for n in range(100)))
        reads = info(node, "stats", "total_reads_processed") - before
        await asyncio.gather(*(lease.release() for lease in leases))
    # A read takes up to 16 KiB, and asking costs reads too: far fewer than the hundred commands.
    assert reads < 20


async def test_tasks_never_overlap(client: holdfast.aio.AsyncClient, name: str) -> None:
    inside = overlaps = total = 0

    async def work() -> None:
        nonlocal inside, overlaps, total
        for _ in range(3):
            async with client.lock(name, ttl=30):
                inside += 1
                overlaps += inside != 1
                await asyncio.sleep(0)
                inside -= 1
                total += 1

    async with client:
        await asyncio.gather(*(work() for _ in range(8)))
    assert (overlaps, total) == (0, 24)


async def test_what_a_task_holds_is_its_own(client: holdfast.aio.AsyncClient, name: str) -> None:
    async with client:
        lease = await client.try_lock(name, ttl=30)
        assert lease is not None
        with pytest.raises(holdfast.NotHeld):
            await asyncio.create_task(client.release_lock(name))
        await client.release_lock(name)
        assert not lease.is_held


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_loops_in_several_threads_share_a_client(
    client: holdfast.aio.AsyncClient, name: str, in_thread: Callable
) -> None:
    start = threading.Barrier(4)

    async def work(number: int) -> int:
        start.wait()
        done = 0
        for turn in range(20):
            async with client.lock(f"{name}:{(number + turn) % 3}", ttl=30):
                done += 1
        return done

    results = [in_thread(asyncio.run, work(number)) for number in range(4)]
    assert [result.result() for result in results] == [20] * 4
    asyncio.run(client.close())
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_client_outlives_a_loop_that_was_closed_with_locks_held(
    client: holdfast.aio.AsyncClient, name: str
) -> None:
    lease = asyncio.run(client.lock(name, ttl=60).acquire())
    assert lease.is_held

    async def again() -> None:
        assert await client.try_lock(name) is None
        await lease.release()  # on another loop than it was acquired on
        async with client.lock(name, wait=0):
            pass
        await client.close()

    asyncio.run(again())
    gc.collect()  # asyncio says that the first loop left connections open; it is right


def test_closing_a_loop_with_locks_held_makes_no_noise(healthy: list[ThrowawayNode]) -> None:
    code = f"""if 1:
        import asyncio, holdfast.aio
        client = holdfast.aio.connect({healthy[0].url!r}, {healthy[1].url!r}, node_timeout=5)
        async def main():
            return await client.lock("noise", ttl=0.1).acquire()
        lease = asyncio.run(main())
        print(lease.name)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "noise\n", "")


def test_uvloop(client: holdfast.aio.AsyncClient, name: str) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def work() -> None:
        async with client, asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(hold(number))

    async def hold(number: int) -> None:
        async with client.lock(f"{name}:{number % 20}", ttl=30) as lease:
            await lease.renew()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())


def test_a_forked_child_starts_anew(healthy: list[ThrowawayNode], name: str) -> None:
    code = f"""if 1:
        import asyncio, os, holdfast, holdfast.aio
        client = holdfast.aio.connect({healthy[0].url!r}, node_timeout=5)
        lease = asyncio.run(client.lock({name!r}, ttl=60).acquire())
        if os.fork() == 0:
            async def child():
                assert not lease.is_held
                try:
                    await lease.release()
                except holdfast.NotHeld:
                    assert await client.try_lock({name!r}) is None
                    await client.close()
                    os._exit(0)
            asyncio.run(child())
            os._exit(1)
        status = os.wait()[1]
        async def parent():
            assert lease.is_held
            await lease.release()
            await client.close()
        asyncio.run(parent())
        print(os.waitstatus_to_exitcode(status))
    """
    # Newer Pythons warn of any fork beside a thread, and the keeper is one.
    quiet = ["-W", "ignore:This process:DeprecationWarning"]
    done = subprocess.run([sys.executable, *quiet, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n", "")


async def test_a_closed_client_says_so(client: holdfast.aio.AsyncClient, name: str) -> None:
    async with client:
        await (await client.lock(name).acquire()).release()
    with pytest.raises(holdfast.ClientClosed):
        await client.lock(name).acquire()
    await client.close()
