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

Renewals are something that happens on the way, and nobody's work: with nothing but renewals to come
time stands still, and a lease that is renewed for ever keeps nobody from waiting it out.
"""

import contextlib
import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from .agenda import Action, Agenda, Entry
from .somebody import Somebody

POLL = 0.005
"""Seconds of real time. Nobody tells us that a thread has ended or that the grace is over."""


def _nothing() -> None:
    pass


def _never() -> bool:
    return False


class Step(Enum):
    """What has become of somebody's wait."""

    AWAKE = "awake"
    """It is over."""
    ACTED = "acted"
    """Something has happened on the way, and may have changed everything."""
    STUCK = "stuck"
    """Somebody else is at work: wait in real time."""


@dataclass(eq=False, slots=True)
class Caller:
    """Whoever runs a flow, or waits for a bell: awake, or asleep until a time."""

    who: Somebody
    blocking: bool
    """It has its thread for itself: nothing else goes on there while it waits."""
    since: float
    """When it began, in virtual time."""
    until: float | None = None
    ring: Callable[[], None] = _nothing
    is_over: Callable[[], bool] = _never
    """True if there is nothing to wait for any more, whatever the time is."""
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
        self._agenda = Agenda()
        self._acting: list[threading.Thread] = []
        """Who makes time pass, or does something from the agenda; which may make time pass too."""
        self._advancing = 0
        """How many of them do so by `advance()`: nobody wakes up before it is over."""
        self._still = 0
        """How many want time to stand still for a moment."""

    def reset(self) -> None:
        """Start anew in a forked child: its parent's threads are not there.

        In the same process it changes nothing: a new client must not wake up those of old ones.
        """
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.mutex = threading.RLock()
            self._callers = {}
            self._acting = []
            self._advancing = 0
            self._still = 0

    # -- what a test does -------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass. What is due on the way happens in order; whoever slept wakes up."""
        with self.mutex:
            end = self.now + seconds
            self._acting.append(threading.current_thread())
            self._advancing += 1
        try:
            while (action := self._next_action(end)) is not None:
                action()
            with self.mutex:
                self.now = max(self.now, end)
        finally:
            with self.mutex:
                self._advancing -= 1
                self._acting.remove(threading.current_thread())
                self.rouse()
                self._wake_the_due()

    def after(self, seconds: float, action: Action) -> None:
        """Let something happen when so much time has passed."""
        with self.mutex:
            self.at(self.now + seconds, action)
            self.nudge()

    # -- what keepers do --------------------------------------------------------------------------

    def at(self, when: float, action: Action) -> Entry:
        """Let something happen at a time; it may be called off."""
        with self.mutex:
            return self._agenda.enter(when, action)

    # -- what drivers do --------------------------------------------------------------------------

    def enter(self, *, blocking: bool) -> Caller:
        """Begin to run a flow."""
        with self.mutex:
            caller = Caller(Somebody.here(), blocking, self.now)
            self._callers[caller] = None
            return caller

    def leave(self, caller: Caller) -> None:
        """End it."""
        with self.mutex:
            self._callers.pop(caller, None)
            self.nudge()

    def fall_asleep(
        self,
        caller: Caller,
        until: float,
        ring: Callable[[], None],
        is_over: Callable[[], bool] = _never,
    ) -> None:
        """Begin to wait, until then or until `is_over`; `ring` is called, on any thread."""
        if threading.current_thread() in self._acting:
            raise RuntimeError("what happens by memory.after(), or in a callback, must not wait")
        with self.mutex:
            caller.until, caller.ring, caller.is_over = until, ring, is_over

    def step(self, caller: Caller) -> Step:
        """Let time pass to the next thing to happen, if it may."""
        action = self._step(may_act=True) if caller.until is not None else None
        if action is not None:
            self._do(action)
            return Step.ACTED
        return Step.AWAKE if caller.until is None else Step.STUCK

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Let nobody who waits make time pass: some have yet to hear of what has happened."""
        with self.mutex:
            self._still += 1
        try:
            yield
        finally:
            with self.mutex:
                self._still -= 1

    def wake(self, caller: Caller) -> None:
        """End a wait, whether or not its time has come."""
        with self.mutex:
            caller.until, caller.ring, caller.is_over = None, _nothing, _never
            caller.seen = time.monotonic()

    def rouse(self) -> None:
        """Wake all those who have nothing to wait for any more; time does not pass."""
        with self.mutex:
            if not self._advancing:
                self._wake(lambda caller: caller.is_over())

    def speaks(self, caller: Caller) -> None:
        """Note that a caller speaks to the nodes."""
        caller.seen = time.monotonic()

    def can_go_on(self, caller: Caller) -> bool:
        """True if a caller sleeps, or has just woken up, on a thread that nobody else blocks.

        What happens by itself, on the thread of somebody who lets time pass, is soon over.
        """
        with self.mutex:
            lately = caller.until is not None or caller.seen > time.monotonic() - self._grace
            others = (each for each in self._callers if each is not caller and each.blocking)
            acting = threading.current_thread() in self._acting
            return lately and (acting or not any(each.keeps(caller.who) for each in others))

    # -- how time passes --------------------------------------------------------------------------

    def nudge(self) -> None:
        """See whether time may pass now, after something has changed."""
        self._step(may_act=False)

    def _step(self, *, may_act: bool) -> Action | None:
        """Pass to the next thing to happen. Returns it if that is an action; it is then due."""
        with self.mutex:
            self.rouse()
            if self._acting or self._still:
                return None
            self._wake_the_due()
            sleepers = [caller for caller in self._callers if caller.until is not None]
            if not sleepers or self._somebody_works(sleepers):
                return None
            first = min(sleepers, key=_end)
            if self._agenda.is_due(_end(first)):
                if may_act:
                    self._acting.append(threading.current_thread())
                    return self._next_action(_end(first)) or _nothing
                first.ring()  # to take the step itself: an action is not for those who only pass
            elif _end(first) < math.inf:
                self.now = max(self.now, _end(first))
                self._wake_the_due()
            return None

    def _next_action(self, end: float) -> Action | None:
        with self.mutex:
            if not self._agenda.is_due(end):
                return None
            entry = self._agenda.take()
            self.now = max(self.now, entry.when)
            return entry.action or _nothing  # called off at this very moment

    def _do(self, action: Action) -> None:
        """Do it without the mutex: an action may use clients, and whatever else it likes."""
        try:
            action()
        finally:
            self._acting.remove(threading.current_thread())

    def _wake_the_due(self) -> None:
        self._wake(lambda caller: _end(caller) <= self.now)

    def _wake(self, may_wake: Callable[[Caller], bool]) -> None:
        for caller in self._callers:
            if caller.until is not None and may_wake(caller):
                ring = caller.ring
                self.wake(caller)
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
