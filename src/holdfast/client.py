"""The blocking client: for threads."""

import contextlib
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from . import options
from .core.acquire import acquire
from .core.holding import Holding
from .core.outcomes import Acquired, Miss, Missed
from .core.terms import Terms
from .drivers.blocking import BlockingDriver
from .drivers.source import SystemSource
from .errors import BadInput, Busy, DuplicateNode, NotHeld, RoundFailed, TimedOut, Unreachable
from .lease import Lease
from .lock import UNSET, Lock
from .naming import NameTemplate
from .reports import reports_of
from .wire import endpoint as endpoints

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_TTL = 30.0
"""Seconds. Long enough for a pause of the process, short enough to wait for after a crash."""

DEFAULT_NODE_TIMEOUT = 0.05
"""Seconds. Many round trips within a region; a hung node costs a round no more than this."""

DEFAULT_CONNECTIONS = 8
"""Per node. A thread uses one only for the length of a round, so a few serve very many threads."""


def connect(
    *nodes: Any,
    ttl: float = DEFAULT_TTL,
    wait: float | None = None,
    node_timeout: float = DEFAULT_NODE_TIMEOUT,
    connections: int = DEFAULT_CONNECTIONS,
) -> "Client":
    """Connect to one node, or to a quorum of independent ones.

    A node is a URL (`redis://`, `rediss://`, `unix://`, `valkey://`, `valkeys://`) or an existing
    redis-py or valkey-py client, whose settings are copied. Without any, `$HOLDFAST_NODES` is read
    (URLs separated by commas or spaces); if that is not set either, the embedded server is used.

    `ttl` and `wait` are the defaults for all locks. `node_timeout` is how long a round waits for a
    slow node, `connections` how many connections per node all threads share.

    The nodes are met before this returns, each for `node_timeout` at most. One that is down is no
    error: a majority is enough, and it may come back. Two addresses that lead to the same server
    are an error (`DuplicateNode`), and so is whatever makes no sense (`BadInput`).
    """
    node_timeout = options.check_node_timeout(node_timeout)
    connections = options.check_connections(connections)
    options.check_ttl(ttl)
    wait = options.check_wait(wait)
    places = [endpoints.read(node) for node in nodes or _nodes_from_environment()]
    for index, place in enumerate(places):
        for other in places[:index]:
            if place.address == other.address:
                raise DuplicateNode(str(other), str(place))
    driver = BlockingDriver(places, connections=connections, node_timeout=node_timeout)
    try:
        clash = driver.meet(node_timeout)
        if clash is not None:
            raise DuplicateNode(*(str(places[node]) for node in clash))
    except BaseException:
        driver.close()
        raise
    return Client(driver, ttl=ttl, wait=wait, node_timeout=node_timeout)


def _nodes_from_environment() -> list[str]:
    given = os.environ.get("HOLDFAST_NODES")
    if given is not None:
        nodes = given.replace(",", " ").split()
        if not nodes:
            raise BadInput("$HOLDFAST_NODES is set and names no node")
        return nodes
    from .embedded import shared_server_url  # only then: it starts a server

    return [shared_server_url()]


class Client:
    """Locks on a set of nodes. Thread-safe; make one per process with `connect()`.

    A forked child may go on using it: it starts with fresh connections, and holds nothing.
    """

    def __init__(
        self, driver: BlockingDriver, *, ttl: float, wait: float | None, node_timeout: float
    ) -> None:
        self._driver = driver
        self._ttl = ttl
        self._wait = wait
        self._node_timeout = node_timeout
        self._source = SystemSource()
        self._own = threading.local()
        _clients.add(self)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes' addresses, without credentials."""
        return tuple(str(endpoint) for endpoint in self._driver.endpoints)

    def lock(self, name: str, *, ttl: float = UNSET, wait: float | None = UNSET) -> Lock:
        """Describe an exclusive lock. Nothing is sent until it is acquired.

        `ttl`: seconds after which the nodes free the lock unless it was renewed or released.
        `wait`: seconds that acquiring may wait; 0 is one try, None as long as it takes.
        """
        terms = Terms(
            options.check_name(name),
            options.check_ttl(self._ttl if ttl is UNSET else ttl),
            len(self._driver.endpoints),
            self._node_timeout,
        )
        return Lock(self, terms, self._wait if wait is UNSET else options.check_wait(wait))

    def try_lock(self, name: str, ttl: float = UNSET) -> Lease | None:
        """Try once to acquire a lock: a lease, or None if somebody else has it."""
        return self.lock(name, ttl=ttl).try_acquire()

    def release_lock(self, name: str) -> None:
        """Release the lock of that name that this thread acquired last.

        Raises `NotHeld` if this thread has none, and `LeaseLost` if it had ended before.
        """
        held = self._held().get(options.check_name(name))
        if not held:
            raise NotHeld(name, "this thread has not acquired it")
        held[-1].release()

    def locked(
        self, template: str, *, ttl: float = UNSET, wait: float | None = UNSET
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function so that each call runs under a lock.

        The lock's name may speak of the function's arguments: `"report:{user_id}"`. Raises what
        `Lock.acquire` raises, before the function is called, and `LeaseLost` after it.
        """
        self.lock("unnamed", ttl=ttl, wait=wait)  # what makes no sense should be heard of at once
        if not isinstance(template, str):
            raise BadInput(f"a lock's name is a string, not {type(template).__name__}")

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            _refuse_what_returns_early(function)
            names = NameTemplate(template, function)

            @functools.wraps(function)
            def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
                with self.lock(names.name(args, kwargs), ttl=ttl, wait=wait):
                    return function(*args, **kwargs)

            return wrapper

        return decorate

    def close(self) -> None:
        """Close the connections. Leases that are still held lapse when their ttl ends."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {', '.join(self.addresses)}>"

    def _acquire(self, terms: Terms, wait: float | None) -> Lease:
        outcome = self._driver.run(lambda now: acquire(terms, self._source, now=now, wait=wait))
        if not isinstance(outcome, Acquired):
            raise self._error(terms.name, outcome)
        held = self._held()
        holding = Holding(terms, outcome.token, outcome.valid_until)
        lease = Lease(self._driver, holding, functools.partial(_forget, held))
        held.setdefault(terms.name, []).append(lease)
        return lease

    def _held(self) -> dict[str, list[Lease]]:
        """What this thread holds, by name; gone when the thread is."""
        try:
            held: dict[str, list[Lease]] = self._own.held
        except AttributeError:
            held = self._own.held = {}
        return held

    def _error(self, name: str, missed: Missed) -> RoundFailed:
        reports = reports_of(self._driver.endpoints, missed.tally)
        match missed.why:
            case Miss.BUSY:
                return Busy(name, reports)
            case Miss.TIMED_OUT:
                return TimedOut(name, reports, missed.waited)
            case Miss.UNREACHABLE:
                return Unreachable(name, reports, missed.waited)

    def _after_fork(self) -> None:
        self._driver.reset()
        self._own = threading.local()


def _forget(held: dict[str, list[Lease]], lease: Lease) -> None:
    """Strike a lease from its thread's list; other threads may release it, so be careful."""
    mine = held.get(lease.name, [])
    with contextlib.suppress(ValueError):
        mine.remove(lease)
    if not mine:
        held.pop(lease.name, None)


def _refuse_what_returns_early(function: Callable[..., Any]) -> None:
    """Refuse functions that have done nothing yet when they return."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(f"{function.__qualname__} is async: this client is for plain functions")
    if inspect.isgeneratorfunction(function):
        raise BadInput(
            f"{function.__qualname__} is a generator: it would run after the lock was released"
        )


_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for client in list(_clients):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
