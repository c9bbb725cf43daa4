"""One node as the audience sees it: up, killed, back and abstaining, up again."""

from dataclasses import dataclass, field
from enum import Enum

from . import events
from .events import NodeNews


class NodeState(Enum):
    """What can be expected of a node."""

    UP = "up"
    KILLED = "killed"
    STARTING = "starting"
    ABSTAINING = "abstaining"


@dataclass(slots=True)
class Node:
    """What a node has been through."""

    number: int
    turns: list[tuple[NodeState, float]] = field(default_factory=list)
    """What it became, and when. Before that it was up."""
    abstains_until: float = 0.0
    """When it will vote, by its own last word."""

    @property
    def state(self) -> NodeState:
        """What it is now."""
        return self.turns[-1][0] if self.turns else NodeState.UP

    @property
    def returning(self) -> bool:
        """True if it was started again and does not vote yet."""
        return self.state in (NodeState.STARTING, NodeState.ABSTAINING)

    def note(self, event: NodeNews) -> bool:
        """Take in what happened; true if it is something else than before."""
        before = self.state
        match event:
            case events.NodeKilled():
                state = NodeState.KILLED
            case events.NodeRestarted():
                state = NodeState.STARTING
            case events.NodeAbstains():
                state = NodeState.ABSTAINING
                self.abstains_until = event.at + event.left
            case events.NodeVotes():
                state = NodeState.UP
        if state is before:
            return False
        self.turns.append((state, event.at))
        return True
