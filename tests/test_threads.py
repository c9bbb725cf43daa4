"""Many threads share a client over a bounded number of connections."""

import threading
from collections.abc import Callable

import holdfast
from holdfast.embedded import ThrowawayNodes
from rig.waiting import until

THREADS = 50
CONNECTIONS = 4


def test_fifty_threads_and_four_connections(
    own_nodes: Callable[..., ThrowawayNodes],
    connect: Callable[..., holdfast.Client],
    name: str,
    in_thread: Callable,
) -> None:
    nodes = own_nodes(3)
    client = connect(*nodes.urls, connections=CONNECTIONS)
    gate = threading.Barrier(THREADS + 1)

    def work(number: int) -> None:
        gate.wait()
        for turn in range(10):
            with client.lock(f"{name}:{number % 5}:{turn}", ttl=30, wait=30):
                pass

    threads = [in_thread(work, number) for number in range(THREADS)]
    gate.wait()
    most = 0
    while not all(thread.done() for thread in threads):
        most = max(most, *(ours(node) for node in nodes))
    for thread in threads:
        thread.result()
    assert 1 <= most <= CONNECTIONS + 1, "the keeper listens on one of its own"
    client.close()
    for node in nodes:
        until(lambda node=node: ours(node) == 0)


def ours(node) -> int:
    return (node.call("CLIENT", "LIST") or "").count(" name=holdfast@")
