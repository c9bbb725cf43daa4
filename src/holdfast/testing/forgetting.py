"""How nodes forget, in a simulated world: all that befalls their memory."""

from collections.abc import Callable

from .node import Recall, SimNode
from .scenario import Scenario
from .world import World

LOST = (Recall.NOTHING, Recall.TAIL_LOST, Recall.TAIL_LOST, Recall.OLD)
"""What nodes come back with that do not remember everything."""

LAGGING = (Recall.ALL, Recall.TAIL_LOST, Recall.OLD)
"""What replicas have."""


class Forgetting:
    """Takes nodes' memories from them. Not all the time, or nobody would ever get a lock."""

    def __init__(
        self, world: World, scenario: Scenario, nodes: list[SimNode], note: Callable[[str], None]
    ) -> None:
        self._world = world
        self._scenario = scenario
        self._nodes = nodes
        self._note = note
        self._next = 0.0

    def start(self) -> None:
        """Let disks and replicas have copies of the nodes' memories, always a little old."""
        if self._scenario.forgets:
            self._world.after(self._scenario.ttl * 0.25, self._back_up)

    def _back_up(self) -> None:
        for node in self._nodes:
            if node.up:
                node.back_up()
        self._world.after(self._scenario.ttl * 0.25, self._back_up)

    def may_strike(self) -> bool:
        """True if a node may be made to abstain now; the next one has to wait, in most cases."""
        if not self._scenario.guard or self._scenario.durable:
            return True
        if self._world.now < self._next:
            return False
        random = self._world.random
        if random.random() < 0.7:
            self._next = self._world.now + random.expovariate(1.0) * self._scenario.abstention
        return True

    def left(self) -> Recall:
        """Draw what a node that was down comes back with."""
        return self._world.random.choice(LOST) if self._scenario.amnesia else Recall.ALL

    def flushes(self) -> None:
        """Delete everything on a node."""
        node = self._world.random.choice(self._nodes)
        if node.up and self.may_strike():
            self._note(f"{node} is flushed")
            node.flush()

    def swaps(self) -> None:
        """Swap a node's database with another."""
        random = self._world.random
        node, used = random.choice(self._nodes), random.random() < 0.5
        if node.up and self.may_strike():
            self._note(f"{node}'s database is swapped")
            node.swap(used=used, abstention=self._scenario.abstention)
            if random.random() < 0.5:
                later = random.uniform(0.2, 1.5) * self._scenario.abstention
                self._world.after(later, lambda: self._swap_back(node))

    def _swap_back(self, node: SimNode) -> None:
        if node.up:
            self._note(f"{node}'s database is swapped back")
            node.swap(used=False, abstention=self._scenario.abstention)

    def failovers(self) -> None:
        """Let a replica take over, or make a node follow one and promote it again."""
        random = self._world.random
        node, memory = random.choice(self._nodes), random.choice(LAGGING)
        if not node.up or not self.may_strike():
            return
        if random.random() < 0.5:
            self._note(f"{node} follows its replica, and is promoted {memory.value}")
            node.follow(memory)
            return
        self._note(f"{node}'s replica takes over {memory.value}")
        before = node.fail_over(None, memory)
        if random.random() < 0.5:
            later = random.uniform(0.2, 1.5) * self._scenario.abstention
            self._world.after(later, lambda: self._fail_back(node, node.server.run, before))

    def _fail_back(self, node: SimNode, run: str, before: str) -> None:
        """Let the first server take over again, with what it has of the other one's memory."""
        memory = self._world.random.choice(LAGGING)
        if node.up and node.server.run == run:
            self._note(f"{node} is itself again {memory.value}")
            node.fail_over(before, memory)
