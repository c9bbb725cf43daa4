"""A bounded number of lines, shared by threads.

A thread has a line for as long as a round takes, and returns it before it sleeps. Taking a free
line needs no lock: appending to and popping from a deque are atomic. The last one returned is the
first one taken, so a quiet client uses one connection per node.

**Debts.** A release must go behind an unanswered request of its own lease. That request may have
been sent on a line which another thread uses now; then the release is *also* left with that line
as a debt, to be told by whoever returns it.

**Interruptions.** An exception may strike between any two steps (Ctrl-C). At the worst a line is
lost by it: then it is nobody's, closes itself, and another one may be made. No line is ever in
two hands.
"""

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable

from ...core.effects import Command
from ...errors import ClientClosed
from .. import clock
from .line import Line

MOST_STRAGGLERS = 10_000
"""How many leases' unanswered requests are remembered; the oldest are left to lapse."""

LOOK_AGAIN = 0.5
"""Seconds. Lines that come back wake a waiter; one that was lost to an exception cannot."""


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
        self._stragglers: OrderedDict[str, tuple[weakref.ref[Line], ...]] = OrderedDict()
        self.closed = False

    def take(self) -> Line:
        """Return a line for this thread alone, waiting for one if all are in use.

        Raises `ClientClosed` if there are no more lines to be had.
        """
        if not self.closed:
            try:
                return self._free.pop()
            except IndexError:
                pass
        return self._wait()

    def _wait(self) -> Line:
        with self._returned:
            self._waiting += 1
            try:
                while not self.closed:  # rounds are short, so lines come back
                    try:
                        return self._free.pop()
                    except IndexError:
                        pass
                    if len(self._all) < self._most:
                        line = self._make()
                        self._all.add(line)
                        return line
                    self._returned.wait(LOOK_AGAIN)
            finally:
                self._waiting -= 1
        raise ClientClosed("the client is closed")

    def give_back(self, line: Line) -> None:
        """Return a line, after telling what it owes."""
        try:
            if not line.consistent:
                line.close()
            self._pay(line)
            self._free.append(line)
            if line.debts:  # left between paying and returning
                self._collect(line)
        except BaseException:
            if line not in self._free:
                self._all.discard(line)
            raise
        if self.closed:
            self._close_free()
        if self._waiting:
            with self._returned:
                self._returned.notify()

    # -- debts ------------------------------------------------------------------------------------

    def note(self, token: str, line: Line) -> None:
        """Remember that a request of this lease is still unanswered on this line."""
        known = self._stragglers.get(token, ())
        if not any(other() is line for other in known):
            self._stragglers[token] = (*known, weakref.ref(line))
        if len(self._stragglers) > MOST_STRAGGLERS:
            self._stragglers.popitem(last=False)

    def follow(self, release: Command, line: Line) -> None:
        """After a release was said on `line`: see that it follows its lease's requests as well.

        After, and not before: a debt paid first would make the release itself find nothing, and
        look like a loss.
        """
        if not self._stragglers:
            return
        for known in self._stragglers.pop(release.token, ()):
            other = known()
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
        """Close free lines now, and those in use when they come back. Nobody waits any longer."""
        self.closed = True
        self._close_free()
        with self._returned:
            self._returned.notify_all()

    def _close_free(self) -> None:
        while True:  # until there are none
            try:
                line = self._free.pop()
            except IndexError:
                return
            line.close()
