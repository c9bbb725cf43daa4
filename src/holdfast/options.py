"""What users may ask for, checked once where it enters, before anything is sent."""

import math
from numbers import Real

from .core import validity
from .errors import BadInput

MAX_NAME_BYTES = 1024
"""Long enough for a path or a URL; a longer name is most likely data by mistake."""


MAX_NODE_TIMEOUT = validity.patience(math.inf, validity.MAX_TTL)
"""Seconds. No round waits longer than this, whatever the ttl."""


def check_name(name: object) -> str:
    """Return a lock's name if it can be one."""
    if not isinstance(name, str):
        raise BadInput(f"a lock's name is a string, not {type(name).__name__}")
    if not name:
        raise BadInput("a lock's name must not be empty")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise BadInput(f"the lock name {name!r:.80} is not valid unicode") from None
    if size > MAX_NAME_BYTES:
        raise BadInput(f"a lock's name has at most {MAX_NAME_BYTES} bytes, not {size}")
    return name


def check_ttl(ttl: object) -> int:
    """Return a ttl in milliseconds."""
    seconds = _seconds("ttl", ttl)
    if seconds < validity.MIN_TTL:
        raise BadInput(f"ttl={seconds:g} is too short for a round: at least {validity.MIN_TTL:g} s")
    if seconds > validity.MAX_TTL:
        raise BadInput(
            f"ttl={seconds:g} is too long: at most {validity.MAX_TTL:g} s;"
            " hint: take a short ttl and renew it"
        )
    return int(seconds * 1000)


def check_wait(wait: object) -> float | None:
    """Return how long to wait: 0 is one try, None for ever."""
    if wait is None:
        return None
    seconds = _seconds("wait", wait)
    if seconds < 0:
        raise BadInput(f"wait={seconds:g} is negative; hint: 0 is one try, None waits for ever")
    return seconds


def check_node_timeout(node_timeout: object) -> float:
    """Return how long a round waits for slow nodes."""
    seconds = _seconds("node_timeout", node_timeout)
    if seconds <= 0:
        raise BadInput(f"node_timeout={seconds:g} must be more than 0 s")
    if seconds > MAX_NODE_TIMEOUT:
        raise BadInput(f"node_timeout={seconds:g} is too long: at most {MAX_NODE_TIMEOUT:g} s")
    return seconds


def check_connections(connections: object) -> int:
    """Return how many connections per node a client may have."""
    if isinstance(connections, bool) or not isinstance(connections, int) or connections < 1:
        raise BadInput(f"connections={connections!r} must be a whole number of at least 1")
    return connections


def _seconds(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadInput(f"{what} is a number of seconds, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        hint = "; hint: None waits for ever" if what == "wait" else ""
        raise BadInput(f"{what}={seconds} is not a finite number of seconds{hint}")
    return seconds
