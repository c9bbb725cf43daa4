"""What goes wrong in a simulated world, until everything heals."""

from collections.abc import Callable

from .client import SimClient
from .forgetting import Forgetting
from .node import SimNode
from .scenario import FAULTS, Scenario
from .timekeeping import Timekeeping
from .world import World

KILLED = 0.3
"""How likely a client dies that might."""

VANISHED = 0.3
"""How likely its nodes do not notice that for a while: its machine has died with it."""

BLACKOUTS = 0.15
"""The part of crashes that befall all nodes at once, where nodes forget."""


class Nemesis:
    """Makes the scenario's misfortunes happen, until it is told to stop and heal everything."""

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        nodes: list[SimNode],
        clients: list[SimClient],
        spawn: Callable[[str], SimClient],
    ) -> None:
        """Plague these nodes and clients; `spawn` makes more of those."""
        self._world = world
        self._scenario = scenario
        self._nodes = nodes
        self._clients = clients
        self._spawn = spawn
        self._active = True
        self._rolling = False
        self._faults = [name for name in FAULTS if getattr(scenario, name)]
        self._forgetting = Forgetting(world, scenario, nodes, self._note)
        self._timekeeping = Timekeeping(world, scenario, nodes, clients, self._note)

    def start(self) -> None:
        """Let the first misfortune come."""
        self._forgetting.start()
        if self._faults:
            self._world.after(self._gap(), self._strike)

    def heal(self) -> None:
        """End all misfortunes; only the dead stay dead."""
        self._active = False
        for node in self._nodes:
            if not node.up:
                node.restart(self._forgetting.left())
            node.resume()
        self._timekeeping.heal()
        for client in self._clients:
            client.process.inbox.lost = 0.0
            client.worker.is_brief = True
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
        for master in (self, self._forgetting, self._timekeeping):
            if hasattr(master, fault):
                getattr(master, fault)()
        self._world.after(self._gap(), self._strike)

    def _note(self, line: str) -> None:
        if self._world.tracing:
            self._world.note(f"*** {line}")

    # -- nodes ------------------------------------------------------------------------------------

    def crashes(self) -> None:
        """Kill a node, or all of them where that is the worst."""
        random = self._world.random
        victims = [random.choice(self._nodes)]
        if self._scenario.amnesia and random.random() < BLACKOUTS:
            victims = self._nodes
        if self._forgetting.may_strike():
            for node in victims:
                self._crash(node, self._length())

    def _crash(self, node: SimNode, away: float) -> None:
        if node.up:
            self._note(f"{node} crashes")
            node.crash()
            self._world.after(away, lambda: self._restart(node))

    def _restart(self, node: SimNode) -> None:
        if self._active and not node.up:
            memory = self._forgetting.left()
            self._note(f"{node} restarts {memory.value}")
            node.restart(memory)

    def rolls(self) -> None:
        """Restart every node, one after the other, each a while after the one before is back."""
        if not self._rolling and self._forgetting.may_strike():
            self._rolling = True
            self._roll(0)

    def _roll(self, number: int) -> None:
        if not self._active or number == len(self._nodes):
            self._rolling = False
            return
        node, away = self._nodes[number], self._scenario.ttl * self._world.random.uniform(0.05, 0.3)
        self._crash(node, away)
        self._world.after(2 * away, lambda: self._roll(number + 1))

    def hangs(self) -> None:
        """Let a node answer nothing for a while."""
        node = self._world.random.choice(self._nodes)
        if node.up:
            self._note(f"{node} hangs")
            node.hang()
            self._world.after(self._length(), lambda: self._resume(node))

    def _resume(self, node: SimNode) -> None:
        if self._active:
            self._note(f"{node} goes on")
            node.resume()

    # -- connections ------------------------------------------------------------------------------

    def cuts(self) -> None:
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

    def breaks(self) -> None:
        """Break a connection in the midst of whatever is under way."""
        random = self._world.random
        channel = random.choice(random.choice(self._clients).channels)
        if channel.connection is not None and not channel.connection.broken:
            self._note(f"{channel} breaks")
            under_way = len(channel.connection.under_way)
            channel.connection.break_off(delivered=random.randint(0, under_way))

    # -- clients ----------------------------------------------------------------------------------

    def pauses(self) -> None:
        """Stop a client for a while."""
        client = self._world.random.choice(self._clients)
        self._note(f"{client.name} is paused")
        client.process.pause(self._length())

    def starves(self) -> None:
        """Stop a keeper for a while, and not its worker."""
        client = self._world.random.choice(self._clients)
        self._note(f"{client.name}'s keeper is paused")
        client.keeper.thread.starve(self._length())

    def kills(self) -> None:
        """Kill a client; the first one is spared, so that somebody is there to make progress.

        Another one takes its place. Not where clocks are set: a client that knows nothing of a
        node's clock cannot notice that.
        """
        random = self._world.random
        number = random.randrange(len(self._clients))
        client = self._clients[number]
        if number == 0 or random.random() > KILLED or not client.process.alive:
            return
        self._note(f"{client.name} is killed")
        client.kill(self._length() if random.random() < VANISHED else 0.0)
        if self._scenario.wild or not self._scenario.unsteady:
            heir = self._clients[number] = self._spawn(f"{client.name}'s heir")
            self._world.after(self._length(), heir.worker.start)

    def deaths(self) -> None:
        """End a worker's thread."""
        worker = self._world.random.choice(self._clients).worker
        worker.thread.when_awake(worker.die)

    def interrupts(self) -> None:
        """Interrupt whatever a worker is at."""
        client = self._world.random.choice(self._clients)
        self._note(f"{client.name} is interrupted")
        client.worker.thread.when_awake(client.worker.interrupt)
