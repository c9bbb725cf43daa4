"""What the protocol is for does happen in its models: they do not hold for want of events."""

from model.exclusion import ENDLESS, SITES, Exclusion
from model.explore import Goal, Move, State, Step, Trace, find
from model.fences import Rules as FenceRules
from model.guard import BIT, CLIENTS, FREE, OURS, A, B, Client, Node, Rules
from model.ordering import Ordering

WORLD = Exclusion(Rules(), amnesias=ENDLESS)


class Within(Exclusion):
    """The same world, where only some moves are made, and names stay."""

    def __init__(self, allows: Goal) -> None:
        vars(self).update(vars(WORLD))
        self.allows = allows

    def moves(self, state: State) -> list[Step]:
        return [step for step in super().moves(state) if self.allows(state, *step)]

    def canonical(self, state: State) -> State:
        return state


def test_a_node_abstains() -> None:
    def abstains(before: State, move: Move, after: State) -> bool:
        verb, _, site = move
        return verb == "execute" and _node(before, site).marker != OURS and _until(after, site) > 0

    assert find(WORLD, abstains)


def test_a_lease_is_repaired_and_the_vote_counts() -> None:
    def repairs(before: State, move: Move, after: State) -> bool:
        verb, who, site = move
        if verb != "execute" or _node(before, site).owner != FREE:
            return False
        client, renewed = _client(before, who), _client(after, who)
        return client.renewing and renewed.age == -1 and renewed.valid > client.valid

    trace = _found(find(WORLD, repairs))
    before, (move, after) = trace.steps[-2][1], trace.steps[-1]
    assert "renewal and repairs: granted" in WORLD.tell(before, move, after)


def test_a_lease_outlives_the_restarts_of_all_nodes_in_turn() -> None:
    """It stays valid; every node forgets it, abstains, and has it again before the next one."""

    def keeps(before: State, move: Move, after: State) -> bool:
        was, still = _client(before, A).valid > 0, _client(after, A).valid > 0
        return move[0] != "forget" and (still or not was)

    def everywhere(_before: State, _move: Move, after: State) -> bool:
        return all(node.owner == A and node.until == 0 for node in _nodes(after))

    world = Within(keeps)
    state = _found(find(world, everywhere)).end
    for site in SITES:
        state = _emptied(state, site)
        assert _node(state, site).owner == FREE
        state = _found(find(world, everywhere, start=state)).end
    assert _client(state, A).valid


def test_a_key_that_survived_a_restart_is_renewed_while_its_node_abstains() -> None:
    def renews(before: State, move: Move, after: State) -> bool:
        verb, who, site = move
        if verb != "execute" or not _until(before, site):
            return False
        return _node(before, site).owner == who and _node(after, site).left > 0

    assert find(WORLD, renews)


def test_the_lock_is_granted_again_after_all_nodes_have_abstained() -> None:
    def all_abstain(_before: State, _move: Move, after: State) -> bool:
        return all(node.until > 0 for node in _nodes(after))

    silent = _found(find(WORLD, all_abstain)).end
    trace = _found(find(WORLD, _someone_wins, start=silent))
    ticks = sum(1 for move, _ in trace.steps if move[0] == "tick")
    assert ticks == WORLD.rules.ttl, "and not before that"


def test_a_lease_ends_by_itself_and_the_other_client_has_the_next() -> None:
    def unreleased(_before: State, move: Move, _after: State) -> bool:
        return move[0] not in ("leave", "forget")

    world = Within(unreleased)
    first = _found(find(world, lambda _b, _m, after: _client(after, A).valid > 0)).end
    assert find(world, lambda _b, _m, after: _client(after, B).valid > 0, start=first)


def test_both_clients_have_votes_when_a_node_forgets() -> None:
    def torn(before: State, move: Move, _after: State) -> bool:
        votes = {node.votes for node in _nodes(before)}
        return move[0] == "forget" and votes >= {BIT[A], BIT[B]}

    assert find(WORLD, torn)


def test_a_proposal_is_raised_and_granted() -> None:
    world = Ordering(FenceRules(leases=2, largest=3))
    raised = _found(find(world, lambda _before, move, _after: move[0] == "raise"))
    assert find(world, lambda _before, move, _after: move[0] == "grant", start=raised.end)


def test_three_leases_have_rising_fences_one_after_the_other() -> None:
    world = Ordering(FenceRules(leases=3, largest=3))

    def rising(_before: State, move: Move, after: State) -> bool:
        fences = [world.leases.records[code].fence for code in after[: move[1] + 1]]
        return move[0] == "grant" and fences == [1, 2, 3][: len(fences)]

    first = _found(find(world, rising)).end
    second = _found(find(world, rising, start=first)).end
    third = _found(find(world, rising, start=second)).end
    assert [world.leases.records[code].fence for code in third[:3]] == [1, 2, 3]


def _someone_wins(before: State, _move: Move, after: State) -> bool:
    return any(_client(after, who).valid > _client(before, who).valid for who in CLIENTS)


def _emptied(state: State, site: int) -> State:
    return next(after for move, after in WORLD.moves(state) if move == ("forget", 0, site))


def _node(state: State, site: int) -> Node:
    return WORLD.nodes.records[state[site]]


def _until(state: State, site: int) -> int:
    return _node(state, site).until


def _nodes(state: State) -> list[Node]:
    return [_node(state, site) for site in SITES]


def _client(state: State, who: int) -> Client:
    return WORLD.clients.records[state[who]]


def _found(trace: Trace | None) -> Trace:
    assert trace is not None
    return trace
