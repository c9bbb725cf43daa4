"""One simulated client and its keeper, step by step: what is said, and what the nodes hear."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from holdfast.core.clocks import Clocks
from holdfast.core.outcomes import Acquired, LossReason, Lost, Released
from holdfast.core.tally import quorum_of
from holdfast.testing import SHIPPED, Protocol
from holdfast.testing.broken import Broken
from holdfast.testing.client import SimClient
from holdfast.testing.laws import Laws
from holdfast.testing.lease import Owner, SimLease
from holdfast.testing.mutants import mutants
from holdfast.testing.network import Path
from holdfast.testing.node import SimNode
from holdfast.testing.world import Clock, WallClock, World
from holdfast.wire.keys import lock_key

TTL = 1.0
RETAKES = next(mutant for mutant in mutants() if mutant.name == "renew after release").protocol.lua
"""Nodes that take the renewal of a free lock for a request."""


class Stage:
    """A calm world with one client; tests say what happens, and read what happened."""

    def __init__(self, nodes: int = 1, protocol: Protocol = SHIPPED) -> None:
        self.world = World(1, tracing=True)
        self.nodes = [
            SimNode(n, WallClock(self.world, 0.0, 1.0), protocol.lua) for n in range(nodes)
        ]
        self.laws = Laws(self.world, self.nodes, "it")
        self.world.after_event.append(self.laws.check)
        self._terms = partial(protocol.terms, "it", int(TTL * 1000), nodes, 0.1)
        self.client = SimClient(
            self.world, "client", Clock(0.0, 1.0), protocol=protocol, terms=self._terms,
            clocks=Clocks(nodes, quorum_of(nodes), trusting=True), laws=self.laws,
        )  # fmt: skip
        self.client.connect(self.nodes, lambda: Path(self.world, 0.001, 0.0))
        self.owner = Owner()
        self._protocol = protocol
        self._worker = self.client.worker.thread
        self._driver = protocol.driver(self._worker)

    # -- the source of tokens ---------------------------------------------------------------------

    def token(self) -> str:
        return self.client.process.inbox.token()

    def stamp(self) -> int:
        return self._worker.process.clocks.stamp(self.now)

    def chance(self) -> float:
        return self.world.chance()

    # -- what happens -----------------------------------------------------------------------------

    def acquire(self, **terms: object) -> SimLease:
        flow = self._protocol.acquire(self._terms(**terms), self, now=self.now, wait=0.0)
        outcome = self._run(flow)
        assert isinstance(outcome, Acquired)
        holding = self._protocol.holding(
            self._terms(**terms), outcome.token, outcome.valid_until, outcome.fence
        )
        lease = SimLease(holding, self.owner, self.client.keeper.thread)
        self.laws.begin(lease)
        self.client.keeper.keep(lease)
        self.world.trace.clear()
        return lease

    def release(self, lease: SimLease, *, follow: bool = True) -> object:
        holding = lease.holding
        lease.released = holding.release()
        outcome = self._run(
            self._protocol.release(
                holding.terms, lease.token, valid_until=holding.valid_until, now=self.now
            )
        )
        if follow:
            self.client.keeper.follow(lease)
        else:
            self.laws.followed(lease)
        return outcome

    def _run(self, flow: object) -> object:
        ended: list[object] = []
        self._driver.run(flow, ended.append)  # type: ignore[arg-type]  # a protocol's flow
        self.run_until(lambda: ended)
        return ended[0]

    @property
    def now(self) -> float:
        return self._worker.now()

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def run_until(self, true: Callable[[], object], most: float = 10 * TTL) -> None:
        end = self.world.now + most
        while not true():
            assert self.world.now < end
            self.run(0.001)

    def cut(self, *, keeper: bool, seconds: float) -> None:
        thread = self.client.keeper.thread if keeper else self._worker
        for channel in thread.channels:
            channel.there.cut_until = self.world.now + seconds

    def said(self) -> list[str]:
        """What was executed and noted, without times, tokens and scripts that were sent again."""
        lines = [re.sub(" [0-9a-f]{6}(?= |:)", "", line[12:]) for line in self.world.trace]
        lines = [re.sub(r"\d{16}", "now", line) for line in lines]
        return [line for line in lines if "arrives" not in line and "NOSCRIPT" not in line]

    def has(self, lease: SimLease) -> int:
        key = lock_key("it").encode()
        return sum(node.store.value(key) == lease.token.encode() for node in self.nodes)


def test_a_lease_is_kept_for_many_ttls() -> None:
    stage = Stage(nodes=3)
    lease = stage.acquire()
    stage.run(5 * TTL)
    assert lease.is_held()
    assert stage.has(lease) == 3
    assert lease.renewals in (15, 16)
    assert stage.release(lease) is Released.FREED
    assert stage.has(lease) == 0


def test_a_lease_that_is_not_renewed_is_called_endangered_and_lost() -> None:
    stage = Stage()
    lease = stage.acquire(renewing=False)
    stage.run(TTL)
    assert stage.said() == [
        "client's lease: endangered",
        "client's lease: lost (expired)",
        "client's keeper ↔ node 1: release → [1, 0, 0]",
    ]
    assert not lease.is_held()


def test_a_renewal_that_is_overtaken_by_a_release_gets_one_behind_it() -> None:
    stage = Stage()
    lease = stage.acquire()
    stage.run_until(lambda: lease.renewals)
    stage.cut(keeper=True, seconds=0.5)
    stage.run(TTL / 3)
    stage.world.trace.clear()
    assert stage.release(lease) is Released.FREED
    stage.run(TTL)
    assert stage.said() == [
        "client ↔ node 1: release → [1, 0, 0]",
        "client's keeper ↔ node 1: renew → [-1, now, -2]",
        "client's keeper ↔ node 1: release → [-1, 0, -2]",
    ]


def test_the_release_behind_a_renewal_takes_back_what_that_took() -> None:
    stage, lease = overtaken(follow=True)
    stage.run(TTL)
    assert stage.said()[-2:] == [
        "client's keeper ↔ node 1: renew → [1, now, 0]",
        "client's keeper ↔ node 1: release → [1, 0, 0]",
    ]
    assert stage.has(lease) == 0


def test_without_a_release_behind_it_the_law_is_broken() -> None:
    stage, _ = overtaken(follow=False)
    with pytest.raises(Broken, match="released is released"):
        stage.run(TTL)


def overtaken(*, follow: bool) -> tuple[Stage, SimLease]:
    """Release a lease while its renewal is under way to a node that would take it anew."""
    stage = Stage(protocol=replace(SHIPPED, lua=RETAKES))
    lease = stage.acquire()
    stage.run_until(lambda: lease.renewals)
    stage.cut(keeper=True, seconds=0.8)
    stage.run(TTL / 3)
    assert stage.release(lease, follow=follow) is Released.FREED
    return stage, lease


def test_who_is_cut_off_hears_of_the_danger_and_of_the_loss_in_time() -> None:
    stage = Stage(nodes=3)
    lease = stage.acquire()
    stage.run_until(lambda: lease.renewals)
    end = lease.holding.valid_until
    stage.cut(keeper=True, seconds=5 * TTL)
    stage.run_until(lambda: lease.lost)
    assert lease.lost == Lost(LossReason.UNREACHABLE)
    assert stage.now == pytest.approx(end, abs=0.002)
    assert lease.warned_of == end
    assert lease.warned_at <= end - lease.holding.terms.grace + 0.001


def test_a_keeper_that_was_starved_says_so_when_it_wakes() -> None:
    stage = Stage(nodes=3)
    lease = stage.acquire()
    stage.client.keeper.thread.starve(3 * TTL)
    stage.run(2 * TTL)
    assert not lease.is_held()
    assert lease.lost is None
    stage.run(TTL + 0.01)
    assert lease.lost == Lost(LossReason.EXPIRED)


def test_nothing_is_renewed_for_a_dead_owner() -> None:
    stage = Stage(nodes=3)
    lease = stage.acquire()
    stage.run_until(lambda: lease.renewals == 4)
    stage.owner.lives = False
    stage.laws.died(lease)
    stage.run(TTL + 0.02)
    assert lease.lost == Lost(LossReason.OWNER_DIED)
    assert lease.renewals == 4
    assert stage.has(lease) == 0


def test_a_lease_survives_nodes_that_are_restarted_in_turn() -> None:
    stage = Stage(nodes=3)
    lease = stage.acquire()
    for node in stage.nodes * 2:
        node.crash()
        stage.run(0.3 * TTL)
        node.restart()
        stage.run(0.4 * TTL)
    assert lease.is_held()
    assert stage.release(lease) is Released.FREED
