"""The Lua that runs on the nodes, put together from its parts.

- `lua/kinds/`: how a lock of a kind is taken, dropped and held
- `lua/verbs/`: what may be said about a lock
- `lua/node/`: what may be said about a node
- `lua/guard.lua`, `lua/fence.lua`: what all that can create a lock's key has in common
- `lua/queue.lua`: who waits for a lock, and how it is handed over
- `lua/marker.lua`: what all that is about a node has in common
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..core.effects import Verb


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text, and the name under which a server remembers it."""

    text: str
    sha: str


@cache
def _part(name: str) -> str:
    return (files(__package__) / "lua" / f"{name}.lua").read_text(encoding="utf-8")


def assemble(*parts: str) -> Script:
    """Put pieces of Lua together."""
    text = "\n".join(_part(part) for part in parts)
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(text, sha)


_NEEDED = {
    Verb.REQUEST: ("guard", "fence", "queue"),
    Verb.WAIT: ("guard", "queue"),
    Verb.RAISE: ("guard", "fence"),
    Verb.RENEW: ("guard", "fence"),
    Verb.RELEASE: ("guard", "queue"),
    Verb.INSPECT: ("guard",),
}
"""What each verb needs, besides the kind."""


def _kind(kind: str) -> dict[Verb, Script]:
    """Return the scripts for one kind of lock."""
    return {
        verb: assemble(f"kinds/{kind}", *needed, f"verbs/{verb.value}")
        for verb, needed in _NEEDED.items()
    }


EXCLUSIVE = _kind("exclusive")

NODE = {verb: assemble("marker", f"node/{verb.value}") for verb in Verb if not verb.is_about_a_lock}

SCRIPTS = EXCLUSIVE | NODE
