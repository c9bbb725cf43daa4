"""The rules of `fences.py` at work: all that three nodes and a few leases can do."""

from functools import partial
from itertools import combinations

from .codes import Codes, Table
from .explore import Move, State, Step
from .fences import (
    QUORUM,
    Lease,
    Node,
    Rules,
    closed,
    count,
    execute,
    forget,
    raised,
    repair,
)

NODES = 3
NAMES = "abcd"


class Ordering:
    """Three nodes and a few leases; the laws are F1 and F2."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.nodes: Codes[Node] = Codes()
        self.leases: Codes[Lease] = Codes()
        self._first = rules.leases
        """Where in a state the nodes begin; leases are at their own numbers."""
        self._sites = range(self._first, self._first + NODES)
        unasked, fresh = self.leases[Lease()], self.nodes[Node()]
        self.start: State = (*[unasked] * self._first, *[fresh] * NODES)
        """The leases, then the nodes, by their codes."""
        self._tabulate()

    def _tabulate(self) -> None:
        table, rules = self.nodes.table, self.rules
        leases, self._numbers = range(rules.leases), range(1, rules.largest + 1)
        self._executed = {
            (who, number): table(partial(execute, rules, who=who, number=number))
            for who in leases
            for number in self._numbers
        }
        self._counted = [table(partial(count, who=who)) for who in leases]
        self._raised = [table(partial(raised, who=who)) for who in leases]
        self._closed = [table(partial(closed, who=who)) for who in leases]
        self._repaired = {n: table(partial(repair, fence=n)) for n in self._numbers}
        self._forgot = [table(partial(forget, rules, higher=higher)) for higher in (0, 1)]

    # What can happen.

    def moves(self, state: State) -> list[Step]:
        """Return all that can happen next."""
        steps: list[Step] = []
        records = self.leases.records
        for who, code in enumerate(state[: self._first]):
            lease = records[code]
            if lease.fence:
                if not self.rules.counts:
                    self._add("repair", who, self._repaired[lease.fence], state, steps)
            elif lease.asked:
                self._add_executions(state, who, lease, steps)
                self._add_decisions(state, who, lease, steps)
            else:
                self._add_asks(state, who, steps)
                break  # they are asked for in this order
        if self.rules.forgets:
            for higher, table in enumerate(self._forgot):
                self._add("forget", higher, table, state, steps)
        return steps

    def _add(self, verb: str, what: int, table: Table, state: State, steps: list[Step]) -> None:
        for site in self._sites:
            node = state[site]
            after = table[node]
            if after != node:
                steps.append(((verb, what, site), _put(state, site, after)))

    def _add_asks(self, state: State, who: int, steps: list[Step]) -> None:
        above = max(self.leases.records[code].fence for code in state[: self._first])
        for number in [0] if self.rules.counts else self._numbers:
            lease = Lease(asked=True, proposal=number, above=above)
            steps.append((("ask", who, number), _put(state, who, self.leases[lease])))

    def _add_executions(self, state: State, who: int, lease: Lease, steps: list[Step]) -> None:
        if not self.rules.counts:
            self._add("execute", who, self._executed[who, lease.proposal], state, steps)
            return
        for site in self._sites:
            node = self._counted[who][state[site]]
            reply = self.nodes.records[node].mark
            if node != state[site] and reply <= self.rules.largest:
                largest = lease._replace(proposal=max(lease.proposal, reply))
                after = _put(_put(state, site, node), who, self.leases[largest])
                steps.append((("execute", who, site), after))

    def _add_decisions(self, state: State, who: int, lease: Lease, steps: list[Step]) -> None:
        bit, votes, accepts = 1 << who, 0, 0
        for site in self._sites:
            node = self.nodes.records[state[site]]
            votes += node.voted & bit
            accepts += node.accepted & bit
        if votes < QUORUM * bit:
            return
        if self.rules.counts or accepts >= self.rules.accepts * bit:
            self._add_grant(state, who, lease, steps)
        if not self.rules.counts:
            for number in range(lease.proposal + 1, self.rules.largest + 1):
                higher = lease._replace(proposal=number)
                after = self._changed(state, who, higher, self._raised[who])
                steps.append((("raise", who, number), after))

    def _add_grant(self, state: State, who: int, lease: Lease, steps: list[Step]) -> None:
        fence = lease.proposal
        above = lease.above if lease.above >= fence else 0
        granted = Lease(asked=True, fence=fence, above=above)
        after = self._changed(state, who, granted, self._closed[who])
        steps.append((("grant", who, fence), after))

    def _changed(self, state: State, who: int, lease: Lease, table: Table) -> State:
        leases = _put(state[: self._first], who, self.leases[lease])
        return (*leases, *[table[node] for node in state[self._first :]])

    # What is the same, and what must not be.

    def canonical(self, state: State) -> State:
        """Return the state that stands for all that differ in the names of nodes."""
        return (*state[: self._first], *sorted(state[self._first :]))

    def broken(self, state: State) -> str | None:
        """Say which of F1 and F2 is broken, if one is."""
        leases = [self.leases.records[code] for code in state[: self._first]]
        granted = [(who, lease) for who, lease in enumerate(leases) if lease.fence]
        for who, (_, _, fence, above) in granted:
            if above:
                return f"F2: {NAMES[who]}'s fence is {fence}, and {above} was granted before"
        for (one, lease), (other, second) in combinations(granted, 2):
            if lease.fence == second.fence:
                return f"F1: {NAMES[one]} and {NAMES[other]} have the same fence, {lease.fence}"
        return None

    # In words.

    def tell(self, before: State, move: Move, after: State) -> str:
        """Say in one sentence what happened."""
        verb, who, number = move
        if verb in _DECISIONS:
            return _DECISIONS[verb].format(NAMES[who], f" with {number}" if number else "", number)
        node, site = self.nodes.records[after[number]], number - self._first + 1
        if verb == "forget":
            return f"node {site} forgets; it accepts what is above {node.mark}"
        if verb == "repair":
            return f"node {site} executes a renewal of {NAMES[who]}, and takes its fence for mark"
        if self.rules.counts:
            return f"node {site} votes for {NAMES[who]}, and counts: {node.mark}"
        proposal = self.leases.records[before[who]].proposal
        accepted = "accepts" if node.accepted & 1 << who else "does not accept"
        return f"node {site} votes for {NAMES[who]}, and {accepted} {proposal}"

    def show(self, state: State) -> str:
        """Return the leases and the nodes in one line."""
        leases = [self.leases.records[code] for code in state[: self._first]]
        shown = [f"{NAMES[who]} {_lease(lease)}" for who, lease in enumerate(leases)]
        marks = [self.nodes.records[code].mark for code in state[self._first :]]
        return " | ".join([*shown, *(f"{site}: mark {mark}" for site, mark in enumerate(marks, 1))])


_DECISIONS = {
    "ask": "{0} is asked for{1}",
    "raise": "{0}'s proposal is raised to {2}",
    "grant": "{0} is granted, and its fence is {2}",
}


def _lease(lease: Lease) -> str:
    if lease.fence:
        return f"has fence {lease.fence}"
    return f"asks with {lease.proposal}" if lease.asked else "-"


def _put(state: State, place: int, code: int) -> State:
    return (*state[:place], code, *state[place + 1 :])
