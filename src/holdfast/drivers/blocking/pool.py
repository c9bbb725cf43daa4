"""A bounded number of lines, shared by threads.

A thread has a line for as long as a round takes, and returns it before it sleeps. Taking a free
line needs no lock: appending to and popping from a deque are atomic. The last one returned is the
first one taken, so a quiet client uses one connection per node.

**Debts.** A release must go behind an unanswered request of its own lease. That request may have
been sent on a line which another thread uses now; then the release is *also* left with that line
as a debt, to be told by whoever returns it.
"""

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable

from ...core.effects import Command
from .. import clock
from .line import Line

MOST_STRAGGLERS = 10_000
"""How many leases' unanswered requests are remembered; the oldest are left to lapse."""


class Pool:
    """Lines, free and in use."""

    def __init__(self, make: Callable[[], Line], most: int) -> None:
        self._make = make
        self._most = most
        self._free: deque[Line] = deque()
        # Weak: a line lost to an exception at the wrong moment must not count for ever.
        self._all: weakref.WeakSet[Line] = weakref.WeakSet()
        self._waiting = 0
        self._returned = threading.Condition(threading.Lock())
        self._stragglers: OrderedDict[str, Line] = OrderedDict()
        self.closed = False

    def take(self) -> Line:
        """Return a line for this thread alone, waiting for one if all are in use."""
        try:
            return self._free.pop()
        except IndexError:
            return self._wait()

    def _wait(self) -> Line:
        with self._returned:
            self._waiting += 1
            try:
                while True:  # rounds are short, so lines come back
                    try:
                        return self._free.pop()
                    except IndexError:
                        pass
                    if len(self._all) < self._most:
                        line = self._make()
                        self._all.add(line)
                        return line
                    self._returned.wait()
            finally:
                self._waiting -= 1

    def give_back(self, line: Line) -> None:
        """Return a line, after telling what it owes."""
        if not line.consistent:
            line.close()
        if self.closed:
            line.close()
            return
        self._pay(line)
        self._free.append(line)
        if line.debts:  # left between paying and returning
            self._collect(line)
        if self._waiting:
            with self._returned:
                self._returned.notify()

    # -- debts ------------------------------------------------------------------------------------

    def note(self, token: str, line: Line) -> None:
        """Remember that a request of this lease is still unanswered on this line."""
        self._stragglers[token] = line
        if len(self._stragglers) > MOST_STRAGGLERS:
            self._stragglers.popitem(last=False)

    def follow(self, release: Command, line: Line) -> None:
        """Before a release is said on `line`: see that it follows its lease's requests as well."""
        if not self._stragglers:
            return
        other = self._stragglers.pop(release.token, None)
        if other is not None and other is not line:
            other.debts.append(release)
            self._collect(other)

    def _collect(self, line: Line) -> None:
        """Make a line pay its debts if it is free; if it is not, whoever has it will."""
        try:
            self._free.remove(line)
        except ValueError:
            return
        self.give_back(line)

    def _pay(self, line: Line) -> None:
        while line.debts:
            line.tell(line.debts.popleft(), clock.now())

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Close free lines now, and those in use when they come back."""
        self.closed = True
        while self._free:
            self._free.pop().close()
