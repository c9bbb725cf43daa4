"""The verdict: evidence in, breaches out. Pure, so that it can be tested with forged evidence.

What must hold:

V1. Every increment that was reported as done is in the counter exactly once: each number from 1 to
    the counter's was written by exactly one of them, or by one whose fate is in doubt.
V2. No two workers were inside together: by their own times, and by the kernel's witness.
V3. Life went on: a node and a holder were killed, somebody acquired the lock after each, a node
    that was started again votes again, and all other workers ended in good order.
V4. Fences rose: each stay has a higher one than the stay before it, in the order of entering. A
    worker looks at the clock first and then sees that its lease still holds, so that is also the
    order of the leases.
V5. Nobody was overtaken: no hand-over went to a worker while another was seen ahead of it in line,
    as `order.py` explains; and nobody gave up.

A worker whose lease ended while it was inside (a machine may pause it that long) was told so. From
then on it is not protected and the next one may enter: that is named, and is no breach of V2.
"""

from collections import Counter as Multiset
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

from .evidence import Evidence, Fate, Increment
from .order import HandOver, hand_overs
from .words import count


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the lock held, and what that is based on."""

    breaches: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """What is to be known besides, as label and text."""

    @property
    def held(self) -> bool:
        """True if nothing that must hold was broken."""
        return not self.breaches

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        if self.held:
            return (
                "The lock held: every reported increment is in the counter exactly once,"
                " and no two workers were ever inside together."
            )
        return f"The lock did not hold: {count(len(self.breaches), 'breach', 'breaches')}."


def judge(evidence: Evidence) -> Verdict:
    """Judge the evidence."""
    order = hand_overs(evidence)
    breaches = chain(
        _miscounts(evidence),
        _meetings(evidence),
        _standstills(evidence),
        _falls(evidence),
        _overtakings(evidence, order),
    )
    return Verdict(tuple(breaches), tuple(_facts(evidence, order)))


def _miscounts(evidence: Evidence) -> Iterator[str]:
    """V1: follow the counter's numbers, one by one."""
    done = evidence.of(Fate.DONE)
    writers: dict[int | None, list[int]] = {}
    for increment in done:
        writers.setdefault(increment.wrote, []).append(increment.worker)
        if increment.wrote != increment.target:
            yield f"worker {increment.worker} read {increment.read} and wrote {increment.wrote}"
        elif increment.wrote > evidence.counter:
            yield (
                f"lost update: worker {increment.worker} reported {increment.wrote},"
                f" the counter is at {evidence.counter}"
            )
    for number, workers in writers.items():
        if len(workers) > 1:
            yield f"lost update: {_workers(workers)} each wrote {number}"
    accounted = set(writers) | {each.target for each in _landed(evidence)}
    for number in range(1, evidence.counter + 1):
        if number not in accounted:
            yield f"counted twice: nobody reported {number}, and the counter went past it"


def _landed(evidence: Evidence) -> list[Increment]:
    """Return the increments in doubt that are in the counter.

    Whoever came next read either what it had read itself, or one more. In the first case there is
    a reported increment that wrote the same number.
    """
    reported = {increment.wrote for increment in evidence.of(Fate.DONE)}
    return [
        increment
        for increment in evidence.of(Fate.KILLED, Fate.LOST, Fate.OPEN)
        if increment.target <= evidence.counter
        and increment.target not in reported
        # one that noticed the loss in time has written nothing
        and not (increment.fate is Fate.LOST and increment.wrote is None)
    ]


def _meetings(evidence: Evidence) -> Iterator[str]:
    """V2: compare the times inside, and hear the witness."""
    last: Increment | None = None
    for increment in sorted(evidence.increments, key=lambda each: each.entered):
        if last is not None and increment.entered < last.relied_until:
            together_ms = (last.relied_until - increment.entered) * 1000
            yield (
                f"together inside: worker {increment.worker} came"
                f" {together_ms:.1f} ms before worker {last.worker} had left"
            )
        if last is None or increment.relied_until > last.relied_until:
            last = increment
    for intrusion in evidence.intrusions:
        if not any(_overstayed(each, intrusion.at) for each in evidence.increments):
            yield f"together inside: worker {intrusion.worker} was not alone, says the kernel"


def _overstayed(increment: Increment, moment: float) -> bool:
    """True if a worker was inside then although its lease had ended, as it was told later."""
    gone = increment.left is not None and increment.left <= moment
    return increment.fate is Fate.LOST and increment.until <= moment and not gone


def _standstills(evidence: Evidence) -> Iterator[str]:
    """V3: see that somebody entered after each blow."""
    entered = max((increment.entered for increment in evidence.increments), default=float("-inf"))
    blows = [(f"node {each.node}", each.at) for each in evidence.nodes_killed]
    blows += [(f"worker {each.worker}", each.at) for each in evidence.workers_killed]
    for name, at in blows:
        if entered <= at:
            yield f"standstill: nobody acquired the lock after {name} was killed"
    voting = {each.node for each in evidence.nodes_voting}
    for restarted in evidence.nodes_restarted:
        if restarted.node not in voting:
            yield f"standstill: node {restarted.node} was restarted and did not vote again"
    if not evidence.nodes_killed:
        yield "nothing shown: no node was killed"
    if not evidence.of(Fate.KILLED):
        yield "nothing shown: no holder was killed"
    for increment in evidence.of(Fate.OPEN):
        yield f"worker {increment.worker} went in and was never seen to leave"
    for each in evidence.deserters:
        yield f"worker {each.worker} ended by itself: {each.last_words or f'code {each.code}'}"


def _falls(evidence: Evidence) -> Iterator[str]:
    """V4: compare each fence with the one before it."""
    for (earlier, last), (worker, fence) in pairwise(_fences(evidence)):
        if fence <= last:
            yield (
                f"fence did not rise: worker {worker} came with {fence},"
                f" after worker {earlier} with {last}"
            )


def _fences(evidence: Evidence) -> list[tuple[int, int]]:
    """Return each stay's worker and fence, in the order of entering. Without a lock, nothing."""
    stays = sorted(evidence.increments, key=lambda each: each.entered)
    return [(each.worker, each.fence) for each in stays if each.fence is not None]


def _overtakings(evidence: Evidence, order: list[HandOver]) -> Iterator[str]:
    """V5: see who got in although somebody else was ahead of it."""
    for each in order:
        for overtaken in each.overtaken:
            yield f"overtaken: worker {each.worker} got in, and worker {overtaken} was ahead of it"
    for given_up in evidence.given_up:
        yield f"worker {given_up.worker} waited in vain"
    if _fences(evidence) and not any(look.places for look in evidence.looks):
        yield "nothing shown: nobody was seen in line"


def _facts(evidence: Evidence, order: list[HandOver]) -> Iterator[tuple[str, str]]:
    done, landed = evidence.of(Fate.DONE), _landed(evidence)
    share = Multiset(increment.worker for increment in done)
    unreported = f" + {len(landed)} unreported" if landed else ""
    adds_up = "=" if evidence.counter == len(done) + len(landed) else "and not"
    yield "counter", f"{evidence.counter} {adds_up} {len(done)} reported{unreported}"
    yield "reported", f"{count(len(done), 'increment')} by {count(len(share), 'worker')}"
    for node in evidence.nodes_killed:
        yield "killed node", f"node {node.node}, and the others went on as a quorum"
    for increment in evidence.of(Fate.KILLED):
        yield "killed holder", _account(increment, is_in=increment in landed)
    meetings = sum(1 for _ in _meetings(evidence))
    often = count(meetings, "time") if meetings else "never"
    stays = count(len(evidence.increments), "stay")
    yield "together inside", f"{often} in {stays}, by clock and by kernel"
    if fences := _fences(evidence):
        yield "fences", _course(steps=len(fences) - 1, falls=sum(1 for _ in _falls(evidence)))
    if evidence.looks:
        yield "in line", _fairness(order)
        yield "stays", _shares(evidence)
        yield "longest wait", _longest_wait(evidence)
    for increment in evidence.of(Fate.LOST, Fate.OPEN):
        yield increment.fate.value, _account(increment, is_in=increment in landed)
    if not evidence.of(Fate.LOST):
        yield "leases lost", "none"


def _course(*, steps: int, falls: int) -> str:
    """Say how fences went, over so many steps from one stay to the next."""
    if falls:
        return f"did not rise {count(falls, 'time')} in {steps}"
    return f"rose with every stay, {count(steps, 'time')} in a row"


def _fairness(order: list[HandOver]) -> str:
    """Say how many hand-overs went to whom they should."""
    wrong = sum(1 for each in order if each.overtaken)
    right = sum(each.is_first for each in order)
    if wrong:
        return f"{count(wrong, 'hand-over')} of {wrong + right} did not go to the longest waiting"
    seen = f"{right} of {count(len(order), 'hand-over')} seen"
    return f"{seen}, each went to the longest waiting" if right else seen


def _shares(evidence: Evidence) -> str:
    """Say how many stays the workers had that were there to the end."""
    killed = {each.worker for each in evidence.workers_killed}
    stays = Multiset(each.worker for each in evidence.increments if each.worker not in killed)
    fewest, most = min(stays.values(), default=0), max(stays.values(), default=0)
    span = f"{fewest} to {most}" if fewest < most else f"{most}"
    return f"{span} for each worker that lived"


def _longest_wait(evidence: Evidence) -> str:
    """Say how long one had to wait at the most, and how long where no dead one was in the way."""
    killed = evidence.of(Fate.KILLED)
    longest = max((each.waited for each in evidence.increments), default=0.0)
    usual = [each.waited for each in evidence.increments if not _outwaited(each, killed)]
    return f"{longest:.2f} s; {max(usual, default=0.0):.2f} s without the killed holder"


def _outwaited(increment: Increment, killed: list[Increment]) -> bool:
    """True if a worker had to wait until the lease of one that was killed had ended."""
    began = increment.entered - increment.waited
    return any(each.entered < increment.entered and began < each.until for each in killed)


def _account(increment: Increment, *, is_in: bool) -> str:
    """Say what became of an increment in doubt."""
    during = f"in mid-increment from {increment.read} to {increment.target}"
    where = "is in the counter" if is_in else "is not in the counter"
    reason = f" ({increment.reason})" if increment.reason else ""
    return f"worker {increment.worker}, {during}{reason}: its write {where}"


def _workers(numbers: list[int]) -> str:
    """Name some workers."""
    *others, last = [str(number) for number in sorted(numbers)]
    return f"workers {', '.join(others)} and {last}"
