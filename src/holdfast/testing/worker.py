"""A simulated client at work: acquire, hold, perhaps renew, release, and again.

A worker does what users do with a `Lease`: whatever it does, its keeper looks after the lease at
the same time.
"""

from collections.abc import Callable, Mapping
from functools import partial

from ..core.effects import Ask, Flow, Verb
from ..core.outcomes import Acquired, LossReason, Lost, Renewed
from ..core.place import Hearing, Mail
from ..core.terms import Terms
from .driver import Interrupted
from .keeper import SimKeeper
from .laws import Laws
from .lease import Owner, SimLease
from .line import Wait
from .process import Thread
from .protocol import Protocol

HOLDS = (0.05, 0.3, 0.9, 1.3, 2.5, 4.0)
"""How many ttls a lease is wanted for: moments, and so long that it must be renewed."""

BRIEF = 2
"""Only so many of those are chosen from after everything has healed: others wait."""

LOOKS = (0.1, 0.3, 0.6)
"""After how many ttls a worker looks at its lease again."""

BY_HAND = (0.0, 0.2, 0.8)
"""How likely a worker is to renew its lease itself when it looks at it."""


class Worker:
    """Uses the lock for ever, in all the ways users do, and some they should not."""

    def __init__(
        self,
        thread: Thread,
        keeper: SimKeeper,
        protocol: Protocol,
        terms: Callable[..., Terms],
        laws: Laws,
    ) -> None:
        self.thread = thread
        self._keeper = keeper
        self._driver = protocol.driver(thread)
        self._protocol = protocol
        self._make_terms = terms
        self._terms = terms()
        self._laws = laws
        self._random = thread.world.random
        self._inbox = thread.process.inbox
        self._ttl = self._terms.ttl
        self._owner = Owner()
        self._attempt: str | None = None
        self._asked = 0.0
        """When the lock was last asked for, in true time."""
        self._wait: Wait
        """How it waits, or has waited last."""
        self.is_brief = False
        """True once everything has healed: it waits as long as it takes, and does not hold long."""
        self._lease: SimLease | None = None
        self._wanted_until = 0.0
        self._by_hand = 0.0
        self._step = 0
        self.silent: Mapping[int, float] = {}
        """Nodes that did not answer when all were waited for, as far as the flows know."""

    # -- the source of tokens that the flow is given ----------------------------------------------

    def token(self) -> str:
        """Begin an attempt: the one before is over."""
        self._give_up_attempt()
        self._attempt = self._inbox.token()
        self._laws.line.attempt(self._wait, self._attempt, called=False)
        return self._attempt

    def mail(self) -> Mail:
        """Begin an attempt that may be called. It may take over the place in line of another."""
        self._give_up_attempt()
        mail = self._inbox.expect()
        self._laws.line.attempt(self._wait, mail.token, called=True)
        return mail

    def forget(self, mail: Mail) -> None:
        """Expect no more mail for an attempt."""
        self._inbox.forget(mail)

    @property
    def hearing(self) -> Hearing:
        """Whether mail can be heard."""
        return self._inbox.hearing

    def stamp(self) -> int:
        """Return what a quorum of the nodes' clocks shows, in microseconds."""
        return self.thread.process.clocks.stamp(self.thread.now())

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
        return self.thread.world.chance()

    def _give_up_attempt(self) -> None:
        if self._attempt is not None:
            self._laws.over(self.thread, self._attempt)
            self._attempt = None

    def _watch(self, flow: Flow[object]) -> Flow[object]:
        """Run the flow that acquires, and let the laws see what it asks and hears."""
        try:
            effect = next(flow)
            while True:  # until the flow ends
                if isinstance(effect, Ask) and effect.command.verb is Verb.REQUEST:
                    self._asked = self.thread.world.now
                try:
                    now = yield effect
                except BaseException as interruption:  # noqa: BLE001  # it is passed on
                    effect = flow.throw(interruption)
                    continue
                if isinstance(effect, Ask):
                    self._laws.line.heard(self._wait, effect)
                effect = flow.send(now)
        except StopIteration as end:
            return end.value

    # -- what befalls it --------------------------------------------------------------------------

    def interrupt(self) -> None:
        """Interrupt the flow that is running, if there is one."""
        self._driver.interrupt()

    def die(self) -> None:
        """End the thread in the midst of its work; after a while another one begins anew.

        Its lease is left behind, where somebody can still see it, or nobody.
        """
        lease = self._lease
        if lease is None or lease.settled or self._driver.busy:
            return
        self._note(f"dies with {lease.token[:6]}")
        self._owner.lives = False
        lease.forgotten = self._random.random() < 0.3
        self._laws.died(lease)
        self._owner, self._lease = Owner(), None
        self._rest()

    # -- the life of a worker ---------------------------------------------------------------------

    def start(self) -> None:
        """Acquire, with one of the usual kinds of wait."""
        wait = self._random.choice((0.0, self._ttl / 2, 3 * self._ttl, None))
        if self.is_brief:
            wait = None if wait else wait
        self._terms = self._draw_terms()
        self.acquire(self._terms, wait, self._acquired)

    def acquire(self, terms: Terms, wait: float | None, done: Callable[[object], None]) -> None:
        """Run the flow that acquires; `done` gets its outcome."""
        self._note(f"acquires, wait {wait}")
        self._wait = self._laws.line.begin(self.thread, terms, wait)
        flow = self._protocol.acquire(terms, self, now=self.thread.now(), wait=wait)
        self._driver.run(self._watch(flow), partial(self._tried, done))

    def _tried(self, done: Callable[[object], None], outcome: object) -> None:
        self._note(f"acquire: {type(outcome).__name__}")
        self._laws.line.end(self._wait, outcome)
        won = outcome.token if isinstance(outcome, Acquired) else None
        self._attempt = None
        for token in self._wait.tokens:
            if token != won:
                self._laws.over(self.thread, token)
        done(outcome)

    def _draw_terms(self) -> Terms:
        """Choose how the lease is kept: as most do, without renewal, or only for so long."""
        chance = self._random.random()
        if chance < 0.5:
            return self._make_terms()
        if chance < 0.85:
            return self._make_terms(renewing=False)
        return self._make_terms(max_hold=self._random.choice((0.5, 1.5, 2.5)) * self._ttl)

    def _acquired(self, outcome: object) -> None:
        if not isinstance(outcome, Acquired):
            self._rest()
            return
        holding = self._protocol.holding(
            self._terms, outcome.token, outcome.valid_until, outcome.fence
        )
        self._lease = lease = SimLease(holding, self._owner, self._keeper.thread, self._asked)
        holds = HOLDS[:BRIEF] if self.is_brief else HOLDS
        self._wanted_until = self.thread.now() + self._random.choice(holds) * self._ttl
        self._by_hand = self._random.choice(BY_HAND)
        self._laws.begin(lease)
        self._keeper.keep(lease)
        self._work(lease)

    def _work(self, lease: SimLease) -> None:
        """Work for a while, then look whether that was all, and whether we still have it."""
        left = self._wanted_until - self.thread.now()
        self._later(min(left, self._random.choice(LOOKS) * self._ttl), lambda: self._look(lease))

    def _look(self, lease: SimLease) -> None:
        if lease.lost is not None or self.thread.now() >= self._wanted_until:
            self._release(lease)
        elif self._random.random() < self._by_hand:
            self._renew(lease)
        else:
            self._work(lease)

    def _renew(self, lease: SimLease) -> None:
        """Renew as `Lease.renew` does; its time may be up since it has looked, or a pause ago."""
        holding = lease.holding
        holding.asked = True
        flow = self._protocol.renew(
            holding.terms,
            holding.token,
            fence=holding.repair(),
            valid_until=holding.valid_until,
            now=self.thread.now(),
        )
        self._driver.run(flow, lambda outcome: self._renewed(lease, outcome))

    def _renewed(self, lease: SimLease, outcome: object) -> None:
        self._note(f"renew {lease.token[:6]}: {type(outcome).__name__}")
        match outcome:
            case Renewed(valid_until, tally):
                lease.holding.renewed(valid_until, tally)
                self._work(lease)
            case Lost(LossReason.EXPIRED) if lease.holding.is_held(self.thread.now()):
                self._work(lease)  # the keeper has renewed it meanwhile
            case Lost(reason):
                if lease.holding.lose(reason):
                    self._laws.note(lease, outcome)
                self._release(lease)
            case Interrupted():
                self._release(lease)
            case _:
                self._work(lease)

    def _release(self, lease: SimLease) -> None:
        """Release as `Lease.release` does: nothing is held from here on, whatever happens."""
        holding, self._lease = lease.holding, None
        if not holding.release():
            self._note(f"release {lease.token[:6]}: it had been lost")
            self._rest()
            return
        lease.released = True
        flow = self._protocol.release(
            holding.terms,
            holding.token,
            valid_until=holding.valid_until,
            now=self.thread.now(),
            repaired=holding.repaired,
        )
        self._driver.run(flow, lambda outcome: self._released(lease, outcome))

    def _released(self, lease: SimLease, outcome: object) -> None:
        self._note(f"release {lease.token[:6]}: {outcome}")
        if lease.holding.asked:
            self._keeper.follow(lease)
        else:
            self._laws.followed(lease)
        self._laws.released(self.thread, lease, outcome)
        self._rest()

    def _rest(self) -> None:
        self._later(self._random.random() * self._ttl / 2, self.start)

    def _later(self, delay: float, what: Callable[[], None]) -> None:
        """Do something later, unless something else is begun before."""
        self._step += 1
        self.thread.at(self.thread.now() + delay, partial(self._begin, self._step, what))

    def _begin(self, step: int, what: Callable[[], None]) -> None:
        if step == self._step:
            what()

    def _note(self, line: str) -> None:
        if self.thread.world.tracing:
            self.thread.world.note(f"{self.thread.name} {line}")
