"""A core command becomes bytes; a server's reply becomes a vote."""

from functools import lru_cache
from typing import Any

import hiredis

from ..core.effects import Command, Verb
from ..core.votes import GRANTED, MISSING, Answer, Condition, Vote, failed
from .keys import lock_key
from .packing import pack_words
from .scripts import EXCLUSIVE

_SHAS = {verb: script.sha.encode() for verb, script in EXCLUSIVE.items()}

_CONDITIONS = {
    "NOAUTH": Condition.AUTHENTICATION,
    "WRONGPASS": Condition.AUTHENTICATION,
    "NOPERM": Condition.FORBIDDEN,
    "WRONGTYPE": Condition.WRONG_TYPE,
    "READONLY": Condition.READ_ONLY,
    "OOM": Condition.OUT_OF_MEMORY,
    "LOADING": Condition.LOADING,
    "MISCONF": Condition.NOT_PERSISTING,
    "NOREPLICAS": Condition.NOT_PERSISTING,
    "BUSY": Condition.SCRIPT_RUNNING,
    "MASTERDOWN": Condition.READ_ONLY,
    "MOVED": Condition.CLUSTER,
    "ASK": Condition.CLUSTER,
    "CLUSTERDOWN": Condition.CLUSTER,
    "CROSSSLOT": Condition.CLUSTER,
    "DENIED": Condition.FORBIDDEN,
}

_PHRASES = (
    ("max number of clients", Condition.OVERCROWDED),
    ("invalid password", Condition.AUTHENTICATION),
    ("without any password configured", Condition.AUTHENTICATION),
    ("DB index", Condition.DATABASE),
    ("NOREPLICAS", Condition.NOT_PERSISTING),
    ("can't run this command or script", Condition.FORBIDDEN),
    ("ACL failure in script", Condition.FORBIDDEN),
)


def pack(command: Command) -> bytes:
    """Write a command for a server that knows its script."""
    token = command.token
    before, after = _around_token(command.verb, command.name, len(token), command.ttl_ms)
    return before + token.encode() + after


@lru_cache(maxsize=4096)  # the same few locks come again and again; only tokens are always new
def _around_token(verb: Verb, name: str, length: int, ttl_ms: int) -> tuple[bytes, bytes]:
    """Return what stands before and after a token of that length. Tokens are ASCII."""
    mark = "?" * length
    packed = _pack(b"EVALSHA", _SHAS[verb], Command(verb, name, mark, ttl_ms))
    before, _, after = packed.rpartition(mark.encode())
    return before, after


def pack_whole(command: Command) -> bytes:
    """Write a command with its script, for a server that has forgotten it (NOSCRIPT)."""
    return _pack(b"EVAL", EXCLUSIVE[command.verb].text.encode(), command)


def _pack(eval_: bytes, script: bytes, command: Command) -> bytes:
    key, token = lock_key(command.name), command.token
    if command.verb is Verb.RELEASE:
        return pack_words((eval_, script, b"1", key, token))
    return pack_words((eval_, script, b"1", key, token, str(command.ttl_ms)))


def knows_not(reply: Any) -> bool:
    """True if the server has forgotten the script: it should be sent whole."""
    return isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT")


def vote_of(reply: Any) -> Vote:
    """Read any verb's reply. Whatever cannot be read is a failure, never a grant or a refusal."""
    match reply:
        case [1, int()]:
            return GRANTED
        case [0, int(left)]:
            return Vote(Answer.HELD, remaining_ms=left if left >= 0 else None)
        case [-1, int()]:
            return MISSING
        case Exception():
            return failed(condition_of(str(reply)), str(reply))
    return failed(Condition.PROTOCOL, repr(reply)[:200])


def condition_of(message: str) -> Condition:
    """Name the condition behind a server's error message.

    The code is the first word; inside a script's error older servers bury it further on.
    """
    words = message.split()
    if words and (known := _CONDITIONS.get(words[0].lstrip("-"))):
        return known
    for phrase, condition in _PHRASES:
        if phrase in message:
            return condition
    for word in words:
        if known := _CONDITIONS.get(word.lstrip("-")):
            return known
    return Condition.SERVER_ERROR
