"""Planted bugs of those who wait: they are not served as they should be, or serve themselves."""

from dataclasses import replace

from .planting import Mutant, forgetful, lua, plain, slow, stamps_of_one
from .protocol import SHIPPED, Edit, planted
from .scenario import Scenario


def _crowded(world: Scenario) -> Scenario:
    """Let many clients wait, some of whom cannot be called, and some of whom die."""
    return replace(plain(world), clients=5, kills=True, deaf=True)


def _unclear(world: Scenario) -> Scenario:
    """Let many requests be answered late."""
    return replace(slow(world), clients=5)


def queueing() -> list[Mutant]:
    """Return every planted bug of those who wait."""
    leaves = "                yield from waiter.leave()\n                return waiting.missed("
    return [
        Mutant(
            "one token for all attempts",
            "who leaves is gone",
            planted(
                Edit(
                    "queue",
                    "            self.mail = source.mail()\n",
                    "            yield Tell(self._terms.release(old.token))\n",
                ),
                Edit("queue", "            source.forget(old)\n", "            pass\n"),
                Edit("queue", "        now = yield Tell(self._terms.release(old.token))\n", ""),
            ),
            setting=_unclear,
        ),
        Mutant(  # nodes' clocks alone would hide it, most of the time
            "no queue mark",
            "first come, first served",
            replace(
                stamps_of_one(),
                lua=lua(("tonumber(stamp) <= mark and place ~= SETTLED", "false")),
            ),
        ),
        Mutant(
            "passed over and put out",
            "first come, first served",
            replace(
                SHIPPED,
                lua=lua(("passed, deaf[inbox] = passed + 1, true", "leave(token)")),
            ),
        ),
        Mutant(
            "unguarded hand-over",
            "who forgot abstains",
            replace(
                SHIPPED,
                lua=lua(
                    ("if not guard(KEYS[#KEYS], ARGV[2], ARGV[3], ARGV[8], NO_DEADLINE)", "if true")
                ),
            ),
            setting=forgetful,
        ),
        Mutant(
            "reserved for the dead again and again",
            "progress",
            replace(
                SHIPPED,
                lua=lua(
                    ("whole(now / 1000 + reserved), token)", "whole(now / 1000 + LEASE), token)")
                ),
            ),
            setting=_crowded,
        ),
        Mutant(
            "validity from the call",
            "a call is no lease",
            planted(
                Edit(
                    "queue",
                    "            place, stamp = Place.KEPT, source.stamp()\n",
                    "            place, stamp = Place.KEPT, source.stamp()\n"
                    "            if called:\n"
                    "                token, until = waiter.mail.token, now + terms.validity\n"
                    "                return Acquired(token, until, tally, stamp)\n",
                )
            ),
        ),
        Mutant(
            "who times out stays in line",
            "who leaves is gone",
            planted(Edit("queue", leaves, "                return waiting.missed(")),
        ),
        Mutant(
            "a release keeps its place in line",
            "who leaves is gone",
            replace(
                SHIPPED,
                lua=lua(("  here.leave(token)\n", "")),
            ),
        ),
        Mutant(
            "sleeping past the deadline",
            "waits end in time",
            planted(
                Edit("queue", "return min(now + delay, waiting.deadline)", "return now + delay")
            ),
        ),
    ]
