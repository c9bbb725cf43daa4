"""A core command becomes bytes; a server's reply becomes a vote."""

from functools import lru_cache
from typing import Any

import hiredis

from ..core.effects import Command, NodeCommand, Verb
from ..core.guard import Guard
from ..core.inspect import InLine, Sight
from ..core.nodes import NodeFacts
from ..core.place import Place
from ..core.votes import DOUBTFUL, GRANTED, MISSING, Answer, Condition, Failure, Vote, failed
from .keys import NODE_KEY, leases_key, lock_key, mark_key, queue_key, released_key
from .packing import Words, pack_words
from .scripts import SCRIPTS

_SHAS = {verb: script.sha.encode() for verb, script in SCRIPTS.items()}

PROMISED = "~"
"""What stands before a token for which a lock is only reserved, see `lua/kinds/exclusive.lua`."""

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
    ("can't run this command or", Condition.FORBIDDEN),
    ("ACL failure in script", Condition.FORBIDDEN),
)


def pack(command: Command | NodeCommand) -> bytes:
    """Write a command for a server that knows its script.

    It lacks its last words, which differ from node to node: see `Peer.ending`.
    """
    if isinstance(command, NodeCommand):
        return _pack(b"EVALSHA", _SHAS[command.verb], command)
    token, verb = command.token, command.verb
    pieces = _around_token(
        verb, command.name, len(token), command.ttl_ms, command.guard, command.place,
        command.claim_ms,
    )  # fmt: skip
    return b"%s$16\r\n%016d\r\n" % (token.encode().join(pieces), command.stamp)


_SIGNS = [chr(sign) for sign in range(32) if chr(sign) not in "\r\n"]
"""What no command has in it, unless it is in a lock's name."""


@lru_cache(maxsize=4096)  # the same few locks come again and again; tokens are always new
def _around_token(
    verb: Verb, name: str, length: int, ttl_ms: int, guard: Guard, place: Place, claim_ms: int
) -> tuple[bytes, ...]:
    """Return what stands around tokens of that length, which are ASCII; without the stamp."""
    mark = length * next(sign for sign in _SIGNS if sign not in name)
    command = Command(verb, name, mark, ttl_ms, 0, guard, place, claim_ms)
    packed = _pack(b"EVALSHA", _SHAS[verb], command)
    return tuple(packed.removesuffix(b"$16\r\n%016d\r\n" % 0).split(mark.encode()))


def pack_whole(command: Command | NodeCommand) -> bytes:
    """Write a command with its script, for a server that has forgotten it (NOSCRIPT)."""
    return _pack(b"EVAL", SCRIPTS[command.verb].text.encode(), command)


def _pack(eval_: bytes, script: bytes, command: Command | NodeCommand) -> bytes:
    if isinstance(command, NodeCommand):
        longest = str(command.guard.max_ttl_ms)
        arguments: Words = (longest, command.first, command.second)
        return _open_end((eval_, script, b"1", NODE_KEY, *arguments))
    name, token, guard = command.name, command.token, command.guard
    keys: Words = (lock_key(name), mark_key(name), queue_key(name), leases_key(name))
    if command.verb in (Verb.RENEW, Verb.RELEASE):
        keys = (*keys, released_key(name, token))
    if guard.is_on:
        keys = (*keys, NODE_KEY)
    keys = (str(len(keys)), *keys)
    guarded = (str(guard.max_ttl_ms), "1" if guard.evicting else "0")
    queued = (str(command.claim_ms), command.place.value)
    arguments = (str(command.ttl_ms), *guarded, *queued, token, f"{command.stamp:016d}")
    return _open_end((eval_, script, *keys, *arguments))


_LAST_WORDS: Words = ("", "")


def _open_end(words: Words) -> bytes:
    """Write a command without its last words."""
    nothing = pack_words(_LAST_WORDS).partition(b"\r\n")[2]
    return pack_words(words + _LAST_WORDS).removesuffix(nothing)


def knows_not(reply: Any) -> bool:
    """True if the server has forgotten the script: it should be sent whole."""
    return isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT")


def vote_of(reply: Any) -> Vote:
    """Read any verb's reply. Whatever cannot be read is a failure, never a grant or a refusal."""
    match reply:
        case [1, int(), int(mark)]:
            return Vote(Answer.GRANTED, mark=mark) if mark else GRANTED
        case [0, int(), int(left)]:
            return Vote(Answer.HELD, remaining_ms=left if left >= 0 else None)
        case [-1, int(), int()]:
            return MISSING
        case [2, int(), int(mark)]:
            return Vote(Answer.OUTBID, mark=mark)
        case [5, int(), int(left), int(rank), int(stamp)]:
            left_ms = left if left >= 0 else None
            return Vote(Answer.QUEUED, remaining_ms=left_ms, mark=stamp, rank=rank)
        case [4, int(), int(left), int(stamp)]:
            return Vote(Answer.RESERVED, remaining_ms=left, mark=stamp)
        case [6, int(), int(mark)]:
            return Vote(Answer.OUTRANKED, mark=mark)
        case [7, int(now), bytes(holder), int(left), bytes(mark), list(waiters), list(alive)]:
            return Vote(Answer.TOLD, facts=(_sight(now, holder, left, mark, waiters, alive),))
        case [-5, int(), int()]:
            return DOUBTFUL
        case [3, int(now), bytes(run), bytes(history), list(marker), bytes(info)]:
            facts = NodeFacts(now, _text(run), _text(history), _pairs(marker), facts_in(info))
            return Vote(Answer.TOLD, facts=(facts,))
        case [3, int(), int(done)]:
            return Vote(Answer.TOLD, facts=(bool(done),))
        case [-2, int(), int(left), bytes(why), int(ago), int(uptime)]:
            detail = _abstention(_text(why), left / 1000, ago / 1000, uptime)
            failure = Failure(Condition.ABSTAINING, detail)
            return Vote(Answer.ABSTAINED, remaining_ms=left, failure=failure)
        case [-3, int(), int(late)]:
            return failed(Condition.LATE, f"{late} ms after its round was over")
        case [-4, int(), int(known)]:
            detail = f"{known / 1000:g} s; all clients of a node must have the same"
            failure = Failure(Condition.MAX_TTL, detail)
            return Vote(Answer.FAILED, remaining_ms=known, failure=failure)
        case Exception():
            return failed(condition_of(str(reply)), str(reply))
    return failed(Condition.PROTOCOL, repr(reply)[:200])


def facts_in(info: Any) -> dict[str, str]:
    """Read what INFO says; nothing, if it is not that."""
    if not isinstance(info, bytes | str):
        return {}
    text = info if isinstance(info, str) else _text(info)
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _sight(
    now_us: int, holder: bytes, left: int, mark: bytes, waiters: list[Any], alive: list[Any]
) -> Sight:
    ends = _pairs(alive)
    line = tuple(
        InLine(token, int(float(stamp)), int(float(ends.get(token, 0))))
        for token, stamp in _pairs(waiters).items()
    )
    value, remaining = _text(holder), left if left >= 0 else None
    called = value.removeprefix(PROMISED) if value.startswith(PROMISED) else ""
    return Sight(now_us, "" if called else value, called, remaining, int(mark or 0), line)


def _pairs(flat: list[Any]) -> dict[str, str]:
    words = [_text(word) for word in flat]
    return dict(zip(words[::2], words[1::2], strict=False))


def _text(word: Any) -> str:
    return word.decode(errors="replace") if isinstance(word, bytes) else str(word)


def _abstention(why: str, left: float, ago: float, uptime: int) -> str:
    """Say why a node abstains, for how long, and what can be done about it."""
    reasons = {
        "new": f"started {uptime} s ago and has no memory of its locks",
        "restarted": f"restarted {uptime} s ago",
        "lost": f"was seen to have evicted keys or swapped databases {ago:.0f} s ago",
        "stepped": f"its clock was seen to jump {ago:.0f} s ago",
        "drained": f"drained {ago:.0f} s ago",
    }
    if why == "drained":
        return f"{reasons[why]}; abstains; hint: client.nodes.admit()"
    hint = "; hint: if it is new, client.nodes.init()" if why in ("new", "restarted") else ""
    return f"{reasons.get(why, why)}; abstains for {max(left, 0.0):.0f} s more{hint}"


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
