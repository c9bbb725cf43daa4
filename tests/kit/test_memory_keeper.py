"""Leases are renewed as virtual time passes, and lost in all the ways they can be."""

import gc
import math
import os
import threading
import time
import weakref
from collections.abc import Callable

import pytest

import holdfast
from holdfast import LossReason, events
from holdfast.testing import Memory

DAY = 86_400

History = list[tuple[float, object]]


@pytest.fixture
def history() -> History:
    """Return where a test writes down what happened, and when."""
    return []


def noting(memory: Memory, history: History, what: object) -> Callable[..., None]:
    """Return a callback that writes down that it was called."""
    return lambda *_: history.append((memory.now, what))


def recording(memory: Memory, history: History) -> Callable[[events.Event], None]:
    """Return a hook that writes down what it hears."""
    return lambda event: history.append((memory.now, event))


# -- as long as all is well -----------------------------------------------------------------------


def test_what_is_held_stays_held(memory: Memory) -> None:
    client = memory.client()
    with client.lock("a", ttl=30) as lease:
        memory.advance(60)
        assert lease.is_held
        assert memory.holder("a") == lease.token
        assert client.stats().renewals == 6
        assert client.stats().held == 1
    assert memory.holder("a") is None
    assert client.stats().held == 0
    memory.advance(60)
    assert client.stats().renewals == 6


def test_a_renewal_gives_the_full_ttl_again(memory: Memory) -> None:
    with memory.client().lock("a", ttl=30) as lease:
        memory.advance(9.9)
        assert lease.valid_for == pytest.approx(29.348 - 9.9)
        memory.advance(0.1)
        assert lease.valid_for == pytest.approx(29.348)


def test_renewals_take_their_turn(memory: Memory, history: History) -> None:
    client = memory.client(on_event=recording(memory, history))
    lease = client.lock("a", ttl=30).acquire()
    for when in (9.9, 10.1, 20.1):
        memory.after(when, noting(memory, history, "after"))
    memory.advance(20.1)
    renewed = events.Renewed("a", lease.valid_for + 0.1)
    assert history == [
        (0, events.Acquired("a", 0)),
        (9.9, "after"),
        (10, renewed),
        (10.1, "after"),
        (20, renewed),
        (20.1, "after"),
    ]
    lease.release()
    assert history[6:] == [(20.1, events.Released("a", holdfast.Released.FREED, 20.1))]


def test_they_are_made_while_somebody_waits(memory: Memory) -> None:
    client = memory.client()
    with client.lock("a", ttl=30) as lease:
        with pytest.raises(holdfast.TimedOut):
            client.lock("a").acquire(wait=60)
        assert memory.now == 60
        assert lease.is_held


def test_without_them_a_lease_ends(memory: Memory, history: History) -> None:
    client = memory.client(renew=False, on_event=recording(memory, history))
    lease = client.lock("a", ttl=30).acquire()
    memory.advance(60)
    assert lease.lost.reason is LossReason.EXPIRED
    assert memory.holder("a") is None
    assert history[1:] == [(29.348, events.Lost("a", LossReason.EXPIRED, 29.348))]


def test_nobody_else_makes_time_pass(memory: Memory) -> None:
    with memory.client().lock("a"), memory.client().lock("b"):
        assert memory.now == 0


def test_what_was_released_is_not_on_the_agenda(memory: Memory) -> None:
    client = memory.client()
    for _ in range(1000):
        with client.lock("a"):
            pass
    assert len(memory._universe.time._agenda._entries) < 100


# -- losing it ------------------------------------------------------------------------------------


def test_nodes_that_stay_away(memory: Memory, history: History) -> None:
    client = memory.client(on_event=recording(memory, history))
    lease = client.lock("a", ttl=30).acquire()
    lease.on_endangered(noting(memory, history, "endangered"))
    lease.on_lost(noting(memory, history, "lost"))
    memory.fail()
    memory.advance(60)
    down = [events.NodeDown(f"unix://memory/{number}", DOWN) for number in range(3)]
    assert history == [
        (0, events.Acquired("a", 0)),
        *[(10, event) for event in down],
        (pytest.approx(24.3, abs=0.2), "endangered"),
        (29.348, events.Lost("a", LossReason.UNREACHABLE, 29.348)),
        (29.348, "lost"),
    ]
    assert lease.lost.reason is LossReason.UNREACHABLE
    stats = client.stats()
    assert (stats.lost, stats.held) == (1, 0)
    assert stats.failed > 5


DOWN = "unreachable: by memory.fail()"


def test_nodes_that_come_back_in_time(memory: Memory, history: History) -> None:
    client = memory.client(on_event=recording(memory, history))
    with client.lock("a", ttl=30) as lease:
        lease.on_endangered(noting(memory, history, "endangered"))
        memory.fail(0, 1)
        memory.after(27, memory.heal)
        memory.advance(60)
        assert lease.is_held
    words = [event if isinstance(event, str) else type(event).__name__ for _, event in history]
    assert words[:7] == [
        "Acquired",
        "NodeDown",
        "NodeDown",
        "endangered",
        "NodeUp",
        "NodeUp",
        "Renewed",
    ]
    assert "Lost" not in words


def test_a_minority_that_stays_away_does_not_matter(memory: Memory) -> None:
    with memory.client().lock("a") as lease:
        memory.fail(1)
        memory.advance(120)
        assert lease.is_held


def test_what_is_deleted_is_noticed_at_the_next_renewal(memory: Memory, history: History) -> None:
    lease = memory.client().lock("a", ttl=30).acquire()
    lease.on_lost(noting(memory, history, "lost"))
    memory.lose("a")
    memory.advance(9.9)
    assert lease.is_held, "nobody has asked yet"
    memory.advance(10)
    assert history == [(10, "lost")]
    assert lease.lost.reason is LossReason.DELETED


def test_what_is_taken_is_noticed_too(memory: Memory) -> None:
    lease = memory.client().lock("a").acquire()
    memory.lose("a")
    other = memory.take("a")
    memory.advance(10)
    assert lease.lost.reason is LossReason.TAKEN
    assert memory.holder("a") == other.token


def test_a_lease_outlives_its_thread_by_no_more_than_its_ttl(memory: Memory) -> None:
    leases: list[holdfast.Lease] = []
    lock = memory.client().lock("a", ttl=30)
    run_in_thread(lambda: leases.append(lock.acquire()))
    memory.advance(20)
    assert leases[0].lost.reason is LossReason.OWNER_DIED
    assert memory.holder("a"), "whatever its thread has begun may still be under way"
    memory.advance(10.01)
    assert memory.holder("a") is None


def test_unless_it_was_handed_over(memory: Memory) -> None:
    leases: list[holdfast.Lease] = []
    ours = memory.client()
    run_in_thread(lambda: leases.append(ours.lock("a", ttl=30).acquire()))
    run_in_thread(lambda: leases.append(ours.lock("b", ttl=30, owner=None).acquire()))
    leases[0].transfer()
    memory.advance(60)
    assert [lease.release() for lease in leases] == [holdfast.Released.FREED] * 2


def run_in_thread(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_nobody_holds_for_ever(memory: Memory, history: History) -> None:
    lease = memory.client(max_hold=100).lock("a", ttl=30).acquire()
    lease.on_endangered(noting(memory, history, "endangered"))
    lease.on_lost(noting(memory, history, "lost"))
    memory.advance(200)
    assert [what for _, what in history] == ["endangered", "lost"]
    assert history[1] == (100, "lost")
    assert lease.lost.reason is LossReason.MAX_HOLD
    assert memory.holder("a") is None


@pytest.mark.parametrize("ttl", [10, 12.34, 30])
def test_it_ends_after_a_day(ttl: float) -> None:
    memory = Memory()
    lease = memory.client().lock("a", ttl=ttl).acquire()
    memory.advance(DAY - 0.1)
    assert lease.is_held
    memory.advance(0.1)
    assert lease.lost.reason is LossReason.MAX_HOLD


def test_what_is_forgotten_lapses(memory: Memory) -> None:
    client = memory.client()
    lease = client.lock("a", ttl=30).acquire()
    memory.advance(15)
    seen = weakref.ref(lease)
    with pytest.warns(ResourceWarning, match="'a' was dropped"):
        del lease
    assert seen() is None, "the keeper must not be what keeps it alive"
    assert client.stats().held == 0
    memory.advance(24.9)
    assert memory.holder("a"), "renewed at 10 s, for 30 s"
    memory.advance(0.2)
    assert memory.holder("a") is None


def test_a_client_that_is_closed_renews_nothing(memory: Memory, history: History) -> None:
    client = memory.client(on_event=recording(memory, history))
    lease = client.lock("a", ttl=30).acquire()
    client.close()
    memory.advance(20)
    assert lease.is_held
    assert lease.lost.wait() is LossReason.EXPIRED
    assert memory.now == 29.348
    assert len(history) == 1
    assert client.stats().held == 0


def test_a_closed_client_may_still_be_collected(memory: Memory) -> None:
    client = memory.client()
    client.lock("a", renew=False).acquire()
    seen = weakref.ref(client)
    client.close()
    del client
    gc.collect()
    assert seen() is None


def test_a_forked_child_renews_nothing(memory: Memory) -> None:
    heard: list[events.Event] = []
    client = memory.client(on_event=heard.append)
    with client.lock("a", ttl=30) as lease:
        child = os.fork()
        if child == 0:  # nothing may escape from here into the test run
            try:
                memory.advance(60)
                alone = len(heard) == 1 and memory.holder("a") is None and not client.stats().held
                os._exit(0 if alone else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        memory.advance(60)
        assert lease.is_held


# -- waiting for it -------------------------------------------------------------------------------


def test_waiting_for_the_loss_lets_time_pass(memory: Memory) -> None:
    lease = memory.client().lock("a", ttl=30).acquire()
    memory.after(23, lambda: memory.lose("a"))
    assert lease.lost.wait() is LossReason.DELETED
    assert memory.now == 30, "at the renewal, and not at the end of the lease"


def test_for_as_long_as_one_likes(memory: Memory) -> None:
    with memory.client().lock("a", ttl=30) as lease:
        assert lease.lost.wait(45) is None
        assert memory.now == 45
        assert lease.lost.wait(0) is None
        assert memory.now == 45


def test_a_day_of_it_takes_a_moment(memory: Memory) -> None:
    lease, begun = memory.client().lock("a").acquire(), time.monotonic()
    assert lease.lost.wait() is LossReason.MAX_HOLD
    assert memory.now == DAY
    assert time.monotonic() - begun < 20


def test_a_release_ends_it_on_the_way(memory: Memory) -> None:
    lease = memory.client().lock("a").acquire()
    memory.after(12, lease.release)
    assert lease.lost.wait() is None
    assert memory.now == 12


def test_a_watcher_does_not_make_time_pass_while_we_work(in_thread: Callable) -> None:
    memory = Memory(grace=3600)
    watched = threading.Event()

    def watch() -> LossReason | None:
        watched.set()
        return lease.lost.wait()

    with memory.client().lock("a") as lease:
        watching = in_thread(watch)
        watched.wait()
    assert watching.result() is None
    assert memory.now == 0


def test_a_watcher_hears_of_a_loss_while_we_advance(in_thread: Callable) -> None:
    memory = Memory(grace=3600)
    lease = memory.client().lock("a").acquire()
    watching = in_thread(lease.lost.wait)
    memory.lose("a")
    memory.advance(60)
    assert watching.result() is LossReason.DELETED
    assert memory.now == 60


def test_a_bell_without_a_deadline_rings_in_real_time(memory: Memory, in_thread: Callable) -> None:
    driver, bell = memory.client()._driver, threading.Event()
    waiting = in_thread(driver.wait_for, bell, math.inf)
    bell.set()
    waiting.result()
    assert memory.now == 0


def test_a_renewal_does_not_mean_that_its_owner_is_at_work(in_thread: Callable) -> None:
    memory = Memory(grace=0.3)
    begun = time.monotonic()
    with memory.client().lock("a", ttl=30) as lease:
        waiting = in_thread(lambda: memory.client().lock("a").acquire(wait=3600))
        assert isinstance(waiting.exception(), holdfast.TimedOut)
        assert lease.is_held
    assert memory.now == 3600
    assert time.monotonic() - begun < 30, "360 renewals, and the grace only once"


def test_threads_that_wait_for_each_other_are_freed_in_the_end(in_thread: Callable) -> None:
    memory, both = Memory(grace=3600), threading.Barrier(2)

    def cross(mine: str, theirs: str) -> None:
        client = memory.client(max_hold=600)
        with client.lock(mine):
            both.wait()
            with client.lock(theirs):
                pass

    crossing = [in_thread(cross, "a", "b"), in_thread(cross, "b", "a")]
    errors = [thread.exception() for thread in crossing]
    assert any(isinstance(error, holdfast.LeaseLost) for error in errors)
    assert memory.now == pytest.approx(600, abs=20)


# -- callbacks ------------------------------------------------------------------------------------


def test_callbacks_run_on_the_thread_that_makes_time_pass(memory: Memory) -> None:
    threads: list[threading.Thread] = []

    def note(_: object) -> None:
        threads.append(threading.current_thread())

    lease = memory.client(on_event=note).lock("a").acquire()
    lease.on_lost(note)
    lease.on_endangered(note)
    memory.fail()
    memory.advance(60)
    assert len(threads) == 7
    assert {*threads} == {threading.current_thread()}


def test_a_callback_finds_everything_settled(memory: Memory, history: History) -> None:
    client = memory.client()
    lease = client.lock("a").acquire()

    @lease.on_lost
    def replace(lost: holdfast.Lease) -> None:
        assert lost is lease
        assert not lost.is_held
        with client.lock("a", wait=0):
            memory.advance(25)
            history.append((memory.now, "replaced"))

    memory.lose("a")
    memory.advance(60)
    assert history == [(35, "replaced")]
    assert memory.now == 60


def test_a_callback_may_wait_for_other_threads(memory: Memory, in_thread: Callable) -> None:
    lease, holders = memory.client().lock("a").acquire(), list[str | None]()
    lease.on_lost(lambda _: holders.append(in_thread(memory.holder, "a").result()))
    memory.lose("a")
    assert lease.lost.wait() is LossReason.DELETED
    assert holders == [None]


def test_a_callback_that_fails_is_reported(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, history: History
) -> None:
    def fail(_: object) -> None:
        raise KeyError("mine")

    reported: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    lease = memory.client().lock("a").acquire()
    lease.on_lost(fail)
    lease.on_lost(noting(memory, history, "the next one"))
    memory.lose("a")
    memory.advance(60)
    assert [args.exc_type for args in reported] == [KeyError]
    assert history == [(10, "the next one")]


def test_a_callback_must_not_wait(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    client, other = memory.client(), memory.take("b", renew=True)
    lease = client.lock("a").acquire()
    lease.on_lost(lambda _: client.lock("b").acquire(wait=5))
    memory.lose("a")
    memory.advance(60)
    [args] = reported
    assert "must not wait" in str(args.exc_value)
    other.release()


def test_pytest_fail_in_a_callback_fails_the_test(memory: Memory) -> None:
    lease = memory.client().lock("a").acquire()
    lease.on_lost(lambda _: pytest.fail("it was lost"))
    memory.lose("a")
    with pytest.raises(pytest.fail.Exception, match="it was lost"):
        memory.advance(60)
    memory.advance(60)
    assert memory.now == 70, "and the universe goes on"


def test_records_come_one_after_the_other(memory: Memory) -> None:
    heard: list[str] = []

    def hear(event: events.Event) -> None:
        heard.append(f"{type(event).__name__} {event.name}")  # type: ignore[attr-defined]  # all have one here
        if isinstance(event, events.Lost):
            with client.lock("b", wait=0):
                pass
        heard.append(".")

    client = memory.client(on_event=hear)
    lease = client.lock("a").acquire()
    memory.lose("a")
    with pytest.raises(holdfast.LeaseLost):
        lease.renew()
    assert heard == ["Acquired a", ".", "Lost a", ".", "Acquired b", ".", "Released b", "."]
