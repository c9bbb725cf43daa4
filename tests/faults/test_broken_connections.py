"""Connections that break: what was under way is said again, and never twice in effect."""

from collections.abc import Callable

import pytest

import holdfast
from holdfast.embedded import ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.servers import calls, holders, token_on
from rig.waiting import until

Connect = Callable[..., holdfast.Client]


def test_a_request_whose_reply_was_lost_is_said_again_within_its_round(
    lone, warm, connect: Connect, name: str, in_thread: Callable
) -> None:
    [node], [proxy] = lone.nodes, lone.proxies
    client = connect(proxy.url)
    proxy.swallow_replies()
    waiting = in_thread(client.lock(name, ttl=60).acquire, wait=0)
    first = until(lambda: token_on(node, name))
    until(lambda: proxy.replies_lost)
    proxy.heal()
    lease = waiting.result()
    assert lease.token == first == token_on(node, name)
    lease.release()


def test_a_release_whose_reply_was_lost_is_no_loss(
    lone, warm, connect: Connect, name: str, in_thread: Callable
) -> None:
    [node], [proxy] = lone.nodes, lone.proxies
    client = connect(proxy.url)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    proxy.swallow_replies()
    waiting = in_thread(lease.release)
    until(lambda: token_on(node, name) == "" and proxy.replies_lost)
    proxy.heal()
    assert waiting.result() is holdfast.Released.FREED


def test_a_release_whose_reply_was_lost_is_no_loss_even_if_somebody_was_quick(
    lone, warm, connect: Connect, name: str, in_thread: Callable
) -> None:
    [node], [proxy] = lone.nodes, lone.proxies
    client, rival = connect(proxy.url), connect(node.url)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    proxy.swallow_replies()
    waiting = in_thread(lease.release)
    successor = rival.lock(name, ttl=60).acquire(wait=20)
    until(lambda: proxy.replies_lost)
    proxy.heal()
    assert waiting.result() is holdfast.Released.FREED
    assert token_on(node, name) == successor.token
    successor.release()


def test_a_renewal_whose_reply_was_lost_is_said_again(
    lone, warm, connect: Connect, name: str, in_thread: Callable
) -> None:
    [proxy] = lone.proxies
    client = connect(proxy.url)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    proxy.swallow_replies()
    waiting = in_thread(lease.renew)
    until(lambda: proxy.replies_lost)
    proxy.heal()
    waiting.result()
    lease.release()


@pytest.mark.parametrize("size", range(0, 16, 3))
def test_a_truncated_reply_is_not_taken_for_a_whole_one(
    lone, connect: Connect, name: str, size: int
) -> None:
    [node], [proxy] = lone.nodes, lone.proxies
    client = connect(proxy.url)
    proxy.truncate_reply(size)
    lease = client.lock(name, ttl=60).acquire(wait=0)
    assert token_on(node, name) == lease.token
    proxy.truncate_reply(size)
    assert lease.release() is holdfast.Released.FREED
    assert token_on(node, name) == ""


def test_replies_that_stay_lost_are_unknown_and_leave_no_orphan(
    lone, warm, connect: Connect, name: str
) -> None:
    [node], [proxy] = lone.nodes, lone.proxies
    client = connect(proxy.url, node_timeout=0.2)
    dropped = calls(node, "del")
    proxy.swallow_replies()
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock(name, ttl=60).acquire(wait=0)
    assert [report.answer for report in caught.value.reports] == ["no answer in time"]
    until(lambda: calls(node, "del") > dropped)  # it was granted, and given back
    assert token_on(node, name) == ""


def test_lost_replies_of_a_minority_do_not_matter(site, warm, connect: Connect, name: str) -> None:
    client = connect(*site.urls)
    site.proxies[0].swallow_replies()
    for _ in range(5):
        with client.lock(name, ttl=60, wait=0) as lease:
            until(lambda lease=lease: holders(site.nodes, name) == [lease.token] * 3)
        until(lambda: holders(site.nodes, name) == [])


def test_client_kill_is_survived(fragile: ThrowawayNodes, connect: Connect, name: str) -> None:
    client = connect(*fragile.urls)
    for _ in range(5):
        lease = client.lock(name, ttl=60).acquire(wait=0)
        for node in fragile:
            node.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        lease.renew()
        for node in fragile:
            node.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert lease.release() is holdfast.Released.FREED


def test_script_flush_is_survived(fragile: ThrowawayNodes, connect: Connect, name: str) -> None:
    client = connect(*fragile.urls)
    for _ in range(5):
        flush(fragile)
        lease = client.lock(name, ttl=60).acquire(wait=0)
        flush(fragile)
        lease.renew()
        flush(fragile)
        assert lease.release() is holdfast.Released.FREED


def test_script_flush_while_rounds_run_is_survived(
    fragile: ThrowawayNodes, connect: Connect, name: str, in_thread: Callable
) -> None:
    client, stop = connect(*fragile.urls), []

    def flush_on() -> None:
        while not stop:
            flush(fragile)

    flushing = in_thread(flush_on)
    try:
        for _ in range(200):
            lease = client.lock(name, ttl=60).acquire(wait=0)
            lease.renew()
            lease.release()
    finally:
        stop.append(True)
        flushing.result()


def test_a_miss_is_cleared_up_by_a_node_that_does_not_know_the_script(
    fragile: ThrowawayNodes, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    for node in fragile[:2]:
        node.call("SET", lock_key(name), "somebody else", "PX", "60000")
    flush(fragile)
    assert client.lock(name, ttl=60).try_acquire() is None
    until(lambda: holders(list(fragile), name) == ["somebody else"] * 2)


def test_a_link_that_cannot_be_rebuilt_is_tried_less_and_less(
    site, connect: Connect, name: str
) -> None:
    client, proxy = connect(*site.urls), site.proxies[0]
    with client.lock(name, wait=0):
        pass
    proxy.refuse()
    proxy.cut()
    before, rounds = proxy.connections, 400
    for _ in range(rounds):
        with client.lock(name, ttl=60, wait=0):
            pass
    assert 1 <= proxy.connections - before < rounds / 10
    proxy.accept()

    def votes() -> bool:
        with client.lock(name, ttl=60, wait=0) as lease:
            return token_on(site.nodes[0], name) == lease.token

    until(votes)


def flush(nodes: ThrowawayNodes) -> None:
    for node in nodes:
        node.call("SCRIPT", "FLUSH")
