"""`cancel_on_lost`: the body of a block is cancelled, and nothing else ever is."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from keeper.conftest import delete, urls
from rig.tasks import eventually

TTL = 0.45


@pytest.fixture
def open_client(healthy: list[ThrowawayNode]) -> Callable:
    @asynccontextmanager
    async def make() -> AsyncIterator[holdfast.aio.AsyncClient]:
        async with holdfast.aio.connect(*urls(healthy), node_timeout=5) as client:
            yield client
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            await asyncio.sleep(0.02)  # whatever came late would strike here

    return make


async def test_the_block_raises_what_happened(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        with pytest.raises(holdfast.LeaseLost) as caught:  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=TTL, cancel_on_lost=True) as lease:
                delete(healthy, name)
                await asyncio.sleep(60)
        assert isinstance(caught.value.__cause__, asyncio.CancelledError)
        assert caught.value.reason is holdfast.LossReason.DELETED
        assert name in str(caught.value.__cause__)
        lease = await client.lock(name, ttl=TTL, cancel_on_lost=True).acquire()
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with lease:
                delete(healthy, name)
                await asyncio.sleep(60)


async def test_by_decorator(open_client: Callable, healthy: list[ThrowawayNode], name: str) -> None:
    async with open_client() as client:

        @client.locked(name, ttl=TTL, cancel_on_lost=True)
        async def work() -> None:
            delete(healthy, name)
            await asyncio.sleep(60)

        with pytest.raises(holdfast.LeaseLost):
            await work()


async def test_not_unless_it_is_wanted(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=TTL) as lease:
                delete(healthy, name)
                await eventually(lease.lost.is_set)
                await asyncio.sleep(0.01)
        for wrong in (1, "yes", None):
            with pytest.raises(holdfast.BadInput, match="cancel_on_lost"):
                client.lock(name, cancel_on_lost=wrong)


async def test_a_cancellation_from_outside_wins(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        inside = asyncio.Event()
        seen: list[BaseException] = []

        async def work() -> None:
            async with client.lock(name, ttl=TTL, cancel_on_lost=True) as lease:
                inside.set()
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError as error:
                    seen.append(error)
                    task.cancel()  # from outside, while ours is being heard
                    raise
                finally:
                    assert lease.lost.is_set()

        task = asyncio.create_task(work())
        await inside.wait()
        delete(healthy, name)
        await asyncio.wait([task])
        assert task.cancelled()
        assert seen


async def test_a_body_that_swallows_it(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        with pytest.raises(holdfast.LeaseLost, match="deleted"):  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=TTL, cancel_on_lost=True):
                delete(healthy, name)
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
                await asyncio.sleep(0.01)  # it may finish in peace


async def test_a_body_that_fails_because_of_it(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        with pytest.raises(KeyError) as caught:  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=TTL, cancel_on_lost=True):
                delete(healthy, name)
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    raise KeyError("mine") from None
        assert any("deleted" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("which", ["inner", "outer", "both"])
async def test_nested_blocks(
    open_client: Callable, healthy: list[ThrowawayNode], name: str, which: str
) -> None:
    inner, outer = f"{name}:inner", f"{name}:outer"
    async with open_client() as client:
        reached: list[str] = []
        with pytest.raises(holdfast.LeaseLost) as caught:  # noqa: PT012  # the block is the subject
            async with client.lock(outer, ttl=TTL, cancel_on_lost=True):
                try:
                    async with client.lock(inner, ttl=TTL, cancel_on_lost=True):
                        for each in (inner, outer):
                            if which in (each.rpartition(":")[2], "both"):
                                delete(healthy, each)
                        await asyncio.sleep(60)
                except holdfast.LeaseLost as error:
                    reached.append(error.name)
                    raise
        if which == "inner":
            assert (caught.value.name, reached) == (inner, [inner])
        if which == "outer":
            assert (caught.value.name, reached) == (outer, [])


async def test_after_the_block_nothing_is_cancelled(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        async with client.lock(name, ttl=TTL, cancel_on_lost=True):
            pass
        lock = client.lock(name, ttl=TTL, cancel_on_lost=True)
        async with lock as lease:
            await lease.release()
            await asyncio.sleep(0.01)
        lease = await lock.acquire()  # outside of any block
        delete(healthy, name)
        assert await lease.lost.wait(20) is holdfast.LossReason.DELETED
        await asyncio.sleep(0.05)
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with lock as lease:
                delete(healthy, name)
                with pytest.raises(holdfast.LeaseLost):
                    await lease.renew()
                raise holdfast.LeaseLost(name, holdfast.LossReason.DELETED)
        await asyncio.sleep(0.05)


async def test_a_task_group_inside(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        ends: list[str] = []

        async def child() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ends.append("child")

        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with (
                client.lock(name, ttl=TTL, cancel_on_lost=True),
                asyncio.TaskGroup() as group,
            ):
                group.create_task(child())
                group.create_task(child())
                delete(healthy, name)
        assert ends == ["child"] * 2


async def test_a_task_group_around(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:

        async def work() -> None:
            async with client.lock(name, ttl=TTL, cancel_on_lost=True):
                delete(healthy, name)
                await asyncio.sleep(60)

        async def around() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(work())
                group.create_task(asyncio.sleep(60))

        with pytest.raises(ExceptionGroup) as caught:
            await asyncio.create_task(around())  # Python 3.11's groups leave their task cancelling
        assert [type(each) for each in caught.value.exceptions] == [holdfast.LeaseLost]


async def test_a_timeout_around_and_inside(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with asyncio.timeout(30):
                async with client.lock(name, ttl=TTL, cancel_on_lost=True):
                    delete(healthy, name)
                    await asyncio.sleep(60)
        with pytest.raises(TimeoutError):  # noqa: PT012  # the block is the subject
            async with asyncio.timeout(0.05):
                async with client.lock(name, ttl=TTL, cancel_on_lost=True):
                    await asyncio.sleep(60)
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=TTL, cancel_on_lost=True), asyncio.timeout(30):
                delete(healthy, name)
                await asyncio.sleep(60)
        async with client.lock(name, ttl=TTL, cancel_on_lost=True):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await asyncio.sleep(60)


async def test_a_body_on_a_blocked_loop(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    """It is cancelled when the loop runs again, and not if it has left by then."""
    async with open_client() as client:
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=TTL, cancel_on_lost=True) as lease:
                delete(healthy, name)
                while not lease.lost.is_set():
                    pass
        await asyncio.sleep(0.05)


async def test_a_body_that_comes_upon_the_loss_itself_is_not_cancelled_for_it(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client:
        went_on = False
        with pytest.raises(holdfast.LeaseLost):  # noqa: PT012  # the block is the subject
            async with client.lock(name, ttl=30, cancel_on_lost=True) as lease:
                delete(healthy, name)
                with pytest.raises(holdfast.LeaseLost):
                    await lease.renew()
                await asyncio.sleep(0.02)
                went_on = True
        assert went_on


async def test_callbacks_run_in_the_context_of_whoever_added_them(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    request: ContextVar[str] = ContextVar("request")
    seen: list[str] = []
    async with open_client() as client:
        lease = await client.lock(name, ttl=TTL).acquire()
        request.set("a")
        lease.on_lost(lambda _: seen.append(request.get("none")))
        delete(healthy, name)
        await eventually(lambda: seen)
    assert seen == ["a"]


async def test_a_task_that_only_enters_is_no_owner(
    open_client: Callable, healthy: list[ThrowawayNode], name: str
) -> None:
    async with open_client() as client, AsyncExitStack() as stack:
        entering = asyncio.create_task(stack.enter_async_context(client.lock(name, ttl=TTL)))
        lease = await entering
        await eventually(lambda: client.stats().renewals > 2)
        assert lease.is_held
