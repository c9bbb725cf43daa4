"""The blocking client: for threads."""

import functools
import inspect
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from .core.acquire import acquire
from .core.effects import Source
from .core.holding import Holding
from .core.outcomes import Acquired
from .core.terms import Terms
from .drivers.blocking import BlockingDriver
from .drivers.port import BlockingPort
from .drivers.source import SystemSource
from .errors import BadInput, DuplicateNode
from .forking import after_fork
from .lease import Lease
from .lock import Lock
from .naming import NameTemplate, name_of
from .options import check_connections, check_name
from .reports import error_of
from .settings import (
    DEFAULT_CONNECTIONS,
    DEFAULT_NODE_TIMEOUT,
    DEFAULT_TTL,
    UNSET,
    Settings,
    read_settings,
)
from .shelf import Shelf

P = ParamSpec("P")
R = TypeVar("R")


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
    connections = check_connections(connections)
    settings = read_settings(nodes, ttl=ttl, wait=wait, node_timeout=node_timeout)
    driver = BlockingDriver(
        settings.endpoints, connections=connections, node_timeout=settings.node_timeout
    )
    try:
        clash = driver.meet(settings.node_timeout)
        if clash is not None:
            raise DuplicateNode(*clash)
    except BaseException:
        driver.close()
        raise
    return Client(driver, settings)


class Client:
    """Locks on a set of nodes. Thread-safe; make one per process with `connect()`.

    A forked child may go on using it: it starts with fresh connections, and holds nothing.
    """

    def __init__(
        self, driver: BlockingPort, settings: Settings, source: Source | None = None
    ) -> None:
        self._driver = driver
        self._settings = settings
        self._source = source or SystemSource()
        self._own = threading.local()
        after_fork(self)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes' addresses, without credentials."""
        return tuple(str(endpoint) for endpoint in self._settings.endpoints)

    def lock(self, name: str, *, ttl: float = UNSET, wait: float | None = UNSET) -> Lock:
        """Describe an exclusive lock. Nothing is sent until it is acquired.

        `ttl`: seconds after which the nodes free the lock unless it was renewed or released.
        `wait`: seconds that acquiring may wait; 0 is one try, None as long as it takes.
        """
        settings = self._settings
        return Lock(self, settings.terms(name, ttl), settings.wait_of(wait))

    def try_lock(self, name: str, ttl: float = UNSET) -> Lease | None:
        """Try once to acquire a lock: a lease, or None if somebody else has it."""
        return self.lock(name, ttl=ttl).try_acquire()

    def release_lock(self, name: str) -> None:
        """Release the lock of that name that this thread acquired last.

        Raises `NotHeld` if this thread has none, and `LeaseLost` if it had ended before.
        """
        self._shelf().latest(check_name(name), "thread").release()

    def locked(
        self, template: str, *, ttl: float = UNSET, wait: float | None = UNSET
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorate a function so that each call runs under a lock.

        The lock's name may speak of the function's arguments: `"report:{user_id}"`. Raises what
        `Lock.acquire` raises, before the function is called, and `LeaseLost` after it.
        """
        self.lock("unnamed", ttl=ttl, wait=wait)  # what makes no sense should be heard of at once

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
        since = self._driver.now()
        outcome = self._driver.run(
            lambda now: acquire(terms, self._source, now=now, wait=wait, since=since)
        )
        if not isinstance(outcome, Acquired):
            raise error_of(self._settings.endpoints, terms.name, outcome)
        shelf = self._shelf()
        holding = Holding(terms, outcome.token, outcome.valid_until)
        lease = Lease(self._driver, holding, shelf.forget)
        shelf.put(lease)
        return lease

    def _shelf(self) -> Shelf[Lease]:
        """What this thread holds; gone when the thread is."""
        try:
            shelf: Shelf[Lease] = self._own.shelf
        except AttributeError:
            shelf = self._own.shelf = Shelf()
        return shelf

    def _after_fork(self) -> None:
        """Start anew in a forked child: nothing of the parent's is ours."""
        self._driver.reset()
        self._own = threading.local()


def _refuse_what_returns_early(function: Callable[..., Any]) -> None:
    """Refuse functions that have done nothing yet when they return."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(f"{name_of(function)} is async: this client is for plain functions")
    if inspect.isgeneratorfunction(function):
        raise BadInput(
            f"{name_of(function)} is a generator: it would run after the lock was released"
        )
