"""Virtual time: nothing but these rules makes it pass.

1. `advance()` makes it pass, for everybody.
2. A round takes no time at all.
3. Somebody who waits lets it pass, at once, to where the first of all waits ends; unless somebody
   else is *at work*. What was to happen on the way happens on the way.
4. At work is whoever has a lease or is in the midst of a round, can go on while the others wait
   (`Somebody.is_kept_by`), and has spoken to the nodes within the last `grace` seconds of real
   time. While anybody is, those who wait do so in real time, and virtual time stands still.

So a test that has one thread and one task never waits. Where there are more, no lease ends because
somebody else was impatient. Who has a lease and waits outside of holdfast for somebody who wants it
(joins its thread, awaits its task) looks as if at work; that costs `grace` once, and then rule 3
applies.
"""

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .somebody import Somebody

POLL = 0.005
"""Seconds of real time. Nobody tells us that a thread has ended or that the grace is over."""

Action = Callable[[], object]


def _nothing() -> None:
    pass


@dataclass(eq=False, slots=True)
class Caller:
    """A flow that is being run: awake, or asleep until a time."""

    who: Somebody
    blocking: bool
    """It has its thread for itself: nothing else goes on there while it waits."""
    until: float | None = None
    ring: Callable[[], None] = _nothing
    due: bool = False
    """It has slept, and has not spoken to the nodes since."""
    seen: float = field(default_factory=time.monotonic)

    def keeps(self, who: Somebody) -> bool:
        """True if somebody cannot go on while this one waits."""
        return who.is_kept_by(self.who, blocking=self.blocking)


class VirtualTime:
    """The time of one universe. `mutex` guards it and all that it is the time of."""

    def __init__(self, grace: float, holders: Callable[[], Iterable[tuple[Somebody, float]]]):
        self.now = 0.0
        self.mutex = threading.RLock()
        self._pid = os.getpid()
        self._grace = grace
        self._holders = holders
        """Who has a lease, and when they last spoke of it, in real time."""
        self._callers: dict[Caller, None] = {}
        self._agenda: list[tuple[float, int, Action]] = []
        self._order = itertools.count()
        self._acting: list[threading.Thread] = []
        """Who does something from the agenda; an action may make time pass by itself."""

    def reset(self) -> None:
        """Start anew in a forked child: its parent's threads are not there.

        In the same process it changes nothing: a new client must not wake up those of old ones.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.mutex = threading.RLock()
            self._callers = {}
            self._acting = []

    # -- what a test does -------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass. What is due on the way happens in order; whoever slept wakes up."""
        with self.mutex:
            end = self.now + seconds
        while (action := self._next_action(end)) is not None:
            self._do(action)
        with self.mutex:
            self.now = max(self.now, end)
            self._wake_the_due()

    def after(self, seconds: float, action: Action) -> None:
        """Let something happen when so much time has passed."""
        with self.mutex:
            heapq.heappush(self._agenda, (self.now + seconds, next(self._order), action))
            self.nudge()

    # -- what drivers do --------------------------------------------------------------------------

    def enter(self, *, blocking: bool) -> Caller:
        """Begin to run a flow."""
        with self.mutex:
            caller = Caller(Somebody.here(), blocking)
            self._callers[caller] = None
            return caller

    def leave(self, caller: Caller) -> None:
        """End it."""
        with self.mutex:
            self._callers.pop(caller, None)
            self.nudge()

    def fall_asleep(self, caller: Caller, until: float, ring: Callable[[], None]) -> None:
        """Begin to wait; `ring` is called when it is over, on any thread."""
        if threading.current_thread() in self._acting:
            raise RuntimeError("what happens by memory.after() must not wait")
        with self.mutex:
            caller.until, caller.ring = until, ring

    def sleeps(self, caller: Caller) -> bool:
        """Let time pass if it may; False as soon as the caller need not wait any longer."""
        while caller.until is not None:  # every turn takes one from the agenda, or is the last
            action = self._step(may_act=True)
            if action is None:
                break
            self._do(action)
        return caller.until is not None

    def wake(self, caller: Caller) -> None:
        """End a wait, whether or not its time has come."""
        with self.mutex:
            caller.until, caller.ring = None, _nothing
            caller.seen = time.monotonic()

    def speaks(self, caller: Caller) -> None:
        """Note that a caller speaks to the nodes."""
        caller.seen, caller.due = time.monotonic(), False

    def others_due(self, caller: Caller) -> bool:
        """True if somebody who has slept has yet to speak: after a wait one goes first."""
        with self.mutex:
            return any(other.due and other is not caller for other in self._callers)

    # -- how time passes --------------------------------------------------------------------------

    def nudge(self) -> None:
        """See whether time may pass now, after something has changed."""
        self._step(may_act=False)

    def _step(self, *, may_act: bool) -> Action | None:
        """Pass to the next thing to happen. Returns it if that is an action; it is then due."""
        with self.mutex:
            sleepers = [caller for caller in self._callers if caller.until is not None]
            if not sleepers or self._acting or self._somebody_works(sleepers):
                return None
            first = min(sleepers, key=_end)
            if self._agenda and self._agenda[0][0] <= _end(first):
                if may_act:
                    return self._next_action(_end(first))
                first.ring()  # to take the step itself: an action is not for those who only pass
                return None
            self.now = max(self.now, _end(first))
            self._wake_the_due()
            return None

    def _next_action(self, end: float) -> Action | None:
        with self.mutex:
            if not self._agenda or self._agenda[0][0] > end:
                return None
            when, _, action = heapq.heappop(self._agenda)
            self.now = max(self.now, when)
            self._acting.append(threading.current_thread())
            return action

    def _do(self, action: Action) -> None:
        """Do it without the mutex: an action may use clients, and whatever else it likes."""
        try:
            action()
        finally:
            self._acting.remove(threading.current_thread())

    def _wake_the_due(self) -> None:
        for caller in self._callers:
            if caller.until is not None and caller.until <= self.now:
                ring = caller.ring
                self.wake(caller)
                caller.due = True
                ring()

    def _somebody_works(self, sleepers: list[Caller]) -> bool:
        lately = time.monotonic() - self._grace
        speaking = ((each.who, each.seen) for each in self._callers if each.until is None)
        return any(
            seen > lately and who.alive and not any(sleeper.keeps(who) for sleeper in sleepers)
            for who, seen in itertools.chain(speaking, self._holders())
        )


def _end(caller: Caller) -> float:
    assert caller.until is not None
    return caller.until
