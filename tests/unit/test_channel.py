"""The rules of a node's connection, with a carrier that only writes down."""

from collections.abc import Callable

import pytest

from holdfast.core.effects import Command, Verb
from holdfast.core.tally import Tally
from holdfast.drivers import channel as channels
from holdfast.drivers import clock
from holdfast.drivers.channel import SILENCE, Channel
from holdfast.drivers.health import NobodyAsks
from holdfast.drivers.roster import Roster
from holdfast.wire import commands
from holdfast.wire.endpoint import Endpoint
from holdfast.wire.round import Round

GREETED = b"%0\r\n" + b"$9\r\nrun_id:me\r\n" + 3 * b"+sha\r\n"
"""HELLO, INFO and the scripts, answered."""


class Notebook:
    """A carrier that opens nothing."""

    def __init__(self) -> None:
        self.opened = 0
        self.written = b""
        self.on_look: Callable[[], None] = lambda: None

    def open(self) -> None:
        self.opened += 1
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def look(self) -> None:
        self.on_look()

    def finish(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def channel() -> Channel:
    endpoint = Endpoint()
    made = Channel(0, endpoint, Roster([endpoint]), NobodyAsks(), most_unanswered=4, deaf=True)
    made.carrier = Notebook()
    return made


def ready(channel: Channel) -> Notebook:
    channel.connect(clock.now())
    channel.opened()
    channel.received(GREETED)
    assert channel.ready
    channel.carrier.written = b""
    return channel.carrier


def say(channel: Channel, verb: Verb, token: str, now: float, *, tell: bool = False) -> Round:
    command = Command(verb, "x", token, 1000)
    round_ = Round(command, None if tell else Tally(1))
    channel.post(round_, commands.pack(command), now)
    return round_


def test_a_connection_that_never_comes_is_given_up_however_often_it_is_asked_for(
    channel: Channel,
) -> None:
    begun = clock.now()
    for second in range(int(SILENCE) + 2):
        say(channel, Verb.REQUEST, f"t{second}", begun + second).close()
    assert "no connection" in str(channel._failure)
    assert not channel.connecting


def test_a_greeting_that_never_ends_is_given_up(channel: Channel) -> None:
    channel.connect(clock.now())
    channel.opened()
    begun = clock.now()
    for second in range(int(SILENCE) + 2):
        say(channel, Verb.REQUEST, f"t{second}", begun + second).close()
    assert channel.carrier.opened > 1


def test_a_release_outlives_the_silence_of_its_connection(channel: Channel) -> None:
    carrier, now = ready(channel), clock.now()
    say(channel, Verb.REQUEST, "a", now).close()
    say(channel, Verb.RELEASE, "a", now, tell=True)
    say(channel, Verb.REQUEST, "b", now + SILENCE + 1)
    assert not channel.ready
    channel._retry_at = 0.0
    say(channel, Verb.REQUEST, "c", clock.now())
    channel.opened()
    channel.received(GREETED)
    assert carrier.written.rindex(b"\r\na\r\n") < carrier.written.rindex(b"\r\nc\r\n")


def test_a_connection_that_breaks_while_it_is_looked_at_is_not_swamped(channel: Channel) -> None:
    carrier, now = ready(channel), clock.now()
    for number in range(4):
        say(channel, Verb.REQUEST, f"t{number}", now).close()
    carrier.on_look = lambda: channel.broke(ConnectionResetError())
    round_ = say(channel, Verb.REQUEST, "new", now)
    assert round_.tally is not None
    assert round_.tally.votes == [None], "it stands in line for the next connection"
    assert carrier.opened == 2


def test_a_node_that_owes_too_much_gets_releases_only(channel: Channel) -> None:
    carrier, now = ready(channel), clock.now()
    for number in range(4):
        say(channel, Verb.REQUEST, f"t{number}", now)
    before = carrier.written
    refused = say(channel, Verb.REQUEST, "more", now)
    assert refused.tally is not None
    assert "unanswered" in str(refused.tally.votes[0])
    assert carrier.written == before
    say(channel, Verb.RELEASE, "more", now, tell=True)
    assert carrier.written == before, "what was never asked for needs no release"
    say(channel, Verb.RELEASE, "t0", now, tell=True)
    assert carrier.written != before


def test_backing_off_doubles_and_ends_with_a_greeting(channel: Channel) -> None:
    waits = []
    for _ in range(8):
        channel._retry_at = 0.0
        channel.connect(clock.now())
        channel.broke(ConnectionRefusedError())
        waits.append(channel._backoff)
    assert waits[:3] == [channels.FIRST_BACKOFF * times for times in (1, 2, 4)]
    assert waits[-1] == channels.LARGEST_BACKOFF
    channel._retry_at = 0.0
    ready(channel)
    assert channel._backoff == 0.0
