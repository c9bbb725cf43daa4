"""What must always hold, checked after every event of a simulated world.

- **mutual exclusion**: at no moment do two clients rely on a lease of the same lock, each by its
  own clock
- **no revival**: a lease that has ended on its holder's clock never comes back
- **release frees**: when a release says FREED, fewer than a quorum of nodes still have the token;
  and when an attempt is over, every node that has its token, or will get it, has been told to drop
  it, unless the connection broke
- **released is released**: once a release is over, no node has its token again without a release
  on its way: no renewal brings it back, unless a connection broke
- **loss is told in time**: a lease that ends without a release is called lost, once, by the end of
  its validity on its holder's own clock, or when its keeper wakes up; and not called expired before
- **danger is told first**: a lease is not lost for want of a renewal without a warning, unless its
  keeper was paused until shortly before; and no warning names an end that has been put off
- **renewal only for the living**: nothing is renewed for an owner that has died, so that its lock
  is free a ttl later, wherever no renewal was under way
- **progress**: after everything has healed, somebody acquires
"""

from collections.abc import Sequence
from functools import partial

from ..core.effects import Noted
from ..core.outcomes import Endangered, Kept, LossReason, Lost, Released
from ..core.tally import quorum_of
from ..core.validity import RATE_ERROR
from ..wire.keys import lock_key
from .lease import SimLease
from .node import SimNode
from .process import Thread
from .world import World

SLACK = 1e-6
"""Seconds: what happens at a time happens by then, however numbers are rounded."""

MOMENT = 0.005
"""Seconds after which a key whose ttl has ended is surely gone: servers count milliseconds."""

FOR_WANT_OF_RENEWAL = (LossReason.EXPIRED, LossReason.UNREACHABLE, LossReason.MAX_HOLD)
"""Losses that come with the end of the validity, and can be seen coming."""


class Broken(AssertionError):
    """A law was broken; the world stops here."""


class Laws:
    """Watches one lock in one world."""

    def __init__(self, world: World, nodes: Sequence[SimNode], name: str) -> None:
        self.acquired = 0
        self.renewed = 0
        """How often a keeper has renewed a lease."""
        self.lost = 0
        self._world = world
        self._nodes = nodes
        self._key = lock_key(name).encode()
        self._watched: list[SimLease] = []
        """Leases until their client has the next one, and nothing is left to say of them."""
        self._ended: set[str] = set()
        self._released: dict[bytes, SimLease] = {}
        """Leases whose release is over, by token."""
        for node in nodes:
            node.after_execution = self._executed

    def _has(self, node: SimNode, token: str) -> bool:
        return node.store.value(self._key) == token.encode()

    # -- who holds it -----------------------------------------------------------------------------

    def begin(self, lease: SimLease) -> None:
        """A client has acquired the lock."""
        self.acquired += 1
        self._watched = [
            other
            for other in self._watched
            if other.process is not lease.process or other.is_held() or not other.settled
        ]
        self._watched.append(lease)

    def check(self) -> None:
        """Check what can be seen at any moment."""
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
        if note.reason not in FOR_WANT_OF_RENEWAL:
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
        """True if a node may still be told to renew a lease, by something under way."""
        threads = lease.process.threads
        return self._is_tainted(lease, node) or any(
            thread.channels[node.number].owes(lease.token) for thread in threads
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
        have = [str(node) for node in self._nodes if self._has(node, lease.token)]
        if outcome is Released.FREED and len(have) >= quorum_of(len(self._nodes)):
            raise Broken(f"release frees: {lease} was freed, but {', '.join(have)} have it")
        self.over(thread, lease.token)

    def over(self, thread: Thread, token: str) -> None:
        """An attempt is over: it must be on its way out at every node."""
        for node, channel in zip(self._nodes, thread.channels, strict=True):
            connection = channel.connection
            if not node.up or connection is None or connection.broken:
                continue
            coming = connection.carries_request(token)
            told = connection.told_release(token)
            tainted = (token, node.number) in thread.tainted
            if (self._has(node, token) or coming) and not told and not tainted:
                raise Broken(
                    f"release frees: {thread.name} gave up {token[:6]}, and {node} was not told"
                )

    def followed(self, lease: SimLease) -> None:
        """A release is over, and whatever of its renewals is under way has one behind it."""
        self._released[lease.token.encode()] = lease
        for node in self._nodes:
            self._executed(node)

    def _executed(self, node: SimNode) -> None:
        """A node has executed something: that must not bring back what was released."""
        lease = self._released.get(node.store.value(self._key) or b"")
        if lease is None or self._is_tainted(lease, node):
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


def _in_words(note: Noted) -> str:
    """Put a note into few words for the trace."""
    match note:
        case Lost(reason):
            return f"lost ({reason.value})"
        case _:
            return type(note).__name__.lower()
