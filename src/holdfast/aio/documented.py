"""What is explained at the blocking client is not explained twice."""

import inspect
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)


def documented_like(original: type) -> Callable[[C], C]:
    """Take over the documentation of a blocking class's methods of the same names."""

    def document(mirror: C) -> C:
        for name, method in vars(mirror).items():
            if inspect.isfunction(method) and method.__doc__ is None:
                method.__doc__ = getattr(getattr(original, name, None), "__doc__", None)
        return mirror

    return document
