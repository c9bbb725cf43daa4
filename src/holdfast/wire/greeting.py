"""What is said first on a new connection: who we are, which database, and who are you?

No lock command is sent before the greeting is over: a request must never run in the wrong
database, and never on a server that already has a vote under another address.

A greeting is a small generator: it yields a batch of commands to be written at once, is resumed
with their replies in order, and returns the server's identity or a `Failure`.
"""

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import hiredis

from ..core.votes import Condition, Failure
from .commands import condition_of, facts_in
from .endpoint import Endpoint
from .packing import Words, pack_words
from .scripts import SCRIPTS


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answered. `run_id` is new at every start of a server; None if it may not be asked."""

    run_id: str | None
    version: str
    shown_us: int = 0
    """What its clock showed, in microseconds; 0 if it may not be asked."""
    evicts: str = ""
    """The policy by which it evicts keys when it is full; empty if it does not."""
    durable: bool = False
    """True if it was asked, and has every write on its disk before it answers."""
    pushes: bool = False
    """True if it may say something unasked, so that calls can be heard (RESP3)."""
    clustered: bool = False
    """True if it is a node of a cluster."""


Greeting = Generator[list[Words], list[Any], "Identity | Failure"]


_QUESTIONS: list[Words] = [("INFO", "server"), ("INFO", "memory"), ("TIME",)]
_DURABLE = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
_LESSON: list[Words] = [("SCRIPT", "LOAD", script.text) for script in SCRIPTS.values()]
"""Teaching the scripts at once spares the first round a NOSCRIPT. A user who may not load them can
still send them whole, so the answers do not matter.
"""


def greet(endpoint: Endpoint, *, durable: bool = False) -> Greeting:
    """Log in, name ourselves, select the database, ask who is there, teach the scripts.

    With `durable`, also ask whether the server writes everything to its disk at once.
    """
    login, name = endpoint.login(), endpoint.name()
    hello: list[bytes | str] = ["HELLO", str(endpoint.protocol)]
    if login:
        hello += ["AUTH", *(login if len(login) == 2 else ("default", *login))]
    select: list[Words] = [("SELECT", str(endpoint.db))] if endpoint.db else []
    start: list[Words] = [(*hello, "SETNAME", name)]
    questions = _QUESTIONS + [("CONFIG", "GET", each) for each in _DURABLE if durable]
    replies = yield start + select + questions + _LESSON
    pushes = endpoint.protocol >= 3
    if isinstance(replies[0], hiredis.ReplyError) and _speaks_no_hello(str(replies[0])):
        pushes = False
        start = [("AUTH", *login)] if login else []
        naming: list[Words] = [("CLIENT", "SETNAME", name)]
        replies = yield start + naming + select + questions + _LESSON
        del replies[
            len(start)
        ]  # a courtesy: a server that does not let us name ourselves is good enough
    steps = len(start) + len(select)
    for reply in replies[:steps]:
        if isinstance(reply, hiredis.ReplyError):
            return Failure(condition_of(str(reply)), str(reply))
    identity = _identity(*replies[steps : steps + len(questions)])
    return replace(identity, pushes=pushes) if isinstance(identity, Identity) else identity


def _speaks_no_hello(error: str) -> bool:
    return error.startswith(("NOPROTO", "ERR unknown command", "ERR unsupported"))


def _identity(info: Any, memory: Any, time: Any, *settings: Any) -> Identity | Failure:
    if isinstance(info, hiredis.ReplyError):
        condition = condition_of(str(info))
        # INFO is in the "dangerous" ACL category: a user may lack it and hold locks all the same.
        if condition is Condition.FORBIDDEN or "unknown command" in str(info):
            return Identity(None, "")
        return Failure(condition, str(info))
    if not isinstance(info, bytes | str):
        return Failure(Condition.PROTOCOL, repr(info)[:200])
    facts, limits = facts_in(info), facts_in(memory)
    version = facts.get("valkey_version") or facts.get("redis_version", "")
    policy = limits.get("maxmemory_policy", "noeviction")
    bounded = limits.get("maxmemory", "0") != "0" and policy != "noeviction"
    return Identity(
        facts.get("run_id") or None,
        version,
        shown_us=_microseconds(time),
        evicts=policy if bounded else "",
        durable=bool(settings) and _told(settings) == _DURABLE,
        clustered=facts.get("redis_mode", facts.get("server_mode")) == "cluster",
    )


def _microseconds(time: Any) -> int:
    match time:
        case [bytes() | str(), bytes() | str()]:
            with contextlib.suppress(ValueError):
                return int(time[0]) * 1_000_000 + int(time[1])
    return 0


def _told(settings: Sequence[Any]) -> dict[str, str]:
    """Read what CONFIG GET says: a list of names and values, or a map."""
    told: dict[str, str] = {}
    for reply in settings:
        if isinstance(reply, dict):
            told |= {_text(name): _text(value) for name, value in reply.items()}
        elif isinstance(reply, list):
            words = [_text(word) for word in reply]
            told |= dict(zip(words[::2], words[1::2], strict=False))
    return told


def _text(word: Any) -> str:
    return word.decode(errors="replace") if isinstance(word, bytes) else str(word)


def pack_all(batch: Sequence[Words]) -> bytes:
    """Write a batch of greeting commands."""
    return b"".join(pack_words(words) for words in batch)
