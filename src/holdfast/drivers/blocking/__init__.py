"""The blocking driver: a thread that runs a flow does its own I/O, with no thread in between.

- `driver.py`: runs flows; keeps the lines
- `pool.py`: a bounded number of lines, shared by threads
- `line.py`: one connection to every node, on one selector, used by one thread at a time
- `channel.py`: one node's connection over its life: connect, greet, use, break, back off
- `transport.py`: a non-blocking socket, with or without TLS
- `resolver.py`: name look-ups that do not block a round
"""

from .driver import BlockingDriver

__all__ = ["BlockingDriver"]
