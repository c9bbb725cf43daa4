"""What a planted bug is, and the worlds in which it does harm."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..core.validity import patience
from ..wire.scripts import SCRIPTS
from .protocol import Edit, Protocol, planted
from .scenario import Scenario


@dataclass(frozen=True)
class Mutant:
    """A planted bug, and the law that it breaks; `outside`: for those who look at outcomes only."""

    name: str
    law: str
    protocol: Protocol
    setting: Callable[[Scenario], Scenario] = lambda world: world
    """What a world must be like for it to do harm, where that is rare."""
    outside: bool = False


def plain(world: Scenario) -> Scenario:
    """Let nodes remember and clocks be right."""
    return replace(
        world, guard=False, durable=False, amnesia=False, flushes=False, swaps=False,
        failovers=False, steps=False, freezes=False, races=False, unsteady=0, wild=False,
    )  # fmt: skip


def slow(world: Scenario) -> Scenario:
    """Let some messages take long, and most of them not."""
    delay = 0.02 * patience(0.5, world.ttl)
    return replace(plain(world), nodes=1, node_timeout=0.5, delay=delay, tail=0.1)


def forgetful(world: Scenario) -> Scenario:
    """Let few nodes forget in most ways, and no client come late who would not have noticed."""
    return replace(
        plain(world), guard=True, nodes=min(world.nodes, 3), max_ttl=world.ttl, crashes=True,
        amnesia=True, flushes=True, failovers=True, kills=False, latecomers=False,
    )  # fmt: skip


def lua(*edits: tuple[str, str]) -> dict[str, str]:
    """Return edits of the scripts. Raises if they have moved on from under them."""
    for old, _ in edits:
        if {script.text.count(old) for script in SCRIPTS.values()} != {0, 1}:
            raise ValueError(f"no script has this exactly once: {old!r}")
    return dict(edits)


def stamps_of_one() -> Protocol:
    """Return flows whose clients always propose the lowest fence. That costs time, and no law."""
    return planted(Edit("clocks", "return int(now * 1e6 + self._agreed)", "return 1"))
