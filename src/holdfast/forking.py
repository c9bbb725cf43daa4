"""A forked child starts anew: with fresh connections, and holding nothing."""

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """What wants to be told in the child."""

    def _after_fork(self) -> None:
        """Start anew: whatever came from the parent is the parent's."""


process = os.getpid()
"""This process. Kept, because asking the system costs more than the rest of a check."""

_all: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def after_fork(client: Forkable) -> None:
    """See that a client starts anew in every forked child."""
    _all.add(client)


def _in_child() -> None:
    global process
    process = os.getpid()
    for client in list(_all):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
