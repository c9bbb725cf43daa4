"""Wait: a place in every node's queue, and a call when it is our turn.

Every node keeps a queue, sorted by stamp. Whoever releases the lock reserves it, on every node, for
the first in that node's queue, for a short *claim*, and calls it. A waiter that a quorum has called
asks for the lock as anybody does, and holds it from *that* round on: a call proves nothing.

Laws, kept by what the numbers are cited at:

- **Q1** First come, first served: once a stamp is in the queue of a quorum it is *settled*. Nobody
  that asks after that is granted the lock before its waiter leaves. Nodes take a stamp only above
  all that they took before, so a later one is behind it in a quorum of queues, and nodes vote for
  their first only. A settled stamp is never given up while its waiter waits; it may be put in below
  others, where it is missing.
- **Q2** A token names one attempt. If a node may have granted one that is not to be, the waiter
  goes on under another, and takes that place in line before it gives the old one back: so it is
  not passed over. No late word about the old one can then harm the new one.
- **Q3** Nobody waits for ever: a waiter asks again before it counts as dead, when the holder's time
  is up if it is first, and a claim later if it is second. So calls may be lost, holders and waiters
  may die, nodes may forget, and the next one is served.
"""

from math import inf
from typing import TypeGuard

from .effects import Ask, Flow, Sleep, Source, Tell
from .guard import Guard
from .outcomes import Acquired, Miss, Missed
from .place import Hearing, Place
from .request import request
from .retry import pause, pause_for
from .tally import Tally
from .terms import Terms
from .votes import Answer, Condition, Verdict, Vote

OUTAGE_PATIENCE = 30.0
"""Waiting for ever means for a holder. Nodes that stay away this long are an error."""

HEARTBEAT = 1.0
"""Seconds after which a waiter asks again, whatever happens. Nodes forget it after three."""

JITTER = 0.3
"""The part of a heartbeat that is left to chance, so that those who came together do not ask so."""

SILENCE = 5.0
"""Seconds for which a node that did not answer is not waited for by who wants all answers."""

MOST_STAMPS = 6
"""How many stamps are tried in a row by a waiter that is outranked."""

FIRST_AHEAD = 0.001
"""Seconds by which the first of them is ahead of all others, at the most; it doubles each time."""

POLL = 0.15
"""Seconds within which somebody asks again who cannot be called. For such a waiter a lock is
reserved for twice as long, at the least: see `wire/lua/queue.lua`."""

PATIENCE_SHARE = 0.5
"""The part of a claim for which the first calls wait for the others."""


_UNHEARD = (Condition.BROKEN, Condition.STEPPED, Condition.PROTOCOL)
"""Failures of nodes that may have done what they were asked."""


class Waiting:
    """How long somebody waits, and what for."""

    def __init__(self, wait: float | None, started: float, now: float) -> None:
        self.deadline = inf if wait is None else started + wait
        self._wait = wait
        self._started = started
        self._reached = now
        """When a quorum last answered."""
        self.misses = 0
        """How often in a row it did not."""

    def is_over(self, tally: Tally, now: float, guard: Guard) -> bool:
        """True if nothing is to be waited for after such a round: time is up, or it is in vain."""
        if tally.cut_off and not tally.abstained:
            self.misses += 1
        else:
            self._reached, self.misses = now, 0
        gone = self._wait is None and now - self._reached >= OUTAGE_PATIENCE
        return now >= self.deadline or gone or tally.hopeless or bool(guard.disputed_ms)

    def missed(self, tally: Tally, now: float) -> Missed:
        """Say why the lock was not acquired."""
        if tally.cut_off or tally.outbid or tally.verdict is Verdict.WON:  # won, and yet not ours
            why = Miss.UNREACHABLE
        else:
            why = Miss.TIMED_OUT if self._wait != 0 else Miss.BUSY
        return Missed(why, now - self._started, tally)


class Waiter:
    """One waiter: its place in line, and the attempt under which it stands there."""

    def __init__(self, terms: Terms, source: Source) -> None:
        self._terms = terms
        self._source = source
        self._settled = False
        self.mail = source.mail()
        self.stamp = source.stamp()

    @property
    def place(self) -> Place:
        """How it wants to be taken into queues that do not have it."""
        if self._settled:
            return Place.SETTLED  # Q1
        return Place.ABOVE if self._terms.nodes > 1 else Place.LAST

    def ask(self, now: float, deadline: float) -> Flow[tuple[Tally, float]]:
        """Take the place in line, or keep it."""
        terms = self._terms
        silent = self.silent(now)
        tally = Tally(terms.nodes, terms.quorum, thorough=not self._settled, silent=silent)
        command = terms.wait(self.mail.token, self.stamp, self.place)
        now = yield Ask(command, tally, min(now + terms.patience, deadline))
        for node, vote in enumerate(tally.votes):
            if vote is not None and vote.answer is Answer.RESERVED:
                self.mail.put(node, now, (vote.remaining_ms or 0) / 1000)
        self.note(tally, now)
        return tally, now

    def silent(self, now: float) -> list[int]:
        """Return the nodes that need not be waited for."""
        return [node for node, until in self._source.silent.items() if now < until]

    def note(self, tally: Tally, now: float) -> None:
        """Take note of how many nodes have the stamp in their queues, and who does not answer.

        A hung node is waited for once in a while, and otherwise not, until it answers.
        """
        if tally.thorough and tally.verdict is not Verdict.WON:
            until = now + SILENCE
            known = self._source.silent
            self._source.silent = {node: known.get(node, until) for node in tally.unanswered}
        taken = [vote.mark for vote in tally.votes if _stands_in_line(vote)]
        if len(taken) >= tally.quorum and not self._settled:
            self._settled = True
            self.stamp = max(taken)  # they are all the same, but a node that is alone may raise it

    def is_outranked(self, tally: Tally) -> bool:
        """True if it needs another stamp to be taken into the queues of a quorum."""
        return not self._settled and tally.count(Answer.OUTRANKED) > 0

    def has_a_stray_vote(self, tally: Tally) -> bool:
        """True if too few nodes have it for us, and one for longer than they reserve: that was
        granted to a request whose answer came too late, and is in everybody's way.
        """
        longest = self._terms.claim_ms + HEARTBEAT * 1000
        return tally.verdict is not Verdict.WON and any(
            _is(vote, Answer.RESERVED) and (vote.remaining_ms or 0) > longest
            for vote in tally.votes
        )

    @property
    def is_misnamed(self) -> bool:
        """True if its token says that it can be called, and it cannot, or the other way round.

        It would be passed over, or have to ask again and again.
        """
        return self.mail.polls is (self._source.hearing is Hearing.CALLED)

    def start_anew(
        self, tally: Tally, now: float, deadline: float, *, ahead: float = 0.0
    ) -> Flow[tuple[Tally, float]]:
        """Take the place in line under another token, and only then leave the old one (Q2).

        If the stamp is not settled, take a higher one, `ahead` of all by so many seconds.
        """
        old, source = self.mail, self._source
        try:
            self.mail = source.mail()
            source.forget(old)
            if not self._settled:
                marks = [vote.mark for vote in tally.votes if _is(vote, Answer.OUTRANKED)]
                self.stamp = max([source.stamp(), *(mark + 1 for mark in marks)]) + int(ahead * 1e6)
            tally, now = yield from self.ask(now, deadline)
        except GeneratorExit:  # the driver itself is gone: there is nobody left to tell
            raise
        except BaseException:
            yield Tell(self._terms.release(old.token))  # L7
            raise
        now = yield Tell(self._terms.release(old.token))
        return tally, now

    def leave(self) -> Flow[None]:
        """Stand in line no longer, and have nothing that was granted meanwhile."""
        yield Tell(self._terms.release(self.mail.token))  # L5, L7

    def rest(self, tally: Tally, waiting: Waiting, now: float, took: float) -> float:
        """Return until when to wait for a call (Q3)."""
        source, remaining = self._source, tally.remaining()
        if self.is_outranked(tally):
            delay = 2 * took * source.chance()
        elif tally.cut_off and tally.abstained and remaining:
            delay = pause_for(remaining, source.chance())
        elif tally.cut_off:
            delay = pause(source.chance(), took, waiting.misses)
            if self._settled:  # its place is safe: nodes that are swamped need less of it
                delay = max(delay, HEARTBEAT * source.chance())
        elif source.hearing is Hearing.CALLED and not self.mail.polls:
            heartbeat = HEARTBEAT * (1 - JITTER * source.chance())
            delay = max(min(_next_check(tally), heartbeat), took)
        else:
            delay = POLL * (1 + source.chance()) / 2
        return min(now + delay, waiting.deadline)

    def listen(self, until: float, now: float) -> Flow[tuple[bool, float]]:
        """Wait until then; True as soon as a quorum of nodes has called us.

        Fewer new calls are followed by others, or by a question where the others are. Who is woken
        without a call may have missed one, and asks, too.
        """
        known, heard, last = self.mail.calls(now), -1, inf
        while (calls := self.mail.calls(now)) < self._terms.quorum:  # until then
            if calls > known:
                last = min(last, now + self._terms.claim * PATIENCE_SHARE)
            end = min(until, last)
            if now >= end or calls == heard:
                return False, now
            heard = calls
            now = yield Sleep(end, self.mail)
        return True, now


def wait_in_line(
    terms: Terms, source: Source, waiting: Waiting, now: float
) -> Flow[Acquired | Missed]:
    """Wait until the lock is ours, or the wait is over; see `acquire`."""
    waiter = Waiter(terms, source)
    place, stamp = waiter.place, waiter.stamp
    called = True  # the first time the lock itself is asked for: it may be free
    deadline = waiting.deadline
    try:
        while True:  # until the deadline, or OUTAGE_PATIENCE after the nodes went away
            asked, requested = now, called or now >= deadline
            if requested:
                waiter.mail.clear()
                token = waiter.mail.token
                result, now = yield from request(
                    terms, token, stamp, now, place=place, silent=waiter.silent(now)
                )
                if isinstance(result, Acquired):
                    return result
                tally = result
                waiter.note(tally, now)
            else:
                tally, now = yield from waiter.ask(now, deadline)
            if waiting.is_over(tally, now, terms.guard) and (requested or now < deadline):
                yield from waiter.leave()
                return waiting.missed(tally, now)
            granted = requested and _is_granted_in_part(tally)
            if requested and not granted and (place is Place.KEPT or _is_unheard(tally)):
                tally, now = yield from waiter.ask(now, deadline)
            if waiter.is_outranked(tally):
                tally, now = yield from _overtake(waiter, source, tally, now, deadline)
            elif granted or waiter.has_a_stray_vote(tally) or waiter.is_misnamed:
                tally, now = yield from waiter.start_anew(tally, now, deadline)
            until = waiter.rest(tally, waiting, now, now - asked)
            called, now = yield from waiter.listen(until, now)
            place, stamp = Place.KEPT, source.stamp()
    except GeneratorExit:  # the driver itself is gone: there is nobody left to tell
        raise
    except BaseException:
        yield from waiter.leave()
        raise
    finally:
        source.forget(waiter.mail)


def _overtake(
    waiter: Waiter, source: Source, tally: Tally, now: float, deadline: float
) -> Flow[tuple[Tally, float]]:
    """Take a stamp that a quorum takes, while others do the same.

    Whoever comes at the same moment has about the same stamp, and nodes hear of them in different
    order. So it gets ahead of them by chance, and by more each time.
    """
    for attempt in range(MOST_STAMPS):
        ahead = source.chance() * FIRST_AHEAD * 2**attempt
        tally, now = yield from waiter.start_anew(tally, now, deadline, ahead=ahead)
        if not waiter.is_outranked(tally) or now >= deadline:
            break
    return tally, now


def _stands_in_line(vote: Vote | None) -> TypeGuard[Vote]:
    return _is(vote, Answer.QUEUED) or _is(vote, Answer.RESERVED)


def _is(vote: Vote | None, answer: Answer) -> TypeGuard[Vote]:
    return vote is not None and vote.answer is answer


def _is_granted_in_part(tally: Tally) -> bool:
    """True if a node has granted a request that came to nothing."""
    return tally.late_fence or tally.count(Answer.GRANTED) > 0


def _is_unheard(tally: Tally) -> bool:
    """True if a node may have done what it was asked, and could not tell us."""
    return any(
        node not in tally.silent if vote is None else _may_have_done_it(vote)
        for node, vote in enumerate(tally.votes)
    )


def _may_have_done_it(vote: Vote) -> bool:
    return vote.failure is not None and vote.failure.condition in _UNHEARD


def _next_check(tally: Tally) -> float:
    """Return in how many seconds enough nodes may be free, if those that have it do not say so."""
    missing = tally.quorum - tally.count(Answer.RESERVED)
    checks = sorted(
        inf if vote.remaining_ms is None else vote.remaining_ms / 1000
        for vote in tally.votes
        if _is(vote, Answer.QUEUED)
    )
    return checks[missing - 1] if 0 < missing <= len(checks) else HEARTBEAT
