"""Servers on one core, contenders on another, as if they were two machines.

Left to itself the kernel now and then puts a client and its server on the same core, where a round
trip costs half as much; whoever was measured at that moment would look twice as fast.
"""

import os
from collections.abc import Iterable
from pathlib import Path


def split() -> tuple[set[int], set[int]]:
    """Return the contenders' core and the servers' cores; all for both where that is impossible."""
    if not hasattr(os, "sched_getaffinity"):  # not Linux
        return set(), set()
    cores = sorted(os.sched_getaffinity(0))
    return (set(cores[:1]), set(cores[1:])) if len(cores) > 1 else (set(cores), set(cores))


def pin(processes: Iterable[int | None], cores: set[int]) -> None:
    """Keep processes, with all their threads, on these cores."""
    for process in processes:
        for thread in Path(f"/proc/{process}/task").iterdir() if cores and process else ():
            os.sched_setaffinity(int(thread.name), cores)
