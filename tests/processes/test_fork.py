"""fork(): the child owns nothing, starts with fresh connections, and harms nothing."""

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from processes.conftest import Witnesses, end, hear, tell
from rig.forking import in_child
from rig.servers import holders, token_on
from rig.waiting import until

Connect = Callable[..., holdfast.Client]

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


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


# -- the keeper -----------------------------------------------------------------------------------

RENEWED = """
    import gc, os, signal, sys, threading, traceback, holdfast

    def renewed(client, lease, times=2):
        \"""Hold a lease until its client's keeper has renewed so often.\"""
        before = client.stats().renewals
        while client.stats().renewals < before + times:
            assert lease.lost.wait(0.01) is None, lease.lost

    def keepers():
        return [each for each in threading.enumerate() if each.name == "holdfast-keeper"]

    def fork(child):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                child()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        return pid

    def wait_for(pid):
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    name, *urls = sys.argv[1:]
    hf = holdfast.connect(*urls, node_timeout=5)
    lease = hf.lock(name, ttl=0.9).acquire(wait=20)
    renewed(hf, lease, 1)
"""

ON_ITS_OWN = """
    def child():
        assert keepers() == []
        assert not lease.is_held
        assert (hf.stats().held, hf.stats().renewals) == (0, 0)
        with hf.lock(name + ":child", ttl=0.6, wait=20) as own:
            renewed(hf, own)
            assert len(keepers()) == 1

        def work():
            with hf.lock(name + ":thread", ttl=0.6, wait=20) as own:
                renewed(hf, own)
            worked.append(True)

        worked = []
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(30)
        assert worked
        assert len(keepers()) == 1

    wait_for(fork(child))
    renewed(hf, lease)
    assert len(keepers()) == 1
    print(lease.release().value)
"""


def test_a_child_has_a_keeper_of_its_own_and_the_parents_goes_on(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    assert end(python(RENEWED + ON_ITS_OWN, name, *witnesses.urls)) == (0, "freed\n", "")
    for each in (name, f"{name}:child", f"{name}:thread"):
        until(lambda each=each: holders(witnesses, each) == [])


SURVIVING = """
    def child():
        with hf.lock(name + ":child", ttl=0.9, wait=20) as own:
            renewed(hf, own)
            print("ready", flush=True)
            sys.stdin.readline()
            own.ensure_held()
        print("done", flush=True)

    fork(child)
    signal.pause()
"""


def test_a_child_does_not_renew_what_its_killed_parent_had(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    process = python(RENEWED + SURVIVING, name, *witnesses.urls)
    hear(process, "ready")
    released = witnesses.releases()
    process.kill()
    until(lambda: holders(witnesses, name) == [])
    assert witnesses.releases() == released, "it lapsed"
    witnesses.see_renewals()  # the child's own
    tell(process)
    assert end(process) == (-signal.SIGKILL, "done\n", "")  # when the child has ended as well
    until(lambda: holders(witnesses, f"{name}:child") == [])


ENDINGS = {
    "forgets it": "global lease; del lease; gc.collect()",
    "ends as programs do": "sys.exit(0)",
    "closes": "hf.close(); gc.collect()",
    "holds its own": "global own; own = hf.try_lock(name + ':child', 0.3); sys.exit(0)",
    "leaves a block": "lease.__exit__(None, None, None)",
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_however_a_child_ends_the_parents_lease_stays(
    witnesses: Witnesses, python: Callable, name: str, ending: str
) -> None:
    code = f"""
    pid = os.fork()
    if pid == 0:
        def end():
            {ending}
        end()
        sys.exit(0)
    wait_for(pid)
    print("ended", flush=True)
    sys.stdin.readline()
    renewed(hf, lease)
    print(lease.release().value)
    """
    process = python(RENEWED + code, name, *witnesses.urls)
    [token] = until(lambda: set(holders(witnesses, name)))
    released = witnesses.releases()
    hear(process, "ended")
    assert witnesses.releases() == released
    assert set(holders(witnesses, name)) == {token}
    tell(process)
    assert end(process) == (0, "freed\n", "")
    until(lambda: holders(witnesses, f"{name}:child") == [])


BUSY = """
    told = []
    client = holdfast.connect(*urls, node_timeout=5, on_event=told.append)
    many = [client.lock(f"{name}:{n}", ttl=1.2).acquire(wait=20) for n in range(40)]

    def compete():
        while not stop:
            with client.lock(f"{name}:busy", ttl=5, wait=20):
                pass

    def child(number):
        with client.lock(f"{name}:child{number}", ttl=0.3, wait=20) as own:
            renewed(client, own, 1)
        assert client.stats().held == 0

    stop = []
    threads = [threading.Thread(target=compete) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(12):
            wait_for(fork(lambda: child(number)))
    finally:
        stop.append(True)
    for thread in threads:
        thread.join()
    assert client.stats().lost == 0, client.stats()
    for each in many:
        each.release()
    print(lease.release().value)
"""


def test_forks_while_the_keeper_and_the_hook_are_at_work(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    assert end(python(RENEWED + BUSY, name, *witnesses.urls)) == (0, "freed\n", "")
    until(lambda: holders(witnesses, f"{name}:busy") == [])


OFF_THE_MAIN_THREAD = """
    def child():
        with hf.lock(name + ":child", ttl=0.6, wait=20) as own:
            assert own._owner_lives()
            renewed(hf, own)
        assert not lease.is_held

    thread = threading.Thread(target=lambda: wait_for(fork(child)))
    thread.start()
    thread.join(30)
    renewed(hf, lease)
    print(lease.release().value)
"""


def test_a_fork_off_the_main_thread(witnesses: Witnesses, python: Callable, name: str) -> None:
    process = python(RENEWED + OFF_THE_MAIN_THREAD, name, *witnesses.urls)
    assert end(process) == (0, "freed\n", "")
    until(lambda: holders(witnesses, name) == [])


WITH_ASYNCIO = """
    import asyncio, holdfast.aio
    client = holdfast.aio.connect(*urls, node_timeout=5)

    async def hold(name):
        async with client.lock(name, ttl=0.6, wait=20) as own:
            while client.stats().renewals < 2:
                assert await own.lost.wait(0.01) is None
        await client.close()

    async def parent():
        theirs = await client.lock(name + ":aio", ttl=0.6).acquire(wait=20)
        pid = await asyncio.get_running_loop().run_in_executor(None, fork, child)
        await asyncio.get_running_loop().run_in_executor(None, wait_for, pid)
        assert await theirs.lost.wait(1) is None
        print((await theirs.release()).value)
        await client.close()

    def child():
        assert client.stats().held == 0
        asyncio.run(hold(name + ":child"))

    asyncio.run(parent())
    lease.release()
"""


def test_a_child_of_a_process_with_an_event_loop(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    assert end(python(RENEWED + WITH_ASYNCIO, name, *witnesses.urls)) == (0, "freed\n", "")
    for each in (name, f"{name}:aio", f"{name}:child"):
        until(lambda each=each: holders(witnesses, each) == [])
