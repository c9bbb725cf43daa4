"""Name look-ups that do not block a round.

`getaddrinfo` has no timeout and no non-blocking form, so names are looked up on a short-lived
daemon thread. Numeric addresses need no look-up.
"""

import socket
import threading
from collections.abc import Callable
from typing import Any

Address = tuple[socket.AddressFamily, Any]
"""The family, and whatever that family calls an address."""


class Lookup:
    """A look-up under way: `addresses` is None until it is done; then they, or `error`, are set."""

    def __init__(self) -> None:
        self.addresses: list[Address] | None = None
        self.error: OSError | None = None


def lookup(host: str, port: int, bell: Callable[[], Callable[[], None]]) -> Lookup:
    """Look a host up: at once if it is a number, else on another thread, which rings the bell."""
    result = Lookup()
    try:
        result.addresses = _ask(host, port, socket.AI_NUMERICHOST)
    except (OSError, ValueError):
        thread = threading.Thread(
            target=_run, args=(result, host, port, bell()), name="holdfast-lookup", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # the interpreter is going down, or there are too many
            result.addresses, result.error = [], OSError(str(error))
    return result


def _run(result: Lookup, host: str, port: int, ring: Callable[[], None]) -> None:
    try:
        found = _ask(host, port, 0)
    except (OSError, ValueError) as error:  # ValueError: a name that DNS cannot have
        result.error = error if isinstance(error, OSError) else OSError(str(error))
        found = []
    result.addresses = found
    ring()


def _ask(host: str, port: int, flags: int) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(socket.AddressFamily(family), address) for family, _, _, _, address in found]


def unix_address(path: str) -> Address:
    """Return a socket file's address."""
    return socket.AF_UNIX, path
