"""The asyncio driver: all tasks of a loop share one connection per node.

- `driver.py`: runs flows; one hub per event loop
- `hub.py`: a loop's connections, its open rounds and their deadlines
- `carrier.py`: one connection's bytes, as an asyncio protocol; written in batches
"""

from .driver import AsyncDriver

__all__ = ["AsyncDriver"]
