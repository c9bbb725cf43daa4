"""A new server has no memory, and would abstain at first. Whoever made it knows better."""

from pathlib import Path

from ..core.effects import Verb
from ..wire.keys import NODE_KEY
from ..wire.scripts import NODE
from .process import call


def initialise(socket: Path, *, only_if_new: bool = False) -> bool:
    """Let a server vote at once, on behalf of whoever knows that no lock is held on it.

    Which `max_ttl` it gets is left to its first client. True if the server has done it.
    """
    arguments = ("0", "1" if only_if_new else "0", "0", "0")
    return call(socket, "EVAL", NODE[Verb.INIT].text, "1", NODE_KEY, *arguments) == "3"
