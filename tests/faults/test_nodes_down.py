"""Nodes that are killed, paused and restarted: a minority of them does not matter."""

import statistics
import time
from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNodes
from rig.servers import holders, token_on
from rig.waiting import until


@pytest.fixture
def five(own_nodes: Callable[..., ThrowawayNodes]) -> ThrowawayNodes:
    nodes = own_nodes(5)
    for node in nodes:  # let it know the scripts: then it is never left out of a first round
        with holdfast.connect(node.url, node_timeout=5) as client, client.lock("warm") as lease:
            lease.renew()
    return nodes


def test_a_killed_minority_does_not_matter(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(*five.urls)
    lease = client.lock(name).acquire(wait=0)
    for node in five[:2]:
        node.kill()
    lease.renew()
    assert lease.release() is holdfast.Released.FREED
    with client.lock(name, wait=0) as lease:
        assert holders(five[2:], name) == [lease.token] * 3


def test_a_killed_majority_is_unreachable_and_named(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(*five.urls)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    for node in five[:3]:
        node.kill()
    with pytest.raises(holdfast.Unreachable) as caught:
        lease.renew()
    assert lease.is_held, "it holds until its old end"
    assert lease.release() is holdfast.Released.LAPSING
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock(name).acquire(wait=0)
    answers = {report.node: report.answer for report in caught.value.reports}
    assert all("unreachable" in answers[node.url] for node in five[:3])
    assert isinstance(caught.value, ConnectionError)


def test_a_restarted_node_is_found_again(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(*five.urls)
    five[0].kill()
    with client.lock(name):
        pass
    five[0].start()
    five[0].initialise()

    def votes() -> bool:
        with client.lock(name) as lease:
            return token_on(five[0], name) == lease.token

    until(votes)


def test_a_client_may_start_before_its_nodes(
    own_nodes: Callable[..., ThrowawayNodes], connect: Callable[..., holdfast.Client], name: str
) -> None:
    nodes = own_nodes(3)
    for node in nodes:
        node.kill()
    client = connect(*nodes.urls)
    with pytest.raises(holdfast.Unreachable):
        client.try_lock(name)
    for node in nodes:
        node.start()
        node.initialise()
    with client.lock(name, wait=20) as lease:
        assert lease.is_held


def test_a_lease_outlives_rolling_restarts_of_a_minority(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(*five.urls)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    until(lambda: holders(list(five), name) == [lease.token] * 5)
    for node in five[:2]:
        node.restart()
        lease.renew()
    lease.release()


def test_a_lease_that_a_majority_forgot_is_lost(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(*five.urls, guard=False)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    until(lambda: holders(list(five), name) == [lease.token] * 5)
    for node in five[:3]:
        node.restart()
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.renew()
    assert caught.value.reason is holdfast.LossReason.DELETED
    until(lambda: holders(list(five), name) == [])


def test_paused_nodes_cost_a_round_nothing(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    node_timeout = 2.0
    client = connect(*five.urls, node_timeout=node_timeout)
    healthy = median_pair(client, name)
    for node in five[:2]:
        node.pause()
    paused = median_pair(client, name)
    assert paused < 10 * healthy
    assert paused < node_timeout / 4


def test_a_paused_majority_is_unreachable_after_the_node_timeout(
    five: ThrowawayNodes, connect: Callable[..., holdfast.Client], name: str
) -> None:
    client = connect(*five.urls, node_timeout=0.2)
    until(lambda: client.try_lock(name, renew=False) is not None)
    for node in five[:3]:
        node.pause()
    begun = time.monotonic()
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock(name + "b", ttl=60).acquire(wait=0)
    assert 0.2 <= time.monotonic() - begun < 0.2 + 5
    answers = [report.answer for report in caught.value.reports]
    assert answers.count("no answer in time") >= 3


def median_pair(client: holdfast.Client, name: str, rounds: int = 60) -> float:
    """Return how long an acquire and a release take, in the middle."""
    took = []
    for _ in range(rounds):
        begun = time.perf_counter()
        with client.lock(name, ttl=60, wait=0):
            pass
        took.append(time.perf_counter() - begun)
    return statistics.median(took)
