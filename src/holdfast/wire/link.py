"""One connection's pure state: what is to be written, and who waits for the next reply.

Servers answer in order, so replies are matched to whoever is first in `awaiting`. Whoever asks is
put there *before* its bytes are handed out: a connection can be given up at any moment, and never
be one reply off.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import hiredis

from ..core.votes import Failure
from .commands import condition_of
from .endpoint import Endpoint
from .greeting import Identity, greet, pack_all
from .peer import Peer

NOTHING = object()
"""What hiredis returns while a reply is incomplete: its own `False` is also RESP3's false."""

_TURNED_AWAY = ("ERR max number of clients", "DENIED")
"""How a server greets somebody it will not serve: unasked, and then it hangs up."""


class Asker(Protocol):
    """Who waits for a reply."""

    def answer(self, link: Any, reply: Any) -> None:
        """Take the reply to what was said. May say something else on the same link."""


class Link:
    """A connection after it was opened: first the greeting, then commands and their replies."""

    __slots__ = (
        "_batch",
        "_greeting",
        "_heard",
        "_reader",
        "awaiting",
        "greeted",
        "node",
        "on_push",
        "outbox",
        "peer",
    )

    def __init__(self, node: int, endpoint: Endpoint, peer: Peer, *, durable: bool = False) -> None:
        self.node = node
        self.peer = peer
        self.outbox = bytearray()
        """Bytes that should be written as soon as the connection takes them."""
        self.awaiting: deque[Asker] = deque()
        """Who waits for a reply, in the order of writing."""
        self.greeted: Identity | Failure | None = None
        """How the greeting ended; None while it lasts."""
        self.on_push: Callable[[Link, list[Any]], object] | None = None
        """Who wants to hear what the server says unasked."""
        self._reader = hiredis.Reader(notEnoughData=NOTHING)
        self._greeting = greet(endpoint, durable=durable)
        self._heard: list[Any] = []
        self._batch = 0
        self._introduce(next(self._greeting))

    def say(self, packed: bytes, asker: Asker) -> None:
        """Put a command into the outbox; `asker` gets its reply."""
        self.awaiting.append(asker)
        self.outbox += packed

    def _introduce(self, batch: list[Any]) -> None:
        self._batch, self._heard = len(batch), []
        self.outbox += pack_all(batch)

    def hear(self, data: bytes, now: float) -> None:
        """Read what arrived now and give every complete reply to whoever waits for it.

        Raises `hiredis.ProtocolError` if the bytes are no protocol; the connection is then useless.
        """
        self.peer.heard_at = now
        reader, awaiting = self._reader, self.awaiting
        reader.feed(data)
        while (reply := reader.gets()) is not NOTHING:
            if type(reply) is list and awaiting:  # a script's answer: neither push nor greeting
                awaiting.popleft().answer(self, reply)
                continue
            if isinstance(reply, hiredis.PushNotification):
                if self.on_push is not None:
                    self.on_push(self, reply)
                continue
            if self.greeted is None:
                self._greet(reply)
            elif isinstance(self.greeted, Failure):  # turned away; the rest does not matter
                return
            elif self.awaiting:
                self.awaiting.popleft().answer(self, reply)
            else:
                raise hiredis.ProtocolError(f"a reply nobody asked for: {reply!r:.100}")

    def _greet(self, reply: Any) -> None:
        if isinstance(reply, hiredis.ReplyError) and str(reply).startswith(_TURNED_AWAY):
            self.greeted = Failure(condition_of(str(reply)), str(reply))
            return
        self._heard.append(reply)
        if len(self._heard) < self._batch:
            return
        try:
            self._introduce(self._greeting.send(self._heard))
        except StopIteration as end:
            self.greeted = end.value
