"""What goes wrong in a simulated world, and how often: drawn from the seed, printed with it."""

from dataclasses import dataclass
from random import Random

from ..core.validity import patience
from .client import SimClient
from .node import SimNode
from .world import World

FAULTS = (
    "crashes", "rolls", "hangs", "cuts", "breaks", "pauses", "starves", "kills", "deaths",
    "interrupts",
)  # fmt: skip
"""What may befall nodes, connections and clients; each has a flag in the scenario."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One world's size, speed and misfortunes."""

    nodes: int = 3
    clients: int = 3
    ttl: float = 1.0
    node_timeout: float = 0.05
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
    amnesia: bool = False
    """Crashed nodes come back empty: outside the assumptions, see SAFETY.md."""

    def __str__(self) -> str:
        on = [name for name in ("drift", *FAULTS, "amnesia") if getattr(self, name)]
        return (
            f"{self.nodes} nodes, {self.clients} clients, ttl {self.ttl:g} s,"
            f" patience {self.node_timeout * 1000:.0f} ms, delay {self.delay * 1000:.1f} ms"
            f" (tail {self.tail:.0%}); {', '.join(on) or 'no faults'}"
        )


def draw(random: Random, *, amnesia: bool) -> Scenario:
    """Draw a scenario. Every kind of fault is in about half of them."""

    def often() -> bool:
        return random.random() < 0.5

    ttl = random.choice((0.3, 0.6, 1.0, 2.0))
    node_timeout = random.choice((0.03, 0.05, 0.2, 0.5))
    return Scenario(
        nodes=random.choice((1, 2, 3, 3, 4, 5, 5)),
        clients=random.randint(2, 4),
        ttl=ttl,
        node_timeout=node_timeout,
        # Without a fault a round trip fits into a round: patience is chosen for the network.
        delay=patience(node_timeout, ttl) * random.choice((0.01, 0.05, 0.2)),
        tail=random.choice((0.0, 0.01, 0.1)),
        drift=often(),
        crashes=often() or amnesia,
        hangs=often(),
        cuts=often(),
        breaks=often(),
        pauses=often(),
        kills=often(),
        interrupts=often(),
        rolls=often(),
        starves=often(),
        deaths=often(),
        amnesia=amnesia,
    )


class Nemesis:
    """Makes the scenario's misfortunes happen, until it is told to stop and heal everything."""

    def __init__(
        self, world: World, scenario: Scenario, nodes: list[SimNode], clients: list[SimClient]
    ) -> None:
        self._world = world
        self._scenario = scenario
        self._nodes = nodes
        self._clients = clients
        self._active = True
        self._rolling = False
        self._faults = [name for name in FAULTS if getattr(scenario, name)]

    def start(self) -> None:
        """Let the first misfortune come."""
        if self._faults:
            self._world.after(self._gap(), self._strike)

    def heal(self) -> None:
        """End all misfortunes; only the dead stay dead."""
        self._active = False
        for node in self._nodes:
            if not node.up:
                node.restart(empty=self._scenario.amnesia)
            node.resume()
        for client in self._clients:
            for channel in client.channels:
                channel.there.heal()
                channel.back.heal()

    def _gap(self) -> float:
        return self._world.random.expovariate(1.0) * self._scenario.ttl * 0.4

    def _length(self) -> float:
        """How long a fault lasts: from a blink to well past a ttl."""
        return self._world.random.choice((0.1, 0.5, 1.0, 2.5)) * self._scenario.ttl

    def _strike(self) -> None:
        if not self._active:
            return
        fault = self._world.random.choice(self._faults)
        getattr(self, f"_{fault}")()
        self._world.after(self._gap(), self._strike)

    def _note(self, line: str) -> None:
        if self._world.tracing:
            self._world.note(f"*** {line}")

    def _crashes(self) -> None:
        node = self._world.random.choice(self._nodes)
        if node.up:
            self._note(f"{node} crashes")
            node.crash()
            self._world.after(self._length(), lambda: self._restart(node))

    def _restart(self, node: SimNode) -> None:
        if self._active and not node.up:
            self._note(f"{node} restarts{' empty' if self._scenario.amnesia else ''}")
            node.restart(empty=self._scenario.amnesia)

    def _rolls(self) -> None:
        """Restart every node, one after the other, each a while after the one before is back."""
        if not self._rolling:
            self._rolling = True
            self._roll(0)

    def _roll(self, number: int) -> None:
        if not self._active or number == len(self._nodes):
            self._rolling = False
            return
        node, away = self._nodes[number], self._scenario.ttl * self._world.random.uniform(0.05, 0.3)
        if node.up:
            self._note(f"{node} is restarted")
            node.crash()
            self._world.after(away, lambda: self._restart(node))
        self._world.after(2 * away, lambda: self._roll(number + 1))

    def _hangs(self) -> None:
        node = self._world.random.choice(self._nodes)
        if node.up:
            self._note(f"{node} hangs")
            node.hang()
            self._world.after(self._length(), lambda: self._resume(node))

    def _resume(self, node: SimNode) -> None:
        if self._active:
            self._note(f"{node} goes on")
            node.resume()

    def _cuts(self) -> None:
        """Cut a client off from some nodes, or only one of its threads, one way or both ways."""
        random, until = self._world.random, self._world.now + self._length()
        client, ways = random.choice(self._clients), random.choice(("there", "back", "both"))
        threads = client.process.threads
        threads = threads if random.random() < 0.6 else [random.choice(threads)]
        for node in self._nodes:
            if random.random() > 0.6:
                continue
            for channel in (thread.channels[node.number] for thread in threads):
                self._note(f"{channel} is cut ({ways})")
                if ways != "back":
                    channel.there.cut_until = until
                if ways != "there":
                    channel.back.cut_until = until

    def _breaks(self) -> None:
        random = self._world.random
        channel = random.choice(random.choice(self._clients).channels)
        if channel.connection is not None and not channel.connection.broken:
            self._note(f"{channel} breaks")
            under_way = len(channel.connection.under_way)
            channel.connection.break_off(delivered=random.randint(0, under_way))

    def _pauses(self) -> None:
        client = self._world.random.choice(self._clients)
        self._note(f"{client.name} is paused")
        client.process.pause(self._length())

    def _starves(self) -> None:
        client = self._world.random.choice(self._clients)
        self._note(f"{client.name}'s keeper is paused")
        client.keeper.thread.starve(self._length())

    def _kills(self) -> None:
        """Kill a client; the first one is spared, so that somebody is there to make progress."""
        client = self._world.random.choice(self._clients)
        if client is not self._clients[0] and self._world.random.random() < 0.2:
            self._note(f"{client.name} is killed")
            client.process.kill()

    def _deaths(self) -> None:
        worker = self._world.random.choice(self._clients).worker
        worker.thread.when_awake(worker.die)

    def _interrupts(self) -> None:
        client = self._world.random.choice(self._clients)
        self._note(f"{client.name} is interrupted")
        client.worker.thread.when_awake(client.worker.interrupt)
