"""Who has a lock and who waits for it: `lock.holder()` and `lock.waiters()`."""

import datetime
import os
import socket
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.lineup import LineUp, hear
from rig.waiting import until

CALM = 5.0


def about_now(when: "datetime.datetime | None") -> bool:
    return when is not None and abs(when.timestamp() - time.time()) < 60


def test_nobody(
    nodes: list[ThrowawayNode], connect: Callable[..., holdfast.Client], name: str
) -> None:
    lock = connect(*(node.url for node in nodes)).lock(name)
    assert lock.holder() is None
    assert lock.waiters() == []


def test_a_holder_and_who_waits(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line = line_up(nodes, name)
    has, waits = new_actor(nodes, label="has/it %"), new_actor(nodes, label="wartet auch")
    lease = has.acquire(name, ttl=25)
    holder = line.look.holder()
    assert (holder.host, holder.pid) == (socket.gethostname(), os.getpid())
    assert holder.label == "has/it %"
    assert holder.fence == lease.fence
    assert about_now(holder.since)
    assert 0 < holder.remaining <= 25
    assert str(holder) == f"has/it % on {socket.gethostname()}, process {os.getpid()}"
    guests = [line.join(waits), line.join(has)]
    first, second = line.look.waiters()
    assert (first.label, second.label) == ("wartet auch", "has/it %")
    assert (first.host, first.pid) == (socket.gethostname(), os.getpid())
    assert about_now(first.since)
    assert first.since < second.since
    until(lambda: [each.nodes for each in line.look.waiters()] == [len(nodes)] * 2)
    assert not first.called
    lease.release()
    guests[0].be_served()
    holder = line.look.holder()
    assert holder.label == "wartet auch"
    assert holder.fence == line.fences[0] > lease.fence
    until(lambda: [each.label for each in line.look.waiters()] == ["has/it %"])
    line.hurry()
    until(lambda: line.look.holder() is None)


def test_another_process(
    healthy: list[ThrowawayNode],
    process: Callable,
    connect: Callable[..., holdfast.Client],
    name: str,
) -> None:
    lock = connect(*(node.url for node in healthy)).lock(name)
    there = process(healthy, name, label="there")
    hear(there, "held")
    holder = lock.holder()
    assert (holder.pid, holder.label) == (there.pid, "there")
    there.kill()
    there.wait()
    assert lock.holder().pid == there.pid, "it is dead, and has it all the same"


def test_a_foreign_holder(
    nodes: list[ThrowawayNode], connect: Callable[..., holdfast.Client], name: str
) -> None:
    lock = connect(*(node.url for node in nodes)).lock(name)
    for node in nodes:
        node.call("SET", lock_key(name), "theirs", "PX", "60000")
    holder = lock.holder()
    assert (holder.host, holder.pid, holder.label) == (None, None, None)
    assert (holder.fence, holder.since) == (None, None)
    assert 0 < holder.remaining <= 60
    assert str(holder) == "another program"


@pytest.mark.parametrize("label", ["x" * 64, "a b/c%d{}", "Prüfung"])
def test_a_label_is_told_as_it_was_given(
    lone: ThrowawayNode, connect: Callable[..., holdfast.Client], name: str, label: str
) -> None:
    client = connect(lone.url, label=label)
    with client.lock(name):
        assert client.lock(name).holder().label == label


def test_a_label_that_needs_too_much_room_is_cut(
    lone: ThrowawayNode, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(lone.url, label="ü" * 64)
    with client.lock(name):
        told = client.lock(name).holder().label
    assert set(told) == {"ü"}, "between two characters"


@pytest.mark.parametrize("label", ["", "x" * 65, 1, b"x", "\ud800"])
def test_a_label_that_makes_no_sense(lone: ThrowawayNode, label: object) -> None:
    with pytest.raises(holdfast.BadInput, match="label"):
        holdfast.connect(lone.url, label=label)


def test_the_label_is_the_programs_name_if_nothing_is_said(
    lone: ThrowawayNode,
    connect: Callable[..., holdfast.Client],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    for path, label in (("/opt/invoices.py", "invoices"), ("", "python"), ("/x/\udcff.py", None)):
        monkeypatch.setattr("sys.argv", [path])
        client = connect(lone.url)
        with client.lock(name):
            told = client.lock(name).holder().label
        assert told == label or label is None


async def test_with_asyncio(healthy: list[ThrowawayNode], name: str) -> None:
    async with holdfast.aio.connect(
        *(node.url for node in healthy), node_timeout=CALM, label="tasks"
    ) as client:
        lock = client.lock(name)
        assert await lock.holder() is None
        async with lock as lease:
            holder = await lock.holder()
            assert (holder.label, holder.fence) == ("tasks", lease.fence)
            assert await lock.waiters() == []


@pytest.mark.parametrize("count", [1, 3])
def test_too_few_nodes_to_know(
    own_nodes: Callable[..., ThrowawayNodes],
    connect: Callable[..., holdfast.Client],
    name: str,
    count: int,
) -> None:
    nodes = own_nodes(count)
    lock = connect(*nodes.urls).lock(name)
    with lock:
        if count > 1:
            nodes[0].kill()
            assert lock.holder().pid == os.getpid()
        for node in nodes[: count // 2 + 1]:
            node.kill()
        with pytest.raises(holdfast.Unreachable):
            lock.holder()
        with pytest.raises(holdfast.Unreachable):
            lock.waiters()


def test_looking_changes_nothing(
    lone: ThrowawayNode, connect: Callable[..., holdfast.Client], name: str
) -> None:
    lock = connect(lone.url).lock(name)
    lock.holder()
    lock.waiters()
    assert lone.call("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", f"*{name}*") == "0"
