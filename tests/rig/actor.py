"""What a conformance test does with a client, as plain calls.

The blocking client's adapter translates nothing. A client of another colour joins the suite with an
adapter that runs its calls to their end behind the same names.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import holdfast


class HeldLease(Protocol):
    """A lease, as a test sees it."""

    name: str
    token: str
    ttl: float
    valid_for: float
    is_held: bool

    def ensure_held(self) -> None: ...
    def renew(self) -> None: ...
    def release(self) -> holdfast.Released: ...


class Actor(Protocol):
    """Somebody who wants locks, with a client of its own."""

    def acquire(self, name: str, *, ttl: float = 10, wait: float | None = 10) -> HeldLease: ...
    def try_acquire(self, name: str, *, ttl: float = 10) -> HeldLease | None: ...
    def holding(
        self, name: str, *, ttl: float = 10, wait: float | None = 10
    ) -> AbstractContextManager[HeldLease]: ...
    def try_lock(self, name: str, ttl: float = 10) -> HeldLease | None: ...
    def release_lock(self, name: str) -> None: ...
    def locked(self, template: str, **options: Any) -> Callable[..., Callable[..., Any]]: ...
    def close(self) -> None: ...


class BlockingActor:
    """The blocking client's adapter."""

    def __init__(self, *nodes: str, **options: Any) -> None:
        self.client = holdfast.connect(*nodes, **options)

    def acquire(self, name: str, *, ttl: float = 10, wait: float | None = 10) -> HeldLease:
        return self.client.lock(name, ttl=ttl).acquire(wait=wait)

    def try_acquire(self, name: str, *, ttl: float = 10) -> HeldLease | None:
        return self.client.lock(name, ttl=ttl).try_acquire()

    def holding(
        self, name: str, *, ttl: float = 10, wait: float | None = 10
    ) -> AbstractContextManager[HeldLease]:
        return self.client.lock(name, ttl=ttl, wait=wait)

    def try_lock(self, name: str, ttl: float = 10) -> HeldLease | None:
        return self.client.try_lock(name, ttl=ttl)

    def release_lock(self, name: str) -> None:
        self.client.release_lock(name)

    def locked(self, template: str, **options: Any) -> Callable[..., Callable[..., Any]]:
        return self.client.locked(template, **options)

    def close(self) -> None:
        self.client.close()


ACTORS: dict[str, Callable[..., Actor]] = {"blocking": BlockingActor}
