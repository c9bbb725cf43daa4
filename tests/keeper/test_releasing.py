"""A renewal under way never brings a released lock back, and never costs one that is held."""

import asyncio
import contextlib
import threading
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.embedded import ThrowawayNode
from keeper.conftest import Party, urls
from rig.servers import holders, token_on
from rig.tap import Tap
from rig.tasks import eventually
from rig.waiting import pass_time, until

Make = Callable[..., Party]
Tapped = Callable[[ThrowawayNode], Tap]


def keepers(wire: Tap) -> int:
    """Return which connection is the keeper's: it alone renews."""
    until(lambda: wire.heard("renew"))
    [line] = set(wire.heard("renew"))
    return line


def test_the_release_follows_an_unanswered_renewal(
    lone: ThrowawayNode, tap: Tapped, party: Make, name: str, colour: str
) -> None:
    wire = tap(lone)
    holder = party(colour, wire.url)
    lease = holder.acquire(name, ttl=1)
    line = keepers(wire)
    wire.hold(line)
    sent = len(wire.heard("renew"))
    until(lambda: len(wire.heard("renew")) > sent)  # and not answered
    assert lease.release() is holdfast.Released.FREED
    assert token_on(lone, name) == "", "a worker's connection has released it"
    until(lambda: line in wire.heard("release", lease.token))
    said = [each.verb for each in wire.said if each.line == line and each.token == lease.token]
    assert said[-1] == "release"
    wire.let_go()
    for _ in range(50):
        assert token_on(lone, name) == ""
    pass_time(0.5)
    assert [each.verb for each in wire.said if each.line == line][-1] == "release", "and no more"
    assert token_on(lone, name) == ""


def test_a_renewal_that_waits_for_a_connection_is_not_sent_after_the_release(
    lone: ThrowawayNode, tap: Tapped, party: Make, name: str, colour: str
) -> None:
    wire = tap(lone)
    holder = party(colour, wire.url)
    lease = holder.acquire(name, ttl=1.5)
    lines = wire.lines
    wire.hold_new()  # the keeper's greeting is not answered
    until(lambda: wire.lines > lines)
    lease.release()
    until(lambda: not holder.client._keeper._loop.followed)  # the keeper has heard of it
    wire.let_go()
    other = holder.acquire(f"{name}:other", ttl=0.6)
    until(lambda: wire.heard("renew", other.token))
    assert wire.heard("renew", lease.token) == []
    assert token_on(lone, name) == ""
    other.release()


def test_released_locks_stay_free_under_load(
    three: list[ThrowawayNode], tap: Tapped, party: Make, name: str
) -> None:
    """Many leases, renewed all the time over slow connections, released at any moment."""
    wires = [tap(node) for node in three]
    holder = party("blocking", *(wire.url for wire in wires))
    first = holder.acquire(f"{name}:first", ttl=0.3)
    lines = [keepers(wire) for wire in wires]
    first.release()
    stop, released = threading.Event(), []

    def stutter() -> None:
        while not stop.is_set():
            for wire, line in zip(wires, lines, strict=True):
                wire.hold(line)
            pass_time(0.03)
            for wire in wires:
                wire.let_go()
            pass_time(0.01)

    def work(number: int) -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            lease = holder.acquire(f"{name}:{number}:{turn}", ttl=0.6)
            pass_time(0.05 + 0.05 * ((number + turn) % 6))
            lease.release()
            released.append(lease)

    workers = [threading.Thread(target=stutter)]
    workers += [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for worker in workers:
        worker.start()
    pass_time(1.5)
    stop.set()
    for worker in workers:
        worker.join()
    assert holder.client.stats().renewals > 20
    assert holder.client.stats().lost == 0
    until(lambda: not any(holders(three, lease.name) for lease in released))
    for lease in released:
        for wire in wires:
            said = [each for each in wire.said if each.token == lease.token]
            per_line = {each.line: each.verb for each in said}  # the last thing said on each
            assert "renew" not in per_line.values()
    pass_time(0.3)
    assert not any(holders(three, lease.name) for lease in released)


def test_release_and_renewal_at_the_same_moment(
    healthy: list[ThrowawayNode], party: Make, name: str
) -> None:
    holder = party("blocking", *urls(healthy))
    stats = holder.client.stats

    def work(number: int) -> None:
        for turn in range(12):
            lease = holder.acquire(f"{name}:{number}:{turn}", ttl=0.3)
            until(lambda lease=lease: lease.valid_for < 0.3 * 0.98 - 0.1)  # right when it is due
            assert lease.release() is holdfast.Released.FREED

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert stats().lost == 0
    assert stats().held == 0
    keys = [f"{name}:{number}:{turn}" for number in range(8) for turn in range(12)]
    until(lambda: not any(holders(healthy, key) for key in keys))


def test_a_second_release_leaves_the_first_one_alone(
    lone: ThrowawayNode, tap: Tapped, party: Make, name: str, in_thread: Callable
) -> None:
    """Whoever comes second has nothing to release, and must not let the keeper do it either."""
    wire = tap(lone)
    holder = party("blocking", wire.url)
    lease = holder.acquire(name, ttl=3)
    keeper = keepers(wire)
    [worker] = {1, 2} - {keeper}
    wire.hold(worker)
    first = in_thread(lease.release)
    until(lambda: wire.heard("release"))
    with pytest.raises(holdfast.NotHeld):
        lease.release()
    pass_time(0.1)
    wire.let_go()
    assert first.result(20) is holdfast.Released.FREED
    until(lambda: keeper in wire.heard("release"))
    assert holder.client.stats().lost == 0


# The other loop ends with its connection open: nobody can close a client on a loop that is gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_release_that_was_cancelled_before_it_began(
    lone: ThrowawayNode, tap: Tapped, name: str
) -> None:
    """On a loop that has not met its nodes yet; the lease is still held, and must stay so."""
    wire = tap(lone)
    async with holdfast.aio.connect(wire.url, node_timeout=5) as client:
        lease = await client.lock(name, ttl=0.6, owner=None).acquire()
        await eventually(lambda: client.stats().renewals)
        wire.hold_new()

        async def release() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lease.release(), 0.05)

        await asyncio.to_thread(lambda: asyncio.run(release()))
        wire.let_go()
        assert lease.is_held
        broken = 0
        for _ in range(60):
            broken += token_on(lone, name) != lease.token and lease.is_held
            await asyncio.sleep(0.01)
        await eventually(lambda: not lease.is_held or client.stats().renewals > 2)
        held = lease.is_held
        with contextlib.suppress(holdfast.LeaseError):
            await lease.release()
        assert held
        assert broken == 0, "believed in, and free for others"
