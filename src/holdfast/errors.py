"""Everything that can go wrong, as one tree.

    HoldfastError
    ├── BadInput (ValueError)            nothing was sent
    │   ├── DuplicateNode                two addresses, one server
    │   └── EvictingNode                 a server that may throw away keys
    ├── EmbeddedServerError              the embedded server is not installed or does not start
    ├── ClientClosed (RuntimeError)      close() was called
    ├── NotConfirmed (ConnectionError)   a node has not confirmed what it was told about itself
    ├── RoundFailed                      carries a report per node
    │   ├── Busy                         somebody else has it, and you did not want to wait
    │   ├── TimedOut (TimeoutError)      somebody else still had it after your wait
    │   └── Unreachable (ConnectionError)  too few nodes could vote
    ├── LeaseError (RuntimeError)
    │   ├── LeaseLost                    it was yours and ended without your release
    │   └── NotHeld                      it is not yours to release or renew
    └── FencedOff                        the resource has seen a later lease than yours

Fields first, the message is derived from them; all of them survive pickling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .core.outcomes import LossReason


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What one node said in the last round."""

    node: str
    """The node's address, without credentials."""
    answer: str
    """Its vote in words."""

    def __str__(self) -> str:
        return f"{self.node}: {self.answer}"


class HoldfastError(Exception):
    """The parent of all errors of holdfast."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.__dict__ | {"args": self.args})


def _rebuild(kind: type[HoldfastError], state: dict[str, object]) -> HoldfastError:
    error = kind.__new__(kind)
    error.args = state.pop("args")  # type: ignore[assignment]  # what __reduce__ put there
    error.__dict__.update(state)
    return error


class BadInput(HoldfastError, ValueError):
    """An argument makes no sense. Nothing was sent to any node."""


class DuplicateNode(BadInput):
    """Two of the given addresses lead to the same server, which must not vote twice."""

    def __init__(self, first: str, second: str) -> None:
        self.first = first
        self.second = second
        super().__init__(
            f"{first} and {second} are the same server; a quorum needs independent nodes"
        )


class EvictingNode(BadInput):
    """A server is set up to throw away keys when it is full, and locks are keys."""

    def __init__(self, node: str, policy: str) -> None:
        self.node = node
        self.policy = policy
        super().__init__(
            f"{node} may evict keys (maxmemory-policy {policy}), and locks are keys; hint: give"
            " locks a server with noeviction, or say allow_eviction=True"
        )


class EmbeddedServerError(HoldfastError):
    """The embedded server is not installed, or does not start."""


class ClientClosed(HoldfastError, RuntimeError):
    """The client was closed."""


class NotConfirmed(HoldfastError, ConnectionError):
    """Some nodes have not confirmed what they were told; the others have done it."""

    def __init__(self, what: str, reports: Sequence[NodeReport]) -> None:
        self.what = what
        self.reports = tuple(reports)
        lines = "".join(f"\n  {report}" for report in self.reports)
        super().__init__(f"nodes.{what}: not confirmed by{lines}")


class RoundFailed(HoldfastError):
    """The lock could not be acquired or renewed; `reports` says what every node answered."""

    def __init__(self, name: str, reports: Sequence[NodeReport], what: str) -> None:
        self.name = name
        self.reports = tuple(reports)
        lines = "".join(f"\n  {report}" for report in self.reports)
        super().__init__(f"lock {name!r}: {what}{lines}")


class Busy(RoundFailed):
    """Somebody else has the lock."""

    def __init__(self, name: str, reports: Sequence[NodeReport]) -> None:
        super().__init__(name, reports, "busy: somebody else has it")


class TimedOut(RoundFailed, TimeoutError):
    """Somebody else still had the lock when the wait was over."""

    def __init__(self, name: str, reports: Sequence[NodeReport], waited: float) -> None:
        self.waited = waited
        super().__init__(name, reports, f"timed out: somebody else had it for {waited:.3f} s")


class Unreachable(RoundFailed, ConnectionError):
    """Too few nodes could vote: nobody knows who has the lock."""

    def __init__(self, name: str, reports: Sequence[NodeReport], waited: float) -> None:
        self.waited = waited
        super().__init__(name, reports, f"unreachable: too few nodes could vote ({waited:.3f} s)")


class LeaseError(HoldfastError, RuntimeError):
    """Something is wrong with a lease."""


class LeaseLost(LeaseError):
    """The lease ended without a release: what it covered was unprotected since."""

    def __init__(self, name: str, reason: LossReason) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"the lease of lock {name!r} was lost: {reason.value}")


class NotHeld(LeaseError):
    """There is no lease of that lock that you could release or renew."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(f"lock {name!r} is not held: {why}")


class FencedOff(HoldfastError):
    """A resource has refused: it has seen a later lease's fence. Nothing was written.

    Whoever raised this had lost its lease, and may not have noticed: start again by acquiring.
    """

    def __init__(self, resource: str, fence: int, last: int) -> None:
        self.resource = resource
        self.fence = fence
        self.last = last
        super().__init__(f"resource {resource!r}: fence {fence} is refused, it has seen {last}")
