"""The laws of those who wait in line; `laws.py` says what they are.

**When "first come, first served" binds.** A waiter has come when a quorum of nodes has told it that
it is in line. Somebody who begins to acquire after that is behind it, on the nodes that have the
waiter then: in their queue, or as the one who has the lock or for whom it is reserved. A node no
longer counts

- when it has lost the waiter: by its own word; or because its time was up: it had not spoken for a
  waiter's lease, or had not come when it was called, for as long as the lock was reserved for it;
  or because the node has forgotten
- when it has called the waiter, and nobody was there to hear it: then it is passed over

While a quorum still counts, the other one must not get a lease. That needs no clock to be right,
and no guard: a node that has lost the waiter because it forgot, or its clock was set, no longer
counts. One whose clock is right, and that has not forgotten, loses nobody before its time.
"""

import math
from collections.abc import Sequence
from typing import Any

from ..core.effects import Ask, Command, Verb
from ..core.fence import MOST_RAISES
from ..core.outcomes import Acquired, Missed
from ..core.queue import OUTAGE_PATIENCE
from ..core.tally import quorum_of
from ..core.terms import Terms
from ..core.votes import Answer
from ..wire.keys import leases_key, lock_key, queue_key
from .broken import Broken
from .lease import SimLease
from .network import Message
from .node import PROMISED, SimNode
from .process import Process, Thread
from .store import Store
from .world import World

SLACK = 1e-6
"""Seconds: what happens at a time happens by then, however numbers are rounded."""

ROUNDED_MS = 2
"""A waiter's lease and the queue that it is in are rounded on their own."""

GRANTED = 1


class Wait:
    """One client's way to the lock: from when it begins to acquire until it has it, or gives up."""

    def __init__(self, thread: Thread, terms: Terms, wait: float | None) -> None:
        self.thread = thread
        self.process: Process = thread.process
        self.tokens: list[str] = []
        """Its attempts, in order."""
        self.began = thread.world.now
        """In true time."""
        self.deadline = math.inf if wait is None else thread.now() + wait
        """On its own clock."""
        self.patience = terms.patience
        self.rounds = 1
        """How many rounds may be under way after the deadline: one, and those for its fence."""
        self.stands_in_line = False
        """True once it has expected a call. Other flows may wait as they like."""
        self.has_come = False
        """True once it knows that it is in line at a quorum of nodes."""
        self.over = False
        self.before: dict[Wait, set[SimNode]] = {}
        """Who had come when it began, and the nodes that count for that one."""

    def __str__(self) -> str:
        return f"{self.process.name}, who came at {self.began:.4f}"

    @property
    def lives(self) -> bool:
        """True while it waits, whether or not it runs."""
        return not self.over and self.process.alive


class Line:
    """Watches those who wait for one lock."""

    def __init__(
        self, world: World, nodes: Sequence[SimNode], name: str, *, outside: bool = False
    ) -> None:
        """Watch. `outside`: what nodes do is not looked at, only what comes of it."""
        self._world = world
        self._nodes = nodes
        self._quorum = quorum_of(len(nodes))
        self._key = lock_key(name).encode()
        self._queue = queue_key(name).encode()
        self._leases = leases_key(name).encode()
        self._outside = outside
        self._waits: list[Wait] = []
        """Those that are not over."""
        self._owners: dict[bytes, Wait] = {}
        """Whose token it is."""
        self._left: set[tuple[bytes, SimNode]] = set()
        """Tokens that have been released, and where."""
        self._granted: dict[str, dict[SimNode, float]] = {}
        """When, on its sender's clock, the last request was sent that a node granted to a token."""
        self._served: dict[Process, float] = {}
        """When a process last acquired, in true time."""
        self._seen: dict[SimNode, dict[bytes, float]] = {node: {} for node in nodes}
        """Who was in line when a node was last looked at, and until when it counted as alive,"""
        self._memories: dict[SimNode, tuple[Store, int | None]] = {}
        """and by which memory."""
        for node in nodes:
            node.after_call = self._called

    def has(self, node: SimNode, token: str) -> bool:
        """True if a token is in a node's queue."""
        return token.encode() in node.store.scores(self._queue)

    def _has_any(self, node: SimNode, wait: Wait) -> bool:
        """True if a node has a waiter: in its queue, or as the one who has the lock."""
        holder = (node.store.value(self._key) or b"").removeprefix(PROMISED)
        there = {*node.store.scores(self._queue), holder}
        return any(token.encode() in there for token in wait.tokens)

    # -- what waiters do --------------------------------------------------------------------------

    def begin(self, thread: Thread, terms: Terms, wait: float | None) -> Wait:
        """A client begins to acquire: all who have come are before it."""
        mine = Wait(thread, terms, wait)
        self._waits = [other for other in self._waits if other.lives]  # the dead never end
        for other in self._waits:
            nodes = {node for node in self._nodes if self._has_any(node, other)}
            if other.has_come and len(nodes) >= self._quorum:
                mine.before[other] = nodes
        self._waits.append(mine)
        latest = mine.deadline + (1 + MOST_RAISES) * mine.patience + 10 * SLACK
        thread.at(latest, lambda: self._check_lateness(mine))
        return mine

    def attempt(self, wait: Wait, token: str, *, called: bool) -> None:
        """A waiter has another token, under which it may be `called`."""
        wait.tokens.append(token)
        wait.stands_in_line |= called
        self._owners[token.encode()] = wait

    def heard(self, wait: Wait, asked: Ask) -> None:
        """A round of a waiter is over."""
        verb, tally = asked.command.verb, asked.tally
        if verb is Verb.RAISE:
            wait.rounds += 1
        elif tally.count(Answer.QUEUED) + tally.count(Answer.RESERVED) >= self._quorum:
            wait.has_come = True

    def end(self, wait: Wait, outcome: object) -> None:
        """A waiter has acquired, given up, or been interrupted."""
        if isinstance(outcome, Acquired | Missed):
            self._check_lateness(wait)
        wait.over = True
        self._waits.remove(wait)
        if isinstance(outcome, Acquired):
            self._served[wait.process] = self._world.now
            self._check_turn(wait)
        elif isinstance(outcome, Missed):
            self._check_patience(wait, outcome)

    def _check_turn(self, wait: Wait) -> None:
        for other, nodes in wait.before.items():
            if other.lives and len(nodes) >= self._quorum:
                raise Broken(
                    f"first come, first served: {wait} is served before {other};"
                    f" {', '.join(sorted(map(str, nodes)))} have it"
                )

    def _check_patience(self, wait: Wait, outcome: Missed) -> None:
        early = wait.deadline - wait.thread.now()
        if early > SLACK and outcome.waited < OUTAGE_PATIENCE and wait.stands_in_line:
            raise Broken(f"waits end in time: {wait.process.name} gives up {early:.3f} s early")

    def _check_lateness(self, wait: Wait) -> None:
        """A wait ends, or should have."""
        ran = wait.thread.runs and wait.thread.awake_since <= wait.process.true_time(wait.deadline)
        late = wait.thread.now() - wait.deadline - wait.rounds * wait.patience
        if late > SLACK and ran and not wait.over and wait.stands_in_line:
            raise Broken(f"waits end in time: {wait.process.name} waits {late:.3f} s too long")

    # -- what they get ----------------------------------------------------------------------------

    def confirmed(self, lease: SimLease) -> None:
        """A client relies on a lease: a quorum must have granted what was asked for since then."""
        began = lease.holding.began - SLACK
        granted = self._granted.pop(lease.token, {})
        for_it = sum(sent >= began for sent in granted.values())
        owner = self._owners.get(lease.token.encode())
        called = owner is not None and owner.stands_in_line
        if for_it < self._quorum and called and not self._outside:
            raise Broken(
                f"a call is no lease: {lease} counts from when no quorum was asked:"
                f" {for_it} nodes have granted what was asked since"
            )

    def unserved(self, processes: Sequence[Process], since: float) -> list[Process]:
        """List those processes that have not acquired since then."""
        return [each for each in processes if self._served.get(each, -math.inf) < since]

    def served(self, processes: Sequence[Process], since: float, limit: float) -> None:
        """Everything has healed: nobody must have waited for longer than that since."""
        for wait in self._waits:
            waited = self._world.now - max(wait.began, since)
            waits = wait.process in processes and wait.lives and wait.stands_in_line
            if waits and waited > limit:
                raise Broken(
                    f"nobody waits for ever: {wait} waits for {waited:.1f} s"
                    f" since everything has healed"
                )

    # -- what nodes do ----------------------------------------------------------------------------

    def executed(self, node: SimNode, message: Message, reply: Any) -> None:
        """A node has executed something."""
        command = message.command
        if command is None or not isinstance(reply, list):
            return
        token = command.token
        if command.verb is Verb.REQUEST and reply[0] == GRANTED:
            self._granted.setdefault(token, {})[node] = message.sent
        if not self._outside:
            self._check_left(node, command)
            self._check_kept(node, token.encode())
        for wait in self._waits:
            for other, nodes in wait.before.items():
                if node in nodes and not self._has_any(node, other):
                    nodes.discard(node)

    def _called(self, node: SimNode, inbox: bytes, heard: bool) -> None:
        """A node has called a waiter; if nobody heard it, it is passed over."""
        if not heard:
            for wait in self._waits:
                for other, nodes in wait.before.items():
                    if other.process.inbox.name == inbox:
                        nodes.discard(node)

    def _check_left(self, node: SimNode, command: Command) -> None:
        token = command.token.encode()
        if command.verb is Verb.RELEASE:
            self._left.add((token, node))
        wait = self._owners.get(token)
        if wait is None or (token, node) not in self._left or not self.has(node, command.token):
            return
        tainted = any(
            (command.token, node.number) in thread.tainted for thread in wait.process.threads
        )
        if not tainted and token not in node.brought_back:
            raise Broken(
                f"who leaves is gone: {node} has {command.token[:6]} in line, who has left"
            )

    def _check_kept(self, node: SimNode, speaker: bytes) -> None:
        """Nobody else's word takes a waiter out of line before its time."""
        store, memory = node.store, (node.store, node.forgot_us)
        seen, leases = self._seen[node], store.scores(self._leases)
        now_ms = node.server.now_us() / 1000
        if node.steady and self._memories.get(node) == memory:
            for token, alive_until in seen.items():
                if token not in leases and token != speaker and alive_until > now_ms + ROUNDED_MS:
                    raise Broken(
                        f"first come, first served: {node} loses {token[:6].decode()}, who counts"
                        f" as alive for {alive_until - now_ms:.0f} ms more"
                    )
        self._memories[node] = memory
        in_line, left = store.scores(self._queue), store.call(b"PTTL", self._leases)
        last = now_ms + left if isinstance(left, int) else now_ms  # with it the whole line is gone
        self._seen[node] = {each: min(end, last) for each, end in leases.items() if each in in_line}
