"""The Lua that checks fences, and what there is to say about it without waiting for anybody."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any, Protocol

from ..errors import BadInput, FencedOff
from . import fence as fences
from .keys import fence_key

_LUA = files(__package__) / "lua"

ENTER = (_LUA / "enter.lua").read_text(encoding="utf-8")
"""In front of every script: what follows it is run only by who is let in."""

SET = (_LUA / "set.lua").read_text(encoding="utf-8")

_REFUSAL = re.compile(r"FENCEDOFF (\d+)")


class Scripting(Protocol):
    """A client of redis-py or valkey-py, as far as fences are concerned."""

    def register_script(self, script: str) -> Any:
        """Return what runs a script, and loads it where it is not known (NOSCRIPT)."""


def registered(client: Scripting, lua: str, *, awaited: bool) -> Callable[..., Any]:
    """Return the client's own script object, which is a coroutine function if it is `awaited`."""
    if not hasattr(client, "register_script"):
        raise BadInput(f"{type(client).__name__} is no client of redis-py or valkey-py")
    if hasattr(client, "execute"):
        # A refused script does not keep a MULTI's other commands from being run.
        raise BadInput("fences cannot be checked in a pipeline; hint: fences.script() takes Lua")
    script: Callable[..., Any] = client.register_script(f"{ENTER}\n{lua}")
    if inspect.iscoroutinefunction(type(script).__call__) is not awaited:
        # Otherwise a refusal would be a coroutine that nobody looks at.
        colour, right = ("a blocking", "") if awaited else ("an asyncio", "Async")
        raise BadInput(f"this is {colour} client; hint: {right}RedisFences is for those")
    return script


def words(
    resource: str, fence: int, keys: Sequence[str], args: Iterable[object]
) -> dict[str, list[object]]:
    """Return a script's KEYS and ARGV, with the fence's own in front."""
    fences.check(resource, fence)
    return {"keys": [fence_key(resource), *keys], "args": [str(fence), *args]}


def refusal(error: Exception, resource: str, fence: int) -> FencedOff | None:
    """Return what a script's error means to its caller; None if it is the server's own.

    By its text: redis-py and valkey-py have different classes for it.
    """
    found = _REFUSAL.match(str(error))
    return FencedOff(resource, fence, int(found[1])) if found else None
