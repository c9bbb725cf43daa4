"""The blocking driver: a thread that runs a flow does its own I/O, with no thread in between.

- `driver.py`: runs flows; keeps the lines
- `pool.py`: a bounded number of lines, shared by threads
- `line.py`: one connection to every node, on one poller, used by one thread at a time
- `carrier.py`: one connection's bytes, on a line's poller
- `transport.py`: a non-blocking socket, with or without TLS
- `poller.py`: waiting for many sockets at once
- `resolver.py`: name look-ups that do not block a round
"""

from .driver import BlockingDriver

__all__ = ["BlockingDriver"]
