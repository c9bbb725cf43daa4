"""The exploration itself: it visits all, finds what is nearest, and takes names for names."""

import random

import pytest
from model.exclusion import Exclusion
from model.explore import Model, Move, State, Step, explore, find
from model.fences import Rules as FenceRules
from model.guard import Rules
from model.ordering import Ordering


class Walk:
    """A walk on a board, in steps of one; two pieces that look alike."""

    start: State = (0, 0)

    def __init__(self, size: int, forbidden: State | None = None) -> None:
        self.size, self.forbidden = size, forbidden

    def moves(self, state: State) -> list[Step]:
        x, y = state
        found = [(("x", 0, 0), (x + 1, y)), (("y", 0, 0), (x, y + 1))]
        return [(move, after) for move, after in found if max(after) < self.size]

    def canonical(self, state: State) -> State:
        return min(state, state[::-1])

    def broken(self, state: State) -> str | None:
        return "forbidden" if state == self.forbidden else None

    def tell(self, before: State, move: Move, after: State) -> str:
        return f"{move[0]} from {before} to {after}"

    def show(self, state: State) -> str:
        return str(state)


def test_every_state_is_visited_once() -> None:
    explored = explore(Walk(10))
    assert (explored.states, explored.broken) == (55, None)


def test_a_counter_example_is_a_shortest_one_and_its_names_stay() -> None:
    explored = explore(Walk(10, forbidden=(2, 3)))
    assert explored.broken == "forbidden"
    assert explored.trace is not None
    assert len(explored.trace.steps) == 5
    assert sorted(explored.trace.end) == [2, 3]
    state = explored.trace.start
    for step in explored.trace.steps:
        assert step in Walk(10).moves(state)
        state = step[1]


def test_what_cannot_happen_is_not_found() -> None:
    walk = Walk(4)
    assert find(walk, lambda _before, _move, after: sum(after) == 6)
    assert find(walk, lambda _before, _move, after: sum(after) == 7) is None


@pytest.mark.parametrize(
    "model",
    [Exclusion(Rules(), amnesias=2), Exclusion(Rules(reads_run_inside=False), amnesias=1)],
)
def test_names_of_nodes_and_clients_make_no_difference(model: Exclusion) -> None:
    def renamed(state: State) -> State:
        spare, a, b, *nodes = state
        rng.shuffle(nodes)
        if rng.random() < 0.5:
            exchanged = model._exchanged
            return (spare, b, a, *(exchanged[node] for node in nodes))
        return (spare, a, b, *nodes)

    rng = random.Random(1)
    _compare(model, renamed, rng)


def test_names_of_nodes_make_no_difference_to_fences() -> None:
    def renamed(state: State) -> State:
        nodes = list(state[2:])
        rng.shuffle(nodes)
        return (*state[:2], *nodes)

    rng = random.Random(1)
    _compare(Ordering(FenceRules(leases=2, forgets=True)), renamed, rng)


def _compare(model: Model, renamed: object, rng: random.Random) -> None:
    """Walk at random; whatever can happen to a state can happen to the renamed one."""
    assert callable(renamed)
    state, changed = model.start, 0
    for _ in range(3000):
        other = renamed(state)
        changed += other != state
        assert model.canonical(other) == model.canonical(state)
        assert _after(model, other) == _after(model, state)
        assert (model.broken(other) is None) == (model.broken(state) is None)
        steps = model.moves(state)
        state = rng.choice(steps)[1] if steps else model.start
    assert changed > 500


def _after(model: Model, state: State) -> set[State]:
    return {model.canonical(after) for _, after in model.moves(state)}
