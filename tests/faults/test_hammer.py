"""Random faults on all connections: every lease that is given really is on the nodes."""

import random
import threading
import time
from collections.abc import Callable

import pytest

import holdfast
from rig.servers import holders
from rig.waiting import until

WORKERS = 4
SECONDS = 2.0


@pytest.mark.parametrize("seed", range(2))
def test_leases_are_never_imagined(
    site, connect: Callable[..., holdfast.Client], name: str, in_thread: Callable, seed: int
) -> None:
    client = connect(*site.urls, node_timeout=0.3, connections=2)
    stop, quorum = threading.Event(), 2

    def harm() -> None:
        chance = random.Random(seed)
        while not stop.wait(chance.uniform(0.001, 0.03)):
            proxy = chance.choice(site.proxies)
            fault = chance.choice(
                [proxy.cut, proxy.swallow_replies, proxy.hold_requests, proxy.refuse]
                + [lambda: proxy.truncate_reply(chance.randrange(12))]  # noqa: B023  # called at once
                + [proxy.heal] * 4
            )
            fault()

    def work(number: int) -> int:
        held, lock = 0, client.lock(f"{name}:{number}", ttl=20)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                lease = lock.acquire(wait=0.2)
            except holdfast.RoundFailed:
                continue
            assert holders(site.nodes, lease.name).count(lease.token) >= quorum
            held += 1
            lease.release()  # a lease that is valid by its own clock is never reported lost
        return held

    harming = in_thread(harm)
    working = [in_thread(work, number) for number in range(WORKERS)]
    try:
        assert sum(thread.result() for thread in working) > 0
    finally:
        stop.set()
        harming.result()
        for proxy in site.proxies:
            proxy.heal()
    for number in range(WORKERS):
        with client.lock(f"{name}:{number}", ttl=20, wait=30) as lease:
            assert holders(site.nodes, lease.name).count(lease.token) >= quorum
    until(lambda: client.try_lock(f"{name}:after") is not None)
    client.release_lock(f"{name}:after")
