"""What must always hold, checked after every event of a simulated world.

- **mutual exclusion**: at no moment do two clients rely on a lease of the same lock, each by its
  own clock
- **no revival**: a lease that has ended on its holder's clock never comes back
- **release frees**: when a release says FREED, fewer than a quorum of nodes still have the token;
  and when an attempt is over, every node that has its token, or will get it, has been told to drop
  it, unless the connection broke
- **progress**: after everything has healed, somebody acquires
"""

from collections.abc import Sequence

from ..core.holding import Holding
from ..core.outcomes import Released
from ..core.tally import quorum_of
from ..wire.keys import lock_key
from .driver import SimDriver
from .node import SimNode
from .world import World


class Broken(AssertionError):
    """A law was broken; the world stops here."""


class Laws:
    """Watches one lock in one world."""

    def __init__(self, world: World, nodes: Sequence[SimNode], name: str) -> None:
        self.acquired = 0
        self._world = world
        self._nodes = nodes
        self._key = lock_key(name).encode()
        self._latest: dict[SimDriver, Holding] = {}
        """Each client's last lease: it has one at a time."""
        self._ended: set[str] = set()

    def begin(self, driver: SimDriver, holding: Holding) -> None:
        """A client has acquired the lock."""
        self.acquired += 1
        self._latest[driver] = holding

    def check(self) -> None:
        """Check what can be seen at any moment."""
        holders = []
        for driver, holding in self._latest.items():
            token = holding.token
            if not holding.is_held(driver.now()):
                self._ended.add(token)
            elif token in self._ended:
                raise Broken(f"no revival: {driver.name}'s lease {token[:6]} came back")
            else:
                holders.append(f"{driver.name} ({token[:6]})")
        if len(holders) > 1:
            raise Broken(f"mutual exclusion: {' and '.join(holders)} hold the lock")

    def released(self, driver: SimDriver, token: str, outcome: object) -> None:
        """A client was told that its release is done."""
        have = [str(node) for node in self._nodes if node.store.value(self._key) == token.encode()]
        if outcome is Released.FREED and len(have) >= quorum_of(len(self._nodes)):
            raise Broken(f"release frees: {token[:6]} was freed, but {', '.join(have)} have it")
        self.over(driver, token)

    def over(self, driver: SimDriver, token: str) -> None:
        """An attempt is over: it must be on its way out at every node."""
        for node, channel in zip(self._nodes, driver.channels, strict=True):
            connection = channel.connection
            if not node.up or connection is None or connection.broken:
                continue
            there = node.store.value(self._key) == token.encode()
            coming = connection.carries_request(token)
            told = connection.told_release(token)
            if (there or coming) and not told and (token, node.number) not in driver.tainted:
                raise Broken(
                    f"release frees: {driver.name} gave up {token[:6]}, and {node} was not told"
                )

    def progressed(self, since: int) -> None:
        """Everything was healed some time ago, when `since` leases had been acquired."""
        if self.acquired == since:
            raise Broken("progress: nobody acquired the lock after everything had healed")
