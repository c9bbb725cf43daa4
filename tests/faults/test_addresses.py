"""Addresses that lead nowhere, or to one server twice."""

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.proxy import Proxy
from rig.waiting import until

Connect = Callable[..., holdfast.Client]


def test_a_full_queue_is_a_failure_and_not_a_busy_wait(
    short_dir: Path, cleanup: contextlib.ExitStack, connect: Connect, name: str
) -> None:
    path = str(short_dir / "full.sock")
    listener = cleanup.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(path)
    listener.listen(0)
    while True:
        waiting = cleanup.enter_context(socket.socket(socket.AF_UNIX))
        waiting.setblocking(False)
        if waiting.connect_ex(path):
            break
    client = connect(f"unix://{path}", node_timeout=0.5)
    begun, worked = time.monotonic(), time.thread_time()
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock(name).acquire(wait=0.5)
    assert "temporarily unavailable" in caught.value.reports[0].answer
    assert time.thread_time() - worked < (time.monotonic() - begun) / 2


def test_one_server_never_votes_twice_on_any_line(
    own_nodes: Callable[..., ThrowawayNodes],
    proxy: Callable[[ThrowawayNode], Proxy],
    connect: Connect,
    name: str,
    cleanup: contextlib.ExitStack,
) -> None:
    one, two = own_nodes(2)
    front, back = proxy(one), proxy(one)  # two addresses of one server
    back.refuse()  # which cannot be told at first
    client = connect(front.url, back.url, two.url)
    pool = client._driver._pool
    lines = [pool.take(), pool.take()]
    for line in lines:
        pool.give_back(line)
        with client.lock(name, wait=20):
            pass
        assert pool.take() is line
    back.accept()
    two.kill()
    pool.give_back(lines[0])
    front.cut()  # the first line's address changes over to the other one, or back
    for line in lines * 10:
        if line not in pool._free:
            pool.give_back(line)
        with pytest.raises(holdfast.Unreachable):
            client.lock(name, ttl=60).acquire(wait=0.1)
        until(lambda line=line: line in pool._free)


def test_a_name_that_nobody_has_is_unreachable(connect: Connect, name: str) -> None:
    client = connect("redis://no-such-host.invalid:6379")
    with pytest.raises(holdfast.Unreachable) as caught:
        client.try_lock(name)
    assert "name look-up failed" in caught.value.reports[0].answer


def test_a_name_that_somebody_has_is_found(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str, free_port: int
) -> None:
    own_nodes(1, config=["--port", str(free_port)])
    client = connect(f"redis://localhost:{free_port}")
    with client.lock(name, wait=20) as lease:
        assert lease.is_held
