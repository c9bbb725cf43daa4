"""What one node and one client do under amnesia: the guard, renewals that repair, late messages.

`exclusion.py` puts three nodes and two clients together, *a* and *b*, that want the same lock. Time
passes in ticks. A run may contain, in any order and any number unless a bound is given:

- A client asks for the lock, renews it while its lease is valid, releases it or gives up; then it
  may begin anew, with another token.
- What a client has sent is executed by a node at any later time: once, more often or never.
- Strangers, that is other clients and what these two have left behind from earlier attempts,
  request the lock at any node at any time, and their keys end at any time, expired or released.
- A node saves a copy of its data at any moment, and forgets at any moment. It *restarts empty*; or
  *is flushed*, which is the same but for the run, that stays; or *restarts from an older copy*: the
  marker is there and names the run before, and of the lock there is what was saved at some time,
  be it nothing, or a key whose last renewal is missing.

The law: never two clients that both have a valid lease.

What is left out, and why no violation is lost by it:

- *Replies.* A client counts a vote at the moment when the node gives it. It cannot know earlier;
  and a client that learns it later, or never, relies on its lease for a part of that time only.
  All that it could do then, give up or try again, it may do here at any moment.
- *Which message of a token is executed.* Those of earlier rounds do to a node what the latest one
  does, and would not count. The first request of a lease that was renewed since then does what
  a renewal does, or less; it also has nodes look at their markers, and so do strangers' requests.
- *How long strangers keep a key.* For any time, which includes the right one.
- *More clients.* Call the owners of the two leases that overlap a and b; all others are strangers.
- *Repairs that count later.* A repair counts as a vote in its own round. Not to count it before
  the next one is a part of that.
- *Keys of abandoned attempts in copies.* Restored, they could only keep others out.
- *Executions that change nothing*: refusals, and abstentions after the first.

What is bounded: three nodes; one ttl, which is also the longest, of so many ticks; one open round
for each client; all clocks agree, and none is stepped; how often nodes forget in a run, where that
is said. Attempts, renewals, messages and the length of a run are not bounded: times are kept
relative, as the ticks that are left, and so the states are finitely many.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

FREE, A, B, STRANGER = range(4)
CLIENTS = (A, B)
BIT = (0, 1, 2, 0)
"""A client's vote among a node's votes."""

MISSING, OTHER, OURS = range(3)
"""A node's marker: there is none; it names another run than this one; it names this run."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The protocol, or one with a mistake in it."""

    ttl: int = 2
    abstention: int | None = None
    """For how long a node that may have forgotten grants nothing; None is the ttl."""
    guarded: bool = True
    """False: no guard at all."""
    compares_runs: bool = True
    """False: it is enough that there is a marker."""
    reads_run_inside: bool = True
    """False: the client sends the run that it remembers from when it connected."""
    guards_repair: bool = True
    """False: a renewal takes missing votes without asking the guard."""
    guards_renewal: bool = False
    """True: a renewal asks the guard also where its key is still there."""
    revives: bool = False
    """True: clocks are set back by a tick over restarts, so that saved keys end a tick later."""

    @property
    def quiet(self) -> int:
        """For how many ticks a node abstains."""
        return self.ttl if self.abstention is None else self.abstention


class Node(NamedTuple):
    """What one node has in its memory, and its votes, which clients have counted."""

    owner: int = FREE
    left: int = 0
    """For how many ticks the key still lives; 0 for a stranger's, which may end at any time."""
    marker: int = OURS
    until: int = 0
    """For how many ticks the node still abstains, by its marker."""
    votes: int = 0
    """In whose open round it has granted: a sum of `BIT`."""
    copied: int = FREE
    """Who has the key in the copy that the node would restart from."""
    copied_left: int = 0
    """For how many ticks it still would."""


class Client(NamedTuple):
    """What one client believes, and its open round."""

    valid: int = 0
    """For how many ticks it still believes in its lease; 0: it has none."""
    age: int = -1
    """How many ticks ago its open round was sent; -1: none is open."""
    renewing: bool = False
    """Whether its lease has ever been renewed: then what it has under way are renewals."""


IDLE = Client()
ASKING = Client(age=0)
"""It has just begun an attempt."""

# Scripts, as a node executes them. Each returns the node after it, and whether it grants.


def guard(rules: Rules, node: Node, *, remembered: bool = False) -> tuple[Node, bool]:
    """Look whether the node may have forgotten; if so, or if it waits because it had, abstain.

    `remembered`: the marker is compared with the run that the client remembers, an earlier one.
    """
    if not rules.guarded:
        return node, True
    known = node.marker == (OTHER if remembered else OURS)
    if not rules.compares_runs:
        known = node.marker != MISSING
    if not known:
        return node._replace(marker=OURS, until=rules.quiet), False
    return node, node.until == 0


def request(rules: Rules, node: Node, who: int, *, remembered: bool = False) -> tuple[Node, bool]:
    """Take the key if the node may grant, and the key is free or the asker's already."""
    node, may_grant = guard(rules, node, remembered=remembered)
    if not may_grant or node.owner not in (FREE, who):
        return node, False
    return _taken(rules, node, who), True


def renew(rules: Rules, node: Node, who: int, *, remembered: bool = False) -> tuple[Node, bool]:
    """Prolong the key where it is the asker's; where it is free, repair: request it anew."""
    if rules.guards_renewal or (node.owner == FREE and rules.guards_repair):
        return request(rules, node, who, remembered=remembered)
    if node.owner not in (FREE, who):
        return node, False
    return _taken(rules, node, who), True


def _taken(rules: Rules, node: Node, who: int) -> Node:
    return node._replace(owner=who, left=0 if who == STRANGER else rules.ttl)


# What else happens to a node.


def later(node: Node) -> Node:
    """One tick passes."""
    owner, left = _decayed(node.owner, node.left)
    copied, copied_left = _decayed(node.copied, node.copied_left)
    until = max(node.until - 1, 0)
    return Node(owner, left, node.marker, until, node.votes, copied, copied_left)


def _decayed(owner: int, left: int) -> tuple[int, int]:
    return (FREE, 0) if left == 1 else (owner, max(left - 1, 0))


def ended(node: Node) -> Node:
    """A stranger's key ends."""
    return node._replace(owner=FREE) if node.owner == STRANGER else node


def saved(rules: Rules, node: Node) -> Node:
    """The copy that the node would restart from is made anew. Strangers' keys are left out."""
    if node.owner not in CLIENTS:
        return node._replace(copied=FREE, copied_left=0)
    return node._replace(copied=node.owner, copied_left=node.left + rules.revives)


def emptied(node: Node) -> Node:
    """The node loses all it had. Votes that it gave are with the clients, and stay."""
    return node._replace(owner=FREE, left=0, marker=MISSING, until=0)


def restored(node: Node) -> Node:
    """The node restarts from its copy."""
    marker = MISSING if node.marker == MISSING else OTHER
    return node._replace(owner=node.copied, left=node.copied_left, marker=marker)


FORGETTING: dict[str, Callable[[Node], Node]] = {
    "restarts empty": emptied,
    "is flushed": emptied,
    "restarts from an older copy": restored,
}


def voted(node: Node, who: int) -> Node:
    """Its vote counts in that client's open round."""
    return node._replace(votes=node.votes | BIT[who])


def cleared(node: Node, who: int) -> Node:
    """That client's round is over, or is begun anew: votes in it count no more."""
    return node._replace(votes=node.votes & ~BIT[who])


def abandoned(node: Node, who: int) -> Node:
    """That client's attempt is over: what it leaves behind is a stranger's."""
    if node.owner == who:
        node = node._replace(owner=STRANGER, left=0)
    if node.copied == who:
        node = node._replace(copied=FREE, copied_left=0)
    return cleared(node, who)


def exchanged(node: Node) -> Node:
    """The two clients exchange their names."""
    names = (FREE, B, A, STRANGER)
    votes = (node.votes & BIT[A]) << 1 | node.votes >> 1
    return node._replace(owner=names[node.owner], votes=votes, copied=names[node.copied])


# What happens to a client.


def renews(client: Client) -> Client:
    """Begin a renewal; one that is under way is given up for it."""
    return client._replace(age=0, renewing=True)


def won(rules: Rules, client: Client) -> Client:
    """A quorum has voted in the open round: believe, counted from when it was sent."""
    return client._replace(valid=rules.ttl - client.age, age=-1)


def aged(rules: Rules, client: Client) -> Client:
    """One tick passes. A lease that has ended is lost, an attempt that took the whole ttl too."""
    if client.valid == 1 or (client.valid == 0 and client.age == rules.ttl - 1):
        return IDLE
    age = client.age if client.age == -1 else client.age + 1
    return client._replace(valid=max(client.valid - 1, 0), age=age)
