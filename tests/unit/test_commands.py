"""Commands become bytes; replies become votes; whatever is not understood is a failure."""

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.effects import Command, Verb
from holdfast.core.votes import GRANTED, MISSING, Answer, Condition, Vote
from holdfast.wire import commands
from holdfast.wire.keys import lock_key
from holdfast.wire.scripts import EXCLUSIVE


def words_of(packed: bytes) -> list[bytes]:
    reader = hiredis.Reader()
    reader.feed(packed)
    words = reader.gets()
    assert reader.gets() is False
    return words


@pytest.mark.parametrize("verb", Verb)
def test_what_is_said(verb: Verb) -> None:
    command = Command(verb, "{odd}\r\nnáme", "token", 0 if verb is Verb.RELEASE else 1500)
    rest = [b"1", lock_key(command.name).encode(), b"token"]
    if verb is not Verb.RELEASE:
        rest.append(b"1500")
    script = EXCLUSIVE[verb]
    assert words_of(commands.pack(command)) == [b"EVALSHA", script.sha.encode(), *rest]
    assert words_of(commands.pack_whole(command)) == [b"EVAL", script.text.encode(), *rest]


@pytest.mark.parametrize(
    ("reply", "vote"),
    [
        ([1, 30000], GRANTED),
        ([1, 0], GRANTED),
        ([0, 1500], Vote(Answer.HELD, remaining_ms=1500)),
        ([0, 0], Vote(Answer.HELD, remaining_ms=0)),
        ([0, -1], Vote(Answer.HELD, remaining_ms=None)),
        ([-1, -2], MISSING),
    ],
)
def test_votes(reply: list[int], vote: Vote) -> None:
    assert commands.vote_of(reply) == vote


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.binary(max_size=9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3),
)


@given(anything)
def test_nothing_else_is_a_grant_or_a_refusal(reply: object) -> None:
    vote = commands.vote_of(reply)
    understood = (
        isinstance(reply, list)
        and len(reply) == 2
        and reply[0] in (1, 0, -1)
        and isinstance(reply[1], int)
    )
    assert (vote.answer is Answer.FAILED) == (not understood)


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
