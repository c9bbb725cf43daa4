"""What a unit test has in hand: a little universe, its clients, and what befalls them."""

import math
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from ...aio import AsyncClient
from ...client import Client
from ...core.place import CLAIM
from ...core.tally import quorum_of
from ...drivers.post import Post
from ...errors import BadInput, NotHeld
from ...events import Event
from ...journal import Journal
from ...lease import Lease
from ...options import check_name, check_on_event
from ...settings import (
    DEFAULT_MAX_HOLD,
    DEFAULT_MAX_TTL,
    DEFAULT_NODE_TIMEOUT,
    DEFAULT_TTL,
    Settings,
    settings_of,
)
from ...wire.keys import lock_key
from .aio import AsyncMemoryDriver
from .blocking import MemoryDriver
from .calls import AtOnce, InTurn
from .chance import SeededSource
from .keeper import MemoryKeeper
from .node import MemoryNode
from .universe import Universe

GRACE = 1.0
"""Seconds of real time. Longer than any step of a unit test on a busy machine."""


class Memory:
    """One or several nodes in memory, under virtual time. Clients of one `Memory` contend.

    Nothing is started, connected or waited for: when somebody waits, time passes at once, unless
    another thread or task is still at work under a lease; then its release ends the wait. The exact
    rules are at the top of `holdfast/testing/memory/time.py`. Real time never moves virtual time:
    code that sleeps by itself does not bring a lease closer to its end, `advance()` does.

    Leases are renewed as virtual time passes, without a thread: renewals, callbacks and hooks are
    made on the thread that makes it pass.

    Clients are the shipped ones and nodes run the shipped Lua, so locks behave as on real nodes.
    There is no network: nothing is late, lost or repeated. For races and outages of that kind take
    real nodes, or the simulated world.

    Thread-safe. A forked child has a copy of its own, and contends with nobody.

    `grace`: for how many real seconds somebody who has a lease and does not speak is thought to be
    at work. `seed`: the chance behind the pauses of those who wait for nodes, the same every time.
    """

    def __init__(self, nodes: int = 1, *, grace: float = GRACE, seed: int = 0) -> None:
        if isinstance(nodes, bool) or not isinstance(nodes, int) or nodes < 1:
            raise BadInput(f"nodes={nodes!r} must be a whole number of at least 1")
        self._universe = Universe(nodes, grace)
        self._random = Random(seed)
        self._max_ttl: float | None = None
        """That of the last client with a guard: all clients of a node must have the same."""

    # -- clients ----------------------------------------------------------------------------------

    def client(
        self,
        *,
        ttl: float = DEFAULT_TTL,
        wait: float | None = None,
        renew: bool = True,
        max_hold: float | None = DEFAULT_MAX_HOLD,
        node_timeout: float = DEFAULT_NODE_TIMEOUT,
        guard: bool | None = None,
        max_ttl: float = DEFAULT_MAX_TTL,
        claim: float = CLAIM,
        label: str | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> Client:
        """Return a `holdfast.Client` of these nodes, set up as by `holdfast.connect`."""
        settings = self._settings(
            ttl=ttl,
            wait=wait,
            renew=renew,
            max_hold=max_hold,
            node_timeout=node_timeout,
            guard=guard,
            max_ttl=max_ttl,
            claim=claim,
            label=label,
        )
        journal = self._journal(on_event)
        post = Post(len(settings.endpoints), journal, settings.label)
        driver = MemoryDriver(self._universe, journal, post)
        if settings.guard.is_on:
            driver.run(settings.bootstrap)  # as `connect` does; it takes no time
        return Client(
            driver,
            settings,
            MemoryKeeper(self._universe, journal),
            journal,
            source=SeededSource(self._random, self._universe, post),
            calls=AtOnce(),
        )

    def async_client(
        self,
        *,
        ttl: float = DEFAULT_TTL,
        wait: float | None = None,
        renew: bool = True,
        max_hold: float | None = DEFAULT_MAX_HOLD,
        node_timeout: float = DEFAULT_NODE_TIMEOUT,
        guard: bool | None = None,
        max_ttl: float = DEFAULT_MAX_TTL,
        claim: float = CLAIM,
        label: str | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> AsyncClient:
        """Return a `holdfast.aio.AsyncClient` of these nodes, as by `holdfast.aio.connect`."""
        settings = self._settings(
            ttl=ttl,
            wait=wait,
            renew=renew,
            max_hold=max_hold,
            node_timeout=node_timeout,
            guard=guard,
            max_ttl=max_ttl,
            claim=claim,
            label=label,
        )
        journal = self._journal(on_event)
        post = Post(len(settings.endpoints), journal, settings.label)
        return AsyncClient(
            AsyncMemoryDriver(self._universe, journal, post),
            settings,
            MemoryKeeper(self._universe, journal),
            journal,
            source=SeededSource(self._random, self._universe, post),
            calls=AtOnce(),
        )

    def _settings(self, **given: object) -> Settings:
        settings = settings_of(
            self._universe.endpoints, **given, durable=False, allow_eviction=False
        )
        if settings.guard.is_on:
            self._max_ttl = settings.guard.max_ttl_ms / 1000
        return settings

    def _journal(self, on_event: object) -> Journal:
        return Journal(self._universe.endpoints, check_on_event(on_event), InTurn())

    # -- time -------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The virtual time: seconds since this universe began."""
        return self._universe.time.now

    def advance(self, seconds: float) -> None:
        """Let virtual time pass: leases are renewed or end, nodes forget, whoever waited wakes up.

        It passes in one go: somebody who waits wakes up at its end, and does not ask in between;
        its place in line is kept for it.
        Renewals, and what `after` has put on the way, are made on the way, on this thread.
        """
        self._universe.time.advance(_duration(seconds))

    def after(self, seconds: float, action: Callable[[], Any]) -> None:
        """Call something when so much virtual time has passed.

        It is called on the thread that makes time pass, by waiting or by `advance()`, between two
        rounds; what it raises is raised there. It must not wait for a lock itself.
        """
        self._universe.time.after(_duration(seconds), action)

    # -- what befalls locks and nodes -------------------------------------------------------------

    def take(self, name: str, *, ttl: float = DEFAULT_TTL, renew: bool = False) -> Lease:
        """Be somebody else who acquires the lock. Returns their lease, to `release()` for them.

        It ends after its ttl, as if they had died; with `renew=True` it is renewed, as long as you
        refer to it. Raises `Busy` if somebody has the lock already: `lose()` it first. Their client
        has a guard, and its `max_ttl`, if one of yours has; its label is "somebody else".
        """
        longest = self._max_ttl or DEFAULT_MAX_TTL
        guarded = self._max_ttl is not None
        client = self.client(guard=guarded, max_ttl=longest, label="somebody else")
        return client.lock(name, ttl=ttl, renew=renew, owner=None).acquire(wait=0)

    def lose(self, name: str) -> None:
        """Delete a lock from all nodes behind its holder's back.

        The holder's keeper finds out at the next renewal: `advance()` to it. Until then `is_held`,
        which asks nobody, stays true; `renew()` and `release()` raise `LeaseLost`. Raises `NotHeld`
        if nobody has the lock, so that a misspelt name does not go unnoticed.
        """
        key = lock_key(check_name(name))
        with self._universe.time.mutex:
            if not any(node.token(key) for node in self._universe.nodes):
                raise NotHeld(name, "no node has it")
            for node in self._universe.nodes:
                node.delete(key)
            self._universe.deleted(name)
            self._universe.time.nudge()

    def holder(self, name: str) -> str | None:
        """Return the token that a quorum of nodes keeps for the lock; None if there is none."""
        key, nodes = lock_key(check_name(name)), self._universe.nodes
        with self._universe.time.mutex:
            votes = Counter(node.token(key) for node in nodes)
        [(token, count)] = votes.most_common(1)
        return token if count >= quorum_of(len(nodes)) else None

    def fail(self, *nodes: int) -> None:
        """Make nodes unreachable, all of them if none is named. What they have stored stays."""
        self._reach(nodes, reachable=False)

    def heal(self, *nodes: int) -> None:
        """Make nodes reachable again, all of them if none is named."""
        self._reach(nodes, reachable=True)

    def forget(self, *nodes: int) -> None:
        """Restart nodes without their memory, all of them if none is named.

        They have no locks any more, and know it: for clients with a guard (by default those of more
        than one node) such a node abstains from when it is next asked, until nothing that it may
        have forgotten can still be held; that is `max_ttl` and a little. Without a guard it grants
        at once what somebody still holds. What is known of it: `client.nodes.status()`.
        """
        with self._universe.time.mutex:
            for node in self._named(nodes):
                node.forget()
                self._universe.disturbed(node)
            self._universe.time.nudge()

    def _reach(self, numbers: tuple[int, ...], *, reachable: bool) -> None:
        with self._universe.time.mutex:
            for node in self._named(numbers):
                node.reachable = reachable
                self._universe.disturbed(node)

    def _named(self, numbers: tuple[int, ...]) -> list[MemoryNode]:
        """Return nodes by number, all of them if none is named. Raises `BadInput`."""
        nodes = self._universe.nodes
        for number in numbers:
            if number not in range(len(nodes)):
                raise BadInput(f"there is no node {number!r}: they are 0 to {len(nodes) - 1}")
        return [nodes[number] for number in numbers or range(len(nodes))]

    def __repr__(self) -> str:
        return f"<Memory of {len(self._universe.nodes)} node(s) at {self.now:.3f} s>"


def _duration(seconds: float) -> float:
    if not 0 <= seconds < math.inf:
        raise BadInput(f"{seconds} s is not a time that can pass")
    return float(seconds)
