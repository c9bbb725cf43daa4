"""Planted bugs. Each must be found: a simulator that stops finding them has stopped working."""

from dataclasses import dataclass, replace

from ..core.effects import Ask, Tell
from ..core.tally import Tally
from ..core.votes import GRANTED
from ..wire.round import Round
from ..wire.scripts import EXCLUSIVE
from .driver import SimDriver
from .protocol import SHIPPED, Edit, Protocol, planted


class TellsOnlyGranters(SimDriver):
    """Tells only those nodes whose grant has been seen."""

    _asked: Tally | None = None

    def _ask(self, effect: Ask, turn: int) -> None:
        self._asked = effect.tally
        super()._ask(effect, turn)

    def tell(self, effect: Tell) -> None:
        """Leave out whoever refused or has not answered yet."""
        for node, channel in enumerate(self.channels):
            if self._asked is None or self._asked.votes[node] is GRANTED:
                channel.post(Round(effect.command))


@dataclass(frozen=True)
class Mutant:
    """A planted bug, and the law that it breaks."""

    name: str
    law: str
    protocol: Protocol


def mutants() -> list[Mutant]:
    """Return every planted bug."""
    return [
        Mutant(
            "validity counted from the reply",
            "mutual exclusion",
            planted(
                Edit(
                    "acquire",
                    "        if tally.verdict is Verdict.WON and now < valid_until:  # L2\n",
                    "        valid_until = now + terms.validity\n"
                    "        if tally.verdict is Verdict.WON and now < valid_until:\n",
                )
            ),
        ),
        Mutant(
            "no drift",
            "mutual exclusion",
            planted(Edit("validity", "return sent + ttl - drift(ttl)", "return sent + ttl")),
        ),
        Mutant(
            "quorum n//2",
            "mutual exclusion",
            planted(Edit("tally", "return nodes // 2 + 1", "return max(1, nodes // 2)")),
        ),
        Mutant(
            "losing releases only where granted",
            "release frees",
            replace(SHIPPED, driver=TellsOnlyGranters),
        ),
        Mutant(
            "renew without majority",
            "mutual exclusion",
            planted(Edit("renew", "if tally.verdict is Verdict.WON:  # L2", "if tally.granted:")),
        ),
        Mutant(
            "renew revives a dead lease",
            "no revival",
            planted(
                Edit("renew", "if now < valid_until:  # L6\n        tally", "if 1:\n        tally"),
                Edit("renew", "min(until, valid_until)", "until"),
                Edit(
                    "renew", "if now < valid_until:  # L6\n            if", "if 1:\n            if"
                ),
                Edit("holding", "if not self._ends:\n", "if self._ends.clear() is None:\n"),
            ),
        ),
        Mutant(
            "release drops what is not ours",
            "mutual exclusion",
            replace(
                SHIPPED,
                lua=_lua("== MINE then\n  local done = drop", "~= FREE then\n  local done = drop"),
            ),
        ),
        Mutant(
            "release drops nothing",
            "release frees",
            replace(SHIPPED, lua=_lua("local done = drop(key, token)", "local done = 1")),
        ),
        Mutant(
            "a lock without a ttl",
            "progress",
            replace(SHIPPED, lua=_lua("'NX', 'PX', ttl", "'NX'")),
        ),
        Mutant("renew after release", "released is released", _renews_after_release()),
        Mutant(
            "loss told late",
            "loss is told in time",
            planted(Edit("keeping", "end if warned_of == end", "end + terms.grace if warned_of")),
        ),
        Mutant(
            "loss without a warning",
            "danger is told first",
            planted(Edit("keeping", "Note(Endangered(end))", "Sleep(now)")),
        ),
        Mutant(
            "renewing for a dead owner",
            "renewal only for the living",
            planted(Edit("keeping", "if not owner.lives():", "if False:")),
        ),
    ]


def _renews_after_release() -> Protocol:
    """Renew what has been released, on nodes that take a renewal of a free lock for a request."""
    retakes = _lua(
        "owner == MINE then\n  local done = prolong",
        "owner ~= OTHER then\n  take(key, token, ttl)\n  local done = prolong",
    )
    return replace(
        planted(
            Edit("keeping", "if holding.ended or not owner.remembers():", "if False:"),
            Edit("keeping", "            if holding.ended:\n", "            if False:\n"),
        ),
        lua=retakes,
    )


def _lua(old: str, new: str) -> dict[str, str]:
    """Return an edit of the scripts. Raises if they have moved on from under it."""
    if not any(old in script.text for script in EXCLUSIVE.values()):
        raise ValueError(f"no script has {old!r}")
    return {old: new}
