"""Those who wait in simulated worlds, step by step: who is called, who hears it, and the laws."""

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from holdfast.core.clocks import Clocks
from holdfast.core.outcomes import Acquired, Missed
from holdfast.core.place import Hearing
from holdfast.core.queue import HEARTBEAT
from holdfast.core.tally import quorum_of
from holdfast.testing import SHIPPED, Protocol, Scenario
from holdfast.testing.broken import Broken
from holdfast.testing.client import SimClient
from holdfast.testing.laws import Laws
from holdfast.testing.network import Path
from holdfast.testing.node import SimNode
from holdfast.testing.scenario import draw
from holdfast.testing.world import Clock, WallClock, World
from holdfast.wire.keys import leases_key, queue_key
from holdfast.wire.who import who_of

TTL = 2.0
CLAIM = 0.3


class Crowd:
    """A calm world with some clients; tests say what they do, and read what came of it."""

    def __init__(
        self,
        clients: int = 3,
        nodes: int = 1,
        protocol: Protocol = SHIPPED,
        *,
        deaf: tuple[int, ...] = (),
        lost: float = 0.0,
    ) -> None:
        self.world = World(1, tracing=True)
        self.nodes = [
            SimNode(n, WallClock(self.world, 0.0, 1.0), protocol.lua) for n in range(nodes)
        ]
        self.laws = Laws(self.world, self.nodes, "it")
        self.world.after_event.append(self.laws.check)
        self._terms = partial(protocol.terms, "it", int(TTL * 1000), nodes, 0.1, claim=CLAIM)
        self._protocol = protocol
        self.outcomes: dict[str, object] = {}
        self.clients = [self._client(f"client {n + 1}", deaf, lost) for n in range(clients)]

    def _client(self, name: str, deaf: tuple[int, ...], lost: float) -> SimClient:
        client = SimClient(
            self.world, name, Clock(0.0, 1.0), protocol=self._protocol, terms=self._terms,
            clocks=Clocks(len(self.nodes), quorum_of(len(self.nodes)), trusting=True),
            laws=self.laws, deaf=deaf, lost=lost,
        )  # fmt: skip
        client.connect(self.nodes, lambda: Path(self.world, 0.001, 0.0))
        return client

    def acquire(self, number: int, wait: float | None = None) -> None:
        """Let a client begin to acquire, and go on until it has, or stands in line."""
        name = self.clients[number].name
        done = partial(self.outcomes.__setitem__, name)
        self.clients[number].worker.acquire(self._terms(renewing=False), wait, done)
        self.run(0.1)

    def release(self, number: int) -> None:
        client = self.clients[number]
        flow = self._protocol.release(
            self._terms(), self.token(number), valid_until=1e9, now=client.process.now()
        )
        self._protocol.driver(client.worker.thread).run(flow, lambda _: None)

    def has(self, number: int) -> bool:
        return isinstance(self.outcomes.get(self.clients[number].name), Acquired)

    def token(self, number: int) -> str:
        outcome = self.outcomes[self.clients[number].name]
        assert isinstance(outcome, Acquired)
        return outcome.token

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def run_until(self, true: Callable[[], object], most: float) -> float:
        """Run until something is true; return how long it took."""
        since = self.world.now
        while not true():
            assert self.world.now < since + most
            self.run(0.001)
        return self.world.now - since

    def calls(self) -> list[str]:
        """Who was called by whom, in order."""
        return [line[12:].partition(":")[0] for line in self.world.trace if ": call " in line]

    def keeper(self, number: int) -> list[str]:
        name = self.clients[number].name
        return [call for call in self.calls() if call.startswith(f"{name}'s keeper")]


def in_line(**kind: object) -> Crowd:
    """Let the first client have the lock, and the others wait for it, in order."""
    crowd = Crowd(**kind)  # type: ignore[arg-type]  # its own arguments
    for number in range(len(crowd.clients)):
        crowd.acquire(number)
    assert crowd.has(0)
    crowd.world.trace.clear()
    return crowd


@pytest.mark.parametrize("nodes", [1, 3])
def test_whoever_is_first_is_called_and_nobody_else(nodes: int) -> None:
    crowd = in_line(nodes=nodes)
    crowd.release(0)
    took = crowd.run_until(lambda: crowd.has(1), most=0.1)
    assert took < 0.02, "it was called"
    assert len(crowd.calls()) == len(crowd.keeper(1)) == nodes
    crowd.release(1)
    crowd.run_until(lambda: crowd.has(2), most=0.1)


def test_tokens_say_who_has_them() -> None:
    crowd = in_line(clients=1)
    who = who_of(crowd.token(0))
    assert who is not None
    assert who.address == crowd.clients[0].process.inbox.address


def test_who_is_deaf_polls_in_time() -> None:
    crowd = in_line(nodes=3, deaf=(1,))
    assert crowd.clients[1].process.inbox.hearing is Hearing.POLLS
    crowd.release(0)
    assert crowd.run_until(lambda: crowd.has(1), most=CLAIM) > 0.01
    assert crowd.calls() == []


def test_a_lost_call_costs_a_claim_or_a_heartbeat() -> None:
    crowd = in_line(lost=1.0)
    crowd.release(0)
    crowd.run(0.1)
    assert not crowd.has(1)
    assert len(crowd.keeper(1)) == 1
    crowd.run_until(lambda: crowd.has(1) or crowd.has(2), most=1.2)


def test_a_broken_inbox_is_passed_over_until_it_is_opened_again() -> None:
    crowd = in_line()
    keeper = crowd.clients[1].keeper.thread.channels[0]
    assert keeper.connection is not None
    keeper.connection.break_off(delivered=0)
    crowd.run(0.01)
    crowd.release(0)
    crowd.run_until(lambda: crowd.has(2), most=0.1)
    assert crowd.keeper(1) == []
    crowd.run(0.3)
    crowd.release(2)
    crowd.run_until(lambda: crowd.has(1), most=0.1)


def test_whoever_hears_again_asks_at_once() -> None:
    crowd = in_line(clients=2)
    keeper = crowd.clients[1].keeper.thread.channels[0]
    assert keeper.connection is not None
    keeper.connection.break_off(delivered=0)
    crowd.run(0.01)
    crowd.release(0)
    took = crowd.run_until(lambda: crowd.has(1), most=0.5)
    assert 0.1 < took < 0.3, "as soon as its keeper listens again"


def test_a_cut_holds_calls_back() -> None:
    crowd = in_line(clients=2)
    crowd.clients[1].keeper.thread.channels[0].back.cut_until = crowd.world.now + 0.2
    crowd.release(0)
    assert crowd.run_until(lambda: crowd.has(1), most=0.3) > 0.19


def test_a_paused_client_hears_late() -> None:
    crowd = in_line(clients=2)
    crowd.clients[1].process.pause(0.25)
    crowd.release(0)
    assert crowd.run_until(lambda: crowd.has(1), most=0.3) > 0.24


@pytest.mark.parametrize(("unnoticed", "called"), [(0.0, 0), (5.0, 1)])
def test_a_killed_client_is_called_while_its_node_does_not_know(
    unnoticed: float, called: int
) -> None:
    crowd = in_line()
    crowd.clients[1].kill(unnoticed)
    crowd.run(0.01)
    crowd.release(0)
    took = crowd.run_until(lambda: crowd.has(2), most=HEARTBEAT + CLAIM)
    assert len(crowd.keeper(1)) == called
    assert (took > CLAIM) is bool(called)


def test_a_restarted_node_calls_nobody_before_they_listen_again() -> None:
    crowd = in_line()
    crowd.nodes[0].crash()
    crowd.nodes[0].restart()
    crowd.release(0)
    crowd.run(0.01)
    assert crowd.calls() == []
    crowd.run_until(lambda: crowd.has(1), most=1.2)


# -- the laws -------------------------------------------------------------------------------------


def test_who_waits_in_vain_gives_up_in_time() -> None:
    crowd = Crowd(clients=2)
    crowd.acquire(0)
    crowd.acquire(1, wait=1.0)
    crowd.run(0.85)
    assert crowd.clients[1].name not in crowd.outcomes
    crowd.run(0.2)
    assert isinstance(crowd.outcomes[crowd.clients[1].name], Missed)


def test_it_is_no_law_to_wait_for_the_dead() -> None:
    crowd = in_line()
    crowd.clients[1].kill(10.0)
    crowd.release(0)
    crowd.run_until(lambda: crowd.has(2), most=HEARTBEAT + CLAIM)


def test_whoever_is_served_before_one_who_came_first_breaks_a_law() -> None:
    crowd = in_line()
    wait = next(wait for wait in crowd.laws.line._waits if wait.before)
    with pytest.raises(Broken, match="first come, first served"):
        crowd.laws.line._check_turn(wait)
    crowd.clients[1].process.kill()
    crowd.laws.line._check_turn(wait)


def test_a_node_that_loses_a_waiter_breaks_a_law() -> None:
    crowd = in_line()
    store = crowd.nodes[0].store
    queue, leases = queue_key("it").encode(), leases_key("it").encode()
    last = list(store.scores(queue))[-1]
    for key in (queue, leases):
        store.call(b"ZREM", key, last)
    with pytest.raises(Broken, match="who counts as alive"):
        crowd.run(2.0)


def test_whoever_waits_for_too_long_after_all_was_healed_breaks_a_law() -> None:
    crowd = in_line()
    crowd.run(1.0)
    line, processes = crowd.laws.line, [client.process for client in crowd.clients]
    line.served(processes, since=crowd.world.now, limit=0.5)
    assert line.unserved(processes, since=0.0) == processes[1:]
    with pytest.raises(Broken, match="nobody waits for ever"):
        line.served(processes, since=0.0, limit=0.5)


def test_worlds_have_deaf_clients_lost_calls_and_crowds() -> None:
    worlds = [draw(Random(seed)) for seed in range(60)]
    assert {world.clients for world in worlds} == {2, 3, 4, 5, 6}
    for name in ("deaf", "unheard"):
        assert any(getattr(world, name) and name in str(world) for world in worlds)
    assert "no faults" in str(Scenario())
