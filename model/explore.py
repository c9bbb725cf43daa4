"""Visit every state that a model can reach, nearest first.

A model has a first state and *moves*; whatever can happen next is one of them. All interleavings of
moves are walked through breadth first, so the first broken state found is one of the nearest, and
the way to it a shortest counter-example.

States that differ only in the names of nodes or clients are one: `canonical` picks the one that is
kept. It must be a symmetry of the model: renaming before a move or after it comes to the same, and
no law tells names apart.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

State = tuple[int, ...]
Move = tuple[str, int, int]
"""What happens, to or by whom, and at which node or with which number."""

Step = tuple[Move, State]
"""A move and the state after it."""

Progress = Callable[[int, int], None]
"""Told now and then how many states were found, and how many of them still have to be looked at."""

BEAT = 20_000
"""How many states are looked at between two reports of progress."""


class Model(Protocol):
    """What can be explored."""

    @property
    def start(self) -> State:
        """The first state, in canonical form."""

    def moves(self, state: State) -> list[Step]:
        """Return all that can happen next; nothing that changes nothing."""

    def canonical(self, state: State) -> State:
        """Return the one state that stands for all that differ from it only in names."""

    def broken(self, state: State) -> str | None:
        """Say which law is broken in that state, if one is."""

    def tell(self, before: State, move: Move, after: State) -> str:
        """Say in one sentence what happened."""

    def show(self, state: State) -> str:
        """Return the state in one readable line."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run, from its first state on."""

    start: State
    steps: list[Step] = field(default_factory=list)

    @property
    def end(self) -> State:
        """The state that it leads to."""
        return self.steps[-1][1] if self.steps else self.start


@dataclass(frozen=True, slots=True)
class Explored:
    """What came out."""

    states: int
    """How many were found, names aside."""
    moves: int
    """How many moves were tried."""
    broken: str | None = None
    trace: Trace | None = None
    """A shortest way to the broken state, or to the goal."""


Goal = Callable[[State, Move, State], bool]


def explore(model: Model, *, progress: Progress | None = None) -> Explored:
    """Visit all states, or stop at the first that breaks a law."""
    return _search(model, model.start, None, progress)


def find(model: Model, goal: Goal, *, start: State | None = None) -> Trace | None:
    """Return a shortest run whose last move is what is looked for; None if there is none.

    Goals must not depend on the names of nodes.
    """
    return _search(model, model.start if start is None else start, goal, None).trace


def _search(model: Model, start: State, goal: Goal | None, progress: Progress | None) -> Explored:
    moves, canonical, broken = model.moves, model.canonical, model.broken
    first = canonical(start)
    before: dict[State, State] = {first: first}
    waiting, tried = [first], 0
    while waiting:  # ends: the states of a model are finite, and each waits once
        level, waiting = waiting, []
        for number, state in enumerate(level):
            if progress and number % BEAT == 0:
                progress(len(before), len(level) - number + len(waiting))
            for move, after in moves(state):
                tried += 1
                if goal and goal(state, move, after):
                    path = [*_path(before, state), canonical(after)]
                    return Explored(len(before), tried, trace=_unfold(model, start, path))
                after = canonical(after)
                if after in before:
                    continue
                before[after] = state
                waiting.append(after)
                if not goal and (law := broken(after)):
                    trace = _unfold(model, start, _path(before, after))
                    return Explored(len(before), tried, law, trace)
    return Explored(len(before), tried)


def _path(before: dict[State, State], state: State) -> list[State]:
    path = [state]
    while before[state] != state:  # ends at the first state, which precedes itself
        state = before[state]
        path.append(state)
    return path[::-1]


def _unfold(model: Model, start: State, path: list[State]) -> Trace:
    """Walk along canonical states with names that stay."""
    trace = Trace(start)
    for wanted in path[1:]:
        found = (step for step in model.moves(trace.end) if model.canonical(step[1]) == wanted)
        trace.steps.append(next(found))
    return trace


def story(model: Model, trace: Trace) -> Iterator[str]:
    """Tell a run in numbered lines: what happens, and below it how things stand then."""
    yield f"    {model.show(trace.start)}"
    state = trace.start
    for number, (move, after) in enumerate(trace.steps, 1):
        yield f"{number:3} {model.tell(state, move, after)}"
        yield f"    {model.show(after)}"
        state = after
