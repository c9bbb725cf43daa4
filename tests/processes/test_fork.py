"""fork(): the child owns nothing, starts with fresh connections, and harms nothing."""

import contextlib
import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from rig.servers import holders, token_on
from rig.waiting import until

Connect = Callable[..., holdfast.Client]

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def in_child(act: Callable[[], None]) -> None:
    """Run something in a forked child, and fail if it does."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:  # noqa: BLE001  # a child must end here, whatever happens
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.fixture
def client(healthy: list[ThrowawayNode], connect: Connect) -> holdfast.Client:
    return connect(*(node.url for node in healthy))


def test_the_child_holds_nothing(
    client: holdfast.Client, healthy: list[ThrowawayNode], name: str
) -> None:
    lease = client.lock(name, ttl=60).acquire(wait=0)
    until(lambda: holders(healthy, name) == [lease.token] * 3)

    def child() -> None:
        assert not lease.is_held
        assert lease.valid_for == 0
        for act in (lease.release, lease.renew, lease.ensure_held):
            with pytest.raises(holdfast.NotHeld, match="process"):
                act()
        with pytest.raises(holdfast.NotHeld):
            client.release_lock(name)
        assert client.try_lock(name) is None

    in_child(child)
    assert holders(healthy, name) == [lease.token] * 3
    lease.renew()
    assert lease.release() is holdfast.Released.FREED


def test_leaving_a_with_block_in_the_child_releases_nothing(
    client: holdfast.Client, healthy: list[ThrowawayNode], name: str
) -> None:
    with contextlib.ExitStack() as stack:
        lease = stack.enter_context(client.lock(name, ttl=60, wait=0))
        in_child(stack.close)
        assert lease.is_held
        assert token_on(healthy[0], name) == lease.token or holders(healthy, name)
        lease.renew()
    until(lambda: holders(healthy, name) == [])


def test_the_child_may_go_on_with_connections_of_its_own(
    client: holdfast.Client, name: str
) -> None:
    def child() -> None:
        for _ in range(20):
            with client.lock(f"{name}:child", wait=20) as lease:
                lease.renew()

    with client.lock(name, ttl=60, wait=0) as lease:
        in_child(child)
        for _ in range(20):  # replies of the parent's have not gone to the child
            lease.renew()


def test_a_fork_while_other_threads_are_busy(
    client: holdfast.Client, name: str, in_thread: Callable
) -> None:
    stop = threading.Event()

    def work(number: int) -> int:
        rounds = 0
        while not stop.is_set():
            with client.lock(f"{name}:{number}", ttl=20, wait=20):
                rounds += 1
        return rounds

    busy = [in_thread(work, number) for number in range(4)]

    def child() -> None:
        with client.lock(f"{name}:child", wait=20):
            pass

    try:
        for _ in range(10):
            in_child(child)
    finally:
        stop.set()
    assert all(thread.result() > 0 for thread in busy)


def test_a_closed_client_stays_closed_in_the_child(client: holdfast.Client, name: str) -> None:
    client.close()

    def child() -> None:
        with pytest.raises(holdfast.ClientClosed):
            client.try_lock(name)

    in_child(child)


def test_multiprocessing_workers_share_a_forked_client(client: holdfast.Client, name: str) -> None:
    context = multiprocessing.get_context("fork")
    total = context.Value("i", 0, lock=False)

    def work() -> None:
        for _ in range(10):
            with client.lock(name, ttl=20, wait=30):
                total.value += 1

    workers = [context.Process(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert total.value == 40
