"""A simulated client's keeper: runs the keeping flow of every lease, over its own connections.

It does what `holdfast.keeper` does on its thread. A lease that was released is followed: the
renewal under way is not repeated, and what is unanswered of it gets a release behind it.
"""

from ..core.effects import Ask, Flow, Note
from ..wire.round import Round
from .driver import SimDriver
from .laws import Laws
from .lease import SimLease
from .process import Thread
from .protocol import Protocol


class SimKeeper:
    """Looks after one client's leases."""

    def __init__(self, thread: Thread, protocol: Protocol, laws: Laws) -> None:
        self.thread = thread
        self._protocol = protocol
        self._laws = laws
        self._charges: dict[SimLease, SimDriver] = {}

    def keep(self, lease: SimLease) -> None:
        """Look after a lease that was just acquired."""
        self.thread.when_awake(lambda: self._take(lease))

    def _take(self, lease: SimLease) -> None:
        if not lease.holding.ended:
            driver = self._charges[lease] = self._protocol.driver(self.thread)
            driver.run(self._care(lease), lambda _: self._forget(lease))

    def _forget(self, lease: SimLease) -> None:
        self._charges.pop(lease, None)

    def _care(self, lease: SimLease) -> Flow[None]:
        """Run the keeping flow: pass on what it notes, and let the laws see what it asks."""
        flow = self._protocol.keep(lease.holding, lease)
        try:
            effect = next(flow)
            while True:  # until the lease ends, and the flow with it
                if isinstance(effect, Note):
                    self._laws.note(lease, effect.what)
                    effect = flow.send(self.thread.now())
                    continue
                if isinstance(effect, Ask):
                    self._laws.asks(lease)
                effect = flow.send((yield effect))
        except StopIteration:
            return

    def follow(self, lease: SimLease) -> None:
        """See that a release goes behind renewals that are still under way."""
        self.thread.when_awake(lambda: self._follow(lease))

    def _follow(self, lease: SimLease) -> None:
        driver = self._charges.pop(lease, None)
        if driver is not None:
            driver.drop()
        round_ = Round(lease.holding.terms.release(lease.token, repaired=lease.holding.repaired))
        for channel in self.thread.channels:
            if channel.owes(lease.token):
                channel.post(round_)
        self._laws.followed(lease)
