"""One node and its clock: a node that forgot its marks knows a number that they were not above.

A node accepts a number for a fence only if it is not further than *half* an abstention ahead of the
node's clock. So when it finds that it has forgotten, a whole abstention ahead of its clock is above
all that it ever accepted, unless the clock fell by more than half an abstention meanwhile: that is
its floor. `fences.py` relies on this.

A run may contain, in any order: the clock moves on by one, or is set anywhere as far as the rules
allow; a request proposes any number; the node forgets everything.

The law: a node accepts only numbers above all that it ever accepted, so that any two fences come in
the same order at every node that accepted both.

What is bounded: how far the clock goes. Marks and floors that come back from an older copy are left
out: a node that has lost them altogether accepts more.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .explore import Move, State, Step


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol, or one with a mistake in it, or in the world it relies on."""

    half: int = 2
    """Half an abstention: how far ahead of its clock a node accepts numbers."""
    last: int = 9
    """How far the clock goes."""
    back: int = 2
    """How far below its highest reading the clock may be found."""
    each_time: bool = False
    """True: it may fall so far whenever the node forgets, counted from where it was."""
    horizon: bool = True
    """False: a node accepts numbers however far ahead they are."""


class Node(NamedTuple):
    """A node, and what is known of its past."""

    now: int = 0
    known: bool = True
    """Whether there is a marker of this run."""
    until: int = 0
    floor: int = 0
    mark: int = 0
    peak: int = 0
    """The highest reading of its clock."""
    top: int = 0
    """The highest number that it ever accepted."""
    fell: bool = False
    """Whether it accepted one that was not above the top."""


def execute(rules: Rules, node: Node, number: int) -> Node:
    """Execute a request that proposes a number."""
    if not node.known:
        end = node.now + 2 * rules.half
        return node._replace(known=True, until=end, floor=end)
    if node.until > node.now or number <= max(node.mark, node.floor):
        return node
    if rules.horizon and number > node.now + rules.half:
        return node
    top = max(node.top, number)
    return node._replace(mark=number, top=top, fell=number <= node.top)


def show_time(rules: Rules, node: Node, now: int) -> Node:
    """Set the clock, or let it move on."""
    return node._replace(now=now, peak=0 if rules.each_time else max(node.peak, now))


def forget(node: Node) -> Node:
    """Forget everything but what time it is."""
    return node._replace(known=False, until=0, floor=0, mark=0)


class Floors:
    """The rules at work."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.start: State = Node()

    def moves(self, state: State) -> list[Step]:
        """Return all that can happen next."""
        rules, node = self.rules, _node(state)
        found = [(("time", 0, now), show_time(rules, node, now)) for now in self._times(node)]
        found += [
            (("execute", 0, number), execute(rules, node, number))
            for number in range(1, rules.last + rules.half + 1)
        ]
        found += [
            (("forget", 0, now), show_time(rules, forget(node), now)) for now in self._falls(node)
        ]
        return [(move, after) for move, after in found if after != node]

    def _times(self, node: Node) -> range:
        if self.rules.each_time:
            return range(node.now + 1, min(node.now + 1, self.rules.last) + 1)
        lowest = max(node.peak - self.rules.back, 0)
        return range(lowest, min(node.peak + 1, self.rules.last) + 1)

    def _falls(self, node: Node) -> range:
        back = self.rules.back if self.rules.each_time else 0
        return range(max(node.now - back, 0), node.now + 1)

    def canonical(self, state: State) -> State:
        """Return the state itself: there are no names in it."""
        return state

    def broken(self, state: State) -> str | None:
        """Say so if a number was accepted that is not above all earlier ones."""
        node = _node(state)
        if not node.fell:
            return None
        return f"order: the node accepted {node.mark}, and had accepted {node.top} before"

    def tell(self, before: State, move: Move, after: State) -> str:
        """Say in one sentence what happened."""
        verb, _, number = move
        old, new = _node(before), _node(after)
        if verb == "time":
            return f"the clock is set {'back' if number < old.now else 'forward'} to {number}"
        if verb == "forget":
            fallen = f", and its clock is set back to {number}" if number < old.now else ""
            return f"the node forgets{fallen}"
        if not old.known:
            return f"a request proposes {number}: the node abstains until {new.until}"
        return f"a request proposes {number}: accepted"

    def show(self, state: State) -> str:
        """Return the node in one line."""
        node = _node(state)
        rest = f"mark {node.mark}, floor {node.floor}" if node.known else "nothing else"
        return f"clock {node.now}, {rest}; ever accepted: {node.top}"


def _node(state: State) -> Node:
    return Node._make(state)
