"""What is said first on a connection, and what is made of the answers."""

import hiredis
import pytest

from holdfast.core.votes import Condition, Failure
from holdfast.wire.endpoint import Endpoint, read
from holdfast.wire.greeting import Identity, greet

INFO = b"# Server\r\nredis_version:7.0.1\r\nrun_id:abc\r\n"
NO_HELLO = hiredis.ReplyError("ERR unknown command `HELLO`")


def talk(endpoint: Endpoint, *replies: list[object]) -> tuple[list[list[tuple]], object]:
    """Drive a greeting by hand; return what was said, and how it ended.

    Scripts that are loaded along the way are left out: their answers do not matter.
    """
    greeting = greet(endpoint)
    batch, said = next(greeting), []
    for answers in replies:
        left = iter(answers)
        said.append([words for words in batch if words[0] != "SCRIPT"])
        heard = [b"a script" if words[0] == "SCRIPT" else next(left) for words in batch]
        assert next(left, None) is None
        try:
            batch = greeting.send(heard)
        except StopIteration as end:
            return said, end.value
    raise AssertionError("the greeting goes on")


def test_the_least() -> None:
    [said], end = talk(Endpoint(client_name="me"), [{}, INFO])
    assert said == [("HELLO", "3", "SETNAME", "me"), ("INFO", "server")]
    assert end == Identity("abc", "7.0.1")


def test_a_login_and_a_database() -> None:
    [said], _ = talk(read("redis://ann:pw@h/4?client_name=me&protocol=2"), [{}, b"OK", INFO])
    assert said == [
        ("HELLO", "2", "AUTH", "ann", "pw", "SETNAME", "me"),
        ("SELECT", "4"),
        ("INFO", "server"),
    ]


def test_a_password_alone_is_the_default_users() -> None:
    [said], _ = talk(read("redis://:pw@h?client_name=me"), [{}, INFO])
    assert said[0] == ("HELLO", "3", "AUTH", "default", "pw", "SETNAME", "me")


@pytest.mark.parametrize("refusal", [b"OK", hiredis.ReplyError("ERR unknown subcommand"),
                                     hiredis.ReplyError("NOPERM no permissions")])  # fmt: skip
def test_an_old_server_may_not_know_names(refusal: object) -> None:
    place = read("redis://:pw@h/4?client_name=me")
    (_, second), end = talk(place, [NO_HELLO, b"OK", INFO], [b"OK", refusal, b"OK", INFO])
    assert second == [
        ("AUTH", "pw"), ("CLIENT", "SETNAME", "me"), ("SELECT", "4"), ("INFO", "server"),
    ]  # fmt: skip
    assert end == Identity("abc", "7.0.1")


@pytest.mark.parametrize("at", [0, 2])
def test_an_old_server_must_know_logins_and_databases(at: int) -> None:
    answers: list[object] = [b"OK", b"OK", b"OK", INFO]
    answers[at] = hiredis.ReplyError("ERR unknown command")
    _, end = talk(read("redis://:pw@h/4"), [NO_HELLO, b"OK", INFO], answers)
    assert end == Failure(Condition.SERVER_ERROR, "ERR unknown command")


@pytest.mark.parametrize(
    ("info", "end"),
    [
        (hiredis.ReplyError("NOPERM no 'info'"), Identity(None, "")),
        (hiredis.ReplyError("ERR unknown command `INFO`"), Identity(None, "")),
        (hiredis.ReplyError("LOADING wait"), Failure(Condition.LOADING, "LOADING wait")),
        (7, Failure(Condition.PROTOCOL, "7")),
        (b"", Identity(None, "")),
        (b"valkey_version:9.0.0\r\nredis_version:7.2.4\r\nrun_id:x\r\n", Identity("x", "9.0.0")),
    ],
    ids=repr,
)
def test_who_is_there(info: object, end: object) -> None:
    assert talk(Endpoint(), [{}, info])[1] == end


def test_a_database_that_is_not_there_ends_it() -> None:
    error = hiredis.ReplyError("ERR DB index is out of range")
    _, end = talk(Endpoint(db=99), [{}, error, INFO])
    assert end == Failure(Condition.DATABASE, str(error))


def test_our_name_tells_who_we_are() -> None:
    [said], _ = talk(Endpoint(), [{}, INFO])
    assert str(said[0][-1]).startswith("holdfast@")
    assert " " not in str(said[0][-1])
