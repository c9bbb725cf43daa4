"""In-memory clients for unit tests: the shipped client, flows and Lua, without servers or waiting.

- `memory.py`: `Memory`, what a test has in hand
- `time.py`: virtual time, and the rules by which it passes; `agenda.py`: what is to happen
- `somebody.py`: who waits and who works: threads and tasks
- `universe.py`, `node.py`: what all clients share: the nodes, and who has what
- `line.py`: who waits, and keeps a place; `postman.py`: who is called
- `blocking.py`, `aio.py`: the drivers
- `keeper.py`: renews leases as time passes; `calls.py`: calls users' callbacks at once
- `chance.py`: seeded, so that a test goes the same way every time
"""

from .memory import Memory

__all__ = ["Memory"]
