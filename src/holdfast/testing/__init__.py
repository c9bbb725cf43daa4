"""Tools for tests. Which one for which test is told in docs/testing.md.

**In memory**: `Memory`, a universe without servers whose time is virtual, for users' unit tests.

    from holdfast.testing import Memory
    hf = Memory().client()      # a holdfast.Client

**On real servers**: `holdfast.testing.pytest_plugin`, throw-away nodes as fixtures.

**In a simulated world**: the shipped flows and Lua, or one's own, under seeded misfortune.

    from holdfast.testing import simulate
    run = simulate(42, tracing=True)
    run.broken      # None, or which law was broken and how

- `memory/`: the in-memory clients
- `world.py`: virtual time and chance; the same seed is the same history
- `store.py`, `lua.py`, `server.py`: the shipped scripts over a model of the server
- `node.py`, `network.py`, `driver.py`: nodes and connections that fail, the driver that runs flows
- `client.py`, `process.py`: clients, whose processes and threads are paused and killed
- `inbox.py`: how they are called when it is their turn, late or never
- `worker.py`, `keeper.py`, `lease.py`: what their two threads do, and what they have in common
- `scenario.py`: how large a world is and what may befall it; `faults.py` makes it happen to nodes,
  connections and clients, `forgetting.py` to nodes' memories, `timekeeping.py` to their clocks
- `laws.py`: what must always hold, and `line.py`: for those who wait; `simulation.py` runs one seed
  and checks them
- `protocol.py`, `planting.py`, `mutants.py`, `queue_mutants.py`: other flows, and planted bugs,
  which must be found
- `python -m holdfast.testing --help`, or `make sim`

Importing this package loads none of them; what runs Lua needs the extra `testing`:
pip install "holdfast[testing]".
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .memory import Memory
    from .protocol import SHIPPED, Edit, Protocol, planted
    from .scenario import Scenario
    from .simulation import Run, first_broken, simulate

__all__ = [
    "SHIPPED",
    "Edit",
    "Memory",
    "Protocol",
    "Run",
    "Scenario",
    "first_broken",
    "planted",
    "simulate",
]

_HOMES = {
    "Memory": "memory",
    "Scenario": "scenario",
    "SHIPPED": "protocol",
    "Edit": "protocol",
    "Protocol": "protocol",
    "planted": "protocol",
    "Run": "simulation",
    "first_broken": "simulation",
    "simulate": "simulation",
}


def __getattr__(name: str) -> object:
    """Import what is asked for: the pytest plugin lives here too, and needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    return value
