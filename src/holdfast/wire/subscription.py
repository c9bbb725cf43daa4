"""Hearing calls: an inbox, subscribed to on a connection that also carries commands (RESP3).

The server confirms a subscription by a push, and refuses one by an error among the replies. So a
message to ourselves goes behind it: its reply says that the subscription is settled, and whether we
may call others.
"""

from typing import Any, Protocol

import hiredis

from ..core.votes import Condition
from .commands import condition_of
from .link import Link
from .packing import pack_words
from .who import INBOX


class Inbox(Protocol):
    """Where calls go to, and who wants to know whether they can be heard."""

    @property
    def name(self) -> str:
        """The channel to subscribe to."""

    def put(self, node: int, call: bytes, now: float) -> None:
        """Take a call that was heard now."""

    def hears(self, node: int) -> None:
        """Hear that calls from a node can be heard from here on; some may have been missed."""

    def away(self, node: int) -> None:
        """Hear that calls from a node cannot be heard for now."""

    def cannot(self, node: int, rights: tuple[str, ...], why: str) -> None:
        """Hear that a node does not let us hear calls, or call others, for want of some rights."""


class Subscription:
    """One connection's subscription to the inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._confirmed = False
        self._subscribing = False
        """True while it is not known how the subscription will be answered."""
        self._errors: dict[str, str] = {}
        """What was refused, by command."""

    def begin(self, link: Link) -> None:
        """Subscribe, and call ourselves."""
        link.on_push = self.heard
        self.check(link)

    def check(self, link: Link) -> None:
        """Call ourselves: whether that is answered says whether the connection still is one.

        If there is no subscription, subscribe first.
        """
        if not self._confirmed:
            self._subscribing = True
            link.outbox += pack_words(("SUBSCRIBE", self._inbox.name))
        link.say(pack_words(("PUBLISH", self._inbox.name, "")), self)

    def heard(self, link: Link, push: list[Any]) -> None:
        """Take what the server says unasked."""
        match push:
            case [b"message", _, bytes(call)]:
                if call:
                    self._inbox.put(link.node, call, link.peer.heard_at)
            case [b"subscribe", _, _]:
                self._confirmed, self._subscribing = True, False

    def answer(self, link: Link, reply: Any) -> None:
        """Take the answer to the call, or the refusal of the subscription before it."""
        if isinstance(reply, hiredis.ReplyError):
            asked = "subscribe" if self._subscribing else "publish"
            self._errors[asked] = str(reply)
            if self._subscribing:
                self._subscribing = False
                link.awaiting.appendleft(self)  # the answer to the call is still to come
                return
        errors, self._errors = self._errors, {}
        if any(condition_of(each) not in _LASTING for each in errors.values()):
            self._inbox.away(link.node)  # it is busy, or loads its data
        elif errors:
            rights = dict.fromkeys(_right(asked, error) for asked, error in errors.items())
            self._inbox.cannot(link.node, tuple(rights), next(iter(errors.values())))
        elif self._confirmed:
            self._inbox.hears(link.node)


_LASTING = (Condition.FORBIDDEN, Condition.SERVER_ERROR)
"""Refusals that asking again does not change; a server without such a command is one."""


def _right(command: str, error: str) -> str:
    """Name the right that is missing, as in ACL SETUSER."""
    return f"&{INBOX}*" if "channel" in error else f"+{command}"
