"""One world's size, speed and misfortunes: drawn from the seed, printed with it."""

from dataclasses import dataclass, replace
from random import Random

from ..core.guard import abstention_ms
from ..core.queue import HEARTBEAT
from ..core.validity import RATE_ERROR, STEP_TOLERANCE, patience, valid_until

FAULTS = (
    "crashes", "rolls", "hangs", "cuts", "breaks", "pauses", "starves", "kills", "deaths",
    "interrupts", "flushes", "swaps", "failovers", "steps", "freezes", "races",
)  # fmt: skip
"""What may befall nodes, connections and clients; each has a flag in the scenario."""

TRAITS = ("deaf", "unheard", "latecomers", "amnesia", "durable", "wild")
"""What else a world may be like, all the time."""

WAITERS_LEASE = 3.0
"""Seconds after which nodes count a waiter as dead that has not spoken: LEASE in `queue.lua`."""

RACING = 1.05
"""How fast a clock runs that is beyond what clocks are allowed."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world's size, speed and misfortunes."""

    nodes: int = 3
    clients: int = 3
    ttl: float = 1.0
    max_ttl: float = 0.0
    """The longest ttl that the guard allows for, in seconds; 0 is the ttl itself."""
    node_timeout: float = 0.05
    claim: float = 0.3
    """For how long a lock is reserved for whom it is handed over to, in seconds."""
    delay: float = 0.001
    """Mean one-way delay of a message, in seconds."""
    tail: float = 0.0
    """The part of messages that are ten to fifty times as late."""
    drift: bool = False
    """Clocks run at rates of up to 1 % off true time, most of them at the limit."""
    crashes: bool = False
    rolls: bool = False
    """Nodes are restarted one after the other, as for an upgrade."""
    hangs: bool = False
    cuts: bool = False
    breaks: bool = False
    pauses: bool = False
    starves: bool = False
    """Keepers alone are paused, and not their workers."""
    kills: bool = False
    deaths: bool = False
    """Workers' threads end while they have a lease; their process lives on."""
    interrupts: bool = False
    deaf: bool = False
    """Some clients may not be called, by some nodes or all: they ask again and again."""
    unheard: bool = False
    """Calls get lost, on connections that hold."""
    latecomers: bool = False
    """All clients but the first begin in the midst of it all, and know nothing."""
    amnesia: bool = False
    """Nodes that come back have lost their last writes, have an older memory, or none."""
    flushes: bool = False
    """Everything is deleted on a node."""
    swaps: bool = False
    """A node's database is swapped with another one."""
    failovers: bool = False
    """A replica that lags behind takes over, and sometimes the first one again after it."""
    steps: bool = False
    """Some nodes' clocks are set: by no more than is tolerated, or so far that it is noticed."""
    freezes: bool = False
    """Some nodes' clocks stand still for a while."""
    races: bool = False
    """Some nodes' clocks run 5 % fast or slow for a while."""
    unsteady: int = 0
    """How many nodes' clocks that may befall."""
    wild: bool = False
    """Nobody's clock can be relied upon: only the laws of fences bind."""
    durable: bool = False
    """Nodes have every write on their disk before they answer: after a restart they vote on.

    Whoever relies on that must not swap their databases, nor let them follow others: a restart
    right after it leaves no trace of that."""
    guard: bool = True
    """Nodes that may have forgotten abstain, and clocks are checked."""

    @property
    def forgets(self) -> bool:
        """True if nodes may lose something from their memory."""
        return self.amnesia or self.flushes or self.swaps or self.failovers

    @property
    def max_ttl_ms(self) -> int:
        """What the guard is told."""
        return int((self.max_ttl or self.ttl) * 1000)

    @property
    def abstention(self) -> float:
        """For how many seconds a node abstains: Q."""
        return abstention_ms(self.max_ttl_ms) / 1000

    @property
    def troubled(self) -> float:
        """For how many seconds things go wrong: ten ttls, and some abstentions."""
        abstentions = 2 * self.abstention if self.forgets or self.unsteady else 0.0
        return 10 * self.ttl + abstentions

    @property
    def healed(self) -> float:
        """After how many further seconds somebody must have acquired the lock.

        Leases end and waiters ask: eight ttls and two seconds. Nodes that have forgotten abstain
        from when they are next asked, which is within a second. Dead waiters are waited for until
        they count as dead.
        """
        abstention = self.abstention + 1 if self.guard else 0.0
        return 8 * self.ttl + 2 + abstention + WAITERS_LEASE + self.claim

    @property
    def served(self) -> float:
        """After how many seconds from then everybody must have, who waits.

        Each of those before it may hold the lock for a ttl, and miss its call by a heartbeat.
        """
        return self.healed + self.clients * (self.ttl + self.claim + HEARTBEAT)

    def __str__(self) -> str:
        on = [name for name in ("drift", *FAULTS, *TRAITS) if getattr(self, name)]
        guard = f"max_ttl {self.max_ttl_ms / 1000:g} s" if self.guard else "no guard"
        unsteady = f" ({self.unsteady} unsteady)" if self.unsteady else ""
        return (
            f"{self.nodes} nodes{unsteady}, {self.clients} clients, ttl {self.ttl:g} s, {guard},"
            f" patience {self.node_timeout * 1000:.0f} ms, claim {self.claim * 1000:.0f} ms, delay"
            f" {self.delay * 1000:.1f} ms (tail {self.tail:.0%}); {', '.join(on) or 'no faults'}"
        )


def draw(random: Random, *, guard: bool = True) -> Scenario:
    """Draw a scenario. Most kinds of faults are in about half of them.

    Without a guard, nodes forget all the same; with it, it is also left out in some of the worlds
    that do not need it.
    """

    def often() -> bool:
        return random.random() < 0.5

    ttl = random.choice((0.3, 0.6, 1.0, 2.0))
    node_timeout = random.choice((0.03, 0.05, 0.2, 0.5))
    # Without a fault a round trip fits into a round: patience is chosen for the network.
    delay = patience(node_timeout, ttl) * random.choice((0.01, 0.05, 0.2))
    scenario = Scenario(
        nodes=random.choice((1, 2, 3, 3, 4, 5, 5)),
        clients=random.choice((2, 2, 3, 3, 4, 4, 5, 6)),
        ttl=ttl,
        max_ttl=ttl * random.choice((1, 1, 1, 2)),
        node_timeout=node_timeout,
        # And so does a call with what it asks for into a claim.
        claim=max(random.choice((0.1, 0.3, 0.3, 1.0)), round(6 * delay, 3)),
        delay=delay,
        tail=random.choice((0.0, 0.01, 0.1)),
        drift=often(),
        crashes=often(),
        hangs=often(),
        cuts=often(),
        breaks=often(),
        pauses=often(),
        kills=often(),
        interrupts=often(),
        rolls=often(),
        starves=often(),
        deaths=often(),
        deaf=random.random() < 0.25,
        unheard=random.random() < 0.25,
        latecomers=random.random() < 0.3,
    )
    chance = random.random()
    if chance < 0.45 or not guard:
        scenario = _forgetful(random, scenario)
    elif chance < 0.6:
        scenario = _with_bad_clocks(random, scenario)
    elif chance < 0.67:
        scenario = replace(scenario, durable=True, crashes=True, flushes=often())
    else:
        scenario = replace(scenario, guard=random.random() < 0.4)
    return scenario if guard else replace(scenario, guard=False)


def _forgetful(random: Random, scenario: Scenario) -> Scenario:
    """Let nodes forget in one way at least; sometimes their clocks are bad, too."""
    kinds = ("amnesia", "flushes", "swaps", "failovers")
    for kind in {random.choice(kinds), random.choice(kinds), "amnesia"}:
        scenario = replace(scenario, **{kind: True})
    scenario = replace(scenario, crashes=True)
    return _with_bad_clocks(random, scenario) if random.random() < 0.2 else scenario


def _with_bad_clocks(random: Random, scenario: Scenario) -> Scenario:
    """Let the clocks of few nodes be bad, so that a quorum of them is right, or all of them."""
    few = (scenario.nodes - 1) // 2
    unsteady = few if few and random.random() < 0.5 else scenario.nodes
    wild = random.random() < 0.35
    racing = random.random() < 0.2
    return replace(
        scenario,
        unsteady=scenario.nodes if wild else unsteady,
        wild=wild,
        guard=not wild or scenario.forgets,
        steps=not racing,
        freezes=not racing and random.random() < 0.5,
        races=racing,
    )


def may_race(ttl: float) -> bool:
    """True if a lease of that ttl stands a clock that runs too fast, unnoticed.

    It is noticed only when it has gone wrong by more than is tolerated. For short leases what is
    tolerated is enough.
    """
    believed = (valid_until(0.0, ttl) - STEP_TOLERANCE) / (1 - RATE_ERROR)
    return believed < ttl / (RACING * (1 + RATE_ERROR))
