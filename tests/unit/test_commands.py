"""Commands become bytes; replies become votes; whatever is not understood is a failure."""

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.clocks import CREEP, JUMP, NodeClock
from holdfast.core.effects import Command, NodeCommand, Verb
from holdfast.core.guard import NO_GUARD, Guard
from holdfast.core.inspect import InLine, Sight
from holdfast.core.nodes import NodeFacts
from holdfast.core.place import Place
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Failure, Vote, failed
from holdfast.wire import commands
from holdfast.wire.keys import NODE_KEY, leases_key, lock_key, mark_key, queue_key, released_key
from holdfast.wire.peer import Peer
from holdfast.wire.scripts import SCRIPTS

NOW = 1_767_225_600_000_000
LOCK = Terms("{odd}\r\nnáme", 1500, 3, 0.05, guard=Guard(60_000))
NAME = LOCK.name
KEYS = [key(NAME).encode() for key in (lock_key, mark_key, queue_key, leases_key)]
RELEASED = released_key(NAME, "token").encode()
MARKER = NODE_KEY.encode()


def words_of(packed: bytes) -> list[bytes]:
    reader = hiredis.Reader()
    reader.feed(packed)
    words = reader.gets()
    assert reader.gets() is False
    return words


def ending(db: int = 0) -> bytes:
    """Return the last words to a node whose clock has never been seen."""
    return Peer(NodeClock(trusting=True), db).ending(10.0)


def check(command: Command | NodeCommand, rest: list[bytes], last: bytes = b"") -> None:
    """See that a command is said as it should be, whether or not its script goes with it."""
    script = SCRIPTS[command.verb]
    packed, whole = commands.pack(command), commands.pack_whole(command)
    assert words_of(packed + last) == [b"EVALSHA", script.sha.encode(), *rest]
    assert words_of(whole + last) == [b"EVAL", script.text.encode(), *rest]


def words(
    ttl: bytes, claim: bytes = b"300", place: bytes = b"0", stamp: bytes = b"0000000000000077"
) -> list[bytes]:
    """Return what follows the keys, to the guarded lock; in database 12."""
    guarded = [b"60000", b"0"]
    return [ttl, *guarded, claim, place, b"token", stamp, b"12", b"0000000000000"]


@pytest.mark.parametrize("place", list(Place))
def test_what_asks_for_a_lock(place: Place) -> None:
    rest = words(b"1500", place=place.value.encode())
    check(LOCK.request("token", 77, place), [b"5", *KEYS, MARKER, *rest], ending(12))
    rest = words(b"0", place=place.value.encode())
    check(LOCK.wait("token", 77, place), [b"5", *KEYS, MARKER, *rest], ending(12))


def test_one_try_has_no_place_in_line() -> None:
    assert LOCK.request("token", 77).place is Place.NOWHERE


def test_what_keeps_a_lock() -> None:
    rest = words(b"1500", claim=b"0")
    check(LOCK.raise_("token", 77), [b"5", *KEYS, MARKER, *rest], ending(12))
    check(LOCK.renew("token", 77), [b"6", *KEYS, RELEASED, MARKER, *rest], ending(12))


def test_what_asks_for_one_without_a_guard_or_where_keys_are_evicted() -> None:
    for guard, said in [(NO_GUARD, [b"0", b"0"]), (Guard(5000, evicting=True), [b"5000", b"1"])]:
        terms = Terms(NAME, 1500, 3, 0.05, guard=guard, claim=1.25)
        rest = [b"1500", *said, b"1250", b"0", b"token", b"1767225600000000"]
        keys = [b"5", *KEYS, MARKER] if guard.is_on else [b"4", *KEYS]  # all in one slot
        check(terms.request("token", NOW), [*keys, *rest, b"0", b"0000000000000"], ending())


def test_what_gives_it_back_says_what_the_next_one_is_to_have() -> None:
    keys = [b"6", *KEYS, RELEASED, MARKER]
    check(LOCK.release("token", stamp=77), [*keys, *words(b"0")], ending(12))
    check(LOCK.release("token", repaired=True, stamp=77), [*keys, *words(b"2500")], ending(12))


def test_what_looks_at_a_lock_is_said_in_nobodys_name() -> None:
    rest = [b"0", b"60000", b"0", b"0", b"0", b"-", b"0000000000000000", b"12", b"0000000000000"]
    check(LOCK.inspect(), [b"5", *KEYS, MARKER, *rest], ending(12))


ascii_tokens = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)


@given(st.text(min_size=1, max_size=30), ascii_tokens, st.sampled_from(Verb))
def test_what_is_remembered_of_a_lock_says_the_same_as_what_is_written_anew(
    name: str, token: str, verb: Verb
) -> None:
    if not verb.is_about_a_lock:
        return
    command = Command(verb, name, token, 1500, 77, LOCK.guard, Place.LAST, 300)
    packed, whole = (
        words_of(write(command) + ending()) for write in (commands.pack, commands.pack_whole)
    )
    assert packed[2:] == whole[2:]


def test_a_name_may_have_anything_in_it() -> None:
    command = Terms("a\0b", 1500, 3, 0.05).inspect()
    assert words_of(commands.pack(command) + ending())[3] == lock_key("a\0b").encode()


@pytest.mark.parametrize("verb", [Verb.REQUEST, Verb.WAIT])
@pytest.mark.parametrize("place", list(Place))
def test_who_is_in_line_has_said_something_before(verb: Verb, place: Place) -> None:
    command = Command(verb, "x", "t", place=place)
    assert command.is_first == (verb is Verb.REQUEST and place is not Place.KEPT)


@pytest.mark.parametrize("verb", [verb for verb in Verb if not verb.is_about_a_lock])
def test_what_is_about_a_node(verb: Verb) -> None:
    rest = [b"1", MARKER, b"60000", b"1", b"2", b"3", b"0000000000000"]
    check(NodeCommand(verb, LOCK.guard, "1", "2"), rest, ending(3))


def test_every_verb_has_its_script() -> None:
    assert SCRIPTS.keys() == set(Verb)
    assert len({script.sha for script in SCRIPTS.values()}) == len(Verb)


def test_the_last_words_say_until_when_by_the_nodes_own_clock() -> None:
    clock = NodeClock(trusting=False)
    clock.meet(NOW, sent=100.0, heard=100.0)
    peer = Peer(clock, 0)
    packed = commands.pack(LOCK.request("token", 1)) + peer.ending(101.5)
    until = NOW // 1000 + 1500 + int((JUMP + CREEP * 2.5) * 1000) + 1
    assert words_of(packed)[-1] == b"%d" % until


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        ([1, NOW, 0], GRANTED),
        ([1, NOW, 500], Vote(Answer.GRANTED, mark=500)),
        ([1, 0, 0], GRANTED),
        ([0, NOW, 1500], Vote(Answer.HELD, remaining_ms=1500)),
        ([0, NOW, 0], Vote(Answer.HELD, remaining_ms=0)),
        ([0, NOW, -1], Vote(Answer.HELD, remaining_ms=None)),
        ([-1, NOW, -2], MISSING),
        ([-1, NOW, 1], MISSING),
        ([2, NOW, 500], Vote(Answer.OUTBID, mark=500)),
        ([4, NOW, 300, 77], Vote(Answer.RESERVED, remaining_ms=300, mark=77)),
        ([5, NOW, 1500, 0, 77], Vote(Answer.QUEUED, remaining_ms=1500, mark=77)),
        ([5, NOW, -1, 7, 77], Vote(Answer.QUEUED, remaining_ms=None, mark=77, rank=7)),
        ([6, NOW, 500], Vote(Answer.OUTRANKED, mark=500)),
        ([-5, NOW, 0], Vote(Answer.DOUBTFUL)),
        ([3, NOW, 1], Vote(Answer.TOLD, facts=(True,))),
        ([3, NOW, 0], Vote(Answer.TOLD, facts=(False,))),
        ([-3, NOW, 40], failed(Condition.LATE, "40 ms after its round was over")),
        (
            [-4, NOW, 30_000],
            Vote(
                Answer.FAILED,
                remaining_ms=30_000,
                failure=Failure(
                    Condition.MAX_TTL, "30 s; all clients of a node must have the same"
                ),
            ),
        ),
    ],
)
def test_votes(reply: list[int], vote: Vote) -> None:
    assert commands.vote_of(reply) == vote


def test_what_a_node_says_of_itself() -> None:
    marker = [b"run", b"me", b"until_ms", b"7"]
    info = b"# Server\r\nrun_id:run\r\n\r\nrole:master\r\n"
    reply = [3, NOW, b"run", b"history:0", marker, info]
    facts = NodeFacts(
        NOW,
        "run",
        "history:0",
        {"run": "me", "until_ms": "7"},
        {"run_id": "run", "role": "master"},
    )
    assert commands.vote_of(reply) == Vote(Answer.TOLD, facts=(facts,))


def sight(
    *line: InLine, holder: str = "", called: str = "", left: int | None = None, fence: int = 0
) -> Vote:
    return Vote(Answer.TOLD, facts=(Sight(NOW, holder, called, left, fence, line),))


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        ([b"", -2, b"", [], []], sight()),
        ([b"me", 900, b"77", [], []], sight(holder="me", left=900, fence=77)),
        ([b"me", -1, b"", [], []], sight(holder="me")),
        ([b"~me", 300, b"", [], []], sight(called="me", left=300)),
        (
            [b"me", 900, b"77", [b"a", b"1767225600000001", b"b", b"1.767225600000002e+15"],
             [b"a", b"1767225603000", b"mark", b"1767225600000002"]],
            sight(
                InLine("a", NOW + 1, 1_767_225_603_000), InLine("b", NOW + 2, 0),
                holder="me", left=900, fence=77,
            ),
        ),
        ([b"\xff", 1, b"", [], []], sight(holder="\ufffd", left=1)),
    ],
)  # fmt: skip
def test_what_a_node_says_of_a_lock(reply: list[object], vote: Vote) -> None:
    assert commands.vote_of([7, NOW, *reply]) == vote


@pytest.mark.parametrize(
    ("vote", "words"),
    [
        (Vote(Answer.QUEUED, rank=2), "held by somebody else, 2 in line before us"),
        (Vote(Answer.RESERVED, remaining_ms=300), "reserved for us"),
        (Vote(Answer.OUTRANKED, mark=7), "somebody else waits, and has a higher stamp"),
    ],
)
def test_what_users_read_of_a_place_in_line(vote: Vote, words: str) -> None:
    assert str(vote) == words


HINT = "; hint: if it is new, client.nodes.init()"


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("new", f"started 9 s ago and has no memory of its locks; abstains for 12 s more{HINT}"),
        ("restarted", f"restarted 9 s ago; abstains for 12 s more{HINT}"),
        (
            "lost",
            "was seen to have evicted keys or swapped databases 3 s ago; abstains for 12 s more",
        ),
        ("stepped", "its clock was seen to jump 3 s ago; abstains for 12 s more"),
        ("drained", "drained 3 s ago; abstains; hint: client.nodes.admit()"),
        ("something else", "something else; abstains for 12 s more"),
    ],
)
def test_an_abstention_says_why_and_for_how_long(why: str, words: str) -> None:
    vote = commands.vote_of([-2, NOW, 12_345, why.encode(), 3000, 9])
    assert (vote.answer, vote.remaining_ms) == (Answer.ABSTAINED, 12_345)
    assert vote.failure is not None
    assert vote.failure.condition is Condition.ABSTAINING
    assert str(vote) == words


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.binary(max_size=9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=6),
)


UNDERSTOOD = {
    1: (3, Answer.GRANTED), 0: (3, Answer.HELD), -1: (3, Answer.MISSING), 2: (3, Answer.OUTBID),
    4: (4, Answer.RESERVED), 5: (5, Answer.QUEUED), 6: (3, Answer.OUTRANKED),
}  # fmt: skip


@given(anything | st.lists(st.integers(-5, 8), min_size=2, max_size=6))
def test_nothing_else_is_a_grant_or_a_refusal(reply: object) -> None:
    vote = commands.vote_of(reply)
    understood = None
    if isinstance(reply, list) and reply and all(isinstance(each, int) for each in reply):
        length, answer = UNDERSTOOD.get(reply[0], (0, None))
        understood = answer if len(reply) == length else None
    said = vote.answer if vote.answer in [answer for _, answer in UNDERSTOOD.values()] else None
    assert said is understood


@given(st.text(max_size=60))
def test_an_error_is_always_a_failure(message: str) -> None:
    vote = commands.vote_of(hiredis.ReplyError(message))
    assert vote.answer is Answer.FAILED
    assert vote.failure is not None
    assert vote.failure.detail == message


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        ("NOAUTH Authentication required.", Condition.AUTHENTICATION),
        ("WRONGPASS invalid username-password pair", Condition.AUTHENTICATION),
        ("ERR invalid password", Condition.AUTHENTICATION),
        ("ERR AUTH <password> called without any password configured", Condition.AUTHENTICATION),
        ("NOPERM this user has no permissions to run the 'eval' command", Condition.FORBIDDEN),
        ("ERR ACL failure in script: User ann has no permissions", Condition.FORBIDDEN),
        ("ERR The user executing the script can't run this command or script", Condition.FORBIDDEN),
        ("DENIED Redis is running in protected mode", Condition.FORBIDDEN),
        ("WRONGTYPE Operation against a key", Condition.WRONG_TYPE),
        ("READONLY You can't write against a read only replica.", Condition.READ_ONLY),
        ("OOM command not allowed when used memory > 'maxmemory'.", Condition.OUT_OF_MEMORY),
        ("LOADING Redis is loading the dataset in memory", Condition.LOADING),
        ("MISCONF Errors writing to the AOF file", Condition.NOT_PERSISTING),
        ("NOREPLICAS Not enough good replicas to write.", Condition.NOT_PERSISTING),
        ("BUSY Redis is busy running a script.", Condition.SCRIPT_RUNNING),
        ("MOVED 3999 127.0.0.1:6381", Condition.CLUSTER),
        ("ERR max number of clients reached", Condition.OVERCROWDED),
        ("ERR DB index is out of range", Condition.DATABASE),
        ("ERR Error running script: @user_script:9: -READONLY You can't", Condition.READ_ONLY),
        ("ERR something new", Condition.SERVER_ERROR),
        ("", Condition.SERVER_ERROR),
    ],
)
def test_conditions(message: str, condition: Condition) -> None:
    assert commands.condition_of(message) is condition


@given(st.text(max_size=30), st.text(max_size=30))
def test_two_names_never_share_a_key(one: str, two: str) -> None:
    assert (lock_key(one) == lock_key(two)) == (one == two)


@given(st.text(max_size=30))
def test_a_key_has_one_hash_tag_with_the_whole_name(name: str) -> None:
    key = lock_key(name)
    assert key.count("{") == key.count("}") == 1
    assert key.startswith("hf:{")
    assert key.endswith("}")


@given(st.text(max_size=30))
def test_all_keys_of_a_lock_share_its_hash_tag(name: str) -> None:
    key = lock_key(name)
    others = {mark_key(name), queue_key(name), leases_key(name)}
    others |= {released_key(name, "a"), released_key(name, "b")}
    assert len(others) == 5
    assert all(other.startswith(f"{key}:") for other in others)
