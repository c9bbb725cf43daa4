"""What is asked for: one lock's name and times, over so many nodes."""

from math import inf

from . import validity
from .effects import Command, Verb
from .guard import NO_GUARD, Guard
from .place import CLAIM, Place
from .tally import quorum_of

NOBODY = "-"
"""The token of whoever asks in nobody's name."""


class Terms:
    """A lock's terms, checked and fixed before the first round, and what follows from them."""

    __slots__ = (
        "claim", "claim_ms", "grace", "grain", "guard", "lead", "max_hold", "name", "nodes",
        "patience", "quorum", "renewing", "ttl", "ttl_ms", "validity",
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
        claim: float = CLAIM,
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
        self.claim = claim
        """For how many seconds the lock is reserved for whom it is handed over to."""
        self.claim_ms = int(claim * 1000)
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

    def request(self, token: str, stamp: int, place: Place = Place.NOWHERE) -> Command:
        """Ask for the lock, for an attempt named by `token`, and propose its fence.

        With a place, wait in line for it if it is not to be had.
        """
        return Command(
            Verb.REQUEST, self.name, token, self.ttl_ms, stamp, self.guard, place, self.claim_ms
        )

    def wait(self, token: str, stamp: int, place: Place) -> Command:
        """Wait in line for the lock."""
        return Command(Verb.WAIT, self.name, token, 0, stamp, self.guard, place, self.claim_ms)

    def inspect(self) -> Command:
        """Ask who has the lock and who waits for it."""
        return Command(Verb.INSPECT, self.name, NOBODY, 0, 0, self.guard)

    def raise_(self, token: str, stamp: int) -> Command:
        """Propose a higher fence for a lock that is ours."""
        return Command(Verb.RAISE, self.name, token, self.ttl_ms, stamp, self.guard)

    def renew(self, token: str, fence: int) -> Command:
        """Ask for the full ttl again, and for votes that are missing."""
        return Command(Verb.RENEW, self.name, token, self.ttl_ms, fence, self.guard)

    def release(self, token: str, *, repaired: bool = False, stamp: int = 0) -> Command:
        """Give back whatever that token has, and its place in line; propose the next lease's fence.

        `repaired`: somebody has asked to repair it, and might still be heard. Nodes then take note
        of the release, for longer than any renewal of the lease may be on its way.
        """
        noted = self.ttl_ms + 1000 if repaired else 0
        return Command(
            Verb.RELEASE, self.name, token, noted, stamp, self.guard, claim_ms=self.claim_ms
        )
