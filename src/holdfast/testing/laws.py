"""What must always hold, checked after every event of a simulated world.

- **mutual exclusion**: at no moment do two clients rely on a lease of the same lock, each by its
  own clock
- **no revival**: a lease that has ended on its holder's clock never comes back
- **release frees**: when a release says FREED, fewer than a quorum of nodes still have the token;
  and when an attempt is over, every node that has its token, has reserved the lock for it, or will
  get it, has been told to drop it, unless the connection broke
- **released is released**: once a release is over, no node has its token again without a release
  on its way: no renewal brings it back, unless a connection broke
- **loss is told in time**: a lease that ends without a release is called lost, once, by the end of
  its validity on its holder's own clock, or when its keeper wakes up; and not called expired before
- **danger is told first**: a lease is not lost for want of a renewal without a warning, unless its
  keeper was paused until shortly before; and no warning names an end that has been put off
- **renewal only for the living**: nothing is renewed for an owner that has died, so that its lock
  is free a ttl later, wherever no renewal was under way
- **too late is too late**: a node grants nothing, and takes nobody into its queue, after the time
  until which its sender waits for it, as well as that one knows the node's clock; and a node whose
  clock is right calls nothing late that its sender waits for
- **who forgot abstains**: where there is a guard, a node that has lost something from its memory
  grants nothing, repairs nothing and reserves nothing, also when it hands over, until all that it
  may have forgotten has ended by its clock
- **a call is no lease**: a client relies on a lease only if a quorum has granted requests that were
  sent at or after the moment from which its validity counts
- **first come, first served**: once a waiter has heard that it is in the queues of a quorum, nobody
  who begins to acquire after that gets a lease before it has left; and no node takes it out of line
  before its time. When exactly that binds is said in `line.py`
- **who leaves is gone**: when a wait is over, every node that has the waiter in line, or will, has
  been told that it leaves; once a node has executed that, it does not have it in line again. Unless
  a connection broke
- **waits end in time**: nobody gives up before the end of its wait; and nobody whose thread runs
  goes on for longer after it than a round, and those in which a fence is raised
- **nobody waits for ever**: after everything has healed, everybody who goes on waiting acquires,
  within the time that `Scenario.served` states
- **F1**: no two leases have the same fence
- **F2**: if one lease was granted before another was asked for, the other's fence is greater
- **progress**: after everything has healed, somebody acquires

F1 and F2 need no clock to be right, and neither does what is said of calls, of coming first and of
leaving; the others do. F1 and F2 need that what a node has accepted is kept, or that there is a
guard. What is said of calls and of waits binds flows that stand in line.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..core.effects import Noted, Verb
from ..core.guard import NO_GUARD, Guard, abstention_ms
from ..core.outcomes import Endangered, Kept, LossReason, Lost, Released
from ..core.tally import quorum_of
from ..core.validity import RATE_ERROR
from ..wire.keys import lock_key
from ..wire.who import SECRET_DIGITS
from .broken import Broken
from .lease import SimLease
from .line import SLACK, Line
from .network import Message, describe
from .node import PROMISED, SimNode
from .process import Thread
from .world import World

LATE = -3
"""What a node answers that was asked too late."""

GRANTED, RESERVED = 1, 4
"""What it answers that gives the lock, and that has it ready."""

POLLED_MS = 300
"""For how long a node reserves the lock at the least for somebody who polls: see `queue.lua`."""

WORTH_DOING = (Verb.REQUEST, Verb.WAIT, Verb.RAISE)
"""What a node must not do at all if it is too late."""

MOMENT = 0.005
"""Seconds after which a key whose ttl has ended is surely gone: servers count milliseconds."""

FOR_WANT_OF_RENEWAL = (
    LossReason.EXPIRED, LossReason.UNREACHABLE, LossReason.FORGOTTEN, LossReason.MAX_HOLD,
)  # fmt: skip
"""Losses that come with the end of the validity, and can be seen coming."""


class Laws:
    """Watches one lock in one world."""

    def __init__(
        self,
        world: World,
        nodes: Sequence[SimNode],
        name: str,
        *,
        guard: Guard = NO_GUARD,
        timed: bool = True,
        fenced: bool = True,
        outside: bool = False,
    ) -> None:
        """Watch a lock. `timed`: laws that need clocks bind; `fenced`: F1 and F2 do.

        `outside`: what nodes grant is not looked at, only what comes of it.
        """
        self.acquired = 0
        self.renewed = 0
        """How often a keeper has renewed a lease."""
        self.lost = 0
        self.line = Line(world, nodes, name, outside=outside)
        """Those who wait."""
        self._world = world
        self._nodes = nodes
        self._key = lock_key(name).encode()
        self._watched: list[SimLease] = []
        """Leases until their client has the next one, and nothing is left to say of them."""
        self._ended: set[str] = set()
        self._released: dict[bytes, SimLease] = {}
        """Leases whose release is over, by token."""
        self._timed = timed
        self._fenced = fenced
        self._outside = outside
        self._abstention_us = abstention_ms(guard.max_ttl_ms) * 1000 if guard.is_on else 0
        self._fences: set[int] = set()
        self._granted: list[float] = []
        """When leases were granted, in true time,"""
        self._highest: list[int] = []
        """and the highest fence of all up to each of them."""
        for node in nodes:
            node.after_execution = self._executed

    def _has(self, node: SimNode, token: str) -> bool:
        """True if a node has the token, and has not only reserved the lock for it."""
        return node.store.value(self._key) == token.encode()

    def _token(self, node: SimNode) -> bytes:
        """Return the token that a node has, or has reserved the lock for; nothing, if none."""
        return (node.store.value(self._key) or b"").removeprefix(PROMISED)

    def _kept(self, node: SimNode, token: str) -> bool:
        """True if a node has the token, and not because an older memory has brought it back."""
        return self._token(node) == token.encode() and token.encode() not in node.brought_back

    # -- who holds it -----------------------------------------------------------------------------

    def begin(self, lease: SimLease) -> None:
        """A client has acquired the lock."""
        self.acquired += 1
        self.line.confirmed(lease)
        if self._fenced:
            self._check_fence(lease)
        self._watched = [
            other
            for other in self._watched
            if other.process is not lease.process or other.is_held() or not other.settled
        ]
        self._watched.append(lease)

    def _check_fence(self, lease: SimLease) -> None:
        fence = lease.holding.fence
        if fence in self._fences:
            raise Broken(f"F1: {lease} has the fence {fence}, which another one has")
        before = bisect_left(self._granted, lease.asked)
        if before and self._highest[before - 1] >= fence:
            raise Broken(
                f"F2: {lease} has the fence {fence}, and one that was granted before it was asked"
                f" for has {self._highest[before - 1]}"
            )
        self._fences.add(fence)
        self._granted.append(lease.since)
        self._highest.append(max((fence, *self._highest[-1:])))

    def check(self) -> None:
        """Check what can be seen at any moment."""
        if not self._timed:
            return
        holders = []
        for lease in self._watched:
            if not lease.is_held():
                self._ended.add(lease.token)
                if not lease.settled:
                    self._check_told(lease)
            elif lease.token in self._ended:
                raise Broken(f"no revival: {lease} came back")
            else:
                holders.append(lease)
        if len(holders) > 1:
            raise Broken(f"mutual exclusion: {' and '.join(map(str, holders))} are both held")

    # -- what is said of it -----------------------------------------------------------------------

    def note(self, lease: SimLease, note: Noted) -> None:
        """Somebody says what befell a lease."""
        if self._world.tracing:
            self._world.note(f"{lease}: {_in_words(note)}")
        match note:
            case Kept():
                self.renewed += 1
            case Endangered():
                self._check_warning(lease, note)
            case Lost():
                self.lost += 1
                self._check_loss(lease, note)
        lease.hear(note)

    def _check_told(self, lease: SimLease) -> None:
        """A lease is over, and nobody has said so yet."""
        keeper, now = lease.keeper, self._world.now
        if not keeper.runs or now <= max(keeper.awake_since, lease.since):
            return  # it cannot say so, or is about to
        late = lease.process.now() - lease.holding.valid_until
        if lease.holding.ended or late > SLACK:
            raise Broken(f"loss is told in time: {lease} is over for {late:.3f} s, untold")

    def _check_loss(self, lease: SimLease, note: Lost) -> None:
        if lease.lost is not None:
            raise Broken(f"loss is told in time: {lease} is called lost twice")
        if lease.is_held():
            raise Broken(f"loss is told in time: {lease} is called lost, and still held")
        if note.reason not in FOR_WANT_OF_RENEWAL or not self._timed:
            return
        early = lease.holding.valid_until - lease.process.now()
        if early > SLACK:
            raise Broken(
                f"loss is told in time: {lease} is {note.reason.value} {early:.3f} s early"
            )
        if not self._was_warned_of(lease):
            raise Broken(f"danger is told first: {lease} is {note.reason.value} without a warning")

    def _was_warned_of(self, lease: SimLease) -> bool:
        """True if a warning came, or could not: no keeper warns while it sleeps or waits."""
        end, terms, keeper = lease.holding.valid_until, lease.holding.terms, lease.keeper
        if lease.warned_of == end and lease.warned_at < end:
            return True
        last_chance = end - terms.grace - terms.patience
        awake_since = max(keeper.awake_since, lease.since)
        return not keeper.runs or awake_since >= lease.process.true_time(last_chance)

    def _check_warning(self, lease: SimLease, note: Endangered) -> None:
        if note.valid_until != lease.holding.valid_until:
            raise Broken(f"danger is told first: {lease} is called endangered, of an old end")

    # -- who it is renewed for --------------------------------------------------------------------

    def asks(self, lease: SimLease) -> None:
        """A keeper asks to renew a lease."""
        if not lease.lives():
            raise Broken(f"renewal only for the living: {lease} is renewed, and its owner is dead")

    def died(self, lease: SimLease) -> None:
        """A lease's owner has died."""
        nodes = [node for node in self._nodes if not self._is_unclear(lease, node)]
        until = lease.holding.terms.ttl / (1 - RATE_ERROR) + MOMENT
        self._world.after(until, partial(self._check_lapsed, lease, nodes))

    def _is_unclear(self, lease: SimLease, node: SimNode) -> bool:
        """True if a node's clock is wrong, or it may still be told to renew a lease."""
        threads = lease.process.threads
        return (
            not node.steady
            or self._is_tainted(lease, node)
            or any(thread.channels[node.number].owes(lease.token) for thread in threads)
        )

    def _check_lapsed(self, lease: SimLease, nodes: Sequence[SimNode]) -> None:
        for node in nodes:
            if self._has(node, lease.token) and not self._is_tainted(lease, node):
                raise Broken(
                    f"renewal only for the living: {node} has {lease}, a ttl after its owner's end"
                )

    # -- how it is given back ---------------------------------------------------------------------

    def released(self, thread: Thread, lease: SimLease, outcome: object) -> None:
        """A client was told that its release is done."""
        if isinstance(outcome, Lost):
            self.note(lease, outcome)
        have = [str(node) for node in self._nodes if self._kept(node, lease.token)]
        if outcome is Released.FREED and len(have) >= quorum_of(len(self._nodes)):
            raise Broken(f"release frees: {lease} was freed, but {', '.join(have)} have it")
        self.over(thread, lease.token)

    def over(self, thread: Thread, token: str) -> None:
        """An attempt is over: it must be on its way out at every node."""
        for node, channel in zip(self._nodes, thread.channels, strict=True):
            connection = channel.connection
            if not node.up or connection is None or connection.broken:
                continue
            if connection.told_release(token) or (token, node.number) in thread.tainted:
                continue
            waits = self.line.has(node, token) or connection.carries(Verb.WAIT, token)
            if waits and token.encode() not in node.brought_back:
                raise Broken(
                    f"who leaves is gone: {thread.name} gave up {token[:6]}, {node} was not told"
                )
            if self._kept(node, token) or connection.carries(Verb.REQUEST, token):
                raise Broken(
                    f"release frees: {thread.name} gave up {token[:6]}, and {node} was not told"
                )

    def followed(self, lease: SimLease) -> None:
        """A release is over, and whatever of its renewals is under way has one behind it."""
        self._released[lease.token.encode()] = lease
        for node in self._nodes:
            self._check_released(node)

    # -- what nodes do ----------------------------------------------------------------------------

    def _executed(self, node: SimNode, message: Message, reply: Any) -> None:
        """A node has executed something."""
        command = message.command
        if command is not None and isinstance(reply, list) and not self._outside:
            if reply[0] == LATE:
                self._check_earliness(node, message)
            elif command.verb in WORTH_DOING or _repairs(command.verb, reply):
                self._check_lateness(node, message)
            hands_over = command.claim_ms and self._reserves(node, command.claim_ms)
            if _grants(command.verb, reply) or hands_over:
                self._check_abstention(node)
        self.line.executed(node, message, reply)
        self._check_released(node)

    def _reserves(self, node: SimNode, claim_ms: int) -> bool:
        """True if a node has just reserved the lock for somebody in its line: so long is left."""
        if not (node.store.value(self._key) or b"").startswith(PROMISED):
            return False
        token = self._token(node)
        if token in node.brought_back and not node.steady:  # its clock may have stood still
            return False
        polls = token[SECRET_DIGITS:].startswith(b"-")
        whole = max(claim_ms, POLLED_MS) if polls else claim_ms
        return node.store.call(b"PTTL", self._key) == whole

    def _check_abstention(self, node: SimNode) -> None:
        if node.forgot_us is None or not self._abstention_us:
            return
        early = node.forgot_us + self._abstention_us - node.server.now_us()
        if early > 0:
            raise Broken(
                f"who forgot abstains: {node} lost its memory and grants {early / 1e6:.3f} s early"
            )

    def _check_lateness(self, node: SimNode, message: Message) -> None:
        late_ms = node.server.now_us() / 1000 - message.not_after_ms
        if message.not_after_ms and late_ms > 0:
            raise Broken(
                f"too late is too late: {node} does what {describe(message)} asks for,"
                f" {late_ms:.0f} ms after it was worth doing"
            )

    def _check_earliness(self, node: SimNode, message: Message) -> None:
        left = message.wanted_until - self._world.now
        if self._timed and node.steady and left > 0:
            raise Broken(
                f"too late is too late: {node} calls {describe(message)} late, {left:.3f} s before"
                f" its sender gives up"
            )

    def _check_released(self, node: SimNode) -> None:
        """What was released must not be brought back."""
        token = self._token(node)
        lease = self._released.get(token)
        if lease is None or token in node.brought_back or self._is_tainted(lease, node):
            return
        threads = lease.process.threads
        if not any(thread.channels[node.number].told_release(lease.token) for thread in threads):
            raise Broken(f"released is released: {node} has {lease}, which was released")

    @staticmethod
    def _is_tainted(lease: SimLease, node: SimNode) -> bool:
        """True if a connection broke that was used for this lease: nobody knows what was heard."""
        return any((lease.token, node.number) in thread.tainted for thread in lease.process.threads)

    def progressed(self, since: int) -> None:
        """Everything was healed some time ago, when `since` leases had been acquired."""
        if self.acquired == since:
            raise Broken("progress: nobody acquired the lock after everything had healed")


def _grants(verb: Verb, reply: Any) -> bool:
    """True if a node has given the lock to somebody who did not have it there, or gives it again.

    Also if it accepted a fence, which only a node that may grant does.
    """
    given = verb in WORTH_DOING and reply[0] in (GRANTED, RESERVED)
    return given or _repairs(verb, reply)


def _repairs(verb: Verb, reply: list[Any]) -> bool:
    return verb is Verb.RENEW and reply[0] == -1 and reply[2] == 1


def _in_words(note: Noted) -> str:
    """Put a note into few words for the trace."""
    match note:
        case Lost(reason):
            return f"lost ({reason.value})"
        case _:
            return type(note).__name__.lower()
