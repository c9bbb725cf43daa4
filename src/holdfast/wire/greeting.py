"""What is said first on a new connection: who we are, which database, and who are you?

No lock command is sent before the greeting is over: a request must never run in the wrong
database, and never on a server that already has a vote under another address.

A greeting is a small generator: it yields a batch of commands to be written at once, is resumed
with their replies in order, and returns the server's identity or a `Failure`.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import hiredis

from ..core.votes import Condition, Failure
from .commands import condition_of
from .endpoint import Endpoint
from .packing import Words, pack_words
from .scripts import EXCLUSIVE


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answered. `run_id` is new at every start of a server; None if it may not be asked."""

    run_id: str | None
    version: str


Greeting = Generator[list[Words], list[Any], "Identity | Failure"]


_QUESTION: list[Words] = [("INFO", "server")]
_LESSON: list[Words] = [("SCRIPT", "LOAD", script.text) for script in EXCLUSIVE.values()]
"""Teaching the scripts at once spares the first round a NOSCRIPT. A user who may not load them can
still send them whole, so the answers do not matter.
"""


def greet(endpoint: Endpoint) -> Greeting:
    """Log in, name ourselves, select the database, ask who is there, teach the scripts."""
    login, name = endpoint.login(), endpoint.name()
    hello: list[bytes | str] = ["HELLO", str(endpoint.protocol)]
    if login:
        hello += ["AUTH", *(login if len(login) == 2 else ("default", *login))]
    select: list[Words] = [("SELECT", str(endpoint.db))] if endpoint.db else []
    start: list[Words] = [(*hello, "SETNAME", name)]
    replies = yield start + select + _QUESTION + _LESSON
    if isinstance(replies[0], hiredis.ReplyError) and _speaks_no_hello(str(replies[0])):
        start = [("AUTH", *login)] if login else []
        naming: list[Words] = [("CLIENT", "SETNAME", name)]
        replies = yield start + naming + select + _QUESTION + _LESSON
        del replies[
            len(start)
        ]  # a courtesy: a server that does not let us name ourselves is good enough
    steps = len(start) + len(select)
    for reply in replies[:steps]:
        if isinstance(reply, hiredis.ReplyError):
            return Failure(condition_of(str(reply)), str(reply))
    return _identity(replies[steps])


def _speaks_no_hello(error: str) -> bool:
    return error.startswith(("NOPROTO", "ERR unknown command", "ERR unsupported"))


def _identity(info: Any) -> Identity | Failure:
    if isinstance(info, hiredis.ReplyError):
        condition = condition_of(str(info))
        # INFO is in the "dangerous" ACL category: a user may lack it and hold locks all the same.
        if condition is Condition.FORBIDDEN or "unknown command" in str(info):
            return Identity(None, "")
        return Failure(condition, str(info))
    if not isinstance(info, bytes | str):
        return Failure(Condition.PROTOCOL, repr(info)[:200])
    text = info.decode(errors="replace") if isinstance(info, bytes) else info
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    version = facts.get("valkey_version") or facts.get("redis_version", "")
    return Identity(facts.get("run_id") or None, version)


def pack_all(batch: Sequence[Words]) -> bytes:
    """Write a batch of greeting commands."""
    return b"".join(pack_words(words) for words in batch)
