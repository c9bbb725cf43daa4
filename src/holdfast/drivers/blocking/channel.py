"""One node's connection over its life.

    DOWN ──post──▶ looking up ──▶ connecting ──▶ greeting ──▶ ready
     ▲                 │              │             │           │
     └─── back off ────┴──────────────┴─────────────┴── break ──┘

Rules:
1. A channel never waits. It is moved on by `post` and by the selector, and by nothing else.
2. While a node is being connected, what was posted stands in line. A round that is over before its
   turn comes is dropped, unless it is a release: an earlier connection may have carried its
   request.
3. A node that cannot be reached fails at once, until its back-off has passed: it costs a round
   nothing. The first reconnect after a break is tried without delay.
4. What was under way on a connection that breaks is said again on the next one, within its round.
5. A connection that is slow to answer is kept, because the server may still execute what it was
   sent: later commands, above all the release, go behind. Only `SILENCE` ends it.
"""

import selectors
import ssl
import weakref
from collections import deque
from typing import TYPE_CHECKING

import hiredis

from ...core.effects import Verb
from ...core.votes import Condition, Failure, Vote, failed
from ...wire import commands
from ...wire.endpoint import Endpoint
from ...wire.greeting import Identity
from ...wire.link import Link
from ...wire.round import Round
from .. import clock
from .resolver import Address, Lookup, lookup, unix_address
from .transport import Transport

if TYPE_CHECKING:
    from .line import Line

FIRST_BACKOFF = 0.05
LARGEST_BACKOFF = 1.0
"""Seconds between connection attempts to a node that is down: so soon it is found again."""

SILENCE = 5.0
"""Seconds without a byte, with answers outstanding, after which a connection is given up."""

MOST_UNANSWERED = 64
"""A node that owes this many answers gets no more requests; twice as many releases are taken."""

READ = selectors.EVENT_READ
READ_WRITE = selectors.EVENT_READ | selectors.EVENT_WRITE


class Channel:
    """What a line knows of one node."""

    __slots__ = (
        "_addresses", "_backoff", "_carrier", "_failure", "_line", "_link", "_lookup", "_posted",
        "_refused", "_retry_at", "_since", "_transport", "_watched", "endpoint", "node",
    )  # fmt: skip

    def __init__(self, line: "Line", node: int, endpoint: Endpoint) -> None:
        self.node = node
        self.endpoint = endpoint
        self._line: Line = weakref.proxy(line)  # no cycle: a line that is lost ends at once
        self._lookup: Lookup | None = None
        self._addresses: list[Address] = []
        self._transport: Transport | None = None
        self._watched = 0
        self._link: Link | None = None
        self._posted: deque[Round] = deque(maxlen=2 * MOST_UNANSWERED)
        self._carrier: Round | None = None
        """The last release that carried its script along."""
        self._refused: deque[str] = deque(maxlen=MOST_UNANSWERED)
        """Tokens whose requests were not sent, so that nothing needs to be released."""
        self._failure = Failure(Condition.UNREACHABLE)
        self._backoff = 0.0
        self._retry_at = 0.0
        self._since = 0.0
        """When the node was last heard of, or first owed us something."""

    @property
    def ready(self) -> bool:
        """True if the node is greeted and can be spoken to."""
        return self._link is not None and self._link.greeted is not None

    @property
    def connecting(self) -> bool:
        """True if a connection is on its way."""
        return not self.ready and (self._transport is not None or self._lookup is not None)

    @property
    def unsent(self) -> bool:
        """True if there is something that a connection should still take."""
        if self._link is None:
            return self.connecting and bool(self._posted)
        return bool(self._posted or self._link.outbox)

    def unanswered(self, token: str) -> bool:
        """True if the node owes an answer to a command with this token."""
        link = self._link
        return link is not None and any(
            isinstance(round_, Round) and round_.command.token == token for round_ in link.awaiting
        )

    # -- speaking ---------------------------------------------------------------------------------

    def post(self, round_: Round, packed: bytes, now: float) -> None:
        """Say something to the node now, or when it is connected, or count it as failed."""
        if self.ready and self._owes_too_much(now):
            self._fail(Failure(Condition.BROKEN, f"no answer for {SILENCE:g} s"))
        link, transport = self._link, self._transport
        if link is None or transport is None or link.greeted is None:
            self._stand_in_line(round_, now)
            return
        if not link.awaiting:
            self._since = now
        elif self._is_swamped(len(link.awaiting), round_):
            round_.count(self.node, failed(Condition.SWAMPED))
            return
        if link.awaiting or not round_.open:
            packed = self._worded(link, round_, packed)
        link.awaiting.append(round_)  # before the first byte: see Link
        if link.outbox:
            link.outbox += packed
            return
        try:
            sent = transport.send(packed)
        except OSError as error:
            self._broke(error)
            return
        if sent < len(packed):
            link.outbox += packed[sent:]
            self._watch()

    def _owes_too_much(self, now: float) -> bool:
        """True if the node has been silent for too long with answers outstanding."""
        link = self._link
        if link is None or not link.awaiting:
            return False
        if len(link.awaiting) >= MOST_UNANSWERED and now - self._since <= SILENCE:
            self.on_event()  # answers may have come since somebody looked
        return self._is_silent(now) and self.ready

    def _is_silent(self, now: float) -> bool:
        """True if nothing has come for too long. First looks: nobody may have, all that time."""
        if now - self._since <= SILENCE:
            return False
        self.on_lookup()
        self.on_event()
        return now - self._since > SILENCE

    def _is_swamped(self, unanswered: int, round_: Round) -> bool:
        """True if the node owes so many answers that it should not get this, too."""
        command = round_.command
        if command.verb is not Verb.RELEASE:
            if unanswered < MOST_UNANSWERED:
                return False
            if command.verb is Verb.REQUEST:
                self._refused.append(command.token)
            return True
        if command.token in self._refused:
            self._refused.remove(command.token)
            return True
        return unanswered >= 2 * MOST_UNANSWERED

    def _worded(self, link: Link, round_: Round, packed: bytes) -> bytes:
        """Return what to write. Where nobody may be there to hear a NOSCRIPT, releases carry their
        script along; the first of those that are unanswered does, and the others go behind it.
        """
        if round_.command.verb is not Verb.RELEASE or self._carrier in link.awaiting:
            return packed
        self._carrier = round_
        return commands.pack_whole(round_.command)

    def _stand_in_line(self, round_: Round, now: float) -> None:
        if self._was_never_asked(round_):
            round_.count(self.node, _vote(self._failure))
        else:
            if len(self._posted) >= MOST_UNANSWERED:
                self._keep_wanted()
            self._posted.append(round_)
        self.connect(now)
        if not self.connecting:
            self._fail_posted()

    def _was_never_asked(self, release: Round) -> bool:
        """True if the request of this lease never left us; then it is struck out as well."""
        command = release.command
        if command.verb is Verb.RELEASE:
            for other in self._posted:
                if other.command.token == command.token and other.command.verb is Verb.REQUEST:
                    self._posted.remove(other)
                    return not other.may_have_reached(self.node)
        return False

    def _keep_wanted(self) -> None:
        wanted = [round_ for round_ in self._posted if round_.wanted]
        self._posted.clear()
        self._posted.extend(wanted)

    # -- connecting -------------------------------------------------------------------------------

    def connect(self, now: float) -> None:
        """Begin to connect, unless it is done, under way, or must wait for the back-off."""
        if self.ready:
            return
        if self.connecting:
            if self._is_silent(now) and self.connecting:
                self._fail(Failure(Condition.UNREACHABLE, f"no connection after {SILENCE:g} s"))
            return
        if now < self._retry_at:
            return
        self._since = now
        if self.endpoint.path:
            self._addresses = [unix_address(self.endpoint.path)]
            self._try_next_address(self._failure)
        else:
            self._lookup = lookup(self.endpoint.host, self.endpoint.port, self._line.bell)
            self.on_lookup()

    def on_lookup(self) -> None:
        """Go on after a name look-up, if it is done."""
        done = self._lookup
        if done is None or done.addresses is None:
            return
        self._lookup = None
        self._since = clock.now()
        self._addresses = done.addresses
        self._try_next_address(
            Failure(Condition.UNREACHABLE, f"name look-up failed: {done.error or 'no address'}")
        )

    def _try_next_address(self, failure: Failure) -> None:
        """Begin to connect to the next address; with none left, fail as the last one did."""
        while self._addresses:
            address = self._addresses.pop(0)
            try:
                self._transport = Transport(self.endpoint, address)
            except (OSError, ValueError) as error:  # ValueError: TLS without a usable host name
                failure = _failure_of(error)
                continue
            self._watch()
            return
        self._fail(failure)

    # -- what the selector says -------------------------------------------------------------------

    def on_event(self) -> None:
        """Move on: something can be read or written."""
        transport = self._transport
        if transport is None:  # broken by an earlier event of the same turn
            return
        try:
            if self._link is not None:
                self._read(transport, self._link)
            elif transport.advance():
                self._greet()
            self._flush()
        except (OSError, hiredis.ProtocolError) as error:
            self._broke(error)

    def _greet(self) -> None:
        self._since = clock.now()
        try:
            self._link = Link(self.node, self.endpoint)
        except Exception as error:  # noqa: BLE001  # a credential provider may raise anything
            detail = f"no credentials: {type(error).__name__}: {error}"
            self._fail(Failure(Condition.UNREACHABLE, detail))

    def _read(self, transport: Transport, link: Link) -> None:
        while (data := transport.receive()) is not None:
            if not data:
                raise ConnectionResetError("the server closed the connection")
            greeted = self.ready
            link.hear(data)
            if not greeted and link.greeted is not None:
                self._meet(link)
            if self._link is not link:  # turned away
                return
            self._since = clock.now()
            if not transport.buffered:
                return

    def _meet(self, link: Link) -> None:
        """Act on the greeting's end: turn the server away, or say what stands in line."""
        if not isinstance(link.greeted, Identity):
            self._fail(link.greeted or Failure(Condition.PROTOCOL))
            return
        other = self._line.roster.meet(self.node, link.greeted)
        if other is not None:
            self._fail(Failure(Condition.DUPLICATE, str(self._line.channels[other].endpoint)))
            return
        self._backoff = 0.0
        while self._posted:
            round_ = self._posted.popleft()
            if round_.wanted:
                packed = commands.pack(round_.command)
                link.say(packed if round_.open else self._worded(link, round_, packed), round_)

    def _flush(self) -> None:
        transport, link = self._transport, self._link
        if transport is None:
            return
        if link is not None and link.outbox:
            sent = transport.send(link.outbox)
            del link.outbox[:sent]
        self._watch()

    def _watch(self) -> None:
        """Tell the selector what to look for."""
        transport, link = self._transport, self._link
        if transport is None:
            return
        wanted = READ
        if transport.wants_write or (link is not None and link.outbox):
            wanted = READ_WRITE
        if wanted != self._watched:
            self._line.watch(transport.sock, wanted, self)
            self._watched = wanted

    # -- breaking ---------------------------------------------------------------------------------

    def _broke(self, error: Exception) -> None:
        """Handle the end of a connection: if it had been good, connect again at once (rule 4)."""
        link, failure = self._link, _failure_of(error)
        if link is None:
            self._hang_up()
            self._try_next_address(failure)
            return
        if not isinstance(link.greeted, Identity):
            self._fail(failure)
            return
        self._failure = failure
        self._hang_up()
        self._retry_at = 0.0
        for round_ in dict.fromkeys(link.awaiting):
            if not isinstance(round_, Round):
                continue
            if round_.may_repeat(self.node):
                self._stand_in_line(round_, clock.now())
            else:
                round_.count(self.node, _vote(failure))

    def _fail(self, failure: Failure) -> None:
        """Give the node up until the back-off has passed (rule 3)."""
        link = self._link
        self._failure = failure
        self._hang_up()
        self._backoff = min(max(2 * self._backoff, FIRST_BACKOFF), LARGEST_BACKOFF)
        self._retry_at = clock.now() + self._backoff
        for round_ in link.awaiting if link is not None else ():
            if isinstance(round_, Round):
                round_.count(self.node, _vote(failure))
        self._fail_posted()

    def _fail_posted(self) -> None:
        """Answer for what stands in line, and keep the releases for a better day (rule 2)."""
        for round_ in list(self._posted):
            round_.count(self.node, _vote(self._failure))
        self._keep_wanted()

    def _hang_up(self) -> None:
        transport, link = self._transport, self._link
        self._transport = self._link = self._lookup = None
        self._watched = 0
        if link is not None and isinstance(link.greeted, Identity):
            self._line.roster.forget(self.node)
        if transport is not None:
            self._line.unwatch(transport.sock)
            transport.close()

    def drop(self) -> None:
        """Close the socket and no more: the line itself is gone."""
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        """Give the connection up, and whatever stood in line."""
        self._hang_up()
        self._addresses.clear()
        self._posted.clear()
        self._retry_at = 0.0


def _vote(failure: Failure) -> Vote:
    return failed(failure.condition, failure.detail)


def _failure_of(error: Exception) -> Failure:
    """Name the condition behind a local error."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):  # it hung up: it may be back
        return Failure(Condition.BROKEN, text)
    if isinstance(error, ssl.SSLError | ValueError):
        return Failure(Condition.TLS, text)
    if isinstance(error, hiredis.ProtocolError):
        return Failure(Condition.PROTOCOL, text)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return Failure(Condition.BROKEN, text)
    return Failure(Condition.UNREACHABLE, text)
