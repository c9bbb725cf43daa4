"""What one node does for fences: numbers that are unique and rise, whatever time does.

`ordering.py` puts three nodes and a few leases of one lock together. There is no clock here: a key
may vanish from a node at any moment, a client may be slow without limit, a message may be executed
at any later time, once, more often or never. A run may contain, in any order:

- The next lease is asked for, with a proposal: any number up to the largest. (Leases are numbered
  in the order in which they are asked for: that only names them.)
- A node executes what was sent for a lease: it votes for it, and accepts the number if it is above
  its mark and its floor; then that is its mark.
- Whoever has the votes of a quorum may raise its proposal: to any higher number.
- A lease is *granted* when a quorum has voted for it and a quorum has accepted its latest number:
  its fence. Or the client does not hear of that, and raises.
- What was sent for a lease that is granted may be executed still, or again: a renewal that repairs
  brings its fence along.
- A node forgets its mark and its floor, and gets a floor that is not below any number that it ever
  accepted. That it can know such a number, by its clock, is checked in `floors.py`.

The laws: **F1**, no two leases have the same fence. **F2**, if a lease was granted before another
was asked for, the other's fence is greater.

What is left out, and why no violation is lost by it:

- *Keys.* They may vanish at any moment, so whoever comes may find the lock free.
- *Floors.* Only the larger of a node's mark and floor is ever looked at, so one number stands for
  both: to forget and get a floor is to keep that number, or to have a higher one.
- *Messages of proposals that were raised since, or of leases that were given up.* They could raise
  a mark. A node with a lower mark accepts all that one with a higher mark does, and has the same
  mark then; so whatever can happen after them can happen without them.
- *How clients choose numbers.* Any number may be proposed.

What is bounded: three nodes, the number of leases, the largest number; so also how often a
proposal can be raised.
"""

from dataclasses import dataclass
from typing import NamedTuple

QUORUM = 2


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol, or one with a mistake in it."""

    leases: int = 3
    largest: int = 3
    """The largest number that is proposed."""
    forgets: bool = False
    floors: bool = True
    """False: a node that has forgotten accepts any number."""
    accepts: int = QUORUM
    """How many nodes have to accept a number."""
    counts: bool = False
    """True: no proposals. Nodes count up whenever they grant; the largest reply is the fence."""
    accepts_again: bool = False
    """True: a number that equals the mark is accepted again where the key is the asker's."""


class Node(NamedTuple):
    """What one node has, and its answers, which clients have counted."""

    mark: int = 0
    """It accepts only what is above: the larger of mark and floor."""
    voted: int = 0
    """For which leases it has voted: a bit for each. Kept until the lease is granted."""
    accepted: int = 0
    """Of which leases it has accepted the latest proposal."""
    latest: int = -1
    """For whom it has voted last; kept only where the rules look at it."""


class Lease(NamedTuple):
    """One lease."""

    asked: bool = False
    proposal: int = 0
    """The latest number that was proposed for it; 0 once it has its fence."""
    fence: int = 0
    """0: it is not granted."""
    above: int = 0
    """The largest fence that was granted before it was asked for; 0 if its own is greater."""


def execute(rules: Rules, node: Node, who: int, number: int) -> Node:
    """Vote for a lease, and accept the number if it is high enough."""
    enough = number > node.mark
    if rules.accepts_again:
        enough = enough or (node.latest == who and number == node.mark)
        node = node._replace(latest=who)
    node = node._replace(voted=node.voted | 1 << who)
    return node._replace(mark=number, accepted=node.accepted | 1 << who) if enough else node


def count(node: Node, who: int) -> Node:
    """Vote for a lease, and count up; to be asked again by the same one changes nothing."""
    if node.voted & 1 << who:
        return node
    return node._replace(voted=node.voted | 1 << who, mark=node.mark + 1)


def repair(node: Node, fence: int) -> Node:
    """Execute a renewal or a late request of a granted lease: nobody counts the answer."""
    return node._replace(mark=max(node.mark, fence))


def forget(rules: Rules, node: Node, higher: int) -> Node:
    """Forget all. The floor is the least that is allowed, or a higher one."""
    return node._replace(mark=min(node.mark + higher, rules.largest) if rules.floors else 0)


def raised(node: Node, who: int) -> Node:
    """There is another proposal: who accepted the one before counts no more."""
    return node._replace(accepted=node.accepted & ~(1 << who))


def closed(node: Node, who: int) -> Node:
    """The lease is granted: votes are not counted any more."""
    return raised(node, who)._replace(voted=node.voted & ~(1 << who))
