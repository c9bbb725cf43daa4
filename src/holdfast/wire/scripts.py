"""The Lua that runs on the nodes: one file per kind of lock, one per verb, put together here."""

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from ..core.effects import Verb


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text, and the name under which a server remembers it."""

    text: str
    sha: str


def assemble(kind: str, verb: Verb) -> Script:
    """Put a kind's and a verb's Lua together."""
    lua = files(__package__) / "lua"
    text = "\n".join(
        (lua / folder / f"{name}.lua").read_text(encoding="utf-8")
        for folder, name in (("kinds", kind), ("verbs", verb.value))
    )
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(text, sha)


EXCLUSIVE = {verb: assemble("exclusive", verb) for verb in Verb}
