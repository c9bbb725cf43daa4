"""What users may ask for, checked once where it enters, before anything is sent."""

import math
from collections.abc import Callable
from numbers import Real

from .core import validity
from .core.guard import Guard
from .errors import BadInput
from .events import Event

MAX_NAME_BYTES = 1024
"""Long enough for a path or a URL; a longer name is most likely data by mistake."""


MAX_CONTROL_SIGNS = 16
"""Different ones that a name may have: what has more is data by mistake."""

MIN_CLAIM, MAX_CLAIM = 0.05, 2.0
"""Seconds. A round must fit into a claim; and a waiter that is gone keeps the others for one."""

MAX_LABEL = 64
"""It is part of every token."""

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
    if len({sign for sign in name if sign < " "}) > MAX_CONTROL_SIGNS:
        raise BadInput(f"the lock name {name!r:.80} is not text")
    if size > MAX_NAME_BYTES:
        raise BadInput(f"a lock's name has at most {MAX_NAME_BYTES} bytes, not {size}")
    return name


def check_ttl(ttl: object, guard: Guard) -> int:
    """Return a ttl in milliseconds."""
    seconds = _seconds("ttl", ttl)
    least = validity.MIN_GUARDED_TTL if guard.is_on else validity.MIN_TTL
    if seconds < least:
        raise BadInput(f"ttl={seconds:g} is too short for a round: at least {least:g} s")
    if guard.is_on and seconds * 1000 > guard.max_ttl_ms:
        raise BadInput(
            f"ttl={seconds:g} is longer than max_ttl={guard.max_ttl_ms / 1000:g} s; hint: take a"
            " short ttl and renew it, or give all clients of these nodes a larger max_ttl"
        )
    if seconds > validity.MAX_TTL:
        raise BadInput(
            f"ttl={seconds:g} is too long: at most {validity.MAX_TTL:g} s;"
            " hint: take a short ttl and renew it"
        )
    return int(seconds * 1000)


def check_max_ttl(max_ttl: object) -> int:
    """Return the longest ttl of any client, in milliseconds."""
    seconds = _seconds("max_ttl", max_ttl)
    if not validity.MIN_GUARDED_TTL <= seconds <= validity.MAX_TTL:
        least, most = validity.MIN_GUARDED_TTL, validity.MAX_TTL
        raise BadInput(f"max_ttl={seconds:g} must be from {least:g} to {most:g} s")
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


def check_flag(what: str, flag: object) -> bool:
    """Return what is either so or not."""
    if not isinstance(flag, bool):
        raise BadInput(f"{what} is True or False, not {flag!r:.80}")
    return flag


def check_renew(renew: object) -> bool:
    """Return whether leases are renewed."""
    return check_flag("renew", renew)


def check_max_hold(max_hold: object) -> float | None:
    """Return for how long a lease may be renewed; None is without a bound."""
    if max_hold is None:
        return None
    seconds = _seconds("max_hold", max_hold)
    if seconds < validity.MIN_TTL:
        raise BadInput(f"max_hold={seconds:g} is too short: at least {validity.MIN_TTL:g} s")
    return seconds


def check_grace(grace: object, ttl: float) -> float | None:
    """Return how long before its end a lease is endangered; None is a usual part of the ttl."""
    if grace is None:
        return None
    seconds = _seconds("grace", grace)
    if not 0 <= seconds <= ttl / 2:
        raise BadInput(f"grace={seconds:g} must be from 0 to half of the ttl, {ttl / 2:g} s")
    return seconds


def check_claim(claim: object) -> float:
    """Return for how long a lock is reserved for whom it is handed over to."""
    seconds = _seconds("claim", claim)
    if not MIN_CLAIM <= seconds <= MAX_CLAIM:
        raise BadInput(f"claim={seconds:g} must be from {MIN_CLAIM:g} to {MAX_CLAIM:g} s")
    return seconds


def check_label(label: object) -> str | None:
    """Return what a client is called; None is the program's name."""
    if label is None:
        return None
    if not isinstance(label, str) or not label or len(label) > MAX_LABEL:
        raise BadInput(f"label is a name of 1 to {MAX_LABEL} characters, not {label!r:.80}")
    if not label.isprintable():
        raise BadInput(f"the label {label!r:.80} has characters that cannot be shown")
    return label


def check_owner(owner: object) -> bool:
    """Return whether leases belong to whoever acquires them; if not, to the process."""
    if owner is None:
        return False
    if owner == "caller":
        return True
    raise BadInput(f"owner is 'caller' or None, not {owner!r:.80}; hint: lease.transfer()")


def check_cancel_on_lost(cancel_on_lost: object) -> bool:
    """Return whether a loss cancels the body."""
    return check_flag("cancel_on_lost", cancel_on_lost)


def check_on_event(on_event: object) -> Callable[[Event], object] | None:
    """Return a hook."""
    if on_event is not None and not callable(on_event):
        raise BadInput(f"on_event is a callable, not {type(on_event).__name__}")
    return on_event


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
