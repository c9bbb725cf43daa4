"""One contest: so many processes want one lock, all the time.

python -m bench.contention --processes 32 --span 3 --lock NAME CONTENDER URL...

Each process makes its own client and has the lock once before the contest, so that connections and
scripts are there. All begin at a barrier. Each acquires, holds for a millisecond, releases and asks
again at once. Nobody stops before the contest is over, so there is always the same crowd:

    barrier | warm-up | measured span | counted span (under MONITOR) | stop

The holder sleeps. What a lock protects is mostly a wait for something else, and a holder that kept
one of two cores busy would slow down the server and all who wait, as if they shared one machine,
which those who need such a lock do not. The sleep is as long as the kernel makes it, for everybody.

A process notes two moments per grant, in arrays; they are written when it is over, as JSON.
"""

import argparse
import importlib
import json
import multiprocessing
import sys
import time
from array import array
from collections.abc import Sequence
from contextlib import closing
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError
from typing import Any

from .contenders import CONTENDED, Contended
from .contest import HOLD
from .counting import Executed, Received

WARM_UP = 0.5
COUNTED = 0.5
PATIENCE = 60.0
"""Seconds for all to be ready, and for all to be done: only a process that hangs takes so long."""


def main() -> None:
    """Hold the contest, and print when who had the lock."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, required=True)
    parser.add_argument("--span", type=float, required=True)
    parser.add_argument("--lock", required=True)
    parser.add_argument("contender")
    parser.add_argument("urls", nargs="+")
    options = parser.parse_args()
    contender = CONTENDED[options.contender]
    importlib.import_module(contender.module)  # once, and not in each process
    contest = Contest(contender, options.urls, options.lock, options.processes)
    json.dump(contest.run(options.span), sys.stdout)


class Contest:
    """Some processes, and when to begin and to stop."""

    def __init__(self, contender: Contended, urls: Sequence[str], lock: str, count: int) -> None:
        fork = multiprocessing.get_context("fork")
        self._urls = urls
        self._barrier = fork.Barrier(count + 1)
        self._stop = fork.RawValue("b", 0)  # in shared memory: looking at it costs nothing
        pipes = [fork.Pipe(duplex=False) for _ in range(count)]
        self._wanting = [
            (
                fork.Process(
                    target=contend,
                    args=(contender, urls, lock, self._barrier, self._stop, pipe),
                    daemon=True,  # ends with this process, whatever happens
                ),
                result,
            )
            for result, pipe in pipes
        ]

    def run(self, seconds: float) -> dict[str, object]:
        """Hold it, with a measured span of so many seconds."""
        for process, _ in self._wanting:
            process.start()
        with closing(Executed(self._urls)) as executed:
            self._begin()
            time.sleep(WARM_UP)
            before, begin = executed.total(), time.monotonic_ns()
            time.sleep(seconds)
            after, end = executed.total(), time.monotonic_ns()
        received, counted_begin = Received(self._urls), time.monotonic_ns()
        time.sleep(COUNTED)
        count, counted_end = self._count(received)
        return {
            "measured": (begin, end),
            "executed": after - before,
            "counted": (counted_begin, counted_end),
            "received": count,
            "processes": [self._result(*each) for each in self._wanting],
        }

    def _begin(self) -> None:
        try:
            self._barrier.wait(PATIENCE)
        except BrokenBarrierError:
            for process, _ in self._wanting:  # whoever broke it says why before it ends
                process.join(1.0)
            raise

    def _count(self, received: Received) -> tuple[int, int]:
        end = time.monotonic_ns()
        count = received.count()
        self._stop.value = 1
        return count, end

    def _result(self, process: ForkProcess, result: Connection) -> tuple[list[int], list[int]]:
        if result not in wait([result, process.sentinel], PATIENCE):
            raise RuntimeError("a process did not say when it had the lock")
        moments = array("q", result.recv_bytes())
        return list(moments[0::2]), list(moments[1::2])


def contend(
    contender: Contended,
    urls: Sequence[str],
    lock: str,
    barrier: Barrier,
    stop: Any,
    result: Connection,
) -> None:
    """Want the lock until it is over; then write when it was had, in pairs of moments."""
    try:
        acquire = contender.make(urls, lock)
        acquire()()
        moments, now, sleep = array("q"), time.monotonic_ns, time.sleep
        barrier.wait(PATIENCE)
    except BaseException:
        barrier.abort()  # nobody need wait for us
        raise
    while not stop.value:
        release = acquire()
        moments.append(now())
        sleep(HOLD)
        moments.append(now())
        release()
    result.send_bytes(moments.tobytes())


if __name__ == "__main__":
    main()
