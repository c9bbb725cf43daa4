"""How DB-API drivers write a statement's parameters; each has its own of five ways (PEP 249)."""

import sys
from collections.abc import Mapping, Sequence

from ..errors import BadInput

_MARKS = {
    "qmark": "?",
    "numeric": ":{number}",
    "named": ":{name}",
    "format": "%s",
    "pyformat": "%({name})s",
}
_BY_NAME = {"named", "pyformat"}


def paramstyle_of(connection: object) -> str:
    """Return a connection's paramstyle, as the driver's module says it.

    The module is the one of the connection's class, or of one it inherits from.
    """
    for kind in type(connection).__mro__:
        module = sys.modules.get(kind.__module__.partition(".")[0])
        style = getattr(module, "paramstyle", None)
        if style is not None:
            return known(style)
    raise BadInput(
        f"{type(connection).__name__} does not say how it takes parameters;"
        f" hint: paramstyle={' or '.join(map(repr, _MARKS))}"
    )


def known(style: str) -> str:
    """Return a paramstyle; raise `BadInput` if it is none."""
    if style not in _MARKS:
        raise BadInput(f"paramstyle {style!r} is none of {', '.join(_MARKS)}")
    return style


def bind(
    style: str, template: str, values: Mapping[str, object]
) -> tuple[str, Mapping[str, object] | Sequence[object]]:
    """Return a statement and its parameters in a driver's own style.

    The template has `{name}` once for every value, in their order.
    """
    marks = {
        name: _MARKS[style].format(name=name, number=number)
        for number, name in enumerate(values, 1)
    }
    return template.format(**marks), values if style in _BY_NAME else tuple(values.values())
