"""Subscribing to the inbox on a connection that also carries commands."""

import hiredis
import pytest

from holdfast.wire.link import Link
from holdfast.wire.subscription import Subscription
from unit.test_link import Asker, greeted

NOW = 7.0
SUBSCRIBED = b">3\r\n$9\r\nsubscribe\r\n$5\r\ninbox\r\n:1\r\n"
HEARD_BY_ONE = b":1\r\n"
BUSY = b"-BUSY Valkey is busy running a script\r\n"
NOPERM = b"-NOPERM no permissions to run that command\r\n"
NO_CHANNEL = b"-NOPERM no permissions to access one of the channels\r\n"
ECHO = b">3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$0\r\n\r\n"


class Inbox:
    """Writes down what it is told."""

    name = "inbox"

    def __init__(self) -> None:
        self.said: list[str] = []

    def put(self, node: int, call: bytes, now: float) -> None:
        self.said.append(f"call {node} {call.decode()} at {now:g}")

    def hears(self, node: int) -> None:
        self.said.append(f"hears {node}")

    def away(self, node: int) -> None:
        self.said.append(f"away {node}")

    def cannot(self, node: int, rights: tuple[str, ...], why: str) -> None:
        self.said.append(f"cannot {node} {' '.join(rights)}: {why.split()[0]}")


def begun() -> tuple[Link, Inbox, Subscription]:
    link, inbox = greeted(), Inbox()
    link.outbox.clear()
    subscription = Subscription(inbox)
    subscription.begin(link)
    return link, inbox, subscription


def words_in(data: bytearray) -> list[list[bytes]]:
    reader = hiredis.Reader()
    reader.feed(bytes(data))
    return list(iter(reader.gets, False))


def message(call: bytes) -> bytes:
    return b">3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n$%d\r\n%s\r\n" % (len(call), call)


def test_it_subscribes_and_calls_itself_behind_that() -> None:
    link, inbox, _ = begun()
    assert words_in(link.outbox) == [[b"SUBSCRIBE", b"inbox"], [b"PUBLISH", b"inbox", b""]]
    assert len(link.awaiting) == 1, "a subscription is confirmed by a push, not by a reply"
    assert inbox.said == []


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        (SUBSCRIBED + HEARD_BY_ONE, ["hears 0"]),
        (SUBSCRIBED + ECHO + HEARD_BY_ONE, ["hears 0"]),
        (SUBSCRIBED + NOPERM, ["cannot 0 +publish: NOPERM"]),
        (SUBSCRIBED + NO_CHANNEL, ["cannot 0 &hf:inbox:*: NOPERM"]),
        (SUBSCRIBED + BUSY, ["away 0"]),
        (BUSY + BUSY, ["away 0"]),
        (NOPERM + b":0\r\n", ["cannot 0 +subscribe: NOPERM"]),
        (NOPERM + NOPERM, ["cannot 0 +subscribe +publish: NOPERM"]),
        (NO_CHANNEL + NO_CHANNEL, ["cannot 0 &hf:inbox:*: NOPERM"]),
    ],
)
def test_what_it_may(heard: bytes, said: list[str]) -> None:
    for step in (1, len(heard)):  # byte by byte, and at once
        link, inbox, _ = begun()
        for begin in range(0, len(heard), step):
            link.hear(heard[begin : begin + step], NOW)
        assert inbox.said == said
        assert not link.awaiting


@pytest.mark.parametrize("refused", [SUBSCRIBED + NOPERM, NOPERM + b":0\r\n", NOPERM + NOPERM])
def test_others_get_their_own_replies(refused: bytes) -> None:
    link, inbox = greeted(), Inbox()
    before, after = Asker(), Asker()
    link.say(b"one", before)
    Subscription(inbox).begin(link)
    link.say(b"two", after)
    link.hear(b":41\r\n" + refused + b":42\r\n", NOW)
    assert (before.heard, after.heard) == ([41], [42])


def test_a_confirmation_alone_settles_nothing() -> None:
    link, inbox, _ = begun()
    link.hear(SUBSCRIBED, NOW)
    assert inbox.said == []


def test_calls_go_to_the_inbox_with_the_time() -> None:
    link, inbox, _ = begun()
    link.hear(SUBSCRIBED + HEARD_BY_ONE + message(b"t 1 300 0") + message(b""), NOW)
    assert inbox.said == ["hears 0", "call 0 t 1 300 0 at 7"]


@pytest.mark.parametrize(
    "odd",
    [
        b">1\r\n$7\r\nmessage\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*0\r\n",
        b">3\r\n$11\r\nunsubscribe\r\n$5\r\ninbox\r\n:0\r\n",
        b">3\r\n$7\r\nmessage\r\n$5\r\ninbox\r\n:7\r\n",
    ],
)
def test_whatever_else_is_said_unasked_is_passed_over(odd: bytes) -> None:
    link, inbox, _ = begun()
    link.hear(odd + SUBSCRIBED + odd + HEARD_BY_ONE, NOW)
    assert inbox.said == ["hears 0"]


def test_whether_it_is_still_heard_can_be_seen_at_any_time() -> None:
    link, inbox, subscription = begun()
    link.hear(SUBSCRIBED + HEARD_BY_ONE, NOW)
    link.outbox.clear()
    subscription.check(link)
    assert words_in(link.outbox) == [[b"PUBLISH", b"inbox", b""]]
    link.hear(HEARD_BY_ONE, NOW)
    assert inbox.said == ["hears 0", "hears 0"]


def test_rights_that_are_taken_away_are_noticed() -> None:
    link, inbox, subscription = begun()
    link.hear(SUBSCRIBED + HEARD_BY_ONE, NOW)
    subscription.check(link)
    link.hear(NOPERM, NOW)
    assert inbox.said[1:] == ["cannot 0 +publish: NOPERM"]


def test_rights_that_are_granted_later_are_noticed_too() -> None:
    link, inbox, subscription = begun()
    link.hear(NOPERM + NOPERM, NOW)
    link.outbox.clear()
    subscription.check(link)
    assert words_in(link.outbox) == [[b"SUBSCRIBE", b"inbox"], [b"PUBLISH", b"inbox", b""]]
    link.hear(SUBSCRIBED + HEARD_BY_ONE, NOW)
    assert inbox.said[1:] == ["hears 0"]


def test_who_was_refused_is_not_heard_whatever_is_answered_later() -> None:
    link, inbox, subscription = begun()
    link.hear(NOPERM + b":0\r\n", NOW)
    subscription.check(link)
    link.hear(HEARD_BY_ONE, NOW)
    assert inbox.said == ["cannot 0 +subscribe: NOPERM"]
    assert not link.awaiting
