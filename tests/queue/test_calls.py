"""How who waits is called: on which connection, with which words, and under which name."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable

import pytest
import redis

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from holdfast.wire.who import INBOX, SECRET_DIGITS, Sign, who_of
from rig.forking import fork, see_it_end
from rig.lineup import LineUp, in_line
from rig.servers import token_on
from rig.tasks import eventually
from rig.waiting import until

CALM = 5.0


def inboxes(node: ThrowawayNode, label: str) -> list[str]:
    """Return the inboxes on a node that belong to clients of that name."""
    found = "return table.concat(redis.call('PUBSUB', 'CHANNELS', ARGV[1]), ' ')"
    return (node.call("EVAL", found, "0", f"{INBOX}*/{label}/*") or "").split()


def test_a_call_has_the_token_the_time_the_claim_and_a_fence(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes, claim=0.7, label="calls")
    lease = actor.acquire(name)
    guest = line.join(actor)
    listeners = [redis.Redis(unix_socket_path=str(node.socket)).pubsub() for node in nodes]
    tokens = [in_line(node, name) for node in nodes]
    for listener in listeners:
        listener.psubscribe(f"{INBOX}*")
        until(lambda listener=listener: listener.get_message(timeout=0.1))  # it is confirmed
    lease.release()
    held = guest.be_served()
    for node, listener, [token] in zip(nodes, listeners, tokens, strict=True):

        def call(listener: "redis.client.PubSub" = listener) -> bytes | None:
            said = listener.get_message(timeout=0.1)
            return said["data"] if said and b"/calls/" in said["channel"] else None

        words = until(call).decode().split()
        assert words[0] == token == held.token
        seconds, micros = (int(word) for word in time_of(node))
        assert abs(int(words[1]) - seconds * 10**6 - micros) < 60 * 10**6
        assert words[2] == "700"
        assert lease.fence < int(words[3])
        listener.close()
    guest.leave()


def time_of(node: ThrowawayNode) -> tuple[str, str]:
    said = node.call("EVAL", "return table.concat(redis.call('TIME'), ' ')", "0") or ""
    seconds, micros = said.split()
    return seconds, micros


def test_nobody_listens_before_somebody_waits(
    lone: ThrowawayNode, new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, label = line_up([lone], name), "quiet"
    actor = new_actor([lone], label=label)
    lease = actor.acquire(name)
    assert inboxes(lone, label) == []
    guest = line.join(actor)
    assert len(inboxes(lone, label)) == 1
    assert [who_of(token).inbox for token in in_line(lone, name)] == inboxes(lone, label)
    lease.release()
    guest.be_served()
    guest.leave()


def test_who_comes_while_the_first_begins_to_listen_is_called_as_well(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    """All of a new client's waiters at once: its subscription is still on its way."""
    line, actor = line_up(nodes, name), new_actor(nodes)
    lease = actor.acquire(name)
    line.join_all([actor] * 16)
    signs = {token[SECRET_DIGITS] for node in nodes for token in in_line(node, name)}
    lease.release()
    line.hurry()
    assert signs == {Sign.HEARS.value}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_somebody_else(
    lone: ThrowawayNode,
    connect: Callable[..., holdfast.Client],
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, label = line_up([lone], name), "forking"
    holder, client = connect(lone.url), connect(lone.url, label=label)
    lease = holder.lock(name, ttl=30).acquire()

    def wait() -> None:
        with client.lock(name, ttl=30, wait=30):
            pass

    waiting = threading.Thread(target=wait)
    waiting.start()
    line.expect(1)
    pid = fork(wait)
    line.expect(2)
    assert [waiter.pid for waiter in line.look.waiters()] == [os.getpid(), pid]
    assert len(inboxes(lone, label)) == 2
    lease.release()
    see_it_end(pid)
    waiting.join()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_two_loops_of_one_client_are_both_called(lone: ThrowawayNode, name: str) -> None:
    """The second loop ends without a word, and leaves its connection to asyncio."""
    async with holdfast.aio.connect(lone.url, node_timeout=CALM) as client:
        lease = await client.lock(name, ttl=30).acquire()
        here = asyncio.create_task(client.lock(name, ttl=30, wait=30).acquire())
        await eventually(lambda: len(in_line(lone, name)) == 1)

        async def visit() -> None:
            async with client.lock(name, ttl=30, wait=30):
                pass

        other = asyncio.create_task(asyncio.to_thread(asyncio.run, visit()))
        await eventually(lambda: len(in_line(lone, name)) == 2)
        await lease.release()
        await (await here).release()
        await other
        await eventually(lambda: token_on(lone, name) == "")
    gc.collect()


def test_a_lease_that_is_not_renewed_is_waited_for_as_well(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes, renew=False)
    lease = actor.acquire(name)
    guest = line.join(actor)
    lease.release()
    guest.be_served()
    guest.leave()
