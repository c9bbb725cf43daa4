"""What operators tell nodes, what nodes are told by clients that disagree, and odd servers."""

from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.servers import PROGRAMS, token_on
from rig.shimmed import ShimmedNode
from rig.waiting import until

Connect = Callable[..., holdfast.Client]
Own = Callable[..., ThrowawayNodes]


@pytest.fixture
def three(own_nodes: Own) -> ThrowawayNodes:
    return own_nodes(3)


def marker(node: ThrowawayNode, field: str) -> str:
    return node.call("HGET", "hf:node", field) or ""


# -- clients that disagree about the longest ttl --------------------------------------------------


def test_a_client_with_a_shorter_max_ttl_never_gets_in(
    three: ThrowawayNodes, connect: Connect, name: str
) -> None:
    """Nodes that have forgotten would abstain too short for it; one that has not is enough."""
    ours, theirs = connect(*three.urls), connect(*three.urls, max_ttl=0.5, ttl=0.3)
    lease = ours.lock(name, ttl=30).acquire(wait=0)
    until(lambda: all(token_on(node, name) == lease.token for node in three))
    with pytest.raises(holdfast.Unreachable, match="was told of another max_ttl: 60 s"):
        theirs.lock(name).acquire(wait=600)
    for node in three[:2]:
        node.restart()
    fresh = connect(*three.urls, max_ttl=0.5, ttl=0.3)
    for client in (theirs, fresh):
        words = r"a node was told of max_ttl=60, this"
        with pytest.raises(holdfast.Unreachable, match=words):
            client.lock(name).acquire(wait=30)  # longer than they would abstain for it
    assert lease.is_held
    lease.release()


def test_a_client_with_a_longer_max_ttl_is_refused_and_harms_nobody(
    three: ThrowawayNodes, connect: Connect, name: str
) -> None:
    ours = connect(*three.urls, max_ttl=5)
    ours.lock(name).acquire(wait=0).release()
    until(lambda: {node.max_ttl for node in ours.nodes.status()} == {5.0})
    with pytest.raises(holdfast.Unreachable, match="was told of another max_ttl: 5 s"):
        connect(*three.urls, max_ttl=50).lock(name).acquire(wait=600)
    ours.lock(name).acquire(wait=0).release()


def test_a_node_that_forgot_believes_in_the_longer_max_ttl_for_a_while(
    three: ThrowawayNodes, connect: Connect, name: str
) -> None:
    """Whoever came first may have been wrong, and it abstained too short."""
    node = three[0]
    node.call("FLUSHALL")
    wrong = connect(node.url, guard=True, max_ttl=0.5, ttl=0.3)
    with pytest.raises(holdfast.Unreachable, match=r"abstains for [12] s more"):
        wrong.lock(name).acquire(wait=0)
    right = connect(node.url, guard=True, max_ttl=5)
    with pytest.raises(holdfast.Unreachable, match=r"abstains for [67] s more"):
        right.lock(name).acquire(wait=0)
    with pytest.raises(holdfast.Unreachable, match="was told of another max_ttl: 5 s"):
        wrong.lock(name).acquire(wait=0)


def test_an_operator_with_another_max_ttl_does_not_change_it(
    three: ThrowawayNodes, connect: Connect, name: str
) -> None:
    ours = connect(*three.urls)
    ours.lock(name).acquire(wait=0).release()
    until(lambda: all(marker(node, "max_ttl_ms") == "60000" for node in three))
    operator = connect(*three.urls, max_ttl=10)
    for number in range(3):
        operator.nodes.drain(number)
        operator.nodes.admit(number)
    assert all(marker(node, "max_ttl_ms") == "60000" for node in three)
    ours.lock(name).acquire(wait=0).release()


# -- operators ------------------------------------------------------------------------------------


def test_without_a_guard_nothing_would_heed_it(three: ThrowawayNodes, connect: Connect) -> None:
    client = connect(three[0].url)
    for tell in (client.nodes.drain, client.nodes.admit):
        with pytest.raises(holdfast.BadInput, match="guard is off"):
            tell(0)
    assert [node.state for node in client.nodes.status()] == ["ready"]


def test_nodes_are_named_as_they_were_given(three: ThrowawayNodes, connect: Connect) -> None:
    client = connect(*three.urls)
    client.nodes.init(0, 0, three[1].url)
    client.nodes.drain(three[2].url)
    assert [node.state for node in client.nodes.status()] == ["ready", "ready", "abstaining"]
    three[1].kill()
    with pytest.raises(holdfast.NotConfirmed, match=r"nodes.drain: not confirmed by\n  unix:.*/2/"):
        client.nodes.drain(1)


def test_an_operator_is_obeyed_although_a_clock_has_jumped(
    shimmed: Callable[[int], list[ShimmedNode]], connect: Connect, name: str
) -> None:
    nodes = shimmed(3)
    client = connect(*(node.url for node in nodes))
    client.lock(name).acquire(wait=0).release()
    for node in nodes:
        node.clock.step(100)
    assert [node.state for node in client.nodes.status()] == ["ready"] * 3
    client.nodes.init()
    client.lock(name).acquire(wait=0).release()


def test_a_clock_that_jumped_costs_an_unguarded_client_nothing(
    shimmed: Callable[[int], list[ShimmedNode]], connect: Connect, name: str
) -> None:
    [node] = shimmed(1)
    client = connect(node.url)
    client.lock(name).acquire(wait=0).release()
    for seconds in (30, -60, 90):
        node.clock.step(seconds)
        client.lock(name).acquire(wait=0).release()


def test_fences_can_be_passed_after_clocks_were_set_back(
    shimmed: Callable[[int], list[ShimmedNode]], connect: Connect, name: str
) -> None:
    nodes = shimmed(3)
    for node in nodes:
        node.clock.step(7200)
    client = connect(*(node.url for node in nodes))
    client.nodes.init()
    with client.lock(name, wait=0) as lease:
        before = lease.fence
    for node in nodes:
        node.clock.step(-7200)
    client.nodes.init()
    with client.lock(name, wait=0) as lease:
        assert lease.fence > before


# -- odd markers and servers ----------------------------------------------------------------------


@pytest.mark.parametrize("field", ["history", "until_ms", "floor_us", "looked_ms"])
def test_a_marker_that_lacks_something_is_no_marker(
    three: ThrowawayNodes, connect: Connect, name: str, field: str
) -> None:
    client = connect(three[0].url, guard=True)
    client.lock(name).acquire(wait=0).release()
    three[0].call("HDEL", "hf:node", field)
    with pytest.raises(holdfast.Unreachable, match="abstains for 6"):
        client.lock(name).acquire(wait=0)


@pytest.mark.parametrize("kind", [kind for kind in PROGRAMS if kind != "redis6"])
def test_a_server_in_cluster_mode_without_a_guard(
    own_nodes: Own, connect: Connect, name: str, kind: str, free_port: int
) -> None:
    config = ["--cluster-enabled", "yes", "--cluster-port", str(free_port)]
    [node] = own_nodes(1, binary=PROGRAMS[kind], config=config, tcp=True)
    assert node.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383") == "OK"
    until(lambda: "cluster_state:ok" in (node.call("CLUSTER", "INFO") or ""))
    with connect(node.url).lock(name, wait=0) as lease:
        lease.renew()
        assert lease.fence > 0


RIGHTS = "+evalsha +eval +get +set +del +exists +pexpire +pttl +time"
GUARD_RIGHTS = "+info +hget +hmget +hset"
OPERATORS_RIGHTS = "+hgetall +hsetnx"


@pytest.mark.parametrize("kind", [kind for kind in PROGRAMS if kind != "redis6"])
def test_the_documented_rights_are_enough(
    own_nodes: Own, connect: Connect, name: str, kind: str
) -> None:
    nodes = own_nodes(3, binary=PROGRAMS[kind])
    for node in nodes:
        for user, rights in (("ann", ""), ("ops", OPERATORS_RIGHTS)):
            rules = f"{RIGHTS} {GUARD_RIGHTS} {rights}".split()
            assert node.call("ACL", "SETUSER", user, "on", ">secret", "~hf:*", *rules) == "OK"
    worker = connect(*(f"unix://ann:secret@{node.socket}" for node in nodes))
    with worker.lock(name, wait=0) as lease:
        lease.renew()
    operator = connect(*(f"unix://ops:secret@{node.socket}" for node in nodes))
    assert [node.state for node in operator.nodes.status()] == ["ready"] * 3
    operator.nodes.drain(0)
    operator.nodes.admit(0)
    operator.nodes.init()
    for node in nodes:
        node.call("ACL", "SETUSER", "ann", "-info")
    with pytest.raises(holdfast.Unreachable, match="permission denied"):
        worker.lock(name).acquire(wait=600)
