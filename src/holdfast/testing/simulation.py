"""Run one seed: draw a scenario, let it happen, heal it, and see that the laws were kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from .client import SimClient
from .faults import Nemesis, Scenario, draw
from .laws import Broken, Laws
from .network import Path
from .node import SimNode
from .protocol import SHIPPED, Protocol
from .world import Clock, World

NAME = "the lock"
TROUBLED = 10
"""For how many ttls things go wrong."""
HEALED = 8
"""After how many further ttls somebody must have acquired the lock: leases end, waiters ask."""
RATE_ERROR = 0.01
"""The clocks' largest rate error: the assumption that core.validity relies on."""


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
    amnesia: bool = False,
    tracing: bool = False,
) -> Run:
    """Run one seed to its end, or to the first broken law.

    `protocol` says which flows are run: the shipped ones, or others in their place. `scenario` says
    what may go wrong; without one it is drawn from the seed, and `amnesia` lets it have nodes that
    restart empty. The same arguments give the same history. An exception that a flow raises by
    itself ends the run, with the seed in a note.
    """
    world = World(seed, tracing=tracing)
    scenario = scenario or draw(world.random, amnesia=amnesia)
    nodes = [
        SimNode(world, number, _clock(world, scenario), protocol.lua)
        for number in range(scenario.nodes)
    ]
    laws = Laws(world, nodes, NAME)
    terms = partial(
        protocol.terms, NAME, int(scenario.ttl * 1000), scenario.nodes, scenario.node_timeout
    )
    clients = [
        SimClient(
            world,
            f"client {number + 1}",
            _clock(world, scenario),
            protocol=protocol,
            terms=terms,
            laws=laws,
        )
        for number in range(scenario.clients)
    ]
    for client in clients:
        client.connect(nodes, lambda: Path(world, scenario.delay, scenario.tail))
        world.after(world.random.random() * scenario.ttl, client.worker.start)
    world.after_event.append(laws.check)
    nemesis = Nemesis(world, scenario, nodes, clients)
    broken = None
    try:
        nemesis.start()
        world.run(TROUBLED * scenario.ttl)
        nemesis.heal()
        since = laws.acquired
        world.run((TROUBLED + HEALED) * scenario.ttl + 2)
        laws.progressed(since)
    except Broken as law:
        broken = str(law)
        if tracing:
            world.note(f"BROKEN {broken}")
    except Exception as error:
        error.add_note(f"in the world of seed {seed}: {scenario}")
        raise
    return Run(seed, scenario, broken, laws.acquired, laws.renewed, laws.lost, tuple(world.trace))


def first_broken(
    protocol: Protocol = SHIPPED,
    seeds: Iterable[int] = range(200),
    *,
    scenario: Scenario | None = None,
    amnesia: bool = False,
) -> Run | None:
    """Return the first run, with its trace, in which a law is broken; None if all are kept.

    That no law is broken in 200 worlds proves nothing; most planted bugs are found in fewer.
    """
    for seed in seeds:
        if simulate(seed, protocol, scenario=scenario, amnesia=amnesia).broken:
            return simulate(seed, protocol, scenario=scenario, amnesia=amnesia, tracing=True)
    return None


def _clock(world: World, scenario: Scenario) -> Clock:
    rate = world.random.choice((-1.0, -1.0, 0.0, 1.0, 1.0)) if scenario.drift else 0.0
    return Clock(offset=world.random.uniform(0, 1e6), rate=1 + RATE_ERROR * rate)
