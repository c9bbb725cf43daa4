"""The asyncio client: the same names, options and errors as the blocking one, to be awaited.

    import holdfast.aio

    hf = holdfast.aio.connect("redis://a", "redis://b", "redis://c")

    async with hf.lock("invoice:42", ttl=30, wait=10) as lease:
        lease.ensure_held()

All tasks of an event loop share one connection per node. A client may be used on several loops at
once, in several threads; each loop has connections of its own. What is not explained here is
explained at the blocking client's method of the same name, and is copied from there.

- `client.py`, `lock.py`, `lease.py`: what users see
- `lost.py`, `body.py`, `callbacks.py`: how a task hears of a loss
- `tasks.py`: what belongs to one task
"""

from .client import AsyncClient, connect
from .lease import AsyncLease
from .lock import AsyncLock

__all__ = ["AsyncClient", "AsyncLease", "AsyncLock", "connect"]
