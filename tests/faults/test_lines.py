"""Lines: shared by threads, lost to interruptions, gone after close; and nobody hangs."""

import gc
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

import holdfast
from holdfast.core.effects import Command, Verb
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.servers import calls, holders, token_on
from rig.waiting import pass_time, until

Connect = Callable[..., holdfast.Client]


class Interruption(BaseException):
    """What a signal handler raises, as Ctrl-C does."""


@pytest.fixture
def interrupt() -> Iterator[Callable[[], None]]:
    """Return what interrupts the main thread; must be sent from another one."""

    def raise_it(*_: object) -> None:
        raise Interruption

    before = signal.signal(signal.SIGUSR1, raise_it)
    main = threading.main_thread().ident
    assert main is not None
    yield lambda: signal.pthread_kill(main, signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_waiting_for_a_line_does_not_use_up_the_round(
    healthy: list[ThrowawayNode], connect: Connect, name: str, in_thread: Callable
) -> None:
    client = connect(*(node.url for node in healthy), connections=1, node_timeout=0.5)
    pool = client._driver._pool
    line = pool.take()
    waiting = in_thread(client.try_lock, name)
    until(lambda: pool._waiting)
    pass_time(0.8)  # longer than a round may take
    pool.give_back(line)
    waiting.result().release()


def test_who_waits_for_a_line_is_served_before_who_comes_later(
    healthy: list[ThrowawayNode], connect: Connect, name: str, in_thread: Callable
) -> None:
    client = connect(healthy[0].url, connections=1)
    pool = client._driver._pool
    for number in range(20):
        line = pool.take()
        waiting = in_thread(client.try_lock, f"{name}:{number}")
        until(lambda: pool._waiting)
        pool.give_back(line)
        line = pool.take()
        assert token_on(healthy[0], f"{name}:{number}"), "it was served first"
        pool.give_back(line)
        waiting.result().release()


def test_close_ends_the_wait_for_a_line(
    healthy: list[ThrowawayNode], connect: Connect, name: str, in_thread: Callable
) -> None:
    client = connect(healthy[0].url, connections=1)
    pool = client._driver._pool
    line = pool.take()
    waiting = [in_thread(client.try_lock, name) for _ in range(3)]
    until(lambda: len(pool._waiting) == 3)
    client.close()
    for thread in waiting:
        with pytest.raises(holdfast.ClientClosed):
            thread.result(20)
    pool.give_back(line)
    with pytest.raises(holdfast.ClientClosed):
        client.try_lock(name)


def test_close_ends_the_wait_for_a_lock(
    healthy: list[ThrowawayNode], connect: Connect, name: str, in_thread: Callable
) -> None:
    holder, client = connect(healthy[0].url), connect(healthy[0].url)
    lease = holder.lock(name, ttl=60).acquire(wait=0)
    asked = calls(healthy[0], "evalsha")
    waiting = in_thread(client.lock(name).acquire, wait=None)
    until(lambda: calls(healthy[0], "evalsha") > asked)
    client.close()
    with pytest.raises(holdfast.ClientClosed):
        waiting.result(20)
    lease.release()


def test_a_closed_client_keeps_no_connection(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str, in_thread: Callable
) -> None:
    [node] = own_nodes(1)
    client = connect(node.url)
    leases = [in_thread(client.try_lock, f"{name}:{number}", 0.5) for number in range(20)]
    kept = [thread.result() for thread in leases]
    until(lambda: client.stats().renewals)  # the keeper has a connection, too
    client.close()
    client.close()
    until(lambda: connected(node) == 0)
    until(lambda: not any(lease.is_held for lease in kept))  # nobody renews them any more


def test_a_line_that_was_lost_is_replaced(
    healthy: list[ThrowawayNode], connect: Connect, name: str, in_thread: Callable
) -> None:
    client = connect(healthy[0].url, connections=1)
    gc.disable()
    try:
        client._driver._pool.take()  # and nobody has it
        in_thread(client.try_lock, name).result(20).release()
    finally:
        gc.enable()


def test_a_line_that_looked_a_name_up_can_be_lost_too(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str, in_thread: Callable
) -> None:
    nodes = own_nodes(1, tcp=True)
    client = connect(nodes.tcp_urls[0].replace("127.0.0.1", "localhost"), connections=1)
    gc.disable()
    try:
        client._driver._pool.take()  # and nobody has it
        in_thread(client.try_lock, name).result(20).release()
    finally:
        gc.enable()


def test_an_interrupted_return_of_a_line_does_not_hang_the_next(
    healthy: list[ThrowawayNode],
    connect: Connect,
    name: str,
    in_thread: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = connect(healthy[0].url, connections=1)
    pool = client._driver._pool
    line = pool.take()
    line.debts.append(Command(Verb.RELEASE, name, "nobody"))

    def strike(_: object) -> None:
        raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr(pool, "_pay", strike)
        with pytest.raises(Interruption) as caught:
            pool.give_back(line)
    in_thread(client.try_lock, name).result(20).release()
    assert caught.traceback  # which keeps the line alive, as an except block does


def test_a_line_is_never_returned_twice(
    healthy: list[ThrowawayNode], connect: Connect, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(healthy[0].url)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    pool = client._driver._pool
    give_back = pool.give_back

    def strike_after(line: object) -> None:
        give_back(line)
        raise Interruption

    with monkeypatch.context() as patch:
        patch.setattr(pool, "give_back", strike_after)
        with pytest.raises(Interruption):
            client.lock(name).acquire(wait=5)
    assert len(pool._free) == len(set(pool._free)) == 1
    lease.release()


def test_an_interrupted_wait_for_an_answer_leaves_nothing_behind(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str, interrupt, in_thread
) -> None:
    [node] = own_nodes(1)
    client = connect(node.url)
    with client.lock(name) as lease:
        lease.renew()
    taken, dropped = calls(node, "set"), calls(node, "del")
    node.pause()

    def strike() -> None:
        until(lambda: not client._driver._pool._free)
        pass_time(0.1)  # most likely it waits for the answer now; if not, all the better
        interrupt()

    striking = in_thread(strike)
    with pytest.raises(Interruption):
        client.lock(name, ttl=60).acquire(wait=None)
    striking.result()
    node.resume()
    until(lambda: calls(node, "set") > taken and calls(node, "del") > dropped)
    assert token_on(node, name) == ""
    with client.lock(name, wait=0):
        pass


def test_an_interrupted_wait_for_the_lock_leaves_nothing_behind(
    healthy: list[ThrowawayNode], connect: Connect, name: str, interrupt, in_thread
) -> None:
    urls = [node.url for node in healthy]
    holder, client = connect(*urls), connect(*urls)
    lease = holder.lock(name, ttl=60).acquire(wait=0)
    asked = calls(healthy[0], "evalsha")

    def strike() -> None:
        until(lambda: calls(healthy[0], "evalsha") > asked + 2)
        interrupt()

    striking = in_thread(strike)
    with pytest.raises(Interruption):
        client.lock(name, ttl=60).acquire(wait=None)
    striking.result()
    lease.release()
    until(lambda: holders(healthy, name) == [])


def test_what_arrived_while_the_process_did_not_run_counts(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str, in_thread: Callable
) -> None:
    [node] = own_nodes(1)
    client = connect(node.url, node_timeout=0.4)
    with client.lock(name, wait=20) as lease:
        lease.renew()

    def nap(*_: object) -> None:
        """Stand for a process that is stopped: the node answers meanwhile, and time goes by."""
        node.resume()
        until(lambda: token_on(node, name))
        pass_time(0.6)

    before = signal.signal(signal.SIGUSR1, nap)
    main = threading.main_thread().ident
    assert main is not None
    node.pause()

    def strike() -> None:
        until(lambda: not client._driver._pool._free)
        signal.pthread_kill(main, signal.SIGUSR1)

    striking = in_thread(strike)
    try:
        lease = client.lock(name, ttl=60).acquire(wait=0)
    finally:
        signal.signal(signal.SIGUSR1, before)
        striking.result()
        node.resume()
    assert lease.token == token_on(node, name)
    lease.release()


def test_two_threads_that_release_at_once_release_once(
    healthy: list[ThrowawayNode], connect: Connect, name: str, in_thread: Callable
) -> None:
    client = connect(*(node.url for node in healthy))
    for _ in range(30):
        lease = client.lock(name, ttl=60).acquire(wait=20)
        gate = threading.Barrier(2)

        def release(lease: holdfast.Lease = lease, gate: threading.Barrier = gate) -> str:
            gate.wait()
            try:
                return lease.release().value
            except holdfast.NotHeld:
                return "not held"

        outcomes = [thread.result() for thread in [in_thread(release) for _ in range(2)]]
        assert sorted(outcomes) == ["freed", "not held"]


def connected(node: ThrowawayNode) -> int:
    """Return how many clients a node has, besides whoever asks."""
    for line in (node.call("INFO", "clients") or "").splitlines():
        if line.startswith("connected_clients:"):
            return int(line.partition(":")[2]) - 1
    return -1
