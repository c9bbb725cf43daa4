"""A client's inbox: whom mail is for, and from which nodes it can be heard.

Any thread begins and ends to expect mail; whoever listens to the nodes puts it. All steps are
single ones, so that nothing needs a lock.
"""

import os
import socket
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from secrets import token_hex

from ..core.place import Hearing, Mail
from ..core.tally import quorum_of
from ..wire.who import SECRET_DIGITS, Sign, Who
from .health import Health


class Ear(Enum):
    """Whether calls from one node can be heard."""

    UNKNOWN = "unknown"
    HEARS = "hears"
    AWAY = "away"
    FORBIDDEN = "forbidden"


def usual_label() -> str:
    """Return what a program is called if nobody says."""
    return Path(sys.argv[0]).stem if sys.argv and sys.argv[0] else "python"


class Post:
    """The inbox of one client in this process."""

    def __init__(self, nodes: int, health: Health, label: str | None = None) -> None:
        self.nodes = nodes
        self._health = health
        self._label = label
        self.begin: Callable[[], object] | None = None
        """Makes whoever listens begin to; None if nobody does, or who listens sees to it."""
        self.reset()

    def reset(self) -> None:
        """Start anew, as somebody else: a forked child does."""
        label = usual_label() if self._label is None else self._label
        self.who = Who(socket.gethostname(), os.getpid(), label, token_hex(4))
        self.name = self.who.inbox
        """The channel on which the client is called."""
        self.wanted = False
        """True once somebody has waited."""
        self.clustered = False
        """True if a node of a cluster was met: who hears is not known where it is called."""
        self.on_ear: list[Callable[[], object]] = []
        """Who wants to know that something is known of an ear."""
        self._ears = [Ear.UNKNOWN] * self.nodes
        self._mails: dict[str, Mail] = {}
        self._address = self.who.address

    # -- for whoever waits ------------------------------------------------------------------------

    @property
    def hearing(self) -> Hearing:
        """Whether mail can be heard: from a quorum of nodes, and forbidden by none."""
        if not self.wanted or Ear.UNKNOWN in self._ears:
            return Hearing.UNKNOWN
        heard = self._ears.count(Ear.HEARS)
        called = heard >= quorum_of(self.nodes) and Ear.FORBIDDEN not in self._ears
        return Hearing.CALLED if called else Hearing.POLLS

    def token(self) -> str:
        """Return a new attempt's token: a secret, and who we are."""
        if self.hearing is not Hearing.CALLED:
            sign = Sign.POLLS
        else:
            sign = Sign.HEARS_FAR if self.clustered else Sign.HEARS
        return f"{os.urandom(SECRET_DIGITS // 2).hex()}{sign.value}{self._address}"

    def expect(self) -> Mail:
        """Begin an attempt that may be called."""
        polls = self.hearing is not Hearing.CALLED
        mail = Mail(self.token(), polls=polls)
        self._mails[mail.token] = mail
        if polls and self.begin is not None:
            self.begin()  # perhaps it can be heard again
        return mail

    def forget(self, mail: Mail) -> None:
        """End an attempt."""
        self._mails.pop(mail.token, None)

    def wake(self) -> None:
        """Wake everybody who waits for mail."""
        for mail in list(self._mails.values()):
            mail.wake()

    @property
    def expecting(self) -> bool:
        """True if somebody waits for mail."""
        return bool(self._mails)

    @property
    def heard(self) -> bool:
        """True if all nodes are heard."""
        return self._ears.count(Ear.HEARS) == self.nodes

    def start_listening(self) -> None:
        """Take note that nobody is heard yet by whoever listens from here on."""
        self.wanted = True
        self._ears = [Ear.UNKNOWN] * self.nodes

    @property
    def settled(self) -> bool:
        """True if it is known of every node whether it can be heard."""
        return Ear.UNKNOWN not in self._ears

    # -- for whoever listens ----------------------------------------------------------------------

    def put(self, node: int, call: bytes, now: float) -> None:
        """Take a call: a token, the node's time, for how long it is reserved, and a fence."""
        words = call.split()
        mail = self._mails.get(words[0].decode(errors="replace")) if len(words) == 4 else None
        if mail is not None and words[2].isdigit():
            mail.put(node, now, int(words[2]) / 1000)

    def hears(self, node: int) -> None:
        """Take note that a node is heard. Calls may have been missed: whoever waits should ask."""
        before = self._ears[node]
        self._note(node, Ear.HEARS)
        if before is Ear.AWAY:
            self.wake()

    def away(self, node: int) -> None:
        """Take note that a node is not heard for now."""
        if self._ears[node] is not Ear.FORBIDDEN:
            self._note(node, Ear.AWAY)

    def mute(self, node: int) -> None:
        """Take note that a node can say nothing unasked: it does not speak RESP3."""
        self._note(node, Ear.FORBIDDEN)

    def cannot(self, node: int, rights: tuple[str, ...], why: str) -> None:
        """Take note that a node does not let us hear calls, or call others.

        Who may not call others will not be called either: they have the same rights, most likely.
        """
        self._note(node, Ear.FORBIDDEN)
        self._health.unheard(node, rights, why)

    def _note(self, node: int, ear: Ear) -> None:
        self._ears[node] = ear
        for tell in list(self.on_ear):
            tell()
