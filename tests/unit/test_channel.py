"""The rules of a node's connection, with a carrier that only writes down."""

from collections.abc import Callable

import hiredis
import pytest

from holdfast.core.effects import Command, Verb
from holdfast.core.guard import Guard
from holdfast.core.place import Hearing, Place
from holdfast.core.tally import Tally
from holdfast.core.votes import Answer
from holdfast.drivers import channel as channels
from holdfast.drivers import clock
from holdfast.drivers.channel import SILENCE, Channel
from holdfast.drivers.fleet import Fleet
from holdfast.drivers.roster import Roster
from holdfast.wire import commands
from holdfast.wire.endpoint import Endpoint
from holdfast.wire.round import Round
from holdfast.wire.scripts import SCRIPTS

SHOWN_US = 1_767_225_600_000_000
"""What the server's clock shows when it is greeted."""


def bulk(text: str) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text.encode())


def greeting(memory: str = "", settings: tuple[str, ...] = ()) -> bytes:
    """HELLO, INFO twice, TIME, what was asked of the settings, and the scripts, answered."""
    time = b"*2\r\n" + bulk(str(SHOWN_US // 1_000_000)) + bulk("0")
    told = b"".join(b"*2\r\n" + b"".join(map(bulk, each.split())) for each in settings)
    info = bulk("run_id:me") + bulk(memory)
    return b"%0\r\n" + info + time + told + len(SCRIPTS) * b"+sha\r\n"


GREETED = greeting()


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
    return channel_of(Fleet([Endpoint()]))


def channel_of(fleet: Fleet) -> Channel:
    made = Channel(0, fleet, Roster(fleet.endpoints), most_unanswered=4, deaf=True)
    made.carrier = Notebook()
    return made


def ready(channel: Channel) -> Notebook:
    channel.connect(clock.now())
    channel.opened()
    channel.received(GREETED)
    assert channel.ready
    channel.carrier.written = b""
    return channel.carrier


def say(
    channel: Channel,
    verb: Verb,
    token: str,
    now: float,
    *,
    tell: bool = False,
    place: Place = Place.NOWHERE,
) -> Round:
    command = Command(verb, "x", token, 1000, guard=channel._fleet.guard, place=place)
    round_ = Round(command, None if tell else Tally(1), sent=now, until=now + 1)
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


def full(channel: Channel, now: float) -> Notebook:
    """Let a node owe as many answers as it may."""
    carrier = ready(channel)
    for number in range(4):
        say(channel, Verb.REQUEST, f"t{number}", now)
    return carrier


def released(carrier: Notebook) -> list[bytes]:
    """Return the tokens whose release was written."""
    release = SCRIPTS[Verb.RELEASE]
    spoken = [words for words in words_in(carrier.written) if words[0].startswith(b"EVAL")]
    return [words[-4] for words in spoken if words[1].decode() in (release.sha, release.text)]


@pytest.mark.parametrize(
    ("verb", "place"),
    [(Verb.WAIT, Place.ABOVE), (Verb.WAIT, Place.LAST), (Verb.REQUEST, Place.KEPT)],
)
def test_who_is_in_line_is_released_also_if_the_node_owed_too_much_meanwhile(
    channel: Channel, verb: Verb, place: Place
) -> None:
    now = clock.now()
    carrier = full(channel, now)
    refused = say(channel, verb, "waiter", now, place=place)
    assert refused.tally is not None
    assert "unanswered" in str(refused.tally.votes[0])
    say(channel, Verb.RELEASE, "waiter", now, tell=True)
    assert released(carrier) == [b"waiter"], "an earlier word may have put it in line"


@pytest.mark.parametrize(
    ("verb", "place"),
    [(Verb.WAIT, Place.ABOVE), (Verb.REQUEST, Place.KEPT)],
)
def test_what_was_refused_at_first_and_said_later_is_released(
    channel: Channel, verb: Verb, place: Place
) -> None:
    now = clock.now()
    carrier = full(channel, now)
    say(channel, Verb.REQUEST, "waiter", now, place=Place.ABOVE)
    channel.received(2 * reply(0, 0, 5))
    say(channel, verb, "waiter", now, place=place)
    say(channel, Verb.RELEASE, "waiter", now, tell=True)
    assert released(carrier) == [b"waiter"]


@pytest.mark.parametrize(
    ("verb", "place", "kept"),
    [
        (Verb.REQUEST, Place.NOWHERE, False),
        (Verb.REQUEST, Place.ABOVE, False),
        (Verb.REQUEST, Place.KEPT, True),
        (Verb.WAIT, Place.SETTLED, True),
    ],
)
def test_what_never_left_us_is_struck_out_with_its_release(
    channel: Channel, verb: Verb, place: Place, kept: bool
) -> None:
    """Unless it was said in the name of somebody who may be in line already."""
    carrier = ready(channel)
    channel.broke(ConnectionResetError())
    round_ = say(channel, verb, "waiter", clock.now(), place=place)
    round_.close()
    say(channel, Verb.RELEASE, "waiter", clock.now(), tell=True)
    channel.opened()
    channel.received(GREETED)
    assert channel.ready
    assert released(carrier) == ([b"waiter"] if kept else [])


# -- hearing calls --------------------------------------------------------------------------------

SUBSCRIBED = b">3\r\n+subscribe\r\n+hf:inbox:x\r\n:1\r\n"


def spoken(carrier: Notebook) -> list[bytes]:
    return [words[0] for words in words_in(carrier.written)]


def listening(channel: Channel) -> Notebook:
    channel._fleet.post.wanted = True
    carrier = ready(channel)
    channel.listen(clock.now())
    return carrier


def test_whoever_listens_subscribes_and_calls_itself(channel: Channel) -> None:
    carrier, post = listening(channel), channel._fleet.post
    assert [words[:2] for words in words_in(carrier.written)] == [
        [b"SUBSCRIBE", post.name.encode()],
        [b"PUBLISH", post.name.encode()],
    ]
    assert not post.settled
    channel.received(SUBSCRIBED + b":1\r\n")
    assert post.settled
    assert post.hearing is Hearing.CALLED


def test_who_is_not_connected_yet_subscribes_before_anything_else(channel: Channel) -> None:
    say(channel, Verb.REQUEST, "a", clock.now())
    channel.listen(clock.now())
    carrier = channel.carrier
    channel.opened()
    carrier.written = b""
    channel.received(GREETED)
    assert spoken(carrier) == [b"SUBSCRIBE", b"PUBLISH", b"EVALSHA"]


def test_who_listens_again_sees_whether_it_is_still_heard(channel: Channel) -> None:
    carrier = listening(channel)
    channel.received(SUBSCRIBED + b":1\r\n")
    carrier.written = b""
    channel.listen(clock.now())
    assert spoken(carrier) == [b"PUBLISH"]
    channel.listen(clock.now())
    assert spoken(carrier) == [b"PUBLISH"], "it owes an answer, which will show it"


def test_a_connection_that_breaks_is_opened_again_and_whoever_waits_is_woken(
    channel: Channel,
) -> None:
    carrier, post = listening(channel), channel._fleet.post
    channel.received(SUBSCRIBED + b":1\r\n")
    mail = post.expect()
    channel.broke(ConnectionResetError())
    assert (carrier.opened, post.settled, mail.news) == (2, True, False)
    channel.opened()
    channel.received(GREETED)
    assert spoken(carrier)[-2:] == [b"SUBSCRIBE", b"PUBLISH"]
    channel.received(SUBSCRIBED + b":1\r\n")
    assert mail.news, "a call may have been missed"


def test_a_call_reaches_who_waits(channel: Channel) -> None:
    listening(channel)
    channel.received(SUBSCRIBED + b":1\r\n")
    mail = channel._fleet.post.expect()
    call = f"{mail.token} {SHOWN_US} 300 0"
    channel.received(b">3\r\n+message\r\n+hf:inbox:x\r\n" + bulk(call))
    assert mail.calls(clock.now()) == 1


def test_a_server_that_says_nothing_unasked_is_polled() -> None:
    channel = channel_of(Fleet([Endpoint(protocol=2)]))
    carrier = listening(channel)
    channel.listen(clock.now())
    assert carrier.written == b"", "not even to see whether it still is: a reply could be mistaken"
    assert channel._fleet.post.hearing is Hearing.POLLS


def test_a_node_of_a_cluster_is_noticed(channel: Channel) -> None:
    channel.connect(clock.now())
    channel.opened()
    channel.received(GREETED.replace(bulk("run_id:me"), bulk("run_id:me\r\nredis_mode:cluster")))
    assert channel._fleet.post.clustered


# -- what is known of the node --------------------------------------------------------------------


def words_in(written: bytes) -> list[list[bytes]]:
    reader = hiredis.Reader()
    reader.feed(written)
    return list(iter(reader.gets, False))


def guarded(**options: bool) -> Channel:
    return channel_of(Fleet([Endpoint()], guard=Guard(60_000), **options))


def reply(code: int, shown_us: int, rest: int = 0) -> bytes:
    return b"*3\r\n:%d\r\n:%d\r\n:%d\r\n" % (code, shown_us, rest)


def test_everything_says_which_database_and_until_when() -> None:
    channel = guarded()
    greeted_at, carrier = clock.now(), ready(channel)
    now = clock.now()
    said = [Verb.REQUEST, Verb.WAIT, Verb.RENEW, Verb.RELEASE]
    for verb in said:
        say(channel, verb, "a", now)
    assert scripts_in(carrier.written) == said
    least = SHOWN_US // 1000 + 1000  # the round lasts a second
    for words in words_in(carrier.written):
        assert words[-4:-2] == [b"a", b"%016d" % 0]
        assert words[-2] == b"0"
        assert least <= int(words[-1]) <= least + (now - greeted_at) * 1000 + 100


def test_a_release_that_is_told_bears_its_script() -> None:
    channel = guarded()
    carrier = ready(channel)
    say(channel, Verb.RELEASE, "a", clock.now(), tell=True)
    [words] = words_in(carrier.written)
    assert words[:2] == [b"EVAL", SCRIPTS[Verb.RELEASE].text.encode()], "nobody may hear a NOSCRIPT"
    assert words[-4] == b"a"


def test_what_stood_in_line_has_its_last_words_too() -> None:
    channel = guarded()
    say(channel, Verb.REQUEST, "a", clock.now())
    channel.opened()
    channel.received(GREETED)
    *_, request = words_in(channel.carrier.written)
    assert request[-4:-2] == [b"a", b"%016d" % 0]
    assert request[-2] == b"0"
    assert int(request[-1]) >= SHOWN_US // 1000 + 1000


def test_a_greeting_tells_the_time() -> None:
    channel = guarded()
    fleet = channel._fleet
    before = clock.now()
    assert fleet.clocks.stamp(before) == 1, "nothing is known yet"
    ready(channel)
    after = clock.now()
    assert 0 <= fleet.clocks.stamp(after) - SHOWN_US <= (after - before) * 1e6 + 1


def jumped(channel: Channel) -> tuple[Notebook, Round]:
    """Let a node grant something after its clock was set by a minute."""
    carrier = ready(channel)
    round_ = say(channel, Verb.REQUEST, "a", clock.now())
    carrier.written = b""
    channel.received(reply(1, SHOWN_US + 60_000_000))
    return carrier, round_


def test_a_grant_by_a_clock_that_jumped_does_not_count_and_the_node_is_told() -> None:
    channel = guarded()
    carrier, round_ = jumped(channel)
    assert round_.tally is not None
    vote = round_.tally.votes[0]
    assert vote is not None
    assert vote.answer is Answer.FAILED
    assert str(vote).startswith("its clock has jumped: by +")
    [told] = words_in(carrier.written)
    assert told[1] == SCRIPTS[Verb.SUSPECT].sha.encode()
    _, _, count, key, max_ttl, jump_us, right_us, db, _ = told
    assert (count, key, max_ttl, db) == (b"1", b"hf:node", b"60000", b"0")
    assert int(jump_us) == pytest.approx(60_000_000, abs=20_000_000)
    assert int(right_us) == pytest.approx(SHOWN_US, abs=20_000_000)


def test_nothing_it_grants_counts_until_it_has_confirmed() -> None:
    channel = guarded()
    carrier, _ = jumped(channel)
    before = say(channel, Verb.REQUEST, "b", clock.now())
    carrier.written = b""
    channel.received(reply(3, SHOWN_US + 60_000_000, 1) + reply(1, SHOWN_US + 60_000_000))
    assert before.tally is not None
    assert before.tally.granted == 0, "it was sent before that"
    assert carrier.written == b"", "and the node is told once"
    assert channel._link is not None
    after = say(channel, Verb.REQUEST, "c", channel._link.peer.heard_at)
    channel.received(reply(1, SHOWN_US + 60_000_000))
    assert after.tally is not None
    assert after.tally.granted == 1, "the clock is believed once the node abstains"


@pytest.mark.parametrize(
    ("verb", "code", "rest"),
    [
        (Verb.REQUEST, 1, 5),
        (Verb.REQUEST, 0, 5),
        (Verb.RENEW, -1, 1),
        (Verb.RENEW, 0, 5),
        (Verb.RAISE, 2, 5),
    ],
)
def test_whatever_it_says_shows_the_time(verb: Verb, code: int, rest: int) -> None:
    channel = guarded()
    carrier = ready(channel)
    round_ = say(channel, verb, "a", clock.now())
    carrier.written = b""
    channel.received(reply(code, SHOWN_US + 60_000_000, rest))
    assert round_.tally is not None
    assert "its clock has jumped" in str(round_.tally.votes[0])
    assert words_in(carrier.written)[0][1] == SCRIPTS[Verb.SUSPECT].sha.encode()


def test_a_round_that_is_over_still_shows_the_time() -> None:
    channel = guarded()
    carrier = ready(channel)
    say(channel, Verb.REQUEST, "a", clock.now()).close()
    carrier.written = b""
    channel.received(reply(1, SHOWN_US + 60_000_000))
    assert words_in(carrier.written)[0][1] == SCRIPTS[Verb.SUSPECT].sha.encode()


def test_a_suspicion_that_is_not_confirmed_is_told_again() -> None:
    channel = guarded()
    carrier, _ = jumped(channel)
    channel.received(b"-OOM no memory\r\n")
    again = say(channel, Verb.REQUEST, "b", clock.now())
    carrier.written = b""
    channel.received(reply(1, SHOWN_US + 60_000_000))
    assert again.tally is not None
    assert again.tally.granted == 0
    assert words_in(carrier.written)[0][1] == SCRIPTS[Verb.SUSPECT].sha.encode()


def test_a_suspicion_bears_its_script_if_that_was_forgotten() -> None:
    channel = guarded()
    carrier, _ = jumped(channel)
    carrier.written = b""
    channel.received(b"-NOSCRIPT forgotten\r\n")
    [told] = words_in(carrier.written)
    assert told[:2] == [b"EVAL", SCRIPTS[Verb.SUSPECT].text.encode()]
    assert len(told) == 9


def test_a_new_connection_takes_no_suspicion_away() -> None:
    channel = guarded()
    jumped(channel)
    channel.broke(ConnectionResetError())
    carrier = ready(channel)
    round_ = say(channel, Verb.REQUEST, "b", clock.now())
    carrier.written = b""
    channel.received(reply(1, SHOWN_US + 60_000_000))
    assert round_.tally is not None
    assert round_.tally.granted == 0
    assert words_in(carrier.written)[0][1] == SCRIPTS[Verb.SUSPECT].sha.encode()


def test_without_a_guard_every_step_is_followed(channel: Channel) -> None:
    carrier, round_ = jumped(channel)
    assert round_.tally is not None
    assert round_.tally.granted == 1
    assert carrier.written == b""


@pytest.mark.parametrize(
    "odd", [b"*0\r\n", b"*1\r\n:1\r\n", b"*3\r\n:1\r\n+x\r\n:0\r\n", b"+OK\r\n", b"_\r\n"]
)
def test_what_cannot_be_read_is_a_failure_and_no_more(odd: bytes) -> None:
    channel = guarded()
    ready(channel)
    round_ = say(channel, Verb.REQUEST, "a", clock.now())
    channel.received(odd)
    assert round_.tally is not None
    assert "unintelligible reply" in str(round_.tally.votes[0])
    assert channel.ready


def examining(channel: Channel, *, tell: bool = False) -> tuple[Notebook, Round]:
    """Let a node doubt whether it may grant."""
    carrier = ready(channel)
    assert channel._link is not None
    round_ = say(channel, Verb.REQUEST, "a", channel._link.peer.heard_at)
    if tell:
        round_.close()
    carrier.written = b""
    channel.received(reply(-5, SHOWN_US))
    return carrier, round_


def scripts_in(written: bytes) -> list[Verb]:
    named = {script.sha.encode(): verb for verb, script in SCRIPTS.items()}
    return [named[words[1]] for words in words_in(written)]


def test_a_node_in_doubt_is_examined_and_asked_again() -> None:
    channel = guarded()
    carrier, round_ = examining(channel)
    assert scripts_in(carrier.written) == [Verb.EXAMINE]
    carrier.written = b""
    channel.received(reply(3, SHOWN_US, 1))
    assert scripts_in(carrier.written) == [Verb.REQUEST]
    assert words_in(carrier.written)[0][-4] == b"a", "with the same token, and its last words"
    channel.received(reply(1, SHOWN_US))
    assert round_.tally is not None
    assert round_.tally.granted == 1


def test_what_it_says_then_is_its_vote() -> None:
    channel = guarded()
    carrier, round_ = examining(channel)
    carrier.written = b""
    why = b":%d\r\n:62200\r\n$3\r\nnew\r\n:0\r\n:5\r\n" % SHOWN_US
    channel.received(b"*6\r\n:-2\r\n" + why)
    assert round_.tally is not None
    assert round_.tally.abstained
    assert carrier.written == b""


def test_a_round_that_is_over_has_the_node_examined_and_asks_nothing_more() -> None:
    channel = guarded()
    carrier, _ = examining(channel, tell=True)
    assert scripts_in(carrier.written) == [Verb.EXAMINE]
    carrier.written = b""
    channel.received(reply(3, SHOWN_US, 1))
    assert carrier.written == b""


def test_a_node_that_is_always_in_doubt_has_no_vote() -> None:
    channel = guarded()
    _, round_ = examining(channel)
    for _ in range(10):
        channel.received(reply(3, SHOWN_US, 1) + reply(-5, SHOWN_US))
        if round_.tally is not None and round_.tally.votes[0] is not None:
            break
    assert round_.tally is not None
    assert "examined again and again" in str(round_.tally.votes[0])


DURABLE = ("appendonly yes", "appendfsync always", "no-appendfsync-on-rewrite no")


@pytest.mark.parametrize(
    ("settings", "flag"), [(DURABLE, b"1"), (("appendonly no", *DURABLE[1:]), b"0")]
)
def test_a_durable_node_is_made_to_adopt_its_memory_before_anything_else(
    settings: tuple[str, ...], flag: bytes
) -> None:
    channel = guarded(durable=True)
    round_ = say(channel, Verb.REQUEST, "a", clock.now())
    channel.opened()
    channel.received(greeting(settings=settings))
    *_, before, request = words_in(channel.carrier.written)
    assert request[1] == SCRIPTS[Verb.REQUEST].sha.encode()
    assert before[:2] == [b"EVAL", SCRIPTS[Verb.ADOPT].text.encode()]
    assert before[5] == flag
    channel.received(reply(3, SHOWN_US, 1) + reply(1, SHOWN_US))
    assert round_.tally is not None
    assert round_.tally.granted == 1


def test_a_server_that_evicts_keys_is_turned_away_before_any_command() -> None:
    channel = guarded()
    round_ = say(channel, Verb.REQUEST, "a", clock.now())
    channel.opened()
    before = channel.carrier.written
    channel.received(greeting(memory="maxmemory:9\r\nmaxmemory_policy:allkeys-lru"))
    assert not channel.ready
    assert channel.carrier.written == before
    assert round_.tally is not None
    assert "evicts keys: maxmemory-policy allkeys-lru" in str(round_.tally.votes[0])


def test_unless_that_is_allowed() -> None:
    channel = channel_of(Fleet([Endpoint()], guard=Guard(60_000, evicting=True)))
    channel.connect(clock.now())
    channel.opened()
    channel.received(greeting(memory="maxmemory:9\r\nmaxmemory_policy:allkeys-lru"))
    assert channel.ready
