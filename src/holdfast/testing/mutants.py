"""Planted bugs. Each must be found: a simulator that stops finding them has stopped working."""

from dataclasses import replace

from ..core.clocks import Clocks
from ..core.effects import Ask, Tell
from ..core.tally import Tally
from ..core.votes import GRANTED
from ..wire.peer import Peer
from ..wire.round import Round
from .driver import SimDriver
from .network import Connection
from .planting import Mutant, forgetful, lua, plain, slow, stamps_of_one
from .protocol import SHIPPED, Edit, Protocol, planted
from .queue_mutants import queueing
from .scenario import Scenario


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


class RemembersRuns(Connection):
    """Tells a node which run it takes it for: the one that it met first.

    So nobody notices that a server was restarted while the client was cut off.
    """

    def meet(self, run: str, shown_us: int) -> None:
        """Name the first run wherever the database should be named."""
        heard_at, self.peer = self.peer.heard_at, _NamesRun(self.peer.clock, 0)
        self.peer.heard_at = heard_at
        self.peer.name_run(self._channel.first_run or run)
        super().meet(run, shown_us)


class _NamesRun(Peer):
    def name_run(self, run: str) -> None:
        self._db = b"$%d\r\n%s\r\n" % (len(run), run.encode())


def _drifting(world: Scenario) -> Scenario:
    return replace(plain(world), drift=True)


def _only_forgetful(world: Scenario) -> Scenario:
    """Let nothing else go wrong, so that somebody is there to take what was forgotten."""
    return replace(
        forgetful(world), clients=4, rolls=False, hangs=False, cuts=False, breaks=False,
        pauses=False, starves=False, deaths=False, interrupts=False,
    )  # fmt: skip


def _cut_off(world: Scenario) -> Scenario:
    """Let clients be cut off from some of many nodes, and others be there to contend."""
    return replace(
        plain(world), nodes=5, clients=5, cuts=True, crashes=False, rolls=False, hangs=False,
        breaks=False, pauses=False, starves=False, kills=False, deaths=False, interrupts=False,
    )  # fmt: skip


def _stepping(world: Scenario) -> Scenario:
    return replace(plain(world), guard=True, steps=True, unsteady=world.nodes)


def _lawless(world: Scenario) -> Scenario:
    """Let no clock be right, of several nodes."""
    nodes = max(3, world.nodes)
    return replace(plain(world), nodes=nodes, steps=True, unsteady=nodes, wild=True)


def mutants() -> list[Mutant]:
    """Return every planted bug."""
    return [
        Mutant(
            "validity counted from the reply",
            "mutual exclusion",
            planted(
                Edit(
                    "request",
                    "    if tally.verdict is Verdict.WON:\n",
                    "    valid_until = now + terms.validity\n"
                    "    if tally.verdict is Verdict.WON:\n",
                )
            ),
            setting=slow,
            outside=True,
        ),
        Mutant(
            "no drift",
            "mutual exclusion",
            planted(Edit("validity", "return sent + ttl - drift(ttl)", "return sent + ttl")),
            setting=_drifting,
        ),
        Mutant(
            "quorum n//2",
            "mutual exclusion",
            planted(Edit("tally", "return nodes // 2 + 1", "return max(1, nodes // 2)")),
            outside=True,
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
            setting=_cut_off,
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
                lua=lua(("== MINE then\n  local done = drop", "~= FREE then\n  local done = drop")),
            ),
        ),
        Mutant(
            "release drops nothing",
            "release frees",
            replace(SHIPPED, lua=lua(("local done = drop(key, token)", "local done = 1"))),
        ),
        Mutant(
            "a lock without a ttl",
            "progress",
            replace(SHIPPED, lua=lua(("'NX', 'PX', ttl", "'NX'"))),
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
        Mutant(
            "how late it is does not matter",
            "too late is too late",
            replace(SHIPPED, lua=lua(("and now > not_after * 1000 then", "and false then"))),
        ),
        *_forgetting(),
        *_fencing(),
        *queueing(),
        Mutant("steps believed", "mutual exclusion", replace(SHIPPED, clocks=_trusting), _stepping),
    ]


def _trusting(nodes: int, quorum: int, **_: bool) -> Clocks:
    """Return clocks that are believed whatever they show."""
    return Clocks(nodes, quorum, trusting=True)


def _forgetting() -> list[Mutant]:
    """Nodes that have forgotten, and grant too early."""
    any_run = ("before[1] ~= string.match(server, 'run_id:(%x+)')", "false")
    return [
        Mutant(
            "marker of any run",
            "mutual exclusion",
            replace(
                SHIPPED,
                lua=lua(
                    ("not history or known[1] ~= history .. ':' .. db", "not known[1]"),
                    ("if not is_own(known[1], known[2], db)", "if not known[1]"),
                    any_run,
                ),
            ),
            setting=_only_forgetful,
            outside=True,
        ),
        Mutant(
            "run remembered by the client",
            "mutual exclusion",
            replace(
                SHIPPED,
                connection=RemembersRuns,
                lua=lua(
                    ("known[1] ~= history .. ':' .. db", "known[1] ~= db"),
                    (
                        "return fact('server', 'run_id:(%x+)'),"
                        " fact('replication', 'master_replid:(%x+)') .. ':' .. db",
                        "return '', db == '0' and fact('server', 'run_id:(%x+)') or db",
                    ),
                    any_run,
                ),
            ),
            setting=forgetful,
            outside=True,
        ),
        Mutant(
            "abstains too short",
            "mutual exclusion",
            replace(
                SHIPPED,
                lua=lua(
                    ("return math.ceil(max_ttl * 1.02) + 1000", "return math.ceil(max_ttl / 4)")
                ),
            ),
            setting=_only_forgetful,
            outside=True,
        ),
        Mutant(
            "repairs while it abstains",
            "who forgot abstains",
            replace(
                SHIPPED,
                lua=lua(
                    (
                        "if refusal then return refusal end\nlocal taken",
                        "floor, highest = floor or 0, highest or now\nlocal taken",
                    )
                ),
            ),
            setting=forgetful,
        ),
    ]


def _fencing() -> list[Mutant]:
    """Fences that are not what they should be."""
    accepts = "local function accept(mark, stamp, floor, highest, max_ttl)\n"
    counts = (
        "local count = math.max(tonumber(redis.call('GET', mark) or '0'), floor) + 1\n"
        "redis.call('SET', mark, string.format('%.0f', count))\n"
        "do return count end\n"
    )
    return [
        Mutant(
            "largest of the nodes' counters",
            "F",
            replace(
                planted(
                    Edit(
                        "request",
                        "        if tally.marks and not tally.accepted:\n",
                        "        fence = max(tally.marks)\n        if False:\n",
                    )
                ),
                lua=lua((accepts, accepts + counts)),
            ),
        ),
        Mutant(
            "one node accepts",
            "F",
            planted(
                Edit(
                    "tally",
                    "return self.granted - len(self.marks) >= self.quorum",
                    "return self.granted > len(self.marks)",
                )
            ),
            setting=_lawless,
        ),
        Mutant(  # nodes' clocks alone would hide it
            "no floor",
            "F",
            replace(stamps_of_one(), lua=lua(("return nil, tonumber(known[3])", "return nil, 0"))),
            setting=forgetful,
        ),
    ]


def _renews_after_release() -> Protocol:
    """Renew what has been released, on nodes that take a renewal of a free lock for a request."""
    refuses = "if owner == OTHER then return { REFUSED, now, remaining(key) } end\n"
    takes = "take(key, token, ttl)\ndo return { GRANTED, now, 0 } end\n"
    retakes = lua((refuses, refuses + takes))
    return replace(
        planted(
            Edit("keeping", "if holding.ended or not owner.remembers():", "if False:"),
            Edit("keeping", "            if holding.ended:\n", "            if False:\n"),
        ),
        lua=retakes,
    )
