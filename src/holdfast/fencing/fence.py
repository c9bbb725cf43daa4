"""What every check asks of its arguments."""

from ..errors import BadInput

LIMIT = 2**53
"""Fences are below: Lua and JavaScript count in floats, which are exact up to here. Microseconds
since 1970 reach it in the year 2255."""


def check(resource: str, fence: int) -> None:
    """Raise `BadInput` unless these are a resource's name and a fence."""
    if not isinstance(resource, str) or not resource:
        raise BadInput(f"a resource is named by a string that is not empty, not {resource!r}")
    if not isinstance(fence, int) or isinstance(fence, bool):
        raise BadInput(f"a fence is an int, not {type(fence).__name__}")
    if not 0 <= fence < LIMIT:
        raise BadInput(f"a fence is at least 0 and below 2**53, not {fence}")
