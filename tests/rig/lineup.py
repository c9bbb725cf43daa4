"""People who wait for one lock, lined up one by one, and what nodes know of them."""

import subprocess
import threading
from collections.abc import Sequence
from typing import Any

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from holdfast.inspection import Waiter
from holdfast.wire.keys import lock_key, queue_key
from rig.actor import Actor, HeldLease
from rig.servers import holders
from rig.waiting import PATIENCE, until

HEARTBEAT = 1.0
"""Seconds after which who waits asks again, whatever happens."""

CLAIM = 0.3
"""Seconds for which a lock is reserved for whom it is handed over to, unless a client says more."""

SLACK = 5.0
"""Seconds. What a busy machine may take for everything that is not waiting."""


SOME = pytest.mark.parametrize(
    ("nodes", "colour"),
    [(("valkey", 1), "asyncio"), (("valkey", 3), "blocking")],
    indirect=True,
    ids=["1-asyncio", "3-blocking"],
)
"""For tests that start processes, which take their time."""


class Guest:
    """Somebody who waits for a lock on a thread of its own, and has it until told to leave."""

    def __init__(self, line: "LineUp", number: int, actor: Actor, options: dict[str, Any]) -> None:
        self.number = number
        self.lease: HeldLease | None = None
        self.error: BaseException | None = None
        self._line = line
        self._actor = actor
        self._options = options
        self._done = threading.Event()
        self._may_leave = threading.Event()
        self._thread = threading.Thread(target=self._visit, daemon=True)
        self._thread.start()

    def _visit(self) -> None:
        try:
            lease = self._actor.acquire(self._line.name, **self._options)
            self._line.served.append(self.number)
            self._line.fences.append(lease.fence)  # type: ignore[attr-defined]  # all leases do
            self.lease = lease
            if not self._line.hurried:
                assert self._may_leave.wait(2 * PATIENCE)
            lease.release()
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            self.error = error
        finally:
            self._done.set()

    @property
    def has_it(self) -> bool:
        """True once the lock was acquired."""
        return self.lease is not None

    def be_served(self, *, within: float = PATIENCE) -> HeldLease:
        """Wait until the lock is acquired; return the lease."""
        until(lambda: self.lease or self._done.is_set(), within=within, what=f"for {self.number}")
        if self.error is not None:
            raise self.error
        assert self.lease is not None
        return self.lease

    def leave(self) -> None:
        """Release, and wait until that is done."""
        self._may_leave.set()
        assert self._done.wait(PATIENCE)
        if self.error is not None:
            raise self.error

    def fail(self, *, within: float = PATIENCE) -> BaseException:
        """Wait until waiting has ended in vain; return why."""
        until(self._done.is_set, within=within)
        assert self.error is not None
        return self.error

    def end(self) -> None:
        """Let the thread end, whatever it does."""
        self._may_leave.set()
        self._thread.join(PATIENCE)


class LineUp:
    """Who waits for one lock, in the order of their numbers, and who was served when."""

    def __init__(self, name: str, look: holdfast.Lock, *, nodes: int) -> None:
        self.name = name
        self.look = look
        self._quorum = nodes // 2 + 1
        self.served: list[int] = []
        self.fences: list[int] = []
        self.hurried = False
        """True to let everybody leave as soon as they have it."""
        self._others = 0
        """How many others stand in line, as far as was said."""
        self.lenient = False
        """True if it is no surprise that somebody waits in vain."""
        self.guests: list[Guest] = []

    def join(self, actor: Actor, **options: Any) -> Guest:
        """Let somebody wait, and wait until it stands in line."""
        return self.join_all([actor], **options)[0]

    def join_all(self, actors: Sequence[Actor], **options: Any) -> list[Guest]:
        """Let several wait, in any order, and wait until all stand in line."""
        options = {"ttl": 30, "wait": 30, **options}
        begun = len(self.guests)
        for number, actor in enumerate(actors, begun):
            self.guests.append(Guest(self, number, actor, options))
        self.expect(self._waiting + self._others)
        return self.guests[begun:]

    @property
    def _waiting(self) -> int:
        """How many guests wait. Nodes may know somebody who starts anew twice, for a moment."""
        return sum(not guest.has_it and guest.error is None for guest in self.guests)

    def expect(self, count: int, *, within: float = PATIENCE) -> None:
        """Wait until so many stand in line, guests and others, each at a quorum of nodes.

        From then on, and not before, nobody who comes is served before them.
        """
        self._others = count - self._waiting
        seen: list[Waiter] = []

        def is_so() -> bool:
            seen[:] = self.look.waiters()
            failed = [guest.error for guest in self.guests if guest.error and not guest.lease]
            if failed and not self.lenient:
                raise failed[0]
            return len(seen) == count and all(each.nodes >= self._quorum for each in seen)

        until(is_so, within=within, what=f"for {count} in line")

    def hurry(self) -> None:
        """Let everybody have the lock in turn, and wait until all have had it."""
        self.hurried = True
        for guest in self.guests:
            guest._may_leave.set()
        for guest in self.guests:
            guest.leave()

    def close(self) -> None:
        """End all threads."""
        for guest in self.guests:
            guest._may_leave.set()
        for guest in self.guests:
            guest.end()


def in_line(node: ThrowawayNode, name: str) -> list[str]:
    """Return the tokens in a node's queue, in order."""
    joined = "return table.concat(redis.call('ZRANGE', KEYS[1], 0, -1), ' ')"
    return (node.call("EVAL", joined, "1", queue_key(name)) or "").split()


def nothing_left(nodes: Sequence[ThrowawayNode], name: str) -> bool:
    """True if nobody has the lock, nobody waits, and it is reserved for nobody, on any node."""
    return not holders(list(nodes), name) and not any(in_line(node, name) for node in nodes)


def delete(nodes: Sequence[ThrowawayNode], name: str) -> None:
    """Delete a lock behind its holder's back."""
    for node in nodes:
        node.call("DEL", lock_key(name))


def hear(process: "subprocess.Popen[str]", words: str) -> None:
    """Wait until a process says something; fail with what it complains of if it does not."""
    line = process.stdout.readline()
    assert line == f"{words}\n", line + (process.stderr.read() if not line else "")
