"""multiprocessing: a client is inherited by fork, a lease is nobody else's, and neither travels."""

import asyncio
import copy
import pickle
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from processes.conftest import Witnesses, end
from rig.servers import holders
from rig.waiting import until


def test_a_lease_cannot_be_pickled(
    witnesses: Witnesses, connect: Callable[..., holdfast.Client], name: str
) -> None:
    with connect(*witnesses.urls).lock(name, wait=20) as lease:
        for copying in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"{name}.* belongs to this process"):
                copying(lease)
        assert lease.is_held


def test_a_lease_of_asyncio_cannot_be_pickled(witnesses: Witnesses, name: str) -> None:
    async def attempt() -> None:
        async with (
            holdfast.aio.connect(*witnesses.urls, node_timeout=5) as client,
            client.lock(name, wait=20) as lease,
        ):
            with pytest.raises(TypeError, match=f"{name}.* belongs to this process"):
                pickle.dumps(lease)

    asyncio.run(attempt())


PROGRAM = """
    import multiprocessing, os, sys, threading, time, holdfast
    from concurrent.futures import ProcessPoolExecutor

    name, *urls = sys.argv[1:]

    def renewed(client, lease, times=2):
        before = client.stats().renewals
        while client.stats().renewals < before + times:
            assert lease.lost.wait(0.01) is None, lease.lost

    def never(lease):
        raise AssertionError("it has arrived")
"""

A_LEASE_IS_SENT = """
    def main():
        hf = holdfast.connect(*urls, node_timeout=5)
        context = multiprocessing.get_context("spawn")
        with hf.lock(name, ttl=0.9, wait=20) as lease:
            try:
                context.Process(target=never, args=(lease,)).start()
            except TypeError as error:
                print(error)
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                print(pool.submit(never, lease).exception())
            renewed(hf, lease)

    if __name__ == "__main__":
        main()
"""


def test_a_lease_cannot_be_sent_to_another_process(
    witnesses: Witnesses, program: Callable, name: str
) -> None:
    refusal = f"the lease of lock {name!r} belongs to this process: do not pickle it\n"
    process = program(PROGRAM + A_LEASE_IS_SENT, name, *witnesses.urls)
    code, said, complaints = end(process)
    assert (code, said) == (0, 2 * refusal)
    # The child that was started for nothing finds that nobody speaks to it, and says so itself.
    assert "holdfast" not in complaints
    until(lambda: holders(witnesses, name) == [])


FORKED = """
    hf = holdfast.connect(*urls, node_timeout=5)
    lease = hf.lock(name, ttl=0.9).acquire(wait=20)

    def work(total):
        assert not lease.is_held
        for _ in range(3):
            with hf.lock(name + ":shared", ttl=0.6, wait=30) as own:
                seen = total.value
                renewed(hf, own, 1)
                total.value = seen + 1

    def task(number):
        with hf.lock(f"{name}:{number}", ttl=0.6, wait=30) as own:
            renewed(hf, own, 1)
            return os.getpid()

    renewed(hf, lease, 1)
    context = multiprocessing.get_context("fork")
    total = context.Value("i", 0, lock=False)
    workers = [context.Process(target=work, args=(total,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers], total.value)

    with context.Pool(2) as pool:
        print(os.getpid() in pool.map(task, range(4)))
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(os.getpid() in pool.map(task, range(4)))

    renewed(hf, lease)
    print(lease.release().value)
"""


def test_forked_workers_renew_what_is_theirs(
    witnesses: Witnesses, program: Callable, name: str
) -> None:
    process = program(PROGRAM + FORKED, name, *witnesses.urls)
    assert end(process) == (0, "[0, 0, 0] 9\nFalse\nFalse\nfreed\n", "")
    for each in (name, f"{name}:shared", *(f"{name}:{number}" for number in range(4))):
        until(lambda each=each: holders(witnesses, each) == [])


SPAWNED = """
    def work(name, urls, total):
        hf = holdfast.connect(*urls, node_timeout=5)
        assert hf.try_lock(name) is None, "the parent has it"
        for _ in range(3):
            with hf.lock(name + ":shared", ttl=0.6, wait=30) as own:
                seen = total.value
                renewed(hf, own, 1)
                total.value = seen + 1

    def main():
        hf = holdfast.connect(*urls, node_timeout=5)
        context = multiprocessing.get_context("spawn")
        total = context.Value("i", 0, lock=False)
        with hf.lock(name, ttl=0.9, wait=20) as lease:
            workers = [context.Process(target=work, args=(name, urls, total)) for _ in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            renewed(hf, lease)
        print([worker.exitcode for worker in workers], total.value)

    if __name__ == "__main__":
        main()
"""


def test_spawned_workers_connect_for_themselves(
    witnesses: Witnesses, program: Callable, name: str
) -> None:
    process = program(PROGRAM + SPAWNED, name, *witnesses.urls)
    assert end(process) == (0, "[0, 0] 6\n", "")
    for each in (name, f"{name}:shared"):
        until(lambda each=each: holders(witnesses, each) == [])


TERMINATED = """
    hf = holdfast.connect(*urls, node_timeout=5)

    def hold(ready):
        lease = hf.lock(name, ttl=0.9).acquire(wait=20)
        renewed(hf, lease)
        ready.set()
        lease.lost.wait()

    context = multiprocessing.get_context("fork")
    ready = context.Event()
    worker = context.Process(target=hold, args=(ready,))
    worker.start()
    assert ready.wait(30)
    worker.terminate()
    worker.join()
    print(worker.exitcode, flush=True)
    sys.stdin.readline()
    with hf.lock(name, wait=20):
        print("next")
"""


def test_what_a_terminated_worker_had_lapses(
    witnesses: Witnesses, program: Callable, name: str
) -> None:
    released = witnesses.releases()
    process = program(PROGRAM + TERMINATED, name, *witnesses.urls)
    assert process.stdout.readline() == "-15\n"
    witnesses.see_lapse(name)
    assert witnesses.releases() == released
    assert end(process) == (0, "next\n", "")
