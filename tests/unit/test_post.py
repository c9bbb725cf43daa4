"""A client's inbox: whom a call is for, and from where it can be heard."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.place import Hearing
from holdfast.drivers.fleet import Fleet
from holdfast.drivers.health import NobodyAsks
from holdfast.drivers.post import Post, usual_label
from holdfast.drivers.source import SystemSource
from holdfast.wire.endpoint import Endpoint
from holdfast.wire.who import INBOX, Sign, who_of

NOW = 100.0


class Told(NobodyAsks):
    """Writes down what cannot be heard."""

    def __init__(self) -> None:
        self.words: list[tuple[int, tuple[str, ...]]] = []

    def unheard(self, node: int, rights: tuple[str, ...], why: str) -> None:
        self.words.append((node, rights))


def wanted(nodes: int = 3) -> Post:
    """Return the inbox of somebody who waits."""
    post = Post(nodes, NobodyAsks(), "web")
    post.wanted = True
    return post


def heard(nodes: int = 3) -> Post:
    """Return an inbox that every node is heard in."""
    post = wanted(nodes)
    for node in range(nodes):
        post.hears(node)
    return post


def call(token: str, claim_ms: int | str = 300) -> bytes:
    return f"{token} 1767225600000000 {claim_ms} 77".encode()


# -- whom it is for -------------------------------------------------------------------------------


def test_a_call_is_for_the_attempt_it_names() -> None:
    post = wanted()
    mine, other = post.expect(), post.expect()
    post.put(2, call(mine.token), NOW)
    assert (mine.calls(NOW), other.calls(NOW)) == (1, 0)
    assert mine.calls(NOW + 0.299) == 1
    assert mine.calls(NOW + 0.3) == 0


def test_who_expects_no_more_is_not_called() -> None:
    post = wanted()
    mail = post.expect()
    assert post.expecting
    post.forget(mail)
    assert not post.expecting
    post.put(0, call(mail.token), NOW)
    assert (mail.news, mail.calls(NOW)) == (False, 0)
    post.forget(mail)  # saying it twice is saying it once


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b" ",
        b"{token}",
        b"{token} 1 300",
        b"{token} 1 300 0 more",
        b"{token} 1 soon 0",
        b"{token} 1 -300 0",
        b"{token} 1 3.5 0",
        b"\xff\xfe 1 300 0",
        b"somebody 1 300 0",
    ],
)
def test_what_cannot_be_read_calls_nobody(odd: bytes) -> None:
    post = wanted()
    mail = post.expect()
    post.put(0, odd.replace(b"{token}", mail.token.encode()), NOW)
    assert (mail.news, mail.calls(NOW)) == (False, 0)


@given(st.binary(max_size=80))
def test_whatever_is_put_is_survived(odd: bytes) -> None:
    post = wanted()
    post.expect()
    post.put(0, odd, NOW)


# -- from where -----------------------------------------------------------------------------------


def test_who_never_waited_does_not_know_whether_it_can_be_called() -> None:
    post = Post(3, NobodyAsks())
    assert post.hearing is Hearing.UNKNOWN
    post.wanted = True
    assert post.hearing is Hearing.UNKNOWN, "until it has heard of every node"


def test_it_is_called_as_long_as_a_quorum_is_heard() -> None:
    post = wanted()
    post.hears(0)
    post.away(1)
    post.away(2)
    assert post.hearing is Hearing.POLLS
    assert post.expect().polls
    assert post.token()[40] == Sign.POLLS.value
    post.hears(2)
    assert post.hearing is Hearing.CALLED
    assert not post.expect().polls
    assert post.token()[40] == Sign.HEARS.value
    post.away(0)
    assert post.hearing is Hearing.POLLS


def test_it_is_settled_once_something_is_known_of_every_node() -> None:
    post = wanted()
    heard: list[bool] = []
    post.on_ear.append(lambda: heard.append(post.settled))
    post.hears(0)
    post.away(1)
    assert not post.settled
    post.cannot(2, ("+subscribe",), "NOPERM")
    assert post.settled
    assert heard == [False, False, True], "whoever wants to know is told each time"


def test_who_was_away_and_is_heard_again_may_have_missed_a_call() -> None:
    post = wanted()
    mails = [post.expect(), post.expect()]
    post.hears(0)
    post.hears(0)
    assert not any(mail.news for mail in mails), "nothing was missed"
    post.away(0)
    assert not any(mail.news for mail in mails), "nobody can be asked yet"
    post.hears(0)
    assert all(mail.news for mail in mails)
    assert [mail.calls(NOW) for mail in mails] == [0, 0]


@pytest.mark.parametrize("node", range(3))
def test_one_node_that_forbids_it_is_enough_to_poll(node: int) -> None:
    post = wanted()
    for other in range(3):
        post.hears(other)
    assert post.token()[40] == Sign.HEARS.value
    post.cannot(node, ("+subscribe",), "NOPERM")
    assert post.hearing is Hearing.POLLS
    assert post.token()[40] == Sign.POLLS.value, "nodes must not count on a call"
    post.away(node)
    assert post.hearing is Hearing.POLLS, "a broken connection grants no rights"
    post.hears(node)
    assert post.hearing is Hearing.CALLED


def test_who_may_not_call_others_does_not_expect_to_be_called() -> None:
    told = Told()
    post = Post(3, told)
    post.wanted = True
    for node in range(3):
        post.hears(node)
    post.cannot(1, ("+publish",), "NOPERM no 'publish'")
    assert post.hearing is Hearing.POLLS
    post.cannot(2, ("+subscribe",), "NOPERM no 'subscribe'")
    assert told.words == [(1, ("+publish",)), (2, ("+subscribe",))]


def test_in_a_cluster_nobody_counts_who_hears() -> None:
    post = heard()
    post.clustered = True
    assert post.token()[40] == Sign.HEARS_FAR.value
    post.cannot(0, ("+subscribe",), "NOPERM")
    assert post.token()[40] == Sign.POLLS.value


# -- who ------------------------------------------------------------------------------------------


def test_a_token_says_who_has_it_and_where_to_call() -> None:
    post = wanted()
    tokens = {post.token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert who_of(token) == post.who
        assert INBOX + token[41:] == post.name
        assert int(token[:40], 16) >= 0
    assert (post.who.pid, post.who.label) == (os.getpid(), "web")


def test_two_clients_of_a_process_have_two_inboxes() -> None:
    assert wanted().name != wanted().name


def test_a_program_is_called_by_its_name_unless_somebody_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["/srv/jobs/nightly.py", "--all"])
    assert Post(1, NobodyAsks()).who.label == usual_label() == "nightly"
    for argv in ([""], []):
        monkeypatch.setattr("sys.argv", argv)
        assert usual_label() == "python"


def test_a_program_may_have_a_name_that_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [os.fsdecode(b"/srv/caf\xe9.py")])
    assert Post(1, NobodyAsks()).token()


def test_a_forked_child_is_somebody_else() -> None:
    post = wanted()
    mail, name, heard = post.expect(), post.name, list[int]()
    post.on_ear.append(lambda: heard.append(1))
    post.cannot(0, ("+subscribe",), "NOPERM")
    heard.clear()
    post.reset()
    assert post.name != name
    assert (post.wanted, post.expecting, post.settled) == (False, False, False)
    assert post.hearing is Hearing.UNKNOWN
    post.put(0, call(mail.token), NOW)
    post.hears(0)
    assert (mail.calls(NOW), heard) == (0, [])


def test_flows_have_what_the_inbox_has() -> None:
    fleet = Fleet([Endpoint()], label="web")
    source = SystemSource(fleet)
    assert source.hearing is Hearing.UNKNOWN
    fleet.post.wanted = True
    fleet.post.hears(0)
    assert source.hearing is Hearing.CALLED
    mail = source.mail()
    fleet.post.put(0, call(mail.token), NOW)
    assert mail.calls(NOW) == 1
    source.forget(mail)
    assert not fleet.post.expecting
    assert who_of(source.token()) == fleet.post.who
    assert 0 <= source.chance() < 1
