"""Ctrl-C and signal handlers, at any moment: nothing stays behind for longer than its ttl."""

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.servers import calls, holders, token_on
from rig.waiting import until

WAITING = """
    import sys, holdfast
    name, *urls = sys.argv[1:]
    hf = holdfast.connect(*urls, node_timeout=5)
    print("ready", flush=True)
    with hf.lock(name, ttl=60):
        print("held", flush=True)
        sys.stdin.read()
"""


def test_ctrl_c_while_waiting_for_a_holder(
    healthy: list[ThrowawayNode], connect: Callable[..., holdfast.Client], python, name: str
) -> None:
    urls = [node.url for node in healthy]
    lease = connect(*urls).lock(name, ttl=60).acquire(wait=0)
    process = python(WAITING, name, *urls)
    assert process.stdout.readline() == "ready\n"
    asked = calls(healthy[0], "evalsha")
    until(lambda: calls(healthy[0], "evalsha") > asked + 2)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    lease.release()
    until(lambda: holders(healthy, name) == [])


def test_ctrl_c_while_waiting_for_an_answer(
    healthy: list[ThrowawayNode], proxy: Callable, python, name: str
) -> None:
    node = healthy[0]
    with holdfast.connect(node.url, node_timeout=5) as client, client.lock(name) as lease:
        lease.renew()
    taken, slow = calls(node, "set"), proxy(node)
    process = python(
        WAITING.replace("with hf", "sys.stdin.readline()\n    with hf"), name, slow.url
    )
    assert process.stdout.readline() == "ready\n"
    slow.hold_requests()
    process.stdin.write("go\n")
    process.stdin.flush()
    until(lambda: slow.requests_held)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    slow.let_requests_pass()
    until(lambda: calls(node, "set") > taken)  # it was granted after all
    until(lambda: token_on(node, name) == "")


def test_ctrl_c_while_holding(healthy: list[ThrowawayNode], python, name: str) -> None:
    process = python(WAITING, name, *(node.url for node in healthy))
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline() == "held\n"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    until(lambda: holders(healthy, name) == [])


def test_a_killed_holder_is_succeeded(
    healthy: list[ThrowawayNode], connect: Callable[..., holdfast.Client], python, name: str
) -> None:
    urls = [node.url for node in healthy]
    process = python(WAITING.replace("ttl=60", "ttl=1"), name, *urls)
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline() == "held\n"
    process.kill()
    with connect(*urls).lock(name, wait=20) as lease:
        assert lease.is_held


STORM = """
    import random, signal, sys, threading, time, holdfast

    name, ttl, seed, *urls = sys.argv[1:]
    chance, ttl = random.Random(int(seed)), float(ttl)
    hf = holdfast.connect(*urls, node_timeout=5, connections=2)

    class Interruption(BaseException):
        pass

    armed = False
    def strike(*_):
        if armed:
            raise Interruption
    signal.signal(signal.SIGALRM, strike)

    stop, crashed = [], []
    def neighbour(number):
        try:
            while not stop:
                with hf.lock(f"{name}:n{number}", ttl=20, wait=20) as lease:
                    lease.renew()
        except BaseException as error:
            crashed.append(error)
    neighbours = [threading.Thread(target=neighbour, args=(n,)) for n in range(3)]
    for thread in neighbours:
        thread.start()

    struck = done = 0
    for turn in range(250):
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.02))
            with hf.lock(f"{name}:{turn % 7}", ttl=ttl, wait=20) as lease:
                lease.renew()
            done += 1
            armed = False
        except Interruption:
            armed = False
            struck += 1
        except holdfast.LeaseLost:  # a release or renewal that was struck and is said again
            armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)

    stop.append(True)
    for thread in neighbours:
        thread.join(30)
        assert not thread.is_alive(), "a neighbour hangs"
    assert not crashed, crashed
    for number in range(7):  # nothing stays for longer than its ttl
        with hf.lock(f"{name}:{number}", ttl=ttl, wait=ttl + 10):
            pass
    hf.close()
    print(struck, done)
"""


def test_interruptions_at_random_moments(healthy: list[ThrowawayNode], python, name: str) -> None:
    ttl = 2.0
    urls = [node.url for node in healthy]
    process = python(STORM, name, str(ttl), str(time.time_ns() % 10**6), *urls)
    output, errors = process.communicate()
    assert process.returncode == 0, errors[-3000:]  # what strikes a __del__ is only written down
    struck, _ = map(int, output.split())
    assert struck > 5  # how many depends on how busy the machine is
    until(lambda: not any(node.call("EXISTS", f"hf:{{{name}:0}}") == "1" for node in healthy))


PACKING = """
    import signal, time
    from holdfast.core.effects import Command, Verb
    from holdfast.wire import commands

    class Interruption(BaseException):
        pass

    def strike(*_):
        raise Interruption

    command = Command(Verb.REQUEST, "x", "token", 30000)
    expected, struck = commands.pack(command), 0
    signal.signal(signal.SIGALRM, strike)
    end = time.monotonic() + 1
    while time.monotonic() < end:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0001)
            while True:
                assert commands.pack(command) == expected
        except Interruption:
            struck += 1
    print(struck)
"""


def test_an_interruption_while_a_command_is_written_does_not_crash(python) -> None:
    process = python(PACKING)
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert int(output) > 20


def test_a_signal_handler_that_uses_locks_itself_hangs_nobody() -> None:
    """It strikes anywhere, also where the client counts, starts threads or calls hooks."""
    script = """
        import signal, sys, holdfast
        hf = holdfast.connect(*sys.argv[1:], on_event=lambda event: None)
        struck = 0

        def strike(number, frame):
            global struck
            struck += 1
            hf.lock(f"struck:{struck}", ttl=30).acquire().release()
            signal.setitimer(signal.ITIMER_REAL, 0.002)  # not before: it must not strike itself

        signal.signal(signal.SIGALRM, strike)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while struck < 200:
            hf.lock("main", ttl=30).acquire().release()
        signal.setitimer(signal.ITIMER_REAL, 0)
        hf.close()
        print("done")
    """
    with ThrowawayNodes(1) as nodes:
        program = [sys.executable, "-c", textwrap.dedent(script), *nodes.urls]
        ended = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (ended.stdout.strip(), ended.stderr) == ("done", "")
