"""One worker: acquires the lock, increments the counter, reports, and does it again.

A process of its own: python -m holdfast.demo.worker. It reports on its standard output and works
until its standard input ends, which also happens when the demo itself is killed.
"""

import argparse
import os
import random
import select
import sys
import time
from pathlib import Path

import holdfast
from holdfast.drivers.clock import now

from . import events
from .counter import Counter
from .plot import DAWDLE, LOCK, PATIENCE, TTL, name_of
from .trap import Trap
from .unlocked import OpenLease, OpenLock
from .witness import Witness

_PAUSE = 0.004, 0.016
"""Seconds between reading and writing: an update that is unprotected gets lost in it."""

_REST = 0.005, 0.03
"""Seconds between increments: at random, or the line would always be in the same order."""

_MARGIN = 0.4
"""Seconds before the end of its lease at which a trapped worker gives up dawdling."""


class Worker:
    """A contender for the lock."""

    def __init__(self, number: int, directory: Path, lock: holdfast.Lock | OpenLock) -> None:
        self._number = number
        self._lock = lock
        self._counter = Counter(directory)
        self._witness = Witness(directory)
        self._trap = Trap(directory)

    def run(self) -> None:
        """Work from the starting signal, a line on the standard input, until sent home."""
        _tell(events.Ready(self._number, now()))
        sys.stdin.readline()
        while not _sent_home():
            lease = self._acquire()
            if lease is None:
                return
            self._hold(lease)
            time.sleep(random.uniform(*_REST))

    def _acquire(self) -> holdfast.Lease | OpenLease | None:
        """Return a lease, or None if sent home before there was one."""
        while not _sent_home():  # looked at again every PATIENCE seconds
            _tell(events.Waiting(self._number, now()))  # first: it is in line after that
            try:
                return self._lock.acquire()
            except holdfast.TimedOut:
                _tell(events.GaveUp(self._number, now()))
            except holdfast.RoundFailed as error:
                _tell(events.Trouble(self._number, now(), str(error).splitlines()[0][:200]))
                time.sleep(random.uniform(*_REST))
        return None

    def _hold(self, lease: holdfast.Lease | OpenLease) -> None:
        """Increment while holding, and say how it ended."""
        entered = now()  # first: the block sees that the lease still holds
        try:
            with lease, self._witness.inside() as alone:
                if not alone:
                    _tell(events.NotAlone(self._number, now()))
                self._increment(lease, entered)
        except holdfast.LeaseLost as loss:
            _tell(events.Lost(self._number, now(), loss.reason.value))
        else:
            _tell(events.Done(self._number, now()))

    def _increment(self, lease: holdfast.Lease | OpenLease, entered: float) -> None:
        """Read, pause, write; in the trap, dawdle on both sides of the write."""
        number, wrote = self._counter.read(), None
        until = now() + lease.valid_for
        trapped = self._trap.catches()
        _tell(events.Inside(self._number, entered, until, number, trapped, lease.fence))
        try:
            time.sleep(DAWDLE if trapped else random.uniform(*_PAUSE))
            lease.ensure_held()
            self._counter.write(number + 1)
            wrote = number + 1
            if trapped:
                time.sleep(max(lease.valid_for - _MARGIN, 0))
        finally:
            _tell(events.Left(self._number, now(), wrote))


def _tell(report: events.Report) -> None:
    """Report to the stage, in one piece: all workers share the pipe."""
    os.write(sys.stdout.fileno(), events.to_line(report))


def _sent_home() -> bool:
    """True once the standard input has ended; after the first line nothing is written to it."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> None:
    """Be a worker, until sent home."""
    parser = argparse.ArgumentParser(description="One worker of the demo, which starts it.")
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--without-lock", action="store_true")
    parser.add_argument("nodes", nargs="+", metavar="URL")
    given = parser.parse_args()
    try:
        with holdfast.connect(*given.nodes, max_ttl=TTL, label=name_of(given.number)) as client:
            lock = OpenLock() if given.without_lock else client.lock(LOCK, ttl=TTL, wait=PATIENCE)
            Worker(given.number, given.directory, lock).run()
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the demo is gone, and with it whoever would want to know


if __name__ == "__main__":
    main()
