"""A bounded number of lines, shared by threads.

A thread has a line for as long as a round takes, and returns it before it sleeps. Taking a free
line needs no lock: appending to and popping from a deque are atomic. The last one returned is the
first one taken, so a quiet client uses one connection per node. Threads that must wait are served
in the order in which they came, before any that comes later.

**Debts.** A release must go behind an unanswered request of its own lease. That request may have
been sent on a line which another thread uses now; then the release is *also* left with that line
as a debt, to be told by whoever returns it.

**Interruptions.** An exception may strike between any two steps (Ctrl-C). At the worst a line is
lost by it: then it is nobody's, closes itself, and another one may be made. No line is ever in
two hands.
"""

import contextlib
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable

from ...core.effects import Command, NodeCommand, Verb
from ...errors import ClientClosed
from .. import clock
from .bell import Bell
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
        self._making = threading.RLock()  # a signal handler may use the client, too
        self._waiting: deque[weakref.ref[Bell]] = deque()
        """Whom to ring for a line, in order. Weak, as above."""
        self.stragglers: OrderedDict[str, tuple[weakref.ref[Line], ...]] = OrderedDict()
        """The lines on which requests of a lease were left unanswered, by its token."""
        self.closed = False

    def take(self) -> Line:
        """Return a line for this thread alone, waiting for one if all are in use.

        Raises `ClientClosed` if there are no more lines to be had.
        """
        if not self._waiting and not self.closed:  # who came first is served first
            try:
                return self._free.pop()
            except IndexError:
                pass
        return self._wait()

    def _wait(self) -> Line:
        waiter = Bell()
        me = weakref.ref(waiter)
        self._waiting.append(me)  # first: whoever returns a line after we looked sees us
        rung = True
        try:
            while not self.closed:  # rounds are short, so lines come back
                if not rung or self._first() is waiter:  # not rung: something was lost, so look
                    line = self._find()
                    if line is not None:
                        return line
                rung = waiter.wait(LOOK_AGAIN)
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(me)
            self._ring()  # there may be a line for the next one as well
        raise ClientClosed("the client is closed")

    def _first(self) -> Bell | None:
        """Return who has waited longest, striking out those that are lost."""
        while True:  # until somebody is there, or nobody is left
            try:
                known = self._waiting[0]
            except IndexError:
                return None
            waiter = known()
            if waiter is not None:
                return waiter
            with contextlib.suppress(ValueError):
                self._waiting.remove(known)

    def _find(self) -> Line | None:
        """Return a free line or a new one, None if all are in use."""
        try:
            return self._free.pop()
        except IndexError:
            pass
        with self._making:
            if len(self._all) >= self._most:
                return None
            line = self._make()
            self._all.add(line)
            return line

    def _ring(self) -> None:
        """Wake whoever has waited longest, to look for a line."""
        waiter = self._first()
        if waiter is not None:
            waiter.ring()

    def give_back(self, line: Line) -> None:
        """Return a line, after telling what it owes."""
        if line.consistent and not line.debts:  # the usual case
            self._free.append(line)
            if not (line.debts or self.closed or self._waiting):
                return
            try:
                self._free.remove(line)
            except ValueError:
                return  # somebody has taken it, and will see to all that
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
            self._ring()

    # -- debts ------------------------------------------------------------------------------------

    def note(self, command: Command | NodeCommand, line: Line) -> None:
        """Remember the line if it owes an answer to this, and a release must go behind it."""
        if not line.unanswered(command):
            return
        token = command.token
        known = self.stragglers.get(token, ())
        if not any(other() is line for other in known):
            self.stragglers[token] = (*known, weakref.ref(line))
        if len(self.stragglers) > MOST_STRAGGLERS:
            self.stragglers.popitem(last=False)

    def follow(self, release: Command | NodeCommand, line: Line) -> None:
        """After something was said on `line`: see that a release follows its lease's requests.

        After, and not before: a debt paid first would make the release itself find nothing, and
        look like a loss.
        """
        if not isinstance(release, Command) or release.verb is not Verb.RELEASE:
            return
        for known in self.stragglers.pop(release.token, ()):
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
        self._ring()  # who then leaves rings for the next one

    def _close_free(self) -> None:
        while True:  # until there are none
            try:
                line = self._free.pop()
            except IndexError:
                return
            line.close()
