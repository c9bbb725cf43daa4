"""For round trips with one server: it has one core and the contenders another, like two machines.

Left to itself the kernel now and then puts a client and its server on the same core, where a round
trip costs half as much; whoever was measured at that moment would look twice as fast. With more
processes at work than cores there is nothing to choose, and the kernel may place them.
"""

import os
from pathlib import Path


def all_cores() -> set[int]:
    """Return what we may run on; nothing where that cannot be chosen."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def apart() -> tuple[set[int], set[int]]:
    """Return a core for contenders and the others for servers; the same if there is but one."""
    first, *others = sorted(all_cores()) or [0]
    return ({first}, set(others)) if others else (all_cores(), all_cores())


def pin(process: int | None, cores: set[int]) -> None:
    """Keep a process, with all its threads, on these cores."""
    if process is None or not cores:
        return
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)
