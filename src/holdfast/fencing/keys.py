"""Where Redis keeps a resource's fence.

In a Cluster a script may only touch keys of one slot, and a key's slot is that of its hash tag:
what is between the first `{` and the first `}` after it, or all of the key if that is nothing. So
the fence's key has the resource's tag. No two resources share one.
"""

import re

from ..errors import BadInput

_TAG = re.compile(r"\{[^}]*\}")


def fence_key(resource: str) -> str:
    """Return the key of the last fence of what is kept at the key `resource`, in the same slot."""
    tag = _TAG.search(resource)
    if tag is not None and tag[0] != "{}":
        return f"{resource}:hf:fence"
    if "}" in resource:  # it would end our tag too early
        raise BadInput(f"no other key is sure to share the slot of {resource!r}; hint: rename it")
    return f"hf:fence:{{{resource}}}"
