"""What a client counts, tells its hook, and logs."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import events
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, delete, renewed, urls
from rig.waiting import pass_time, until

TTL = 0.6

Make = Callable[..., Party]


def test_the_counts_of_a_known_day(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    holder = party(colour, *urls(three), node_timeout=0.1)
    stats = holder.client.stats
    assert stats() == holdfast.Stats(0, 0, 0, 0, 0, 0.0, 0.0, 0)
    leases = [holder.acquire(f"{name}:{number}", ttl=1.5) for number in range(4)]
    assert (stats().held, stats().renewals) == (4, 0)
    until(lambda: stats().renewals == 4)
    assert (stats().failed, stats().lost) == (0, 0)
    assert 0 <= stats().lateness_p50 <= stats().lateness_p99 < 0.5
    leases[0].release()
    assert stats().held == 3
    delete(three, leases[1].name)
    until(lambda: stats().lost == 1)
    assert stats().held == 2
    for node in three[:2]:
        node.pause()
    until(lambda: stats().failed >= 2)
    for node in three[:2]:
        node.resume()
    count = stats().renewals
    until(lambda: stats().renewals >= count + 2)
    assert (stats().held, stats().lost) == (2, 1)
    leases[2].renew()
    assert stats().renewals < count + 6, "renewals by hand do not count"
    for lease in leases[2:]:
        lease.release()
    assert stats().held == 0


SLEEPER = """
    import sys, holdfast
    client = holdfast.connect(*sys.argv[2:], node_timeout=5)
    lease = client.lock(sys.argv[1], ttl=1.5).acquire()
    print("held", flush=True)
    for line in sys.stdin:
        stats = client.stats()
        print(lease.is_held, lease.lost.reason, stats.renewals, stats.late, stats.lost,
              f"{stats.lateness_p99:.3f}", flush=True)
"""


@pytest.fixture
def sleeper(cleanup: contextlib.ExitStack, healthy: list[ThrowawayNode], name: str) -> Any:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(SLEEPER), name, *urls(healthy)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    cleanup.callback(process.communicate)
    cleanup.callback(process.kill)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"

    def ask() -> list[str]:
        assert process.stdin is not None
        assert process.stdout is not None
        print(file=process.stdin, flush=True)
        return process.stdout.readline().split()

    return process, ask


def test_a_process_that_is_stopped_for_a_while(sleeper: Any) -> None:
    process, ask = sleeper
    os.kill(process.pid, signal.SIGSTOP)
    pass_time(0.9)  # the renewal was due after half a second
    os.kill(process.pid, signal.SIGCONT)
    until(lambda: ask()[2] == "1")
    held, reason, _, late, lost, lateness = ask()
    assert (held, reason, late, lost) == ("True", "None", "1", "0")
    assert 0.2 < float(lateness) < 1


def test_a_process_that_is_stopped_for_too_long(sleeper: Any) -> None:
    process, ask = sleeper
    os.kill(process.pid, signal.SIGSTOP)
    pass_time(1.6)
    os.kill(process.pid, signal.SIGCONT)
    held, reason, renewals, *_ = ask()
    assert (held, reason, renewals) == ("False", "LossReason.EXPIRED", "0")
    until(lambda: ask()[4] == "1")


def kinds(seen: list[events.Event]) -> list[str]:
    return [type(each).__name__ for each in seen]


def test_records_in_order(
    healthy: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    seen: list[events.Event] = []
    where: set[str] = set()

    def hook(event: events.Event) -> None:
        seen.append(event)
        where.add(threading.current_thread().name)

    holder = party(colour, *urls(healthy), on_event=hook)
    lease = holder.acquire(name, ttl=TTL)
    renewed(holder.client, 2)
    lease.release()
    until(lambda: kinds(seen)[-1:] == ["Released"])
    renewals = len(seen) - 2
    assert kinds(seen)[0] == "Acquired"
    assert renewals >= 2
    assert all(isinstance(each, events.Renewed) for each in seen[1:-1])
    assert {getattr(each, "name", None) for each in seen} == {name}
    lease = holder.acquire(name, ttl=TTL)
    delete(healthy, name)
    until(lambda: kinds(seen)[-1:] == ["Lost"])
    last = seen[-1]
    assert isinstance(last, events.Lost)
    assert last.reason is holdfast.LossReason.DELETED
    assert 0 < last.held_for < 20
    assert len(where) == 1
    assert where.isdisjoint({"MainThread", "holdfast-keeper"})


def test_nodes_that_go_and_come(
    three: list[ThrowawayNode], party: Make, name: str, colour: str
) -> None:
    seen: list[events.Event] = []
    holder = party(colour, *urls(three), on_event=seen.append)
    lease = holder.acquire(name, ttl=1.2)
    renewed(holder.client)
    for node in three[1:]:
        node.kill()
        until(lambda node=node: any(is_down(each, node) for each in seen))
        node.start()
        node.initialise()
        until(lambda node=node: events.NodeUp(node.url) in seen)
        if node is three[1]:
            renewed(holder.client)
    changes = [each for each in seen if isinstance(each, events.NodeDown | events.NodeUp)]
    assert kinds(changes) == ["NodeDown", "NodeUp"] * 2
    with contextlib.suppress(holdfast.LeaseLost):  # two of three have forgotten it
        lease.release()


def is_down(event: events.Event, node: ThrowawayNode) -> bool:
    return isinstance(event, events.NodeDown) and event.node == node.url and bool(event.why)


def test_a_hook_that_blocks_or_raises_disturbs_nothing(
    healthy: list[ThrowawayNode], party: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_value))
    go_on = threading.Event()

    def fail(event: events.Event) -> None:
        raise ValueError(type(event).__name__)

    slow = party("blocking", *urls(healthy), on_event=lambda event: go_on.wait(20))
    bad = party("asyncio", *urls(healthy), on_event=fail)
    one, two = slow.acquire(f"{name}:1", ttl=TTL), bad.acquire(f"{name}:2", ttl=TTL)
    renewed(slow.client, 3)
    renewed(bad.client, 3)
    assert one.is_held
    assert two.is_held
    until(lambda: len(raised) >= 4)
    go_on.set()
    one.release()
    two.release()


def test_records_that_pile_up_are_dropped_and_counted(
    healthy: list[ThrowawayNode], party: Make, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.journal.MOST_WAITING", 5)
    go_on, seen = threading.Event(), []

    def hook(event: events.Event) -> None:
        go_on.wait(20)
        seen.append(event)

    holder = party("blocking", *urls(healthy), on_event=hook)
    for number in range(10):
        holder.acquire(f"{name}:{number}").release()
    assert holder.client.stats().events_dropped in (14, 15)  # one may be in the hook's hands
    go_on.set()
    until(lambda: len(seen) + holder.client.stats().events_dropped == 20)


def test_only_a_loss_is_a_warning(
    three: list[ThrowawayNode], party: Make, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="holdfast")
    holder = party("blocking", *urls(three), node_timeout=0.05)
    lease = holder.acquire(name, ttl=1.5)
    three[2].kill()
    renewed(holder.client)
    three[1].pause()
    until(lambda: holder.client.stats().failed >= 2)
    three[1].resume()
    three[2].start()
    three[2].initialise()
    renewed(holder.client)
    lease.release()
    holder.acquire(name, ttl=30).release()
    levels = {record.levelno for record in caplog.records if record.name == "holdfast"}
    assert levels == {logging.DEBUG}
    text = caplog.text
    assert "renewed" in text
    assert "could not renew" in text
    assert "is down" in text
    lease = holder.acquire(name, ttl=TTL)
    delete(three, name)
    assert lease.lost.wait(20)
    until(lambda: any(record.levelno > logging.DEBUG for record in caplog.records))
    [warning] = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert warning.levelno == logging.WARNING
    assert name in warning.getMessage()
    assert "deleted" in warning.getMessage()
    assert lease.token not in caplog.text


def test_on_event_that_makes_no_sense(lone: ThrowawayNode) -> None:
    with pytest.raises(holdfast.BadInput, match="on_event"):
        holdfast.connect(lone.url, on_event=1)


def test_a_hook_that_hangs_silences_no_log(
    healthy: list[ThrowawayNode], party: Make, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    holder = party("blocking", *urls(healthy), on_event=lambda _: go_on.wait(20))
    lease = holder.acquire(name, ttl=0.45)
    delete(healthy, name)
    until(lambda: any(name in record.getMessage() for record in caplog.records))
    assert lease.lost.is_set()
    go_on.set()
