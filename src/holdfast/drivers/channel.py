"""One node's connection over its life: the rules that all real drivers share.

    DOWN ──post──▶ opening ──▶ greeting ──▶ ready
     ▲                │            │          │
     └─── back off ───┴────────────┴─ break ──┘

A channel decides; its `Carrier` moves bytes, in the way of its driver.

Rules:
1. A channel never waits. It is moved on by `post` and by its carrier, and by nothing else.
2. While a node is being connected, what was posted stands in line. A round that is over before its
   turn comes is dropped, unless it is a release: an earlier connection may have carried its
   request.
3. A node that cannot be reached fails at once, until its back-off has passed: it costs a round
   nothing. The first reconnect after a break is tried without delay.
4. What was under way on a connection that breaks is said again on the next one, within its round.
5. A connection that is slow to answer is kept, because the server may still execute what it was
   sent: later commands, above all the release, go behind. Only `SILENCE` ends it.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

import hiredis

from ..core.effects import Command, NodeCommand, Verb
from ..core.votes import Answer, Condition, Failure, Vote, failed
from ..wire import commands
from ..wire.greeting import Identity
from ..wire.link import Link
from ..wire.peer import Peer
from ..wire.round import Round, Unheeded, rounds_in
from ..wire.subscription import Subscription
from . import clock
from .backlog import Backlog
from .carrier import Carrier
from .fleet import Fleet
from .health import failure_of
from .roster import Roster

FIRST_BACKOFF = 0.05
LARGEST_BACKOFF = 1.0
"""Seconds between connection attempts to a node that is down: so soon it is found again."""

SLOW = 0.005
"""Seconds without a byte, with answers outstanding, after which nobody may be there to hear the
next answer, where nobody listens between rounds.
"""

SILENCE = 5.0
"""Seconds without a byte, with answers outstanding, after which a connection is given up."""


_SWAMPED = failed(Condition.SWAMPED)


class Channel:
    """What a driver knows of one node."""

    __slots__ = (
        "_backoff", "_bearer", "_deaf", "_failure", "_fleet", "_link", "_listening", "_most",
        "_opened_at", "_opening", "_posted", "_refused", "_retry_at", "_roster", "_since",
        "carrier", "endpoint", "node", "on_settled",
    )  # fmt: skip

    def __init__(
        self,
        node: int,
        fleet: Fleet,
        roster: Roster,
        *,
        most_unanswered: int,
        deaf: bool,
    ) -> None:
        """Describe a node.

        A node that owes `most_unanswered` answers gets no more requests, and twice as many
        releases. `deaf`: nobody listens between rounds.
        """
        self.node = node
        self.endpoint = fleet.endpoints[node]
        self.carrier: Carrier
        """Set by whoever makes the channel, before anything is posted."""
        self.on_settled: Callable[[], None] = _nobody
        """Called when the node has been greeted or has failed."""
        self._roster = roster
        self._fleet = fleet
        self._most = most_unanswered
        self._deaf = deaf
        self._listening: Subscription | None = None
        """How calls are heard, if they are to be."""
        self._opening = False
        self._opened_at = 0.0
        self._link: Link | None = None
        self._posted = Backlog(node, most_unanswered)
        self._bearer: Round | None = None
        """The last release that bore its script along."""
        self._refused: deque[str] = deque(maxlen=most_unanswered)
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
        """True if a connection is on its way, or the greeting is."""
        return self._opening or (self._link is not None and self._link.greeted is None)

    @property
    def queued(self) -> bool:
        """True if something stands in line for a connection that is on its way."""
        return bool(self._posted) and self.connecting

    def owes_last(self, command: Command | NodeCommand) -> bool:
        """True if the last thing said to the node is this, and it has not answered."""
        link = self._link
        if link is None or not link.awaiting:
            return False
        last = link.awaiting[-1]
        return isinstance(last, Round) and last.command is command

    # -- speaking ---------------------------------------------------------------------------------

    def post(self, round_: Round, packed: bytes, now: float) -> None:
        """Say something to the node now, or when it is connected, or count it as failed."""
        link = self._link
        if link is None or link.greeted is None or self._refused:
            link = self._taking(round_, now)
        elif not link.awaiting:
            self._since = now
        elif now - self._since > SILENCE or len(link.awaiting) >= self._most:
            link = self._taking(round_, now)
        if link is None:
            return
        if (
            self._deaf
            and round_.command.verb is Verb.RELEASE
            and (not round_.open or now - self._since > SLOW)
        ):
            packed = self._worded(link, round_, packed)
        packed += link.peer.ending(round_.until)
        link.awaiting.append(round_)  # before the first byte: see Link
        try:
            self.carrier.write(packed)
        except OSError as error:
            self.broke(error)

    def _taking(self, round_: Round, now: float) -> Link | None:
        """Return the link if it takes this now; else let it stand in line, or count as failed."""
        link = self._link
        if link is not None and link.awaiting and self._owes_too_much(link, now):
            self._fail(Failure(Condition.BROKEN, f"no answer for {SILENCE:g} s"))
        link = self._link  # it may have broken while its debts were looked at
        if link is None or link.greeted is None:
            self._stand_in_line(round_, now)
            return None
        if not link.awaiting:
            self._since = now
        elif self._is_swamped(len(link.awaiting), round_):
            round_.count(self.node, _SWAMPED)
            return None
        if round_.command.token in self._refused and round_.command.verb is not Verb.RELEASE:
            self._refused.remove(round_.command.token)
        return link

    def doubt(self, now: float, limit: float) -> None:
        """Give the connection up if nothing has come for so long, with answers outstanding."""
        link = self._link
        if link is not None and link.awaiting and now - self._since >= limit:
            self.carrier.look()
            if self._link is link and link.awaiting and now - self._since >= limit:
                self._fail(Failure(Condition.BROKEN, f"no answer for {limit:g} s"))

    def _owes_too_much(self, link: Link, now: float) -> bool:
        """True if the node has been silent for too long with answers outstanding."""
        if now - self._since <= SILENCE:
            if len(link.awaiting) >= self._most:
                self.carrier.look()  # answers may have come since somebody looked
            return False
        return self._is_silent(now) and self.ready

    def _is_silent(self, now: float) -> bool:
        """True if nothing has come for too long. First looks: nobody may have, all that time."""
        if now - self._since > SILENCE:
            self.carrier.look()
        return now - self._since > SILENCE

    def _is_swamped(self, unanswered: int, round_: Round) -> bool:
        """True if the node owes so many answers that it should not get this, too."""
        command = round_.command
        if command.verb is not Verb.RELEASE:
            if unanswered < self._most:
                return False
            if isinstance(command, Command) and command.is_first:
                self._refused.append(command.token)
            return True
        if self._refused and command.token in self._refused:
            self._refused.remove(command.token)
            return True
        return unanswered >= 2 * self._most

    def _worded(self, link: Link, round_: Round, packed: bytes) -> bytes:
        """Return what to write where nobody may be there to hear a NOSCRIPT.

        Releases bear their script along; the first that is unanswered does, the others follow it.
        """
        if self._bearer in link.awaiting:
            return packed
        self._bearer = round_
        return commands.pack_whole(round_.command)

    def _stand_in_line(self, round_: Round, now: float) -> None:
        if self._posted.strike_out(round_):
            round_.count(self.node, self._vote)
        else:
            self._posted.add(round_)
        self.connect(now)
        if not self.connecting and not self.ready:
            self._posted.fail(self._vote)

    @property
    def _vote(self) -> Vote:
        """What counts as the vote of a node that cannot be reached."""
        return Vote(Answer.FAILED, failure=self._failure)

    def listen(self, now: float) -> None:
        """Hear calls from here on; said again, see that they can still be heard."""
        link = self._link
        if link is None or link.greeted is None:
            self._listening = self._listening or Subscription(self._fleet.post)
            self.connect(now)
        elif self._listening is None:
            self._subscribe(link)
            self._flush(link)
        elif not link.awaiting and link.on_push is not None:
            self._since = now
            self._listening.check(link)
            self._flush(link)

    def _subscribe(self, link: Link) -> None:
        """Subscribe to the inbox, if the server can say something unasked."""
        self._listening = subscription = Subscription(self._fleet.post)
        if isinstance(link.greeted, Identity) and link.greeted.pushes:
            subscription.begin(link)
        else:
            self._fleet.post.mute(self.node)

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
        self._opening = True
        self.carrier.open()

    def progressed(self) -> None:
        """Be patient for longer: the carrier has come a step further."""
        self._since = clock.now()

    def opened(self) -> None:
        """Greet the server: the carrier has a connection."""
        self._opening = False
        self._since = self._opened_at = clock.now()
        heed = partial(self._fleet.health.abstains, self.node)
        peer = Peer(self._fleet.clocks.nodes[self.node], self.endpoint.db, heed)
        try:
            link = self._link = Link(self.node, self.endpoint, peer, durable=self._fleet.durable)
        except Exception as error:  # noqa: BLE001  # a credential provider may raise anything
            detail = f"no credentials: {type(error).__name__}: {error}"
            self._fail(Failure(Condition.UNREACHABLE, detail))
            return
        self._flush(link)

    def _meet(self, link: Link) -> None:
        """Act on the greeting's end: turn the server away, or say what stands in line."""
        identity, fleet = link.greeted, self._fleet
        if not isinstance(identity, Identity):
            self._fail(identity or Failure(Condition.PROTOCOL))
            return
        failure = self._roster.turn_away(self.node, identity, evicting=fleet.guard.evicting)
        if failure is not None:
            self._fail(failure)
            return
        if identity.shown_us:
            link.peer.clock.meet(identity.shown_us, self._opened_at, link.peer.heard_at)
            fleet.clocks.reset()
        self._backoff = 0.0
        fleet.health.up(self.node)
        if fleet.durable and fleet.guard.is_on:  # before anything else is asked
            adopt = NodeCommand(Verb.ADOPT, fleet.guard, "1" if identity.durable else "0")
            link.say(commands.pack_whole(adopt) + link.peer.ending(0.0), Unheeded())
        fleet.post.clustered |= identity.clustered
        if self._listening is not None:
            self._subscribe(link)
        for round_ in self._posted.wanted():
            packed = commands.pack(round_.command)
            if self._deaf and not round_.open:
                packed = self._worded(link, round_, packed)
            link.say(round_.finish(packed, link.peer), round_)
        self.on_settled()

    # -- hearing ----------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Read what the carrier has received."""
        link = self._link
        if link is None:
            return
        greeted, now = link.greeted, clock.now()
        try:
            link.hear(data, now)
        except hiredis.ProtocolError as error:
            self.broke(error)
            return
        if greeted is None and link.greeted is not None:
            self._meet(link)
            if self._link is not link:  # turned away
                return
        self._since = now
        if link.outbox:
            self._flush(link)

    def _flush(self, link: Link) -> None:
        data, link.outbox = link.outbox, bytearray()
        try:
            self.carrier.write(data)
        except OSError as error:
            self.broke(error)

    # -- breaking ---------------------------------------------------------------------------------

    def broke(self, error: Exception) -> None:
        """Handle the end of a connection: if it had been good, connect again at once (rule 4)."""
        link, failure = self._link, failure_of(error)
        if link is None or not isinstance(link.greeted, Identity):
            self._fail(failure)
            return
        self._failure = failure
        self._hang_up()
        self._retry_at = 0.0
        for round_ in rounds_in(link):
            if round_.may_repeat(self.node):
                self._stand_in_line(round_, clock.now())
            else:
                round_.count(self.node, self._vote)
        if self._listening is not None:
            self.connect(clock.now())

    def _fail(self, failure: Failure) -> None:
        """Give the node up until the back-off has passed (rule 3)."""
        link = self._link
        self._failure = failure
        self._hang_up()
        self._backoff = min(max(2 * self._backoff, FIRST_BACKOFF), LARGEST_BACKOFF)
        self._retry_at = clock.now() + self._backoff
        for round_ in rounds_in(link):
            if round_.command.verb is Verb.RELEASE and round_.may_repeat(self.node):
                self._posted.add(round_)
            else:
                round_.count(self.node, self._vote)
        self._posted.fail(self._vote)  # and keep the releases for a better day (rule 2)
        self._fleet.health.down(self.node, failure)
        self.on_settled()

    def _hang_up(self) -> None:
        link, self._link, self._opening = self._link, None, False
        if self._listening is not None:
            self._fleet.post.away(self.node)
        if link is not None and isinstance(link.greeted, Identity):
            self._roster.forget(self.node)
        self.carrier.close()

    def close(self) -> None:
        """End the connection in good order, and whatever stood in line."""
        self.carrier.finish()
        self._hang_up()
        self._posted.clear()
        self._retry_at = 0.0


def _nobody() -> None:
    """Nobody wants to know."""
