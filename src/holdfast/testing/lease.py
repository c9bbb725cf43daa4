"""A simulated lease: what its worker has, its keeper looks after, and the laws watch."""

import math

from ..core.effects import Noted
from ..core.holding import Holding
from ..core.outcomes import Endangered, Kept, Lost
from .process import Process, Thread


class Owner:
    """A worker's thread of the moment: it may end while its process lives on."""

    def __init__(self) -> None:
        self.lives = True


class SimLease:
    """One lease, and what has been said of it."""

    def __init__(
        self, holding: Holding, owner: Owner, keeper: Thread, asked: float = math.inf
    ) -> None:
        """Be a lease that is held from now on, and was asked for then, in true time."""
        self.asked = min(asked, keeper.world.now)
        self.holding = holding
        self.keeper = keeper
        """The thread that looks after it."""
        self.process: Process = keeper.process
        self.since = keeper.world.now
        """When its client had it, in true time."""
        self.released = False
        """True once its worker has begun to release it, before anybody had said that it is lost."""
        self.forgotten = False
        """True once nobody can reach it any more."""
        self.renewals = 0
        self.lost: Lost | None = None
        """That it is lost, once that has been said."""
        self.warned_of = self.warned_at = -math.inf
        """The end that the last warning named, and when it came, on the client's own clock."""
        self._owner = owner

    def __str__(self) -> str:
        return f"{self.process.name}'s lease {self.token[:6]}"

    @property
    def token(self) -> str:
        """What names it."""
        return self.holding.token

    def is_held(self) -> bool:
        """True while its client relies on it."""
        return self.holding.is_held(self.process.now())

    @property
    def settled(self) -> bool:
        """True if nothing needs to be said about it any more."""
        return self.released or self.forgotten or self.lost is not None

    # -- what the keeping flow asks ---------------------------------------------------------------

    def lives(self) -> bool:
        """True while whoever has the lease is there to do its work."""
        return self._owner.lives and not self.forgotten

    def remembers(self) -> bool:
        """False once nobody can reach the lease any more."""
        return not self.forgotten

    # -- what is said of it -----------------------------------------------------------------------

    def hear(self, note: Noted) -> None:
        """Take note of what befell the lease."""
        match note:
            case Kept():
                self.renewals += 1
            case Endangered(valid_until):
                self.warned_of, self.warned_at = valid_until, self.process.now()
            case Lost():
                self.lost = note
