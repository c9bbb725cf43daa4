"""A simulated client's inbox: whom calls are for, and from which nodes they can be heard.

It does what `drivers/post.py` does. Its keeper's connections carry the calls: they come late or
never, as everything else does there, and whoever hears a node again after a while wakes all who
wait.
"""

from collections.abc import Callable, Collection

from ..core.place import Hearing, Mail
from ..core.tally import quorum_of
from ..drivers.post import Ear
from ..wire.who import INBOX, Sign, Who
from .process import Thread


class Inbox:
    """The inbox of one simulated process."""

    def __init__(self, listener: Thread, *, deaf: Collection[int] = (), lost: float = 0.0) -> None:
        """Let a thread listen. `deaf`: nodes that forbid it. `lost`: the part of calls that are."""
        self.address = Who(f"c{listener.world.count()}", 1, "sim", "x").address
        self.name = (INBOX + self.address).encode()
        """The channel on which the client is called."""
        self.deaf = deaf
        self.lost = lost
        self.wanted = False
        """True once somebody has waited."""
        self.on_ear: list[Callable[[], object]] = []
        """Who wants to know that something is known of an ear."""
        self._listener = listener
        self._ears: dict[int, Ear] = {}
        self._mails: dict[str, Mail] = {}

    # -- for whoever waits ------------------------------------------------------------------------

    @property
    def hearing(self) -> Hearing:
        """Whether mail can be heard: from a quorum of nodes, and forbidden by none."""
        if not self.wanted or not self.settled:
            return Hearing.UNKNOWN
        ears = list(self._ears.values())
        heard = ears.count(Ear.HEARS) >= quorum_of(len(self._listener.channels))
        return Hearing.CALLED if heard and Ear.FORBIDDEN not in ears else Hearing.POLLS

    def token(self) -> str:
        """Return a new attempt's token: as random as the seed, and who we are."""
        sign = Sign.HEARS if self.hearing is Hearing.CALLED else Sign.POLLS
        return f"{self._listener.world.token()}{sign.value}{self.address}"

    def expect(self) -> Mail:
        """Begin an attempt that may be called."""
        mail = Mail(self.token(), polls=self.hearing is not Hearing.CALLED)
        self._mails[mail.token] = mail
        return mail

    def forget(self, mail: Mail) -> None:
        """End an attempt."""
        self._mails.pop(mail.token, None)

    def listen(self) -> None:
        """Have the keeper listen to all nodes."""
        self.wanted = True
        self._listener.when_awake(self._listen)

    def _listen(self) -> None:
        for channel in self._listener.channels:
            channel.listen()

    @property
    def settled(self) -> bool:
        """True if it is known of every node whether it can be heard."""
        return len(self._ears) == len(self._listener.channels)

    # -- for whoever listens ----------------------------------------------------------------------

    def put(self, node: int, call: bytes) -> None:
        """Take a call: a token, the node's time, for how long it is reserved, and a fence."""
        token, _, claim_ms, _ = call.decode().split()
        mail = self._mails.get(token)
        if mail is not None:
            mail.put(node, self._listener.now(), int(claim_ms) / 1000)

    def hears(self, node: int) -> None:
        """Take note that a node is heard. Calls may have been missed: whoever waits should ask."""
        before = self._ears.get(node)
        self._note(node, Ear.HEARS)
        if before is Ear.AWAY:
            for mail in list(self._mails.values()):
                mail.wake()

    def away(self, node: int) -> None:
        """Take note that a node is not heard for now."""
        if self._ears.get(node) is not Ear.FORBIDDEN:
            self._note(node, Ear.AWAY)

    def cannot(self, node: int) -> None:
        """Take note that a node does not let us hear calls."""
        self._note(node, Ear.FORBIDDEN)

    def _note(self, node: int, ear: Ear) -> None:
        self._ears[node] = ear
        for tell in list(self.on_ear):
            tell()
