"""Other programs' locks on the same key: waited for, and not in their way."""

from collections.abc import Callable

import pytest
import redis

from holdfast.embedded import ThrowawayNode
from holdfast.wire.keys import lock_key
from rig.lineup import HEARTBEAT, SLACK, LineUp
from rig.waiting import until


@pytest.fixture
def foreign(lone: ThrowawayNode) -> "redis.Redis":
    with redis.Redis(unix_socket_path=str(lone.socket)) as client:
        yield client


def test_a_lock_of_redis_py_that_is_released(
    lone: ThrowawayNode,
    foreign: "redis.Redis",
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    name: str,
) -> None:
    line, actor = line_up([lone], name), new_actor([lone])
    theirs = foreign.lock(lock_key(name), timeout=60)
    assert theirs.acquire(blocking=False)
    one, two = line.join(actor), line.join(actor)
    theirs.release()
    one.be_served(within=HEARTBEAT + SLACK)
    assert not two.has_it
    assert not theirs.acquire(blocking=False)
    line.hurry()
    assert line.served == [0, 1]
    until(lambda: theirs.acquire(blocking=False))
    assert actor.try_acquire(name) is None
    theirs.release()


@pytest.mark.parametrize("lasts", [300, 1500])
def test_a_plain_key_that_expires(
    lone: ThrowawayNode, new_actor: Callable, line_up: Callable[..., LineUp], name: str, lasts: int
) -> None:
    line, actor = line_up([lone], name), new_actor([lone])
    assert lone.call("SET", lock_key(name), "theirs", "NX", "PX", str(lasts)) == "OK"
    line.join(actor)
    line.hurry()
    assert line.served == [0]


def test_a_plain_key_without_an_end_that_is_deleted(
    nodes: list[ThrowawayNode], new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    line, actor = line_up(nodes, name), new_actor(nodes)
    for node in nodes:
        node.call("SET", lock_key(name), "theirs")
    guest, second = line.join(actor), line.join(actor)
    assert line.look.holder().host is None
    assert line.look.holder().remaining is None
    for node in nodes:
        node.call("DEL", lock_key(name))
    guest.be_served(within=HEARTBEAT + SLACK)
    assert not second.has_it
    line.hurry()


def test_a_key_as_long_as_our_tokens(
    lone: ThrowawayNode, new_actor: Callable, line_up: Callable[..., LineUp], name: str
) -> None:
    """What does not hand over is looked at again soon, whatever it looks like."""
    line, actor = line_up([lone], name), new_actor([lone])
    lone.call("SET", lock_key(name), "x" * 90, "PX", "60000")
    guest = line.join(actor)
    assert line.look.holder().host is None
    lone.call("DEL", lock_key(name))
    guest.be_served(within=HEARTBEAT + SLACK)
    guest.leave()
