"""A simulated client at work: acquire, hold, perhaps renew, release, and again."""

from collections.abc import Callable

from ..core.holding import Holding
from ..core.outcomes import Acquired, Lost, Renewed
from ..core.terms import Terms
from .driver import Interrupted, SimDriver
from .laws import Laws
from .protocol import Protocol


class Worker:
    """Uses the lock for ever, in all the ways users do, and some they should not."""

    def __init__(self, driver: SimDriver, protocol: Protocol, terms: Terms, laws: Laws) -> None:
        self._driver = driver
        self._protocol = protocol
        self._terms = terms
        self._laws = laws
        self._random = driver.world.random
        self._ttl = terms.ttl
        self._attempt: str | None = None
        self._holding: Holding | None = None

    # -- the source of tokens that the flow is given ----------------------------------------------

    def token(self) -> str:
        """Begin an attempt: the one before is over."""
        self._give_up_attempt()
        self._attempt = self._driver.world.token()
        return self._attempt

    def chance(self) -> float:
        """Return a random number in [0, 1)."""
        return self._driver.world.chance()

    def _give_up_attempt(self) -> None:
        if self._attempt is not None:
            self._laws.over(self._driver, self._attempt)
            self._attempt = None

    # -- the life of a worker ---------------------------------------------------------------------

    def start(self) -> None:
        """Acquire, with one of the usual kinds of wait."""
        wait = self._random.choice((0.0, self._ttl / 2, 3 * self._ttl, None))
        self._note(f"acquires, wait {wait}")
        flow = self._protocol.acquire(self._terms, self, now=self._driver.now(), wait=wait)
        self._driver.run(flow, self._acquired)

    def _acquired(self, outcome: object) -> None:
        self._note(f"acquire: {type(outcome).__name__}")
        if not isinstance(outcome, Acquired):
            self._give_up_attempt()
            self._rest()
            return
        self._attempt = None
        holding = Holding(self._terms, outcome.token, outcome.valid_until)
        self._holding = holding
        self._laws.begin(self._driver, holding)
        self._work()

    def _work(self) -> None:
        """Hold for a while: a moment, most of the ttl, or longer than one should."""
        share = self._random.choice((0.05, 0.3, 0.6, 0.9, 1.3))
        self._later(
            share * self._ttl, self._renew if self._random.random() < 0.5 else self._release
        )

    def _renew(self) -> None:
        holding = self._holding
        assert holding is not None
        flow = self._protocol.renew(
            self._terms, holding.token, valid_until=holding.valid_until, now=self._driver.now()
        )
        self._driver.run(flow, self._renewed)

    def _renewed(self, outcome: object) -> None:
        holding = self._holding
        assert holding is not None
        self._note(f"renew {holding.token[:6]}: {type(outcome).__name__}")
        match outcome:
            case Renewed(valid_until):
                holding.renewed(valid_until)
                self._work()
            case Lost(reason):
                holding.lose(reason)
                self._rest()
            case Interrupted():
                self._release()
            case _:
                self._later(self._random.random() * self._ttl / 4, self._renew)

    def _release(self) -> None:
        holding = self._holding
        assert holding is not None
        now, until = self._driver.now(), holding.valid_until
        holding.release()
        flow = self._protocol.release(self._terms, holding.token, valid_until=until, now=now)
        self._driver.run(flow, self._released)

    def _released(self, outcome: object) -> None:
        holding, self._holding = self._holding, None
        assert holding is not None
        self._note(f"release {holding.token[:6]}: {outcome}")
        self._laws.released(self._driver, holding.token, outcome)
        self._rest()

    def _rest(self) -> None:
        self._later(self._random.random() * self._ttl / 2, self.start)

    def _later(self, delay: float, what: Callable[[], None]) -> None:
        self._driver.at(self._driver.now() + delay, what)

    def _note(self, line: str) -> None:
        if self._driver.world.tracing:
            self._driver.world.note(f"{self._driver.name} {line}")
