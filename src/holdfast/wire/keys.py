"""How a lock's name becomes keys.

All keys of one lock share the hash tag `{name}`, so that in a Cluster they share a slot. Braces in
a name would end the tag early, and two names must never share a key: braces and the escape sign
itself are written as in URLs.
"""

NODE_KEY = "hf:node"
"""The node's marker: what it remembers of itself, see `lua/guard.lua`."""

_ESCAPES = str.maketrans({"%": "%25", "{": "%7B", "}": "%7D"})


def lock_key(name: str) -> str:
    """Return the key that holds the lock itself."""
    return f"hf:{{{name.translate(_ESCAPES)}}}"


def released_key(name: str, token: str) -> str:
    """Return the key that notes, for a while, that this token has been released."""
    return f"{lock_key(name)}:x:{token}"


def queue_key(name: str) -> str:
    """Return the key of those who wait for the lock, by stamp."""
    return f"{lock_key(name)}:q"


def leases_key(name: str) -> str:
    """Return the key that says until when each of them counts as alive."""
    return f"{lock_key(name)}:w"


def mark_key(name: str) -> str:
    """Return the key that holds the highest fence that a node has accepted for the lock."""
    return f"{lock_key(name)}:f"
