"""Calling users' code on threads of its own: it may be slow, fail, or hang.

There are no locks here. A signal handler or a finalizer may strike in the middle of `call` and call
something itself; all steps are single ones, so that whoever strikes finds everything in order.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol

LINGER = 1.0
"""Seconds that an idle thread waits for more to do before it ends."""

MOST_WAITING = 10_000
"""Records or log lines that wait for a slow hook or handler; beyond that they are dropped."""

Call = Callable[[], object]


class Caller(Protocol):
    """Calls something, somewhere, soon."""

    dropped: int
    """How many calls there was no room for."""

    def reset(self) -> None:
        """Start anew in a forked child."""

    def call(self, what: Call) -> None:
        """Call something. What it raises is reported as any thread's exception is."""


class OneByOne:
    """Calls one after the other, in order, on a daemon thread that is started when there is one."""

    def __init__(self, name: str, room: int) -> None:
        self._name = name
        self._room = room
        self.reset()

    def reset(self) -> None:
        """Start anew in a forked child: what waited was the parent's."""
        self.dropped = 0
        self._waiting: SimpleQueue[Call] = SimpleQueue()
        self._right: deque[None] = deque([None])
        """The right to be the thread: whoever takes it is the only one."""

    def call(self, what: Call) -> None:
        """Call something soon, unless too much is waiting already."""
        if self._waiting.qsize() >= self._room:
            self.dropped += 1
            return
        self._waiting.put(what)
        self._start()

    def _start(self) -> None:
        try:
            self._right.pop()
        except IndexError:
            return  # the thread is there
        try:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        except RuntimeError:  # the system has no thread for us: the next call tries again
            self._right.append(None)

    def _serve(self) -> None:
        with contextlib.suppress(Empty):
            while True:  # until there has been nothing for a while
                run(self._waiting.get(timeout=LINGER))
        self._right.append(None)
        if not self._waiting.empty():  # it came while the right was still ours
            self._start()


class SideBySide:
    """Calls everything at once, on a daemon thread each: what is slow keeps nobody waiting."""

    dropped = 0

    def __init__(self, name: str) -> None:
        self._name = name
        self.reset()

    def reset(self) -> None:
        """Start anew in a forked child: what waited was the parent's."""
        self._waiting: SimpleQueue[Call] = SimpleQueue()

    def call(self, what: Call) -> None:
        """Call something now."""
        self._waiting.put(what)
        with contextlib.suppress(RuntimeError):  # no more threads: those that are there see to it
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(Empty):
            while True:  # until nothing waits
                run(self._waiting.get_nowait())


def run(what: Call) -> None:
    """Call something, and report what it raises."""
    try:
        what()
    except BaseException as error:  # noqa: BLE001  # reported, as a thread's own would be
        report(error)


def report(error: BaseException) -> None:
    """Report an exception that nobody can catch, as threads report theirs."""
    arguments = (type(error), error, error.__traceback__, threading.current_thread())
    with contextlib.suppress(BaseException):  # a hook that fails itself: there is nobody to tell
        threading.excepthook(threading.ExceptHookArgs(arguments))
