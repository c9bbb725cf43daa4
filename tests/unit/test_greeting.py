"""What is said first on a connection, and what is made of the answers."""

from dataclasses import replace

import hiredis
import pytest

from holdfast.core.votes import Condition, Failure
from holdfast.wire.endpoint import Endpoint, read
from holdfast.wire.greeting import Identity, greet
from holdfast.wire.scripts import SCRIPTS

INFO = b"# Server\r\nredis_version:7.0.1\r\nrun_id:abc\r\n"
MEMORY = b"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"
TIME = [b"1767225600", b"000017"]
ANSWERS = [INFO, MEMORY, TIME]
"""To the questions that every server is asked."""

QUESTIONS = [("INFO", "server"), ("INFO", "memory"), ("TIME",)]
SETTINGS = ["appendonly", "appendfsync", "no-appendfsync-on-rewrite"]
NO_HELLO = hiredis.ReplyError("ERR unknown command `HELLO`")
SHOWN_US = 1_767_225_600_000_017
IDENTITY = Identity("abc", "7.0.1", shown_us=SHOWN_US, pushes=True)


def talk(
    endpoint: Endpoint, *replies: list[object], durable: bool = False
) -> tuple[list[list[tuple]], object]:
    """Drive a greeting by hand; return what was said, and how it ended.

    Scripts that are loaded along the way are left out: their answers do not matter.
    """
    greeting = greet(endpoint, durable=durable)
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
    [said], end = talk(Endpoint(client_name="me"), [{}, *ANSWERS])
    assert said == [("HELLO", "3", "SETNAME", "me"), *QUESTIONS]
    assert end == IDENTITY


def test_all_scripts_are_taught_and_their_answers_do_not_matter() -> None:
    greeting = greet(Endpoint())
    batch = next(greeting)
    taught = [words for words in batch if words[0] == "SCRIPT"]
    assert taught == [("SCRIPT", "LOAD", script.text) for script in SCRIPTS.values()]
    assert batch[-len(taught) :] == taught, "after all that matters"
    refused = [hiredis.ReplyError("NOPERM no 'script|load'")] * len(taught)
    with pytest.raises(StopIteration) as end:
        greeting.send([{}, *ANSWERS, *refused])
    assert end.value.value == IDENTITY


def test_a_login_and_a_database() -> None:
    [said], _ = talk(read("redis://ann:pw@h/4?client_name=me&protocol=2"), [{}, b"OK", *ANSWERS])
    assert said == [
        ("HELLO", "2", "AUTH", "ann", "pw", "SETNAME", "me"),
        ("SELECT", "4"),
        *QUESTIONS,
    ]


def test_a_password_alone_is_the_default_users() -> None:
    [said], _ = talk(read("redis://:pw@h?client_name=me"), [{}, *ANSWERS])
    assert said[0] == ("HELLO", "3", "AUTH", "default", "pw", "SETNAME", "me")


@pytest.mark.parametrize("refusal", [b"OK", hiredis.ReplyError("ERR unknown subcommand"),
                                     hiredis.ReplyError("NOPERM no permissions")])  # fmt: skip
def test_an_old_server_may_not_know_names(refusal: object) -> None:
    place = read("redis://:pw@h/4?client_name=me")
    (_, second), end = talk(place, [NO_HELLO, b"OK", *ANSWERS], [b"OK", refusal, b"OK", *ANSWERS])
    assert second == [
        ("AUTH", "pw"), ("CLIENT", "SETNAME", "me"), ("SELECT", "4"), *QUESTIONS,
    ]  # fmt: skip
    assert end == replace(IDENTITY, pushes=False)


@pytest.mark.parametrize("at", [0, 2])
def test_an_old_server_must_know_logins_and_databases(at: int) -> None:
    answers: list[object] = [b"OK", b"OK", b"OK", *ANSWERS]
    answers[at] = hiredis.ReplyError("ERR unknown command")
    _, end = talk(read("redis://:pw@h/4"), [NO_HELLO, b"OK", *ANSWERS], answers)
    assert end == Failure(Condition.SERVER_ERROR, "ERR unknown command")


@pytest.mark.parametrize(
    ("info", "end"),
    [
        (hiredis.ReplyError("NOPERM no 'info'"), Identity(None, "", pushes=True)),
        (hiredis.ReplyError("ERR unknown command `INFO`"), Identity(None, "", pushes=True)),
        (hiredis.ReplyError("LOADING wait"), Failure(Condition.LOADING, "LOADING wait")),
        (7, Failure(Condition.PROTOCOL, "7")),
        (b"", Identity(None, "", SHOWN_US, pushes=True)),
        (
            b"valkey_version:9.0.0\r\nredis_version:7.2.4\r\nrun_id:x\r\n",
            Identity("x", "9.0.0", SHOWN_US, pushes=True),
        ),
    ],
    ids=repr,
)
def test_who_is_there(info: object, end: object) -> None:
    assert talk(Endpoint(), [{}, info, MEMORY, TIME])[1] == end


@pytest.mark.parametrize(
    ("memory", "evicts"),
    [
        (MEMORY, ""),
        (b"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", ""),
        (b"maxmemory:100\r\nmaxmemory_policy:noeviction\r\n", ""),
        (b"maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n", "volatile-ttl"),
        (b"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n", "allkeys-lru"),
        (hiredis.ReplyError("NOPERM no 'info'"), ""),
        (None, ""),
    ],
    ids=repr,
)
def test_whether_it_evicts_keys(memory: object, evicts: str) -> None:
    _, end = talk(Endpoint(), [{}, INFO, memory, TIME])
    assert end == replace(IDENTITY, evicts=evicts)


@pytest.mark.parametrize(
    "time", [hiredis.ReplyError("NOPERM no 'time'"), None, [], [b"1"], [1, 2], b"17"], ids=repr
)
def test_a_time_that_is_none_is_not_known(time: object) -> None:
    _, end = talk(Endpoint(), [{}, INFO, MEMORY, time])
    assert end == replace(IDENTITY, shown_us=0)


@pytest.mark.parametrize(("protocol", "pushes"), [(2, False), (3, True)])
def test_who_speaks_resp3_may_say_something_unasked(protocol: int, pushes: bool) -> None:
    _, end = talk(read(f"redis://h?protocol={protocol}"), [{}, *ANSWERS])
    assert end == replace(IDENTITY, pushes=pushes)


@pytest.mark.parametrize(
    ("line", "clustered"),
    [
        (b"redis_mode:cluster\r\n", True),
        (b"redis_mode:standalone\r\n", False),
        (b"server_mode:cluster\r\n", True),
        (b"server_mode:standalone\r\nredis_mode:standalone\r\n", False),
        (b"", False),
    ],
)
def test_whether_it_is_a_node_of_a_cluster(line: bytes, clustered: bool) -> None:
    _, end = talk(Endpoint(), [{}, INFO + line, MEMORY, TIME])
    assert end == replace(IDENTITY, clustered=clustered)


def as_list(**told: str) -> list[object]:
    return [[name.replace("_", "-").encode(), value.encode()] for name, value in told.items()]


def as_map(**told: str) -> list[object]:
    return [{name.replace("_", "-").encode(): value.encode()} for name, value in told.items()]


@pytest.mark.parametrize("shape", [as_list, as_map])
@pytest.mark.parametrize(
    ("told", "durable"),
    [
        (("yes", "always", "no"), True),
        (("no", "always", "no"), False),
        (("yes", "everysec", "no"), False),
        (("yes", "always", "yes"), False),
    ],
)
def test_durable_is_what_writes_everything_at_once(shape, told, durable: bool) -> None:
    names = (name.replace("-", "_") for name in SETTINGS)
    answers = [{}, *ANSWERS, *shape(**dict(zip(names, told, strict=True)))]
    [said], end = talk(Endpoint(client_name="me"), answers, durable=True)
    assert said[1:] == [*QUESTIONS, *(("CONFIG", "GET", each) for each in SETTINGS)]
    assert end == replace(IDENTITY, durable=durable)


def test_a_server_that_does_not_say_so_is_not_durable() -> None:
    refused = [hiredis.ReplyError("NOPERM no 'config'")] * 3
    _, end = talk(Endpoint(), [{}, *ANSWERS, *refused], durable=True)
    assert end == IDENTITY
    _, end = talk(Endpoint(), [{}, *ANSWERS, [], [], []], durable=True)
    assert end == IDENTITY


def test_a_database_that_is_not_there_ends_it() -> None:
    error = hiredis.ReplyError("ERR DB index is out of range")
    _, end = talk(Endpoint(db=99), [{}, error, *ANSWERS])
    assert end == Failure(Condition.DATABASE, str(error))


def test_our_name_tells_who_we_are() -> None:
    [said], _ = talk(Endpoint(), [{}, *ANSWERS])
    assert str(said[0][-1]).startswith("holdfast@")
    assert " " not in str(said[0][-1])
