"""A lock is reserved for whom it is handed over to, for a claim; who is gone is passed over."""

import signal
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.lineup import CLAIM, HEARTBEAT, SLACK, SOME, LineUp, hear, in_line
from rig.servers import pttl, token_on
from rig.waiting import until


@SOME
def test_a_reservation_that_nobody_claims_lapses(
    nodes: list[ThrowawayNode],
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name, ttl=60)
    stopped = process(nodes, name)
    line.expect(1)
    guest = line.join(actor)
    stopped.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    lease.release()
    guest.be_served(within=HEARTBEAT + 2 * CLAIM + SLACK)
    assert time.monotonic() - begun >= CLAIM, "it was reserved for who is still there"
    stopped.send_signal(signal.SIGCONT)  # it comes back, and is served in the end
    guest.leave()
    hear(stopped, "held")


@SOME
def test_who_was_killed_is_passed_over_at_once(
    nodes: list[ThrowawayNode],
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name, ttl=60)
    victim = process(nodes, name)
    line.expect(1)
    guest = line.join(actor)
    dead = [in_line(node, name)[0] for node in nodes]
    victim.kill()
    victim.wait()
    lease.release()
    guest.be_served()
    for node, token in zip(nodes, dead, strict=True):
        assert in_line(node, name)[0] == token, "it is passed over, and keeps its place"
    guest.leave()


@pytest.mark.parametrize("colour", ["blocking"])
def test_the_reservation_lasts_as_long_as_the_releasing_client_says(
    lone: ThrowawayNode,
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, actor = line_up([lone], name), new_actor([lone], claim=2.0)
    lease = actor.acquire(name, ttl=60)
    stopped = process([lone], name)
    line.expect(1)
    stopped.send_signal(signal.SIGSTOP)
    [token] = in_line(lone, name)
    lease.release()
    until(lambda: token_on(lone, name) == f"~{token}")
    assert 1000 * CLAIM < pttl(lone, name) <= 2000
    assert line.look.waiters()[0].called
    stopped.send_signal(signal.SIGCONT)
    hear(stopped, "held")


@pytest.mark.parametrize("claim", [0.04, 2.1, 0, -1, float("nan"), float("inf"), "1", None, True])
@pytest.mark.parametrize("connect", [holdfast.connect, holdfast.aio.connect])
def test_a_claim_that_makes_no_sense(
    connect: Callable[..., object], lone: ThrowawayNode, claim: object
) -> None:
    with pytest.raises(holdfast.BadInput, match="claim"):
        connect(lone.url, claim=claim)


@pytest.mark.parametrize("claim", [0.05, 1, 2.0])
def test_a_claim_that_does(
    lone: ThrowawayNode, new_actor: Callable, line_up: Callable, name: str, claim: float
) -> None:
    line, actor = line_up([lone], name), new_actor([lone], claim=claim)
    lease = actor.acquire(name)
    guest = line.join(actor)
    lease.release()
    guest.be_served()
    guest.leave()


@pytest.mark.parametrize("colour", ["blocking"])
@pytest.mark.parametrize("place", [0, 1, 2], ids=["head", "middle", "tail"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_in_line(
    healthy: list[ThrowawayNode],
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
    place: int,
    how: signal.Signals,
) -> None:
    """Before it is called; or so that only the end of its claim tells."""
    line, actor = line_up(healthy, name), new_actor(healthy)
    lease = actor.acquire(name, ttl=60)
    for number in range(3):
        if number == place:
            victim = process(healthy, name)
            line.expect(number + 1)
        else:
            line.join(actor)
    victim.send_signal(how)
    lease.release()
    for survivor in line.guests:
        survivor.be_served(within=HEARTBEAT + 2 * CLAIM + SLACK)
        victim.kill()
        survivor.leave()
    assert line.served == [0, 1]


@pytest.mark.parametrize("colour", ["blocking"])
def test_many_killed_at_the_head_of_the_line(
    own_nodes: Callable[..., ThrowawayNodes],
    process: Callable,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    """A process with more threads in line than are looked at in one go."""
    nodes, crowd = list(own_nodes(1)), 24
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name, ttl=60)
    victim = process(nodes, name, threads=crowd)
    line.expect(crowd)
    guest = line.join(actor)
    victim.kill()
    victim.wait()
    begun = time.monotonic()
    lease.release()
    guest.be_served()
    assert time.monotonic() - begun < HEARTBEAT + CLAIM + HEARTBEAT
    guest.leave()
