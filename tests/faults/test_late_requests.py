"""Requests that arrive late: whatever they are granted is given back when it is executed.

All ttls are long: a key that vanishes in time was released, and did not lapse.
"""

import contextlib
from collections.abc import Callable, Iterator

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.servers import calls, holders, token_on
from rig.waiting import pass_time, until

Connect = Callable[..., holdfast.Client]


@pytest.fixture
def hung(fragile: ThrowawayNodes, warm: None) -> Iterator[ThrowawayNode]:
    """Return the third node, to be paused; it goes on after the test."""
    yield fragile[2]
    fragile[2].resume()


def lines_of(client: holdfast.Client, count: int) -> list:
    """Make a client open so many lines, all of them connected; return them, taken."""
    pool = client._driver._pool
    lines = [pool.take() for _ in range(count)]
    for line in lines:
        pool.give_back(line)
        with client.lock("warm", ttl=60, wait=20):
            pass
        assert pool.take() is line
    return lines


def test_a_late_grant_of_a_lost_round_is_given_back(
    lone, warm, connect: Connect, name: str
) -> None:
    [node], [proxy] = lone.nodes, lone.proxies
    client = connect(proxy.url, node_timeout=0.2)
    taken, run = calls(node, "set"), calls(node, "evalsha") + calls(node, "eval")
    proxy.hold_requests()
    with pytest.raises(holdfast.Unreachable):
        client.lock(name, ttl=60).acquire(wait=0)
    assert calls(node, "set") == taken
    proxy.let_requests_pass()
    # Granted, after everything was over, or refused as too late; and released in any case.
    until(lambda: calls(node, "evalsha") + calls(node, "eval") >= run + 2)
    assert token_on(node, name) == ""


def test_a_late_grant_of_a_lost_round_is_given_back_by_a_paused_node(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    for node in fragile[:2]:
        node.call("SET", lock_key(name), "somebody else", "PX", "60000")
    taken = calls(hung, "set")
    hung.pause()
    assert client.lock(name, ttl=60).try_acquire() is None
    hung.resume()
    until(lambda: calls(hung, "set") > taken)
    until(lambda: token_on(hung, name) == "")


def test_a_release_goes_behind_the_unanswered_request_of_its_lease(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    taken, dropped = calls(hung, "set"), calls(hung, "del")
    hung.pause()
    lease = client.lock(name, ttl=60).acquire(wait=0)
    assert lease.release() is holdfast.Released.FREED
    hung.resume()
    until(lambda: calls(hung, "set") > taken and calls(hung, "del") > dropped)
    assert holders(list(fragile), name) == []


def test_a_release_follows_a_request_on_a_line_that_another_thread_uses(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    pool = client._driver._pool
    one, two = lines_of(client, 2)
    taken, dropped = calls(hung, "set"), calls(hung, "del")
    pool.give_back(one)
    hung.pause()
    lease = client.lock(name, ttl=60).acquire(wait=0)  # on the first line
    assert pool.take() is one  # now another thread's
    pool.give_back(two)
    assert lease.release() is holdfast.Released.FREED  # on the second line
    pool.give_back(one)
    hung.resume()
    until(lambda: calls(hung, "set") > taken and calls(hung, "del") > dropped)
    assert holders(list(fragile), name) == []


def test_a_release_follows_all_lines_with_unanswered_requests(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    pool = client._driver._pool
    one, two, three = lines_of(client, 3)
    taken = calls(hung, "set")
    pool.give_back(one)
    hung.pause()
    lease = client.lock(name, ttl=60).acquire(wait=0)
    assert pool.take() is one
    pool.give_back(two)
    lease.renew()
    assert pool.take() is two
    pool.give_back(three)
    lease.release()
    pool.give_back(two)
    debts = [command.token for command in one.debts]
    assert debts == [lease.token]
    pool.give_back(one)
    hung.resume()
    until(lambda: calls(hung, "set") > taken)
    until(lambda: holders(list(fragile), name) == [])


def test_a_release_that_is_told_on_two_lines_is_no_loss(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    pool = client._driver._pool
    one, two = lines_of(client, 2)
    pool.give_back(one)
    hung.pause()
    lease = client.lock(name, ttl=60).acquire(wait=0)
    pool.give_back(two)  # the next one to be taken; the first is free as well
    assert lease.release() is holdfast.Released.FREED


def test_a_node_that_owes_many_answers_still_gets_every_release(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    taken = calls(hung, "set")
    hung.pause()
    leases = [client.lock(f"{name}:{number}", ttl=60).acquire(wait=0) for number in range(80)]
    for lease in leases:
        lease.release()
    hung.resume()
    until(lambda: calls(hung, "set") - taken >= 50)
    until(lambda: all(token_on(hung, lease.name) == "" for lease in leases))


def test_misses_do_not_crowd_out_the_releases_of_leases(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    hung.pause()
    leases = [client.lock(f"{name}:{number}", ttl=60).acquire(wait=0) for number in range(60)]
    for _ in range(150):
        with contextlib.suppress(holdfast.Unreachable):  # a busy machine's nodes fall behind, too
            assert client.try_lock(leases[0].name) is None
    for lease in leases:
        lease.release()
    hung.resume()
    until(lambda: all(token_on(hung, lease.name) == "" for lease in leases))


def test_a_node_that_owed_many_answers_votes_again(
    fragile: ThrowawayNodes, hung: ThrowawayNode, connect: Connect, name: str
) -> None:
    client = connect(*fragile.urls)
    hung.pause()
    for number in range(100):
        with client.lock(f"{name}:{number}", ttl=60, wait=0):
            pass
    hung.resume()

    def votes() -> bool:
        with client.lock(name, ttl=60, wait=0) as lease:
            return token_on(hung, name) == lease.token

    until(votes)


def test_a_node_is_not_silent_because_nobody_listened(
    site, warm, connect: Connect, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = 0.3
    monkeypatch.setattr("holdfast.drivers.channel.SILENCE", silence)
    client, slow = connect(*site.urls), site.proxies[2]
    made = slow.connections
    for _ in range(3):
        slow.hold_requests()
        lease = client.lock(name, ttl=60).acquire(wait=0)  # decided without the slow one
        slow.let_requests_pass()
        until(lambda lease=lease: token_on(site.nodes[2], name) == lease.token)
        pass_time(2 * silence)  # its answer is there, and the client is busy elsewhere
        lease.release()
        until(lambda: token_on(site.nodes[2], name) == "")
        pass_time(2 * silence)
    assert slow.connections == made


def test_a_node_that_is_silent_for_long_is_connected_anew(
    site, warm, connect: Connect, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.drivers.channel.SILENCE", 0.3)
    client, deaf = connect(*site.urls), site.proxies[2]
    made = deaf.connections
    deaf.swallow_replies()
    with client.lock(name, ttl=60, wait=0):
        pass
    pass_time(0.6)
    with client.lock(name, ttl=60, wait=0):
        pass

    def again() -> bool:
        with client.lock(name, ttl=60, wait=0):
            return deaf.connections > made

    until(again)


def test_a_node_that_is_slow_to_greet_gets_the_releases_that_stand_in_line(
    site, warm, connect: Connect, name: str
) -> None:
    client, proxy, node = connect(*site.urls), site.proxies[2], site.nodes[2]
    kept = client.lock(name, ttl=60).acquire(wait=0)
    until(lambda: token_on(node, name) == kept.token)
    proxy.cut()
    proxy.hold_requests()  # the new connection's greeting is not answered
    kept.release()
    for number in range(150):  # these are over before the greeting, and must push nothing out
        with client.lock(f"{name}:{number}", ttl=60, wait=0):
            pass
    proxy.let_requests_pass()

    def gone() -> bool:
        with client.lock(f"{name}:x", ttl=60, wait=0):
            return token_on(node, name) == ""

    until(gone, within=10)
