"""The Lua that runs on the nodes, put together from its parts.

- `lua/kinds/`: how a lock of a kind is taken, dropped and held
- `lua/verbs/`: what may be said about a lock
- `lua/node/`: what may be said about a node
- `lua/guard.lua`, `lua/fence.lua`: what all that can create a lock's key has in common
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


def _kind(kind: str) -> dict[Verb, Script]:
    """Return the scripts for one kind of lock. Releasing creates nothing, and needs no guard."""
    return {
        verb: assemble(
            *(("guard", "fence") if verb is not Verb.RELEASE else ()),
            f"kinds/{kind}",
            f"verbs/{verb.value}",
        )
        for verb in Verb
        if verb.is_about_a_lock
    }


EXCLUSIVE = _kind("exclusive")

NODE = {verb: assemble("marker", f"node/{verb.value}") for verb in Verb if not verb.is_about_a_lock}

SCRIPTS = EXCLUSIVE | NODE
