"""The keeper in memory: the shipped flow for every lease, as things that happen in virtual time.

It has no thread. A renewal is an entry in the agenda: it is made on the thread that makes time
pass, in its turn among what else is due, and takes no time. That the keeper speaks is no sign that
the owner of the lease is at work.

A lease is only referred to weakly, as by the shipped keeper, so one that is forgotten lapses.
"""

import weakref
from collections.abc import Callable

from ...core.effects import Ask, Note, Noted, Sleep, Tell
from ...core.holding import Holding
from ...core.keeping import keep
from ...drivers.health import Health
from ...keeper.port import Ward
from .agenda import Entry
from .universe import Universe


class Charge:
    """A lease in the keeper's care, and the flow that looks after it."""

    def __init__(
        self, universe: Universe, health: Health, lease: Ward, on_end: Callable[[Holding], object]
    ) -> None:
        self.holding = lease._holding
        self._universe = universe
        self._health = health
        self._lease = weakref.ref(lease)
        self._on_end = on_end
        self._flow = keep(self.holding, self)
        self._dismissed = False
        self._next: Entry | None = None

    def begin(self) -> None:
        """Let the flow say when it wants to look at the lease first."""
        effect = next(self._flow)
        assert isinstance(effect, Sleep)
        self._rest(effect)

    def dismiss(self) -> None:
        """Look after the lease no more."""
        self._dismissed = True
        if self._next is not None:
            self._next.call_off()

    # -- what the flow asks -----------------------------------------------------------------------

    def lives(self) -> bool:
        """True while there is somebody to renew the lease for."""
        lease = self._lease()
        return lease is not None and lease._owner_lives()

    def remembers(self) -> bool:
        """False once nobody can reach the lease any more."""
        return self._lease() is not None

    # -- what the flow wants ----------------------------------------------------------------------

    def _go_on(self) -> None:
        """Take steps of the flow until it rests or ends. Only then is passed on what it has said.

        So a callback finds everything settled: it may use the lease and its client, and advance.
        """
        notes: list[Noted] = []
        try:
            self._rest(self._walk(notes))
        except StopIteration:
            self._on_end(self.holding)
        for note in notes:
            lease = self._lease()
            if lease is not None:
                lease._hear(note)

    def _walk(self, notes: list[Noted]) -> Sleep:
        """Do what the flow wants until it wants to sleep; raises StopIteration at its end."""
        time = self._universe.time
        effect = self._flow.send(time.now)
        while not isinstance(effect, Sleep):  # until the flow sleeps: rounds take no time
            if isinstance(effect, Ask | Tell):
                tally = effect.tally if isinstance(effect, Ask) else None
                self._universe.say(effect.command, tally, self._health)
            elif isinstance(effect, Note):
                notes.append(effect.what)
            effect = self._flow.send(time.now)
        return effect

    def _rest(self, sleep: Sleep) -> None:
        if not self._dismissed:
            self._next = self._universe.time.at(sleep.until, self._go_on)


class MemoryKeeper:
    """Looks after one client's leases. Keeps the promises of `keeper.port`."""

    def __init__(self, universe: Universe, health: Health) -> None:
        self._universe = universe
        self._health = health
        self._stopped = False
        self._charges: dict[Holding, Charge] = {}

    def ready(self, *, needed: bool) -> None:
        """Do nothing: a keeper without a thread is always ready."""

    def keep(self, lease: Ward) -> None:
        """Look after a lease that was just acquired, for as long as somebody refers to it."""
        if not self._stopped:
            charge = Charge(self._universe, self._health, lease, self.drop)
            self._charges[charge.holding] = charge
            charge.begin()

    def drop(self, holding: Holding) -> None:
        """Look after a lease no more. Takes no lock, see `Entry.call_off`."""
        charge = self._charges.pop(holding, None)
        if charge is not None:
            charge.dismiss()

    def follow(self, holding: Holding) -> None:
        """Do nothing: a round is over at once, and a renewal brings back nothing released."""

    def held(self) -> int:
        """Return how many leases are looked after."""
        return sum(not holding.ended for holding in list(self._charges))

    def reset(self) -> None:
        """Start anew in a forked child, with nothing to look after."""
        for holding in list(self._charges):
            self.drop(holding)

    def stop(self, wait: float = 0.0) -> bool:  # noqa: ARG002  # there is nothing to wait for
        """Look after nothing any more; True, since nothing of it runs."""
        self._stopped = True
        self.reset()
        return True
