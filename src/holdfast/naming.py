"""A lock's name made from a function's arguments: `"report:{user_id}"`."""

import inspect
from collections.abc import Callable, Iterator
from string import Formatter
from typing import Any

from .errors import BadInput


def _fields(template: str) -> Iterator[str]:
    """Yield the fields of a template, those inside format specifications too."""
    for _, field, specification, conversion in Formatter().parse(template):
        if conversion not in (None, "r", "s", "a"):
            raise ValueError(f"unknown conversion !{conversion}")
        if field is not None:
            yield field
            yield from _fields(specification or "")


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called; a `functools.partial` has no name of its own."""
    return getattr(function, "__qualname__", repr(function))


class NameTemplate:
    """A template whose fields are parameters of one function; checked when it is made."""

    def __init__(self, template: str, function: Callable[..., Any]) -> None:
        if not isinstance(template, str):
            raise BadInput(f"a lock's name is a string, not {type(template).__name__}")
        self._template = template
        self._signature = inspect.signature(function)
        try:
            fields = list(_fields(template))
        except ValueError as error:
            raise BadInput(f"the name template {template!r} is malformed: {error}") from None
        known = self._signature.parameters
        for field in fields:
            parameter = field.partition(".")[0].partition("[")[0]
            if parameter not in known:
                raise BadInput(
                    f"the name template {template!r} speaks of {parameter or '{}'!r},"
                    f" but {name_of(function)}() has only: {', '.join(known) or 'nothing'}"
                )

    def name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Fill in the arguments of one call."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return self._template.format(**bound.arguments)
