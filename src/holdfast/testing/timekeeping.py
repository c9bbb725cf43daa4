"""What befalls nodes' clocks, in a simulated world.

A client notices that a clock was set by comparing it with what it knows of it. It cannot notice

- what happened before it knew the clock
- what was undone before it looked: a clock that was set forward and back again
- what is hidden by what it does not know: the clocks' rates, and how long messages took

So within the assumptions, clocks are set by less than is tolerated, and not often; or while every
client that lives knows the clock as it is now, and so far that each of them will notice, whenever
it looks again. In wild worlds they are set at any time and by any amount.

A node that forgets must not have been set back by half an abstention or more since it accepted a
fence: that is as far ahead as it accepts one.
"""

import copy
from collections.abc import Callable, Sequence

from ..core.validity import patience
from .client import SimClient
from .node import SimNode
from .scenario import RACING, Scenario, may_race
from .world import World

LONGEST_ABSENCE = 12
"""Ttls after which every client that lives has looked at a clock again: all that may keep it from
looking, one after the other."""

TOLERATED = 0.04
"""Seconds by which clocks are set without being noticed."""

_LONG_AGO_US = 0


class Timekeeping:
    """Makes clocks go wrong."""

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        nodes: Sequence[SimNode],
        clients: Sequence[SimClient],
        note: Callable[[str], None],
    ) -> None:
        self._world = world
        self._scenario = scenario
        self._clients = clients
        self._note = note
        self._unsteady = world.random.sample(nodes, scenario.unsteady)
        self._wrong: set[SimNode] = set()
        """Whose clock does not run as it should."""
        self._set_at: dict[SimNode, float] = {}
        for node in self._unsteady:
            node.steady = False

    def heal(self) -> None:
        """Let all clocks run, from what they show now."""
        for node in self._unsteady:
            node.clock.run_at(1.0)
        self._wrong.clear()

    def steps(self) -> None:
        """Set a clock, or all that may be wrong, as when they follow one that is."""
        random = self._world.random
        if random.random() < 0.3:
            self._nudge(random.choice(self._unsteady))
            return
        ttl, abstention = self._scenario.ttl, self._scenario.abstention
        scale = random.choice((ttl, abstention)) * random.choice((-1, 1, 1))
        seconds = scale * random.uniform(0.3, 3.0)
        nodes = self._unsteady if random.random() < 0.5 else [random.choice(self._unsteady)]
        for node in nodes:
            self._step(node, seconds)

    def _step(self, node: SimNode, seconds: float) -> None:
        if self._scenario.forgets:
            lowest = node.clock.highest - 0.45 * self._scenario.abstention
            seconds = max(seconds, min(lowest - node.clock.now(), 0.0))
        if node in self._wrong:
            return
        if self._scenario.wild or self._will_be_noticed(node, seconds):
            self._set(node, seconds)

    def _nudge(self, node: SimNode) -> None:
        """Set a clock by no more than is tolerated, once in the life of a lease."""
        seconds = self._world.random.choice((-1.0, 1.0)) * TOLERATED
        if self._world.now >= self._set_at.get(node, 0.0) + 1.2 * self._scenario.ttl:
            self._set_at[node] = self._world.now
            self._set(node, seconds)

    def _set(self, node: SimNode, seconds: float) -> None:
        self._note(f"{node}'s clock is set by {seconds:+.3f} s")
        node.set_clock(seconds)

    def freezes(self) -> None:
        """Let a clock stand still."""
        self._run_wrong(self._world.random.choice(self._unsteady), 0.0)

    def races(self) -> None:
        """Let a clock run too fast or too slow."""
        node, slow = self._world.random.choice(self._unsteady), 2 - RACING
        fast = self._scenario.wild or may_race(self._scenario.ttl)
        self._run_wrong(node, self._world.random.choice((RACING, slow)) if fast else slow)

    def _run_wrong(self, node: SimNode, factor: float) -> None:
        known = self._scenario.wild or all(self._is_known(node, each) for each in self._living())
        if node in self._wrong or not known:
            return
        self._note(f"{node}'s clock runs at {factor:g} times its rate")
        self._wrong.add(node)
        node.clock.run_at(factor)
        length = self._world.random.choice((0.1, 0.5, 1.0, 2.5)) * self._scenario.ttl
        self._world.after(length, lambda: self._run_right(node))

    def _run_right(self, node: SimNode) -> None:
        if node in self._wrong:
            self._note(f"{node}'s clock runs as it should")
            self._wrong.discard(node)
            node.clock.run_at(1.0)

    # -- what clients know ------------------------------------------------------------------------

    def _living(self) -> list[SimClient]:
        return [client for client in self._clients if client.process.alive]

    def _will_be_noticed(self, node: SimNode, seconds: float) -> bool:
        return all(
            self._is_known(node, client) and self._notices(node, client, seconds)
            for client in self._living()
        )

    def _is_known(self, node: SimNode, client: SimClient) -> bool:
        """True if a client knows a node's clock as it is now."""
        clock, now = copy.copy(client.process.clocks.nodes[node.number]), client.process.now()
        clock.trusting = False
        clock.meet(_LONG_AGO_US, now, now)  # if it knows nothing, it would believe that
        return clock.agrees(node.server.now_us(), now, now)

    def _notices(self, node: SimNode, client: SimClient, seconds: float) -> bool:
        """True if a client will notice a step, however late it looks, and however long it takes."""
        clock, now = copy.copy(client.process.clocks.nodes[node.number]), client.process.now()
        clock.trusting = False
        later = LONGEST_ABSENCE * self._scenario.ttl
        shown_us = node.server.now_us() + int((seconds + later) * 1e6)
        longest = patience(self._scenario.node_timeout, self._scenario.ttl)
        return not clock.agrees(shown_us, now + later - longest, now + later)
