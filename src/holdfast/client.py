"""The blocking client: for threads."""

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar

from .calls import Caller, SideBySide
from .core.acquire import acquire
from .core.effects import Source
from .core.holding import Holding
from .core.outcomes import Acquired
from .core.place import CLAIM
from .core.terms import Terms
from .drivers.blocking import BlockingDriver
from .drivers.port import BlockingPort
from .drivers.roster import refuse
from .drivers.source import SystemSource
from .errors import BadInput
from .events import Event
from .forking import after_fork
from .home import Home
from .journal import Journal, Stats
from .keeper.keeper import Keeper
from .keeper.port import KeeperPort
from .lease import Lease
from .lock import Lock
from .naming import NameTemplate, name_of
from .nodes import Nodes
from .options import check_connections, check_name, check_on_event, check_owner
from .reports import error_of
from .settings import (
    DEFAULT_CONNECTIONS,
    DEFAULT_MAX_HOLD,
    DEFAULT_MAX_TTL,
    DEFAULT_NODE_TIMEOUT,
    DEFAULT_TTL,
    UNSET,
    Settings,
    read_settings,
)
from .shelf import Shelf

P = ParamSpec("P")
R = TypeVar("R")

FAREWELL = 1.0
"""Seconds that closing gives the keeper to end its connections; it never needs as long."""


def connect(
    *nodes: Any,
    ttl: float = DEFAULT_TTL,
    wait: float | None = None,
    renew: bool = True,
    max_hold: float | None = DEFAULT_MAX_HOLD,
    node_timeout: float = DEFAULT_NODE_TIMEOUT,
    guard: bool | None = None,
    max_ttl: float = DEFAULT_MAX_TTL,
    durable: bool = False,
    allow_eviction: bool = False,
    claim: float = CLAIM,
    label: str | None = None,
    connections: int = DEFAULT_CONNECTIONS,
    on_event: Callable[[Event], object] | None = None,
) -> "Client":
    """Connect to one node, or to a quorum of independent ones.

    A node is a URL (`redis://`, `rediss://`, `unix://`, `valkey://`, `valkeys://`) or an existing
    redis-py or valkey-py client, whose settings are copied. Without any, `$HOLDFAST_NODES` is read
    (URLs separated by commas or spaces); if that is not set either, the embedded server is used.

    `ttl`, `wait`, `renew` and `max_hold` are the defaults for all locks. `node_timeout` is how long
    a round waits for a slow node, `connections` how many connections per node all threads share;
    the keeper, which renews leases in the background, has one more. `on_event` is called with a
    record of everything worth counting: see `holdfast.events`.

    `guard` makes nodes abstain that may have forgotten locks (restarted empty, flushed, failed
    over, clock set) until every lease that they may have forgotten has ended; by default it is on
    for more than one node. All clients of a node must have the same `max_ttl`: the longest ttl
    that any of them may use. `durable` lets nodes vote at once after a restart if they have every
    write on their disks before they answer (appendonly yes, appendfsync always,
    no-appendfsync-on-rewrite no; that is checked). `allow_eviction` lets in servers that may throw
    away keys when they are full, which are refused otherwise. See docs/forgetting.md.

    Who waits stands in line, and is called when it is its turn. `claim` is for how many seconds a
    lock is reserved for whom it is handed over to; `label` is what this client is called where
    others look at its locks, the program's name if nothing is said. See docs/waiting.md.

    The nodes are met before this returns, each for `node_timeout` at most. One that is down is no
    error: a majority is enough, and it may come back. Two addresses that lead to the same server
    are an error (`DuplicateNode`), and so are a server that evicts keys (`EvictingNode`) and
    whatever makes no sense (`BadInput`).
    """
    connections = check_connections(connections)
    hook = check_on_event(on_event)
    settings = read_settings(
        nodes,
        ttl=ttl,
        wait=wait,
        renew=renew,
        max_hold=max_hold,
        node_timeout=node_timeout,
        guard=guard,
        max_ttl=max_ttl,
        durable=durable,
        allow_eviction=allow_eviction,
        claim=claim,
        label=label,
    )
    journal = Journal(settings.endpoints, hook)
    fleet = settings.fleet(journal)
    driver = BlockingDriver(fleet, connections=connections, node_timeout=settings.node_timeout)
    try:
        refuse(driver.meet(settings.node_timeout))
        if fleet.guard.is_on:
            driver.run(settings.bootstrap)
    except BaseException:
        driver.close()
        raise
    return Client(
        driver, settings, Keeper(fleet, listening=True), journal, source=SystemSource(fleet)
    )


class Client:
    """Locks on a set of nodes. Thread-safe; make one per process with `connect()`.

    A forked child may go on using it: it starts with fresh connections, and holds nothing.
    """

    def __init__(
        self,
        driver: BlockingPort,
        settings: Settings,
        keeper: KeeperPort,
        journal: Journal,
        *,
        source: Source,
        calls: Caller | None = None,
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._keeper = keeper
        self._journal = journal
        self._source = source
        self._own = threading.local()
        calls = calls or SideBySide("holdfast-callback")
        self._home = Home(driver, keeper, journal, calls, self._shelf, source)
        after_fork(self)

    @property
    def nodes(self) -> Nodes:
        """The nodes themselves: what they remember, and how to tell them otherwise."""
        return Nodes(self._driver, self._settings)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes' addresses, without credentials."""
        return tuple(str(endpoint) for endpoint in self._settings.endpoints)

    def lock(
        self,
        name: str,
        *,
        ttl: float = UNSET,
        wait: float | None = UNSET,
        renew: bool = UNSET,
        max_hold: float | None = UNSET,
        grace: float | None = None,
        owner: Literal["caller"] | None = "caller",
    ) -> Lock:
        """Describe an exclusive lock. Nothing is sent until it is acquired.

        - `ttl`: seconds after which the nodes free the lock unless it was renewed or released.
        - `wait`: seconds that acquiring may wait; 0 is one try, None as long as it takes.
        - `renew`: False for a lease that simply ends after its ttl.
        - `max_hold`: seconds after which renewal stops and the lease is lost; None is never.
        - `grace`: how many seconds before its end a lease that could not be renewed counts as
          endangered; a sixth of the ttl if it is not given.
        - `owner`: as long as whom leases are renewed: the thread that acquires them, or with None
          the whole process.
        """
        settings = self._settings
        terms = settings.terms(name, ttl, renew, max_hold, grace)
        return Lock(self, terms, settings.wait_of(wait), tied=check_owner(owner))

    def try_lock(
        self,
        name: str,
        ttl: float = UNSET,
        *,
        renew: bool = UNSET,
        max_hold: float | None = UNSET,
        grace: float | None = None,
        owner: Literal["caller"] | None = "caller",
    ) -> Lease | None:
        """Try once to acquire a lock: a lease, or None if somebody else has it.

        The lease need not be kept: `release_lock` knows it by name.
        """
        lock = self.lock(name, ttl=ttl, renew=renew, max_hold=max_hold, grace=grace, owner=owner)
        lease = lock.try_acquire()
        if lease is not None:
            lease._shelf.keep(lease)
        return lease

    def release_lock(self, name: str) -> None:
        """Release the lock of that name that this thread (or `owner=None`) acquired last.

        Raises `NotHeld` if this thread has none, and `LeaseLost` if it had ended before. A lease of
        `try_lock` is known by name until then; one of `Lock.acquire` as long as you refer to it.
        """
        self._home.by_name(check_name(name), "thread").release()

    def locked(
        self,
        template: str,
        *,
        ttl: float = UNSET,
        wait: float | None = UNSET,
        renew: bool = UNSET,
        max_hold: float | None = UNSET,
        grace: float | None = None,
        owner: Literal["caller"] | None = "caller",
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function so that each call runs under a lock.

        The lock's name may speak of the function's arguments: `"report:{user_id}"`. Raises what
        `Lock.acquire` raises, before the function is called, and `LeaseLost` after it.
        """
        lock = functools.partial(
            self.lock,
            ttl=ttl,
            wait=wait,
            renew=renew,
            max_hold=max_hold,
            grace=grace,
            owner=owner,
        )
        lock("unnamed")  # what makes no sense should be heard of at once

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            _refuse_what_returns_early(function)
            names = NameTemplate(template, function)

            @functools.wraps(function)
            def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                with lock(names.name(args, kwargs)):
                    return function(*args, **kwargs)

            return wrapper

        return decorate

    def stats(self) -> Stats:
        """Return what this client has counted: leases held, renewals, late ones, losses."""
        return self._journal.stats(self._keeper.held())

    def close(self) -> None:
        """Close the connections, and end the keeper.

        Leases that are still held are not renewed any more and lapse when their ttl ends; nobody is
        called about it.
        """
        self._driver.close()
        self._keeper.stop(FAREWELL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> str:
        raise TypeError("a client belongs to its process: make one in each, do not pickle it")

    def __repr__(self) -> str:
        return f"<Client of {', '.join(self.addresses)}>"

    def _acquire(self, terms: Terms, wait: float | None, *, tied: bool) -> Lease:
        keeper, since = self._keeper, self._driver.now()
        keeper.ready(needed=terms.renewing)
        outcome = self._driver.run(
            lambda now: acquire(terms, self._source, now=now, wait=wait, since=since)
        )
        if not isinstance(outcome, Acquired):
            raise error_of(self._settings.endpoints, terms.name, outcome, terms.guard)
        shelf = self._shelf() if tied else self._home.common
        holding = Holding(terms, outcome.token, outcome.valid_until, outcome.fence)
        lease = Lease(self._home, holding, shelf)
        shelf.put(lease)
        keeper.keep(lease)
        if self._journal.hook is not None:
            self._journal.acquired(holding, self._driver.now() - since)
        return lease

    def _shelf(self) -> Shelf[Lease]:
        """What this thread holds; gone when the thread is."""
        try:
            shelf: Shelf[Lease] = self._own.shelf
        except AttributeError:
            shelf = self._own.shelf = Shelf(threading.current_thread())
        return shelf

    def _after_fork(self) -> None:
        """Start anew in a forked child: nothing of the parent's is ours."""
        self._driver.reset()
        self._keeper.reset()
        self._journal.reset()
        self._home.calls.reset()
        self._own = threading.local()


def _refuse_what_returns_early(function: Callable[..., Any]) -> None:
    """Refuse functions that have done nothing yet when they return."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(f"{name_of(function)} is async: this client is for plain functions")
    if inspect.isgeneratorfunction(function):
        raise BadInput(
            f"{name_of(function)} is a generator: it would run after the lock was released"
        )
