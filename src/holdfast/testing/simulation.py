"""Run one seed: draw a scenario, let it happen, heal it, and see that the laws were kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ..core.guard import Guard
from ..core.tally import quorum_of
from .broken import Broken
from .client import SimClient
from .faults import Nemesis
from .laws import Laws
from .network import Path
from .node import SimNode
from .protocol import SHIPPED, Protocol
from .scenario import Scenario, draw
from .world import Clock, WallClock, World

NAME = "the lock"
ENOUGH = 3
"""After so many acquisitions things have healed."""
RATE_ERROR = 0.01
"""The clocks' largest rate error: the assumption that core.validity relies on."""
WILD_ERROR = 0.4
"""And where nobody's clock can be relied upon."""
LOST_CALLS = 0.4
"""The part of calls that are lost where calls are."""
SPREAD = 0.2
"""How far nodes' clocks are apart at first, in abstentions. They accept a fence that is half an
abstention ahead: so must nodes be of each other that are to agree on one."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a seed went."""

    seed: int
    scenario: Scenario
    broken: str | None
    """Which law was broken and how; None if all were kept."""
    acquired: int
    renewed: int
    """How often a keeper has renewed a lease."""
    lost: int
    """How many leases were called lost."""
    trace: tuple[str, ...]


def simulate(
    seed: int,
    protocol: Protocol = SHIPPED,
    *,
    scenario: Scenario | None = None,
    guard: bool = True,
    outside: bool = False,
    tracing: bool = False,
) -> Run:
    """Run one seed to its end, or to the first broken law.

    `protocol` says which flows are run: the shipped ones, or others in their place. `scenario` says
    what may go wrong; without one it is drawn from the seed, and without a `guard` nodes that have
    forgotten grant again at once: a known hole, which is found. `outside`: look only at what
    clients have in the end, and not at how nodes behave. The same arguments give the same history.
    An exception that a flow raises by itself ends the run, with the seed in a note.
    """
    world = World(seed, tracing=tracing)
    scenario = scenario or draw(world.random, guard=guard)
    nodes = [
        SimNode(number, _wall_clock(world, scenario), protocol.lua)
        for number in range(scenario.nodes)
    ]
    terms_of_guard = Guard(scenario.max_ttl_ms if scenario.guard else 0)
    laws = Laws(
        world, nodes, NAME, guard=terms_of_guard,
        timed=not scenario.wild, fenced=scenario.guard or not scenario.forgets, outside=outside,
    )  # fmt: skip
    spawn = partial(_spawn, world, scenario, protocol, terms_of_guard, laws, nodes)
    clients = [spawn(f"client {number + 1}") for number in range(scenario.clients)]
    for client in clients:
        late = scenario.latecomers and client is not clients[0]
        within = 0.8 * scenario.troubled if late else scenario.ttl
        world.after(world.random.random() * within, client.worker.start)
    world.after_event.append(laws.check)
    nemesis = Nemesis(world, scenario, nodes, clients, spawn)
    broken = None
    try:
        nemesis.start()
        world.run(scenario.troubled)
        nemesis.heal()
        if sum(node.steady for node in nodes) >= quorum_of(len(nodes)):
            _recover(world, scenario, laws, clients)
    except Broken as law:
        broken = str(law)
        if tracing:
            world.note(f"BROKEN {broken}")
    except Exception as error:
        error.add_note(f"in the world of seed {seed}: {scenario}")
        raise
    return Run(seed, scenario, broken, laws.acquired, laws.renewed, laws.lost, tuple(world.trace))


def _spawn(
    world: World,
    scenario: Scenario,
    protocol: Protocol,
    guard: Guard,
    laws: Laws,
    nodes: Sequence[SimNode],
    name: str,
) -> SimClient:
    """Return a new client, which knows nothing of the nodes."""
    ttl_ms, count = int(scenario.ttl * 1000), len(nodes)
    client = SimClient(
        world,
        name,
        Clock(world.random.uniform(0, 1e6), _rate(world, scenario)),
        clocks=protocol.clocks(count, quorum_of(count), trusting=not guard.is_on),
        protocol=protocol,
        terms=partial(
            protocol.terms, NAME, ttl_ms, count, scenario.node_timeout,
            guard=guard, claim=scenario.claim,
        ),
        laws=laws,
        deaf=_deaf_to(world, scenario),
        lost=LOST_CALLS if scenario.unheard else 0.0,
    )  # fmt: skip
    path = partial(Path, world, scenario.delay, scenario.tail)
    client.connect(nodes, path, durable=scenario.durable)
    return client


def _deaf_to(world: World, scenario: Scenario) -> frozenset[int]:
    """Draw which nodes do not let a client hear calls: in a deaf world, all or some, or none."""
    if not scenario.deaf:
        return frozenset()
    part = world.random.choice((0.0, 0.5, 1.0))
    return frozenset(node for node in range(scenario.nodes) if world.random.random() < part)


def _recover(world: World, scenario: Scenario, laws: Laws, clients: Sequence[SimClient]) -> None:
    """See that somebody acquires, after everything has healed, and then everybody."""
    since, healed = laws.acquired, world.now
    living = [client.process for client in clients if client.process.alive]
    while world.now < healed + scenario.healed and laws.acquired < since + ENOUGH:
        world.run(world.now + scenario.ttl)
    laws.progressed(since)
    while world.now < healed + 2 * scenario.served and laws.line.unserved(living, healed):
        world.run(world.now + scenario.ttl)
        laws.line.served(living, healed, scenario.served)


def first_broken(
    protocol: Protocol = SHIPPED,
    seeds: Iterable[int] = range(200),
    *,
    scenario: Scenario | None = None,
    guard: bool = True,
) -> Run | None:
    """Return the first run, with its trace, in which a law is broken; None if all are kept.

    That no law is broken in 200 worlds proves nothing; most planted bugs are found in fewer.
    """
    for seed in seeds:
        if simulate(seed, protocol, scenario=scenario, guard=guard).broken:
            return simulate(seed, protocol, scenario=scenario, guard=guard, tracing=True)
    return None


def _wall_clock(world: World, scenario: Scenario) -> WallClock:
    offset = world.random.uniform(0, SPREAD * scenario.abstention)
    return WallClock(world, offset, _rate(world, scenario))


def _rate(world: World, scenario: Scenario) -> float:
    if scenario.wild and not scenario.guard:  # a guard would have all nodes abstain for ever
        return 1 + WILD_ERROR * world.random.uniform(-1.0, 1.0)
    off = world.random.choice((-1.0, -1.0, 0.0, 1.0, 1.0)) if scenario.drift else 0.0
    return 1 + RATE_ERROR * off
