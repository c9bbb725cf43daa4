"""The rules of `guard.py` at work: all that three nodes and two clients can do."""

from functools import partial

from .codes import Codes, Table
from .explore import Move, State, Step
from .guard import (
    ASKING,
    BIT,
    CLIENTS,
    FORGETTING,
    IDLE,
    OTHER,
    STRANGER,
    A,
    B,
    Client,
    Node,
    Rules,
    abandoned,
    aged,
    cleared,
    ended,
    exchanged,
    later,
    renew,
    renews,
    request,
    saved,
    voted,
    won,
)

ENDLESS = -1
"""Nodes may forget any number of times."""

QUORUM = 2
SITES = (3, 4, 5)
"""Where in a state the nodes are; clients are at their own numbers."""

REMEMBERED = "execute, remembering"
"""A node executes what a client sent together with the run that it remembered."""


class Exclusion:
    """Three nodes and two clients; the law is that never both clients have a valid lease."""

    def __init__(self, rules: Rules, *, amnesias: int) -> None:
        """Let nodes forget so many times in a run, or any number of times (`ENDLESS`)."""
        self.rules = rules
        self.nodes: Codes[Node] = Codes()
        self.clients: Codes[Client] = Codes()
        self._idle, fresh = self.clients[IDLE], self.nodes[Node()]
        self.start: State = (amnesias, self._idle, self._idle, fresh, fresh, fresh)
        """Forgettings left, clients a and b, nodes 1 to 3; clients and nodes by their codes."""
        self._tabulate()

    def _tabulate(self) -> None:
        node, client, rules = self.nodes.table, self.clients.table, self.rules
        self._later, self._exchanged = node(later), node(exchanged)
        self._events = [
            (("visit", STRANGER), node(lambda node: request(rules, node, STRANGER)[0])),
            (("end", STRANGER), node(ended)),
            (("save", 0), node(partial(saved, rules))),
        ]
        self._losses = [
            (("forget", kind), node(loss)) for kind, loss in enumerate(FORGETTING.values())
        ]
        self._cleared = {who: node(partial(cleared, who=who)) for who in CLIENTS}
        self._abandoned = {who: node(partial(abandoned, who=who)) for who in CLIENTS}
        self._executed: dict[tuple[int, int, bool], Table] = {}
        self._aged, self._won = client(partial(aged, rules)), client(partial(won, rules))
        self._asking, self._renews = self.clients[ASKING], client(renews)

    # What can happen.

    def moves(self, state: State) -> list[Step]:
        """Return all that can happen next."""
        steps: list[Step] = [(("tick", 0, 0), self._tick(state))]
        for who in CLIENTS:
            if state[who] == self._idle:
                steps.append((("ask", who, 0), _put(state, who, self._asking)))
            else:
                self._add_decisions(state, who, steps)
                self._add_executions(state, who, steps, remembered=False)
                if not self.rules.reads_run_inside:
                    self._add_executions(state, who, steps, remembered=True)
        self._add_events(state, steps)
        return steps

    def _tick(self, state: State) -> State:
        spare, a, b, n1, n2, n3 = state
        table, clients = self._later, self._aged
        after: State = (spare, clients[a], clients[b], table[n1], table[n2], table[n3])
        for who in CLIENTS:
            if after[who] == self._idle != state[who]:
                after = self._leave(after, who)
        return after

    def _add_decisions(self, state: State, who: int, steps: list[Step]) -> None:
        if self.clients.records[state[who]].valid:
            after = self._clear(_put(state, who, self._renews[state[who]]), who)
            if after != state:
                steps.append((("renew", who, 0), after))
        steps.append((("leave", who, 0), self._leave(state, who)))

    def _add_executions(
        self, state: State, who: int, steps: list[Step], *, remembered: bool
    ) -> None:
        key = (who, state[who], remembered)
        if key not in self._executed:
            client = self.clients.records[state[who]]
            rule = partial(self._execute, who=who, client=client, remembered=remembered)
            self._executed[key] = self.nodes.table(rule)
        table, verb = self._executed[key], REMEMBERED if remembered else "execute"
        for site in SITES:
            node = state[site]
            after = table[node]
            if after != node:
                steps.append(((verb, who, site), self._tally(_put(state, site, after), who)))

    def _execute(self, node: Node, *, who: int, client: Client, remembered: bool) -> Node:
        if remembered and node.marker != OTHER:
            return node  # to remember the run that is there makes no difference
        script = renew if client.renewing else request
        after, granted = script(self.rules, node, who, remembered=remembered)
        return voted(after, who) if granted and client.age >= 0 else after

    def _tally(self, state: State, who: int) -> State:
        bit, records = BIT[who], self.nodes.records
        if sum(1 for site in SITES if records[state[site]].votes & bit) < QUORUM:
            return state
        return self._clear(_put(state, who, self._won[state[who]]), who)

    def _add_events(self, state: State, steps: list[Step]) -> None:
        for (verb, who), table in self._events:
            for site in SITES:
                node = state[site]
                after = table[node]
                if after != node:
                    steps.append(((verb, who, site), _put(state, site, after)))
        if not state[0]:
            return
        for (verb, kind), table in self._losses:
            for site in SITES:
                after = table[state[site]]
                if after != state[site]:
                    poorer = _put(state, 0, max(state[0] - 1, ENDLESS))
                    steps.append(((verb, kind, site), _put(poorer, site, after)))

    def _clear(self, state: State, who: int) -> State:
        table = self._cleared[who]
        spare, a, b, n1, n2, n3 = state
        return (spare, a, b, table[n1], table[n2], table[n3])

    def _leave(self, state: State, who: int) -> State:
        table = self._abandoned[who]
        spare, a, b, n1, n2, n3 = _put(state, who, self._idle)
        return (spare, a, b, table[n1], table[n2], table[n3])

    # What is the same, and what must not be.

    def canonical(self, state: State) -> State:
        """Return the state that stands for all that differ in the names of nodes or clients."""
        spare, a, b, n1, n2, n3 = state
        if a < b:
            return (spare, a, b, *sorted((n1, n2, n3)))
        table = self._exchanged
        other = (spare, b, a, *sorted((table[n1], table[n2], table[n3])))
        if a > b:
            return other
        return min((spare, a, b, *sorted((n1, n2, n3))), other)

    def broken(self, state: State) -> str | None:
        """Say so if both clients have a valid lease."""
        records = self.clients.records
        if records[state[A]].valid and records[state[B]].valid:
            return "mutual exclusion: a and b both have a valid lease"
        return None

    # In words.

    def tell(self, before: State, move: Move, after: State) -> str:
        """Say in one sentence what happened."""
        verb, who, site = move
        if verb not in _DECISIONS:
            node = self.nodes.records[before[site]], self.nodes.records[after[site]]
            return f"node {site - 2} {self._happened(verb, who, *node, before)}"
        told = _DECISIONS[verb].format(NAMES[who])
        ended = [NAMES[who] for who in CLIENTS if after[who] == self._idle != before[who]]
        return f"{told}: {' and '.join(ended)}'s time is up" if verb == "tick" and ended else told

    def _happened(self, verb: str, who: int, node: Node, after: Node, before: State) -> str:
        if verb == "forget":
            return list(FORGETTING)[who]
        if verb in _EVENTS:
            return _EVENTS[verb]
        renewing = verb != "visit" and self.clients.records[before[who]].renewing
        what = "renewal" if renewing else "request"
        if renewing and node.owner != who and after.owner == who:
            what = "renewal and repairs"
        if verb == REMEMBERED:
            what += f", which names the run that {NAMES[who]} remembers"
        granted = after.owner == who and after.marker == node.marker
        return f"executes {NAMES[who]}'s {what}: {'granted' if granted else 'it abstains'}"

    def show(self, state: State) -> str:
        """Return who believes what, and what the nodes have."""
        shown = [self._client(who, self.clients.records[state[who]]) for who in CLIENTS]
        shown += [f"{site - 2}: {_node(self.nodes.records[state[site]])}" for site in SITES]
        return " | ".join(shown)

    def _client(self, who: int, client: Client) -> str:
        if client.valid:
            return f"{NAMES[who]} HOLDS for {client.valid}"
        return f"{NAMES[who]} {'asks' if client.age >= 0 else 'idle'}"


NAMES = {0: "nobody", A: "a", B: "b", STRANGER: "a stranger"}

_DECISIONS = {
    "tick": "a tick passes",
    "ask": "{} asks all nodes",
    "renew": "{} renews at all nodes",
    "leave": "{} releases, or gives up",
}

_EVENTS = {"end": "no longer has the stranger's key", "save": "saves a copy of its data"}


def _node(node: Node) -> str:
    key = f"{NAMES[node.owner]} for {node.left}" if node.left else NAMES[node.owner]
    return f"{key}, abstains for {node.until}" if node.until else key


def _put(state: State, place: int, code: int) -> State:
    return (*state[:place], code, *state[place + 1 :])
