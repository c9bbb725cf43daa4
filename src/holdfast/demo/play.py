"""The play: performs the plot on the stage, and shows it to the view."""

import random
from collections.abc import Callable

from holdfast.drivers.clock import now

from .events import Event
from .evidence import Evidence, gather
from .plot import KILL_EARLIEST, KILL_LATEST, PATIENCE, Plot
from .scene import Scene
from .stage import Stage
from .view import View

_TICK = 0.04
"""Seconds: how long to listen before looking at the clock again."""

_START_LIMIT = 15.0
"""Seconds for all workers to start, on a busy machine."""

_TRAPS = 3
"""How often to lay the trap. On a very busy machine the catch may get away."""


class Interrupted(Exception):
    """The user does not want to see the rest."""


class Play:
    """One performance."""

    def __init__(
        self, plot: Plot, stage: Stage, view: View, interrupted: Callable[[], bool]
    ) -> None:
        self._plot = plot
        self._stage = stage
        self._view = view
        self._interrupted = interrupted
        self._scene = Scene(plot, now())
        self._happened: list[Event] = []

    def perform(self) -> Evidence:
        """Perform the plot and return the evidence. Raises `Interrupted`."""
        self._open()
        self._until_time(self._plot.node_dies_after)
        self._lose_a_node()
        self._until_time(self._plot.holder_dies_after)
        self._kill_a_holder()
        self._until_time(self._plot.seconds)
        self._until(lambda: self._scene.recovered and not self._scene.nodes_returning, PATIENCE)
        self._close()
        return gather(self._happened, self._stage.read_counter())

    def _open(self) -> None:
        self._scene.nodes_up(now())
        self._stage.start_workers()
        self._until(lambda: not self._scene.unready, _START_LIMIT)
        self._scene.begin(now())
        self._stage.begin()

    def _close(self) -> None:
        self._scene.send_home(now())
        self._stage.send_home()
        self._until(lambda: self._stage.is_empty, PATIENCE)
        self._turn()  # what the last one said

    def _lose_a_node(self) -> None:
        """Kill a node, and start it again without its memory."""
        killed = self._stage.kill_node()
        self._note(killed)
        if self._plot.node_returns_after is not None:
            self._until_time(self._plot.node_returns_after)
            self._note(self._stage.restart_node(killed.node))

    def _kill_a_holder(self) -> None:
        """Trap a worker inside and kill it at a random moment of its stay."""
        for _ in range(_TRAPS):
            self._stage.lay_trap()
            self._until(lambda: self._scene.trapped is not None, PATIENCE)
            if self._scene.trapped is None:
                return  # nobody comes in any more, which the verdict will not miss
            moment = random.uniform(KILL_EARLIEST, KILL_LATEST)
            self._until(lambda: self._scene.trapped is None, moment)
            caught = self._scene.trapped
            if caught is not None:
                self._note(self._stage.kill_worker(caught))
                return

    def _until_time(self, after: float) -> None:
        """Go on until `after` seconds from the start."""
        self._until(lambda: False, self._scene.started + after - now())

    def _until(self, condition: Callable[[], bool], limit: float) -> None:
        """Go on until the condition holds, `limit` seconds at most."""
        deadline = now() + limit
        while not condition() and (left := deadline - now()) > 0:
            self._turn(min(left, _TICK))

    def _turn(self, patience: float = 0.0) -> None:
        """Listen, take note, and show."""
        if self._interrupted():
            raise Interrupted
        for event in self._stage.listen(patience):
            self._note(event)
        self._view.show(self._scene, now())

    def _note(self, event: Event) -> None:
        self._happened.append(event)
        self._scene.note(event)
