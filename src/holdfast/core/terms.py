"""What is asked for: one lock's name and times, over so many nodes."""

from math import inf

from . import validity
from .effects import Command, Verb
from .guard import NO_GUARD, Guard
from .tally import quorum_of


class Terms:
    """A lock's terms, checked and fixed before the first round, and what follows from them."""

    __slots__ = (
        "grace", "grain", "guard", "lead", "max_hold", "name", "nodes", "patience", "quorum",
        "renewing", "ttl", "ttl_ms", "validity",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        ttl_ms: int,
        nodes: int,
        node_timeout: float,
        *,
        renewing: bool = True,
        max_hold: float | None = None,
        grace: float | None = None,
        guard: Guard = NO_GUARD,
    ) -> None:
        self.name = name
        self.nodes = nodes
        self.quorum = quorum_of(nodes)
        self.ttl_ms = ttl_ms
        self.ttl = ttl_ms / 1000
        """The ttl in seconds, as the nodes will count it."""
        self.patience = validity.patience(node_timeout, self.ttl)
        """How long a round waits for slow nodes, in seconds."""
        self.guard = guard
        """What the nodes are told of the guard."""
        self.validity = validity.valid_until(0.0, self.ttl) - guard.tolerance
        """How long a lease may be believed in, counted from before its round was sent (L1)."""
        self.renewing = renewing
        """True if the keeper renews its leases."""
        self.max_hold = inf if max_hold is None else max_hold
        """How long a lease may be held, however often it is renewed."""
        self.grace = self.ttl * validity.GRACE_SHARE if grace is None else grace
        """How long before its end a lease that could not be renewed is called endangered."""
        self.grain = validity.grain(self.ttl)
        """Renewals are due at multiples of this, so that many go together."""
        first_renewal = self.ttl * validity.RENEW_SHARE - self.grain if renewing else inf
        self.lead = min(first_renewal, min(self.validity, self.max_hold) - self.grace)
        """How long a new lease needs nobody's care."""

    def request(self, token: str, stamp: int) -> Command:
        """Ask for the lock, for an attempt named by `token`, and propose its fence."""
        return Command(Verb.REQUEST, self.name, token, self.ttl_ms, stamp, self.guard)

    def raise_(self, token: str, stamp: int) -> Command:
        """Propose a higher fence for a lock that is ours."""
        return Command(Verb.RAISE, self.name, token, self.ttl_ms, stamp, self.guard)

    def renew(self, token: str, fence: int) -> Command:
        """Ask for the full ttl again, and for votes that are missing."""
        return Command(Verb.RENEW, self.name, token, self.ttl_ms, fence, self.guard)

    def release(self, token: str, *, repaired: bool = False) -> Command:
        """Give back whatever that token has.

        `repaired`: somebody has asked to repair it, and might still be heard. Nodes then take note
        of the release, for longer than any renewal of the lease may be on its way.
        """
        return Command(Verb.RELEASE, self.name, token, self.ttl_ms + 1000 if repaired else 0)
