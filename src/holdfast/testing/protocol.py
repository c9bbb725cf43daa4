"""Which flows a world runs: the shipped ones, or a copy with a planted bug.

A planted bug is an edit of the shipped source text, so production code has no hooks for it. The
edited module and all modules of core/ that build on it are loaded anew under another name; the
vocabulary they share with the drivers (effects, votes, outcomes, place) stays the shipped one.
"""

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ..core import acquire, clocks, holding, keeping, release, renew, terms
from .driver import SimDriver
from .network import Connection

_BY_DEPENDENCE = (
    "tally", "validity", "clocks", "guard", "retry", "terms", "holding", "fence", "request",
    "queue", "acquire", "renew", "release", "keeping",
)  # fmt: skip
"""The modules of core/ that decide something; each imports only from those before it."""

_copies = itertools.count()


@dataclass(frozen=True)
class Protocol:
    """What a simulated client and node run: the shipped flows, unless others are given.

    Others take the same arguments and end with the same outcomes:

    - `acquire(terms, source, *, now, wait)` → `Acquired` or `Missed`
    - `renew(terms, token, *, fence, valid_until, now)` → `Renewed`, `Unsure` or `Lost`
    - `release(terms, token, *, valid_until, now, renewed)` → `Released` or `Lost`
    - `keep(holding, owner)` → nothing; it looks after a lease, and also yields `Note`s

    They are generators that yield `holdfast.core.effects` and are resumed with the time. Whatever
    interrupts them is thrown into them. An attempt that stands in no line takes a `token` from
    `source`, and is over when another one begins; one that may be called takes a `mail`, and is
    over when the flow ends. What a client knows of its lease is a `holding`.
    """

    acquire: Callable[..., Any] = acquire.acquire
    renew: Callable[..., Any] = renew.renew
    release: Callable[..., Any] = release.release
    keep: Callable[..., Any] = keeping.keep
    terms: Callable[..., Any] = terms.Terms
    holding: Callable[..., Any] = holding.Holding
    clocks: Callable[..., Any] = clocks.Clocks
    driver: type[SimDriver] = SimDriver
    connection: type[Connection] = Connection
    lua: Mapping[str, str] = field(default_factory=dict)


SHIPPED = Protocol()


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in a module of core/."""

    module: str
    old: str
    new: str


def planted(*edits: Edit) -> Protocol:
    """Return the shipped flows with edits. Raises if the source has moved on from under them."""
    package = ModuleType(f"holdfast_planted_{next(_copies)}")
    package.__path__ = []
    sys.modules[package.__name__] = package
    for name in ("effects", "votes", "outcomes", "place", *_BY_DEPENDENCE):
        sys.modules[f"{package.__name__}.{name}"] = importlib.import_module(f"holdfast.core.{name}")
    first = min(_BY_DEPENDENCE.index(edit.module) for edit in edits)
    for name in _BY_DEPENDENCE[first:]:
        _load(package.__name__, name, [edit for edit in edits if edit.module == name])
    copies = {name: sys.modules[f"{package.__name__}.{name}"] for name in _BY_DEPENDENCE}
    return Protocol(
        acquire=copies["acquire"].acquire,
        renew=copies["renew"].renew,
        release=copies["release"].release,
        keep=copies["keeping"].keep,
        terms=copies["terms"].Terms,
        holding=copies["holding"].Holding,
        clocks=copies["clocks"].Clocks,
    )


def _load(package: str, name: str, edits: list[Edit]) -> None:
    spec = importlib.util.find_spec(f"holdfast.core.{name}")
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, encoding="utf-8") as file:
        text = file.read()
    for edit in edits:
        if text.count(edit.old) != 1:
            raise ValueError(f"{name}.py does not have this line exactly once: {edit.old!r}")
        text = text.replace(edit.old, edit.new)
    module = ModuleType(f"{package}.{name}")
    module.__package__ = package
    sys.modules[module.__name__] = module
    setattr(sys.modules[package], name, module)
    exec(compile(text, f"<planted {name}>", "exec"), module.__dict__)  # noqa: S102  # our own text
