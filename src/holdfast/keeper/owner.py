"""Who a lease is renewed for: a thread, a task, or the process.

A lease outlives its owner by no more than its ttl: nobody is left to do the work it protects.
"""

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import asyncio

Owner = Union[threading.Thread, "weakref.ref[asyncio.Task[Any]]", None]
"""A task is only referred to weakly: the keeper must not be what keeps it from being collected."""


def _thread_lives(thread: threading.Thread) -> bool:
    if thread.ident is None:
        return True  # it was named as the next owner before it is started
    if isinstance(thread, threading._DummyThread):  # not started by Python, which knows no end
        return thread.ident in sys._current_frames()
    return thread.is_alive()


def lives(owner: Owner) -> bool:
    """True while the owner may still do its work. The process is alive if it can ask."""
    if owner is None:
        return True
    if isinstance(owner, threading.Thread):
        return _thread_lives(owner)
    task = owner()
    return task is not None and not task.done()
