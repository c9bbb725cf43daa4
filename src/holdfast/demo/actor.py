"""One worker as the audience sees it."""

from dataclasses import dataclass
from enum import Enum

from . import events
from .timeline import Timeline


class State(Enum):
    """What a worker is doing."""

    STARTING = "starting"
    WAITING = "waiting"
    HOLDING = "holding"
    RESTING = "resting"
    DEAD = "killed"
    HOME = "gone home"


@dataclass(slots=True)
class Actor:
    """What a worker is doing, and has done."""

    number: int
    timeline: Timeline
    state: State = State.STARTING
    since: float = 0.0
    done: int = 0
    stay: events.Inside | None = None
    """Its present stay inside; for a worker that died in there, its last."""
    died: float | None = None

    def turn(self, state: State, at: float) -> None:
        """Note what it does from now on."""
        self.state, self.since = state, at
