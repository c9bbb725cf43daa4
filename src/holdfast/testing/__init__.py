"""The simulated world: the shipped flows and the shipped Lua, under seeded virtual time.

    from holdfast.testing import simulate
    run = simulate(42, tracing=True)
    run.broken      # None, or which law was broken and how

- `world.py`: virtual time and chance; the same seed is the same history
- `store.py`, `lua.py`, `node.py`: nodes that run the shipped scripts over a model of the server
- `network.py`, `driver.py`: connections that delay and break, and the driver that runs flows
- `worker.py`, `faults.py`: what clients do, and what befalls them
- `laws.py`: what must always hold; `simulate.py` runs one seed and checks them
- `protocol.py`, `mutants.py`: planted bugs, which must be found
- `python -m holdfast.testing --help`, or `make sim`

Needs the extra `testing`: pip install "holdfast[testing]".
"""

try:
    import lupa.lua51  # noqa: F401  # only to say what is missing
except ImportError as error:
    raise ImportError(
        'the simulated world runs the Lua scripts; hint: pip install "holdfast[testing]"'
    ) from error

from .simulate import Run, simulate

__all__ = ["Run", "simulate"]
