"""A link matches replies to whoever asked, however the bytes arrive, and is never one off."""

import itertools

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.clocks import NodeClock
from holdfast.core.votes import Condition, Failure
from holdfast.wire.endpoint import Endpoint
from holdfast.wire.greeting import Identity
from holdfast.wire.link import Link
from holdfast.wire.peer import Peer

ENDPOINT = Endpoint(path="/nowhere")
NOW = 5.0
PUSH = b">2\r\n+message\r\n+hello\r\n"

REPLIES = [
    (b"+OK\r\n", b"OK"),
    (b":7\r\n", 7),
    (b"*3\r\n:1\r\n:9\r\n:0\r\n", [1, 9, 0]),
    (b"*3\r\n:0\r\n:9\r\n:-1\r\n", [0, 9, -1]),
    (b"$0\r\n\r\n", b""),
    (b"_\r\n", None),
    (b"#f\r\n", False),
    (b"*0\r\n", []),
    (b"$7\r\na\r\nb\r\nc\r\n", b"a\r\nb\r\nc"),
]


class Asker:
    """Keeps the replies it is given."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def answer(self, link: Link, reply: object) -> None:
        self.heard.append(reply)


def greeting_to(link: Link) -> bytes:
    """Return a server's answers to whatever a link has said so far."""
    reader = hiredis.Reader()
    reader.feed(bytes(link.outbox))
    answers = {
        b"HELLO": b"%1\r\n+server\r\n+x\r\n",
        b"INFO": b"$9\r\nrun_id:ab\r\n",
        b"TIME": b"*2\r\n$1\r\n2\r\n$1\r\n5\r\n",
    }
    said = iter(reader.gets, False)
    return b"".join(answers.get(words[0], b"+OK\r\n") for words in said)


def new() -> Link:
    return Link(0, ENDPOINT, Peer(NodeClock(trusting=True), 0))


def greeted() -> Link:
    link = new()
    link.hear(greeting_to(link), NOW)
    assert link.greeted == Identity("ab", "", shown_us=2_000_005, pushes=True)
    return link


def feed(link: Link, data: bytes, cuts: list[int]) -> None:
    """Feed bytes in pieces."""
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for begin, end in itertools.pairwise(edges):
        link.hear(data[begin:end], NOW)


@given(
    st.lists(st.tuples(st.sampled_from(REPLIES), st.booleans()), max_size=12),
    st.lists(st.integers(0, 10_000), max_size=40),
)
def test_every_reply_reaches_who_asked_for_it(
    conversation: list[tuple[tuple[bytes, object], bool]], cuts: list[int]
) -> None:
    link = greeted()
    askers = [Asker() for _ in conversation]
    for asker in askers:
        link.say(b"x", asker)
    data = b"".join((PUSH if pushed else b"") + sent for (sent, _), pushed in conversation)
    feed(link, data, cuts)
    assert [asker.heard for asker in askers] == [[value] for (_, value), _ in conversation]
    assert not link.awaiting


@given(st.lists(st.integers(0, 10_000), max_size=40), st.integers(0, 5))
def test_a_reply_counts_when_it_is_whole(cuts: list[int], missing: int) -> None:
    link, asker = greeted(), Asker()
    link.say(b"x", asker)
    data = b"*3\r\n:1\r\n:9\r\n:0\r\n"
    feed(link, data[: len(data) - missing], cuts)
    assert asker.heard == ([] if missing else [[1, 9, 0]])
    assert len(link.awaiting) == (1 if missing else 0)


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_a_greeting_may_come_in_pieces_too(cuts: list[int]) -> None:
    link, asker = new(), Asker()
    feed(link, greeting_to(link), cuts)
    link.say(b"x", asker)
    feed(link, b"+OK\r\n", cuts)
    assert asker.heard == [b"OK"]


def test_the_peer_knows_when_it_was_last_heard_of() -> None:
    link = greeted()
    assert link.peer.heard_at == NOW
    link.hear(PUSH, NOW + 1)
    assert link.peer.heard_at == NOW + 1


def test_a_reply_that_nobody_asked_for_ends_the_connection() -> None:
    link = greeted()
    with pytest.raises(hiredis.ProtocolError, match="nobody asked"):
        link.hear(b"+OK\r\n", NOW)


def test_what_is_no_protocol_ends_the_connection() -> None:
    link = greeted()
    with pytest.raises(hiredis.ProtocolError):
        link.hear(b"HTTP/1.1 400 Bad Request\r\n", NOW)


def test_an_asker_may_ask_again() -> None:
    class Again(Asker):
        def answer(self, link: Link, reply: object) -> None:
            super().answer(link, reply)
            if len(self.heard) == 1:
                link.say(b"again", self)

    link, again, other = greeted(), Again(), Asker()
    link.outbox.clear()
    link.say(b"one", again)
    link.say(b"two", other)
    link.hear(b":1\r\n:2\r\n:3\r\n", NOW)
    assert link.outbox == b"onetwoagain"
    assert (again.heard, other.heard) == ([1, 3], [2])


@pytest.mark.parametrize("more", [b"", b"-ERR and so on\r\n"])
def test_who_is_turned_away_hears_why(more: bytes) -> None:
    link = new()
    said = "ERR max number of clients reached"
    link.hear(f"-{said}\r\n".encode() + more, NOW)
    assert link.greeted == Failure(Condition.OVERCROWDED, said)
