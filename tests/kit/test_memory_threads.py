"""Threads in one universe: they contend, wait for one another, and can be interrupted."""

import _thread
import threading
from collections.abc import Callable

import pytest

import holdfast
from holdfast.testing import Memory

THREADS = 6
TURNS = 5


def test_threads_never_overlap_and_all_get_in(memory: Memory, in_thread: Callable) -> None:
    inside: list[int] = []
    turns: list[int] = []
    everybody = threading.Barrier(THREADS)

    def work(number: int) -> None:
        client = memory.client()
        everybody.wait()
        for _ in range(TURNS):
            with client.lock("a", ttl=0.5):
                inside.append(number)
                threading.Event().wait(0.0005)  # invite the others in
                assert inside == [number]
                turns.append(inside.pop())

    for thread in [in_thread(work, number) for number in range(THREADS)]:
        thread.result()
    assert sorted(turns) == sorted([*range(THREADS)] * TURNS)


def test_a_release_ends_a_wait_before_time_passes(memory: Memory, in_thread: Callable) -> None:
    taken = memory.take("a", ttl=5)
    waiting = in_thread(lambda: memory.client().lock("a").acquire(wait=20))
    taken.release()
    with waiting.result():
        assert memory.now < 0.2


def test_somebody_who_asks_again_and_again_does_not_shut_others_out(
    memory: Memory, in_thread: Callable
) -> None:
    done = threading.Event()

    def greedy() -> None:
        while not done.is_set():
            with memory.client().lock("a"):
                pass

    greed = in_thread(greedy)
    with memory.client().lock("a"):
        done.set()
    greed.result()


def test_a_thread_that_has_ended_is_not_at_work() -> None:
    memory = Memory(grace=3600)
    thread = threading.Thread(target=memory.take, args=["a"], kwargs={"ttl": 10})
    thread.start()
    thread.join()
    with memory.client().lock("a", wait=20):
        assert 10 < memory.now < 11


def test_a_thread_that_ends_while_others_wait_for_it(in_thread: Callable) -> None:
    memory, ending = Memory(grace=3600), threading.Event()
    held = threading.Event()

    def hold() -> None:
        memory.take("a", ttl=10)
        held.set()
        ending.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    waiting = in_thread(lambda: memory.client().lock("a").acquire(wait=20))
    ending.set()
    holder.join()
    with waiting.result():
        assert 10 < memory.now < 11


def test_a_holder_that_joins_the_waiter_costs_the_grace_and_no_more(in_thread: Callable) -> None:
    memory = Memory(grace=0.05)
    memory.take("a", ttl=60)
    with pytest.raises(holdfast.TimedOut) as caught:
        in_thread(lambda: memory.client().lock("a").acquire(wait=20)).result()
    assert caught.value.waited == 20


def test_two_that_wait_for_each_other_are_freed_by_time(in_thread: Callable) -> None:
    memory, both = Memory(grace=3600), threading.Barrier(2)

    def cross(mine: str, theirs: str) -> None:
        client = memory.client()
        with client.lock(mine, ttl=60):
            both.wait()
            with client.lock(theirs, wait=5):
                pass

    crossing = [in_thread(cross, "a", "b"), in_thread(cross, "b", "a")]
    errors = [thread.exception() for thread in crossing]
    assert any(isinstance(error, holdfast.TimedOut) for error in errors)
    assert memory.now == pytest.approx(5, abs=0.2)


def test_an_interruption_of_a_wait_leaves_nothing(memory: Memory) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    taken = memory.take("a")
    memory.after(3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        memory.client().lock("a").acquire(wait=20)
    assert memory.holder("a") == taken.token
    taken.release()
    assert memory.take("a"), "and the universe goes on"


def test_an_interruption_in_mid_round_leaves_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = memory._universe.nodes
    post, strikes = nodes[2].post, iter([KeyboardInterrupt])

    def struck(round_: object) -> None:
        for strike in strikes:
            raise strike
        post(round_)

    monkeypatch.setattr(nodes[2], "post", struck)
    with pytest.raises(KeyboardInterrupt):
        memory.client().lock("a").acquire()
    assert [node.token("hf:{a}") for node in nodes] == [None, None, None]


def test_ctrl_c_while_another_thread_is_at_work(in_thread: Callable) -> None:
    memory = Memory(grace=3600)
    waiting, over = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.client().lock("a"):
            held.set()
            waiting.wait()
            _thread.interrupt_main()
            over.wait()

    held = threading.Event()
    holder = in_thread(hold)
    held.wait()
    with pytest.raises(KeyboardInterrupt):
        wait_for(memory, waiting)
    over.set()
    holder.result()
    assert memory.holder("a") is None
    assert memory.now == 0


def wait_for(memory: Memory, waiting: threading.Event) -> None:
    waiting.set()
    memory.client().lock("a").acquire(wait=20)
