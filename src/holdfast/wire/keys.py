"""How a lock's name becomes a key.

All keys of one lock share the hash tag `{name}`, so that in a Cluster they share a slot. Braces in
a name would end the tag early, and two names must never share a key: braces and the escape sign
itself are written as in URLs.
"""

_ESCAPES = str.maketrans({"%": "%25", "{": "%7B", "}": "%7D"})


def lock_key(name: str) -> str:
    """Return the key that holds the lock itself."""
    return f"hf:{{{name.translate(_ESCAPES)}}}"
