"""Nodes whose wall clocks are set, drift or stand still, and a client whose clock is wrong."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from amnesia.harness import MAX_TTL, SLACK, Event, Site, abstention, hold, try_out
from rig.servers import calls, holders, token_on
from rig.shimmed import Clock, Shim, ShimmedNode
from rig.waiting import pass_time, until

Shimmed = Callable[[int], list[ShimmedNode]]
Connect = Callable[..., holdfast.Client]

LEAP = 60
"""Seconds. More than any ttl here: what a node keeps is over at once."""


def leap(site: Site) -> None:
    """Set two nodes' clocks forwards."""
    site.strike_now()
    for node in site.nodes[:2]:
        assert isinstance(node, ShimmedNode)
        node.clock.step(LEAP)


def leap_once(site: Site) -> None:
    """Set the second node's clock forwards."""
    site.strike_now()
    assert isinstance(site.nodes[1], ShimmedNode)
    site.nodes[1].clock.step(LEAP)


EVENTS = [
    Event("a majority leaps", leap),
    Event("a minority leaps", leap_once, unseen=[2], majority=False),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_with_a_guard_a_leap_frees_nothing(event: Event, name: str, shimmed: Shimmed) -> None:
    try_out(event, name, guard=True, nodes=shimmed(3))


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_without_a_guard_there_are_two_leases(event: Event, name: str, shimmed: Shimmed) -> None:
    try_out(event, name, guard=False, nodes=shimmed(3))


def guarded(connect: Connect, nodes: list[ShimmedNode]) -> holdfast.Client:
    urls = [node.url for node in nodes]
    return connect(*urls, guard=True, ttl=MAX_TTL, max_ttl=MAX_TTL)


def suspected(client: holdfast.Client, node: int = 0) -> bool:
    """True if the last reason why a node abstained was its clock."""
    return client.nodes.status()[node].why == "stepped"


def all_abstain(client: holdfast.Client) -> bool:
    """True if all nodes abstain, and the client believes what their clocks show."""
    return all(status.state == "abstaining" for status in client.nodes.status())


def goes_on(client: holdfast.Client, name: str) -> None:
    """Take and release a lock, as somebody who is patient."""
    with client.lock(name, wait=abstention(MAX_TTL) + MAX_TTL + SLACK):
        pass


def test_a_node_that_falls_back_is_noticed_and_its_locks_linger_there_alone(
    shimmed: Shimmed, connect: Connect, name: str
) -> None:
    nodes = shimmed(3)
    client = guarded(connect, nodes)
    hold(client, nodes, name, renew=False)
    nodes[0].clock.step(-600)
    goes_on(client, name)  # once the lease has ended on the others
    until(lambda: goes_on(client, f"{name}:other") or suspected(client))
    assert token_on(nodes[0], name), "there the lease has ten minutes left"


@pytest.mark.parametrize("change", ["drift(50_000)", "drift(-50_000)", "freeze()"])
def test_a_clock_that_runs_wrong_is_noticed(
    shimmed: Shimmed, connect: Connect, name: str, change: str
) -> None:
    nodes = shimmed(3)
    client = guarded(connect, nodes)
    goes_on(client, name)
    getattr(nodes[0].clock, change.partition("(")[0])(*_argument(change))
    until(lambda: goes_on(client, name) or suspected(client))


def _argument(change: str) -> list[int]:
    number = change.partition("(")[2].rstrip(")")
    return [int(number)] if number else []


@pytest.mark.parametrize("ppm", [10_000, -10_000])
def test_a_clock_that_is_as_good_as_clocks_must_be_is_not_suspected(
    shimmed: Shimmed, connect: Connect, name: str, ppm: int
) -> None:
    nodes = shimmed(3)
    client = guarded(connect, nodes)
    for node in nodes:
        node.clock.drift(ppm)
    for _ in range(60):
        goes_on(client, name)
        pass_time(0.05)
    assert not any(suspected(client, number) for number in range(3))


def test_whoever_comes_after_a_leap_is_warned_by_those_who_saw_it(
    shimmed: Shimmed, connect: Connect, name: str
) -> None:
    nodes = shimmed(3)
    urls = [node.url for node in nodes]
    holder, client = (connect(*urls, guard=True, max_ttl=LEAP / 2) for _ in range(2))
    lease = hold(holder, nodes, name, ttl=LEAP / 2, renew=False)
    assert client.lock(name).try_acquire() is None
    for node in nodes[:2]:
        node.clock.step(LEAP)
    for number in range(2):
        until(lambda n=number: refused(client, name) and suspected(client, n))
    assert refused(connect(*urls, guard=True, max_ttl=LEAP / 2), name)
    assert lease.is_held


def refused(client: holdfast.Client, name: str) -> bool:
    """Try once; True if nothing came of it."""
    try:
        lease = client.lock(name).try_acquire()
    except holdfast.Unreachable:
        return True
    if lease is not None:
        lease.release()
    return lease is None


@pytest.mark.parametrize("seconds", [LEAP, -600])
def test_a_jump_is_waited_for_once_however_many_clients_see_it(
    shimmed: Shimmed, connect: Connect, name: str, seconds: int
) -> None:
    nodes = shimmed(3)
    clients = [guarded(connect, nodes) for _ in range(3)]
    for client in clients:  # what a node does late would be seen as another jump
        until(lambda c=client: votes(c, nodes[0], name))
    nodes[0].clock.step(seconds)
    until(lambda: goes_on(clients[0], name) or suspected(clients[0]))
    since = clients[0].nodes.status()[0].since
    until(lambda: clients[0].nodes.status()[0].state == "ready")
    for client in clients:
        until(lambda c=client: votes(c, nodes[0], f"{name}:other"))
    assert clients[0].nodes.status()[0].since == since


def votes(client: holdfast.Client, node: ShimmedNode, name: str) -> bool:
    """Take a lock; True if a node has it then."""
    with client.lock(name, wait=SLACK) as lease:
        return token_on(node, name) == lease.token


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_node_whose_clock_is_far_off_does_not_lead_fences_astray(
    shimmed: Shimmed, connect: Connect, name: str, seconds: int
) -> None:
    nodes = shimmed(3)
    nodes[0].clock.step(seconds)
    nodes[0].initialise()
    client = guarded(connect, nodes)
    fences = []
    for _ in range(100):
        with client.lock(name, wait=SLACK) as lease:
            fences.append(lease.fence)
    assert fences == sorted(set(fences))
    assert abs(fences[-1] / 1e6 - nodes[1].time()) < LEAP


@pytest.mark.parametrize("seconds", [LEAP, -LEAP])
def test_without_a_guard_a_jump_shuts_nobody_out(
    shimmed: Shimmed, connect: Connect, name: str, seconds: int
) -> None:
    [node] = shimmed(1)
    client = connect(node.url, guard=False)
    with client.lock(name, wait=SLACK) as lease:
        fence = lease.fence
    node.clock.step(seconds)
    until(lambda: not refused(client, f"{name}:other"))
    with client.lock(name, wait=SLACK) as lease:
        assert lease.fence > fence


def test_a_clock_that_is_corrected_does_not_prolong_an_abstention(
    shimmed: Shimmed, connect: Connect, name: str
) -> None:
    """And the node says so, although a server that started ahead has a negative age then."""
    nodes = shimmed(3)
    for node in nodes:
        node.clock.step(3600)
        node.restart()
    client = guarded(connect, nodes)
    assert refused(client, name)
    for node in nodes:
        node.clock.step(-3600)
    until(lambda: refused(client, name) and all_abstain(client))
    assert all(status.abstains_for <= abstention(MAX_TTL) for status in client.nodes.status())
    with pytest.raises(holdfast.Unreachable, match="abstains for"):
        client.lock(name).acquire(wait=0)


PROGRAM = """
import sys, holdfast
client = holdfast.connect(*sys.argv[3:], guard=True, ttl={ttl}, max_ttl={ttl}, node_timeout=5)
for number in range(int(sys.argv[1])):
    with client.lock(sys.argv[2], wait=20) as lease:
        print(lease.fence)
client.close()
"""


def connected(node: ShimmedNode) -> int:
    """Return how many clients a node has."""
    lines = (node.call("INFO", "clients") or "").splitlines()
    return next(int(line.split(":")[1]) for line in lines if line.startswith("connected_clients:"))


@pytest.mark.parametrize("seconds", [600, -600])
def test_a_clients_own_wall_clock_does_not_matter(
    shim: Shim,
    shimmed: Shimmed,
    connect: Connect,
    short_dir: Path,
    name: str,
    seconds: int,
) -> None:
    nodes, times = shimmed(3), 20
    client, clock = guarded(connect, nodes), Clock(short_dir / "clock")
    clock.step(seconds)

    def fences_of(acquisitions: int) -> tuple[list[int], list[int]]:
        """Return what somebody with that clock was given, and the scripts that each node ran."""
        before = [calls(node, "evalsha") for node in nodes]
        known = [connected(node) for node in nodes]
        program = [sys.executable, "-c", PROGRAM.format(ttl=MAX_TTL), str(acquisitions), name]
        said = subprocess.run(
            [*program, *(node.url for node in nodes)],
            env=shim.environment(clock),
            capture_output=True,
            text=True,
            timeout=40,
        )
        assert said.returncode == 0, said.stderr
        until(lambda: [connected(node) for node in nodes] == known)
        ran = [calls(node, "evalsha") - old for node, old in zip(nodes, before, strict=True)]
        return [int(word) for word in said.stdout.split()], ran

    with client.lock(name, wait=SLACK, renew=False) as lease:  # without a keeper's connections
        fences = [lease.fence]
    until(lambda: not holders(nodes, name))  # now the nodes know the scripts
    _, meeting = fences_of(0)
    given, ran = fences_of(times)
    clock.close()
    with client.lock(name, wait=SLACK) as lease:
        fences += [*given, lease.fence]
    assert fences == sorted(set(fences))
    rounds = max(everything - met for everything, met in zip(ran, meeting, strict=True))
    assert rounds <= 2 * times, "more than one to acquire, and one to release"
