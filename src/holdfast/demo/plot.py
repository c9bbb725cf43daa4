"""The plot: how many take part, how long it lasts, and what happens when."""

from dataclasses import dataclass

LOCK = "demo:counter"
"""The name that all workers contend for."""

TTL = 1.5
"""Seconds. Short, so that the audience need not wait long for the killed holder's lease to end. It
is every client's `max_ttl` as well: a node that may have forgotten abstains for 2.53 s."""

PATIENCE = 5 * TTL
"""Seconds for whatever comes by itself: a turn in line, a node's vote. Longer than any of it takes,
also on a busy machine; that it did not come is then a finding."""

DAWDLE = 0.3
"""Seconds that the trapped worker stays between reading and writing, instead of milliseconds."""

KILL_EARLIEST, KILL_LATEST = 0.1, 0.5
"""Seconds after the trapped worker has read. It writes after `DAWDLE`, so it is killed before its
write as often as after it, and which one it was is for the verdict to find out."""

NODE_DOWN = 0.6
"""Seconds. Workers look for a lost node less and less often, so one that is back soon is found and
begins to abstain soon."""


def name_of(worker: int) -> str:
    """Return what a worker's client is called, for whoever looks at the lock."""
    return f"worker {worker}"


@dataclass(frozen=True, slots=True)
class Plot:
    """What the user asked to see."""

    workers: int
    nodes: int
    seconds: float
    locked: bool = True
    """False lets everybody in at once, which shows that the verdict can fail."""

    @property
    def quorum(self) -> int:
        """How many nodes must grant."""
        return self.nodes // 2 + 1

    @property
    def node_dies_after(self) -> float:
        """Seconds from the start until a node is killed."""
        return 0.15 * self.seconds

    @property
    def node_returns_after(self) -> float | None:
        """Seconds from the start until it is started again. Without a lock nobody would ask it."""
        return self.node_dies_after + NODE_DOWN if self.locked else None

    @property
    def holder_dies_after(self) -> float:
        """Seconds from the start until a holder is trapped; the rest is for its successors."""
        return 0.6 * self.seconds
