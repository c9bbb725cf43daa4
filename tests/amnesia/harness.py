"""Leases, contenders and a loss of memory, on real servers; and what must hold afterwards.

A *trial* takes a lock with one client (the victim), lets others, blocking and asyncio, contend for
it all the time, lets nodes forget, and watches who gets the lock when. All clients are in one
process, so that all their times are on one clock:

- **X** no two leases are valid at the same time
- **T** a lease that was asked for after another was granted has a greater fence, and no two have
  the same
- **L** the lock can be had again, no later than `Q`, the ttl and some slack after the nodes forgot

A trial runs with the restart guard, where all of this must hold, or without: then it is plain
Redlock, and the same trial must see two valid leases.
"""

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Protocol

import holdfast
from holdfast.drivers.clock import now
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.actor import ACTORS, BlockingActor
from rig.servers import holders
from rig.waiting import until

MAX_TTL = 1.0
"""Seconds. Long enough for servers to be restarted meanwhile, short enough to wait for its end."""

LONG_TTL = 30.0
"""Seconds. Without a guard nobody waits for the victim's end; it should be seen to be far."""

SLACK = 15.0
"""Seconds. What a busy machine may take for everything that is not waiting."""

SOON = 0.3
"""Seconds. A node that has not executed its part of a round by then was left out of it."""

CONTENDERS = 4

PAUSE = 0.01
"""Seconds between two tries of a contender: often, and yet other threads must get their turns."""

CALM = 5.0
"""A node timeout that only a hung node uses up."""


def abstention(max_ttl: float) -> float:
    """Return Q: for how many seconds a node that may have forgotten abstains."""
    return max_ttl * 1.02 + 1.0


@dataclass(frozen=True, slots=True)
class Stay:
    """One lease, as its holder saw it, in seconds on our own clock."""

    who: str
    asked: float
    since: float
    """When it was had at the latest."""
    until: float
    """Until when its holder certainly relied on it."""
    fence: int


@dataclass
class Witness:
    """Who had the lock, and when."""

    stays: list[Stay] = field(default_factory=list)

    def overlaps(self) -> list[tuple[Stay, Stay]]:
        """Return the pairs of leases that were valid at the same time."""
        pairs = combinations(sorted(self.stays, key=lambda stay: stay.since), 2)
        return [(one, two) for one, two in pairs if two.since < one.until]

    def inversions(self) -> list[tuple[Stay, Stay]]:
        """Return the pairs of leases whose fences are equal, or not in the order of the leases."""
        pairs = combinations(sorted(self.stays, key=lambda stay: stay.asked), 2)
        return [
            (one, two)
            for one, two in pairs
            if one.fence == two.fence or (one.since < two.asked and one.fence > two.fence)
        ]

    def check(self) -> None:
        """Fail unless X and T hold."""
        assert not self.overlaps(), "two leases at once"
        assert not self.inversions(), "fences that do not rise"


class Granted(Protocol):
    """A lease of a client of any colour."""

    @property
    def valid_for(self) -> float: ...
    @property
    def fence(self) -> int: ...
    def release(self) -> holdfast.Released: ...


def stay_of(who: str, asked: float, lease: Granted) -> Stay:
    """Return the stay of a lease that was just granted, if it is neither renewed nor released."""
    since = now()
    return Stay(who, asked, since, since + lease.valid_for, lease.fence)


class Contenders:
    """Threads that try to get a lock all the time, and write down when they had it."""

    def __init__(
        self,
        actors: Sequence[Any],
        name: str,
        witness: Witness,
        *,
        count: int = CONTENDERS,
        ttl: float = MAX_TTL,
        pause: float = PAUSE,
    ) -> None:
        self.witness = witness
        self.tries = [0] * count
        self._actors = actors
        self._name = name
        self._ttl = ttl
        self._pause = pause
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="contender")
        self._running: list[Future[None]] = [
            self._pool.submit(self._contend, number) for number in range(count)
        ]

    def have_all_tried(self) -> None:
        """Wait until each of them has tried once more."""
        before = list(self.tries)
        until(lambda: all(one > two for one, two in zip(self.tries, before, strict=True)))

    def stop(self) -> None:
        """End them; what they came upon unexpectedly is raised here."""
        self._stop.set()
        self._pool.shutdown()
        for each in self._running:
            each.result()

    def _contend(self, number: int) -> None:
        actor = self._actors[number % len(self._actors)]
        while not self._stop.wait(self._pause):
            asked = now()
            with contextlib.suppress(holdfast.RoundFailed):
                lease = actor.try_acquire(self._name, ttl=self._ttl, renew=False)
                if lease is not None:
                    self._stay(f"contender {number}", asked, lease)
            self.tries[number] += 1

    def _stay(self, who: str, asked: float, lease: Granted) -> None:
        stay = stay_of(who, asked, lease)
        self._stop.wait(self._pause)
        end = min(stay.until, now())
        with contextlib.suppress(holdfast.LeaseLost):
            lease.release()
        self.witness.stays.append(Stay(who, asked, stay.since, end, stay.fence))


@dataclass(frozen=True)
class Event:
    """A way to forget, for three nodes."""

    name: str
    strike: Callable[["Site"], None]
    """Make nodes forget."""
    prepare: Callable[["Site"], None] = lambda site: None
    """What has to happen before the lock is taken."""
    config: Sequence[str] = ()
    """What the servers are told."""
    tcp: bool = False
    """Whether they listen on ports as well."""
    unseen: Sequence[int] = ()
    """The nodes that the victim cannot reach."""
    majority: bool = True
    """Whether so many nodes forget that nobody may be granted anything for Q."""
    max_ttl: float = MAX_TTL
    """The victim's ttl, with a guard."""

    def __str__(self) -> str:
        return self.name


class Site:
    """The nodes of a trial, and whatever else an event needs."""

    def __init__(
        self,
        nodes: Sequence[ThrowawayNode],
        stack: contextlib.ExitStack,
        *,
        guard: bool,
        max_ttl: float,
    ) -> None:
        self.nodes = nodes
        self.guard = guard
        self.max_ttl = max_ttl
        self.struck = 0.0
        """When the nodes last began to forget."""
        self.notes: dict[str, Any] = {}
        """What an event's preparation leaves for its strike."""
        self._stack = stack

    def strike_now(self) -> None:
        """Take note of the time: from now on nodes forget."""
        self.struck = now()

    def spares(self, count: int, *, config: Sequence[str] = ()) -> ThrowawayNodes:
        """Start further servers."""
        return self._stack.enter_context(ThrowawayNodes(count, config=config, tcp=True))

    def connect(self, *urls: str) -> holdfast.Client:
        """Connect to the nodes, or to others."""
        client: holdfast.Client = self._actor(BlockingActor, urls).client
        return client

    def actors(self) -> list[Any]:
        """Connect to the nodes with a client of every colour."""
        return [self._actor(make, ()) for make in ACTORS.values()]

    def _actor(self, make: Callable[..., Any], urls: Sequence[str]) -> Any:
        nodes = urls or [node.url for node in self.nodes]
        terms = {"ttl": self.max_ttl, "max_ttl": self.max_ttl} if self.guard else {}
        actor = make(*nodes, guard=self.guard, node_timeout=CALM, **terms)
        self._stack.callback(actor.close)
        return actor


class Trial:
    """One event, with or without a guard."""

    def __init__(self, event: Event, site: Site, name: str) -> None:
        self.event = event
        self.site = site
        self.witness = Witness()
        self._name = name

    def run(self) -> None:
        """Take the lock, let nodes forget, and wait until somebody else has it."""
        ttl = self.site.max_ttl if self.site.guard else LONG_TTL
        actors = self.site.actors()
        self.event.prepare(self.site)
        lease = self._hold(ttl)
        contenders = Contenders(actors, self._name, self.witness, ttl=ttl)
        try:
            contenders.have_all_tried()
            self.event.strike(self.site)
            within = abstention(self.site.max_ttl) + self.site.max_ttl + SLACK  # L
            until(lambda: len(self.witness.stays) > 1, within=within, what="for the lock")
            if self.site.guard:
                until(lambda: len(self.witness.stays) > 2 * CONTENDERS)
        finally:
            contenders.stop()
        del lease

    def _hold(self, ttl: float) -> holdfast.Lease:
        urls = [
            f"{node.url}.nowhere" if number in self.event.unseen else node.url
            for number, node in enumerate(self.site.nodes)
        ]
        seen = [node for node in self.site.nodes if node.url in urls]
        asked = now()
        lease = hold(self.site.connect(*urls), seen, self._name, ttl=ttl, renew=False)
        self.witness.stays.append(stay_of("victim", asked, lease))
        return lease

    @property
    def successor(self) -> Stay:
        """Who had the lock next."""
        return min(self.witness.stays[1:], key=lambda stay: stay.since)

    def check(self) -> None:
        """Fail unless everything was as it must be."""
        if self.site.guard:
            self.witness.check()
            if self.event.majority:
                waited = self.successor.since - self.site.struck
                assert waited >= abstention(self.site.max_ttl), "somebody was granted too early"
        else:
            victim = self.witness.stays[0]
            assert (victim, self.successor) in self.witness.overlaps(), "nobody noticed"


def try_out(
    event: Event, name: str, *, guard: bool, nodes: Sequence[ThrowawayNode] | None = None
) -> None:
    """Run one trial, on nodes of its own unless they are given, and check it."""
    with contextlib.ExitStack() as stack:
        if nodes is None:
            nodes = stack.enter_context(ThrowawayNodes(3, config=event.config, tcp=event.tcp))
        trial = Trial(event, Site(nodes, stack, guard=guard, max_ttl=event.max_ttl), name)
        trial.run()
        trial.check()


def hold(
    client: holdfast.Client, nodes: Sequence[ThrowawayNode], name: str, **terms: Any
) -> holdfast.Lease:
    """Acquire a lock on every one of these nodes: a round itself waits for a quorum only."""
    lock = client.lock(name, wait=SLACK, **terms)

    def try_to() -> holdfast.Lease | None:
        lease = lock.acquire()
        with contextlib.suppress(AssertionError):
            until(lambda: holders(list(nodes), name) == [lease.token] * len(nodes), within=SOON)
            return lease
        lease.release()
        return None

    lease = until(try_to, what="for all nodes")
    assert lease is not None
    return lease


def restart(nodes: Sequence[ThrowawayNode]) -> None:
    """Kill nodes, all of them before the first one is back, and start them again."""
    for node in nodes:
        node.kill()
    start(nodes)


def start(nodes: Sequence[ThrowawayNode]) -> None:
    """Start nodes that are down."""
    for node in nodes:
        node.start(wait=False)
    until(lambda: all(node.call("PING") == "PONG" for node in nodes))
