"""First come, first served; and nobody gets in before those who wait."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from rig.lineup import LineUp, delete, nothing_left
from rig.servers import PROGRAMS
from rig.waiting import until


def rising(fences: list[int]) -> bool:
    return all(one < two for one, two in itertools.pairwise(fences))


@pytest.mark.parametrize(
    "nodes",
    [(kind, count) for kind in PROGRAMS for count in (1, 3)],
    indirect=True,
    ids="{0[0]}-{0[1]}".format,
)
def test_grants_in_the_order_of_arrival(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line = line_up(nodes, name)
    holder, one, two = (new_actor(nodes) for _ in range(3))
    lease = holder.acquire(name)
    for actor in (one, two, one, holder, two, one):
        line.join(actor)
    lease.release()
    line.hurry()
    assert line.served == [0, 1, 2, 3, 4, 5]
    assert rising([lease.fence, *line.fences])
    until(lambda: nothing_left(nodes, name))


def test_who_comes_while_the_lock_wanders_is_served_last(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name)
    first, second = line.join(actor), line.join(actor)
    lease.release()
    first.be_served()
    third = line.join(new_actor(nodes))
    first.leave()
    second.be_served()
    assert not third.has_it
    second.leave()
    third.be_served()
    third.leave()


def test_one_try_is_refused_where_somebody_waits(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name, ttl=30)
    first = line.join(actor)
    delete(nodes, name)  # it is free, and nobody has been told
    assert new_actor(nodes).try_acquire(name) is None
    first.be_served()
    assert new_actor(nodes).try_acquire(name) is None
    first.leave()
    with pytest.raises(holdfast.LeaseLost):
        lease.release()
    newcomer = new_actor(nodes).try_acquire(name)
    assert newcomer is not None
    newcomer.release()


def test_one_try_leaves_no_trace_in_the_queue(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name)
    assert new_actor(nodes).try_acquire(name) is None
    assert line.look.waiters() == []
    lease.release()


def test_processes_in_the_order_of_arrival(
    healthy: list[ThrowawayNode],
    process: Callable,
    connect: Callable,
    line_up: Callable[..., LineUp],
    short_dir: Path,
    name: str,
) -> None:
    line, note = line_up(healthy, name), short_dir / "served"
    lease = connect(*(node.url for node in healthy)).lock(name, ttl=30).acquire()
    labels = [f"process {number}" for number in range(4)]
    for number, label in enumerate(labels, 1):
        process(healthy, name, note=note, label=label)
        line.expect(number)
    assert [waiter.label for waiter in line.look.waiters()] == labels
    lease.release()
    until(lambda: note.exists() and len(note.read_text().splitlines()) == 4)
    assert note.read_text().splitlines() == labels
    until(lambda: nothing_left(healthy, name))
