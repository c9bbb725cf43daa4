"""The end of a process that holds leases: no hang, no noise, and nobody releases or renews.

What was held lapses when its ttl ends, unless the program itself has released it.
"""

import re
import signal
from collections.abc import Callable

import pytest

from processes.conftest import Witnesses, end, hear, tell
from rig.servers import holders
from rig.waiting import until

HOLDING = """
    import atexit, os, sys, threading, holdfast

    name, *urls = sys.argv[1:]
    hf = holdfast.connect(*urls, node_timeout=5)
    lease = hf.lock(name, ttl=0.9).acquire(wait=20)
    print("held", flush=True)
    sys.stdin.readline()
"""

ENDINGS = {
    "the end of the program": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "an atexit handler that closes": ("atexit.register(hf.close)", 0),
    "a waiting daemon thread": ("threading.Thread(target=lease.lost.wait, daemon=True).start()", 0),
    "a lease of many": ("many = [hf.try_lock(f'{name}:{n}', 0.9) for n in range(50)]", 0),
}


def only_says_lost(complaints: str, name: str, reason: str) -> bool:
    """Return whether all that a process has to say is the one warning of a lost lease."""
    what = rf"lost the lease of '{re.escape(name)}' after [\d.]+ s: {reason}\n"
    return re.fullmatch(what, complaints) is not None


@pytest.mark.parametrize(("ending", "code"), ENDINGS.values(), ids=ENDINGS)
def test_a_process_that_holds_a_lease_just_ends(
    witnesses: Witnesses, python: Callable, name: str, ending: str, code: int
) -> None:
    process = python(HOLDING + "    " + ending, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    released = witnesses.releases()
    tell(process)
    assert end(process) == (code, "", "")
    witnesses.see_lapse(name)
    assert witnesses.releases() == released


def test_an_atexit_handler_may_release(witnesses: Witnesses, python: Callable, name: str) -> None:
    process = python(HOLDING + "    atexit.register(lease.release)", name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    released = witnesses.releases()
    tell(process)
    assert end(process) == (0, "", "")
    assert witnesses.releases() >= released + 2
    until(lambda: holders(witnesses, name) == [])


def test_atexit_handlers_come_after_the_end_of_the_main_thread(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    """What they need has to belong to the process."""
    handler = """
    kept = hf.lock(name + ":kept", ttl=0.9, owner=None).acquire(wait=20)

    @atexit.register
    def last():
        print(lease.lost.wait(20).value, kept.lost.wait(1.2), kept.release().value)
    """
    process = python(HOLDING + handler, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    tell(process)
    code, said, complaints = end(process)
    assert (code, said) == (0, "owner died None freed\n")
    assert only_says_lost(complaints, name, "owner died")
    witnesses.see_lapse(name)


def test_leaving_a_block_by_sys_exit_releases(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    code = """
        import sys, holdfast
        name, *urls = sys.argv[1:]
        hf = holdfast.connect(*urls, node_timeout=5)
        with hf.lock(name, ttl=60, wait=20):
            sys.exit(7)
    """
    assert end(python(code, name, *witnesses.urls)) == (7, "", "")
    until(lambda: holders(witnesses, name) == [])


def test_an_exception_is_all_that_is_heard_of(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    process = python(HOLDING + "    raise KeyError('mine')", name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    tell(process)
    code, _, complaints = end(process)
    assert code == 1
    assert complaints.count("Traceback") == 1
    assert complaints.endswith("KeyError: 'mine'\n")
    assert "ignored" not in complaints
    witnesses.see_lapse(name)


ASYNC_HOLDING = """
    import asyncio, sys, warnings, holdfast.aio

    warnings.filterwarnings("ignore", "unclosed", ResourceWarning)  # the loop's, and rightly so
    name, *urls = sys.argv[1:]
    hf = holdfast.aio.connect(*urls, node_timeout=5)
    lease = asyncio.run(hf.lock(name, ttl=0.9, owner=None).acquire(wait=20))
    print("held", flush=True)
    sys.stdin.readline()
    sys.exit(6)
"""


def test_a_lease_of_asyncio_is_renewed_without_a_loop_until_the_process_ends(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    process = python(ASYNC_HOLDING, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals(4)
    released = witnesses.releases()
    tell(process)
    assert end(process) == (6, "", "")
    witnesses.see_lapse(name)
    assert witnesses.releases() == released


STORM = """
    import sys, threading, holdfast

    name, *urls = sys.argv[1:]
    told = threading.Event()
    hf = holdfast.connect(*urls, node_timeout=5, on_event=lambda event: told.set())
    leases = [hf.lock(f"{name}:{n}", ttl=0.2).acquire(wait=20) for n in range(20)]

    def compete():
        while True:
            with hf.lock(f"{name}:busy", ttl=0.5):
                pass

    for _ in range(3):
        threading.Thread(target=compete, daemon=True).start()
    told.wait(20)
    sys.exit(8)
"""


def test_exit_in_the_midst_of_it_all(witnesses: Witnesses, python: Callable, name: str) -> None:
    """Renewals, hooks and daemon threads with rounds of their own, at whatever point they are."""
    for _ in range(5):
        assert end(python(STORM, name, *witnesses.urls)) == (8, "", "")
    until(lambda: not any(holders(witnesses, f"{name}:{n}") for n in range(20)))
    until(lambda: holders(witnesses, f"{name}:busy") == [])


CALLBACKS = """
    import sys, threading, time, holdfast

    def stay(_):
        print("called", flush=True)
        {staying}

    name, *urls = sys.argv[1:]
    hf = holdfast.connect(*urls, node_timeout=5, on_event=stay if {hooked} else None)
    lease = hf.lock(name, ttl=0.9).acquire(wait=20)
    if not {hooked}:
        print("held", flush=True)
        lease.on_lost(stay)
    sys.stdin.readline()
    sys.exit(9)
"""

STAYING = {
    "waits": "threading.Event().wait()",
    "sleeps": "time.sleep(3600)",
    "computes": "while True: pass",
    "locks": "with hf.lock(name + ':2', ttl=0.9, wait=20): threading.Event().wait()",
}


@pytest.mark.parametrize("staying", STAYING.values(), ids=STAYING)
def test_exit_while_a_lost_callback_runs(
    witnesses: Witnesses, python: Callable, name: str, staying: str
) -> None:
    process = python(CALLBACKS.format(staying=staying, hooked=False), name, *witnesses.urls)
    hear(process, "held")
    until(lambda: len(holders(witnesses, name)) == 3)
    for node in witnesses:
        node.call("DEL", f"hf:{{{name}}}")
    hear(process, "called")
    tell(process)
    code, _, complaints = end(process)
    assert code == 9
    assert only_says_lost(complaints, name, "deleted")
    until(lambda: holders(witnesses, f"{name}:2") == [])


@pytest.mark.parametrize("staying", STAYING.values(), ids=STAYING)
def test_exit_while_an_event_hook_runs(
    witnesses: Witnesses, python: Callable, name: str, staying: str
) -> None:
    process = python(CALLBACKS.format(staying=staying, hooked=True), name, *witnesses.urls)
    hear(process, "called")
    witnesses.see_renewals()  # whatever the hook does
    tell(process)
    assert end(process) == (9, "", "")
    until(lambda: holders(witnesses, name) == [])


# -- signals --------------------------------------------------------------------------------------


def test_ctrl_c_while_a_lease_is_held_without_a_block(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    process = python(HOLDING, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    released = witnesses.releases()
    process.send_signal(signal.SIGINT)
    code, _, complaints = end(process)
    assert code == -signal.SIGINT
    assert complaints.count("Traceback") == 1
    assert complaints.endswith("KeyboardInterrupt\n")
    assert "ignored" not in complaints
    witnesses.see_lapse(name)
    assert witnesses.releases() == released


def test_ctrl_c_inside_a_block_releases(witnesses: Witnesses, python: Callable, name: str) -> None:
    code = """
        import sys, holdfast
        name, *urls = sys.argv[1:]
        hf = holdfast.connect(*urls, node_timeout=5)
        with hf.lock(name, ttl=0.9, wait=20):
            print("held", flush=True)
            sys.stdin.readline()
    """
    process = python(code, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    released = witnesses.releases()
    process.send_signal(signal.SIGINT)
    code, _, complaints = end(process)
    assert code == -signal.SIGINT
    assert complaints.count("Traceback") == 1
    assert complaints.endswith("KeyboardInterrupt\n")
    assert witnesses.releases() >= released + 2
    until(lambda: holders(witnesses, name) == [])


def test_a_program_that_goes_on_after_ctrl_c_still_has_its_lease(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    code = """
        try:
            print("waiting", flush=True)
            sys.stdin.readline()
        except KeyboardInterrupt:
            print("caught", flush=True)
        sys.stdin.readline()
        lease.ensure_held()
        print(lease.release().value)
    """
    process = python(HOLDING + code.replace("\n    ", "\n"), name, *witnesses.urls)
    hear(process, "held")
    tell(process)
    hear(process, "waiting")
    process.send_signal(signal.SIGINT)
    hear(process, "caught")
    witnesses.see_renewals(4)  # for longer than the ttl
    assert len(set(holders(witnesses, name))) == 1
    tell(process)
    assert end(process) == (0, "freed\n", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
def test_a_process_that_is_ended_from_outside_leaves_its_lease_to_lapse(
    witnesses: Witnesses, python: Callable, name: str, number: signal.Signals
) -> None:
    process = python(HOLDING, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    released = witnesses.releases()
    process.send_signal(number)
    assert end(process) == (-number, "", "")
    witnesses.see_lapse(name)
    assert witnesses.releases() == released


# -- threads that stay ----------------------------------------------------------------------------

STAYS = """
    import sys, threading, holdfast

    name, *urls = sys.argv[1:]
    hf = holdfast.connect(*urls, node_timeout=5)
    mine = hf.lock(name, ttl=0.9).acquire(wait=20)
    print("held", flush=True)
    sys.stdin.readline()

    def work():
        threading.main_thread().join()
        with hf.lock(name + ":thread", ttl=0.9, wait=20) as lease:
            print(mine.lost.wait(20).value, flush=True)
            sys.stdin.readline()
            lease.ensure_held()
            before = hf.stats().renewals
            while hf.stats().renewals < before + 3:
                assert lease.lost.wait(0.02) is None
        other = holdfast.connect(*urls, node_timeout=5)  # a keeper that starts this late
        late = other.lock(name + ":late", ttl=0.9, wait=20)
        try:
            threading.Thread(target=int).start()
        except RuntimeError:  # Python 3.12.1 starts no thread by now: then there is no lease
            try:
                late.acquire()
            except RuntimeError:
                print("done")
            return
        with late as lease:
            while other.stats().renewals < 2:
                assert lease.lost.wait(0.02) is None
        print("done")

    threading.Thread(target=work).start()
"""


def test_a_thread_that_outlives_the_main_thread_keeps_its_lease(
    witnesses: Witnesses, python: Callable, name: str
) -> None:
    process = python(STAYS, name, *witnesses.urls)
    hear(process, "held")
    witnesses.see_renewals()
    [token, *_] = holders(witnesses, name)
    released = witnesses.releases()
    tell(process)
    hear(process, "owner died")
    until(lambda: holders(witnesses, name) == [])  # it lapses
    assert witnesses.releases() == released
    assert token not in holders(witnesses, f"{name}:thread")
    witnesses.see_renewals()
    tell(process)
    code, said, complaints = end(process)
    assert (code, said) == (0, "done\n")
    assert only_says_lost(complaints, name, "owner died")
    for each in (f"{name}:thread", f"{name}:late"):
        until(lambda each=each: holders(witnesses, each) == [])
