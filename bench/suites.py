"""What is compared with what, and what should come of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

from holdfast.embedded import ThrowawayNode

from .cores import all_cores, apart, pin
from .measure import Entry, Figure, interleaved, kept
from .server import script_costs
from .targets import Target, at_least, at_most

TASKS = 100
LEASES, LEASE_TTL = 10_000, 30.0
LONG = 0.3
"""Seconds per repeat from which on a run is not a quick one."""
OURS, FLOOR = "holdfast", "floor (raw sockets)"
UNGUARDED = "holdfast without guard"
"""On one node there is none."""
REDIS_PY, REDIS_PY_BARE = "redis-py Lock, with hiredis", "redis-py Lock, as installed"
HUNG, ALL_UP = "one of five hung", "all five up"


@dataclass
class Suite:
    """One table of results."""

    title: str
    figures: dict[str, Figure]
    unit: str = "µs per pair"
    targets: list[Target] = field(default_factory=list)

    def median(self, title: str) -> float:
        """Return a contender's median."""
        return self.figures[title].median

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return a header and the rows below it."""
        base = next(iter(self.figures.values())).median
        rows = [
            [
                name,
                f"{figure.median:.1f}",
                f"{figure.low:.1f} - {figure.high:.1f}",
                f"{figure.median / base:.2f}",
            ]
            for name, figure in self.figures.items()
        ]
        return ["", self.unit, "quartiles", "× first"], rows

    def as_json(self) -> dict[str, object]:
        """Return all figures, for machines."""
        figures = {name: asdict(figure) for name, figure in self.figures.items()}
        return {"unit": self.unit, "figures": figures}


class Bench:
    """Five nodes, and the suites that run on them."""

    STEPS = 6 + 5 + 2 + 4 + 5 + 2 + 1
    """How many contenders there are in all, for the progress bar."""

    def __init__(
        self,
        nodes: Sequence[ThrowawayNode],
        urls: Sequence[str],
        *,
        repeats: int,
        seconds: float,
        tick: Callable[[], None],
    ) -> None:
        self._nodes = nodes
        self._urls = urls
        self._repeats = repeats
        self._seconds = seconds
        self._tick = tick

    def run(self) -> Iterator[Suite]:
        """Run the suites one after the other."""
        one = self.one_node()
        yield one
        yield self.five_nodes(one)
        yield self.hung_node()
        yield self.many_tasks(self._urls[:1], 8.0)
        yield self.many_tasks(self._urls, 3.0)
        yield self.many_leases()
        yield self.scripts()

    def _measure(
        self,
        title: str,
        entries: Sequence[Entry],
        around: Callable[[Entry, Callable[[], float]], float] = lambda _, go: go(),
    ) -> Suite:
        round_trips = all(len(entry.urls) == 1 and not entry.tasks for entry in entries)
        clients, servers = apart() if round_trips else (all_cores(), all_cores())
        for node in self._nodes:
            pin(node.pid, servers)
        figures = interleaved(
            entries,
            repeats=self._repeats,
            seconds=self._seconds,
            tick=self._tick,
            cores=clients,
            around=around,
        )
        return Suite(title, {entry.title: figures[entry.title] for entry in entries})

    def one_node(self) -> Suite:
        """Compare on one node, blocking."""
        url = self._urls[:1]
        suite = self._measure("blocking, one node", [
            Entry(FLOOR, "floor", url), Entry(OURS, "holdfast", url),
            Entry(REDIS_PY, "redis-py", url), Entry(REDIS_PY_BARE, "redis-py", url, hiredis=False),
            Entry("python-redis-lock", "python-redis-lock", url),
            Entry("redlock-py", "redlock-py", url),
        ])  # fmt: skip
        base, ours = suite.median(FLOOR), suite.median(OURS)
        suite.targets.append(at_most("holdfast / floor", ours / base, 1.3))
        for peer in (REDIS_PY_BARE, REDIS_PY):
            share = (ours - base) / (suite.median(peer) - base)
            suite.targets.append(at_most(f"above the floor: holdfast / {peer}", share, 0.35))
        return suite

    def five_nodes(self, one_node: Suite) -> Suite:
        """Compare on five nodes, blocking."""
        suite = self._measure("blocking, five nodes", [
            Entry(FLOOR, "floor", self._urls), Entry(OURS, "holdfast", self._urls),
            Entry(UNGUARDED, UNGUARDED, self._urls),
            Entry("redlock-py", "redlock-py", self._urls),
            Entry("pottery Redlock", "pottery", self._urls),
        ])  # fmt: skip
        ours = suite.median(OURS)
        for peer in (REDIS_PY_BARE, REDIS_PY):
            ratio = ours / one_node.median(peer)
            suite.targets.append(at_most(f"holdfast on five / {peer}, on one", ratio, 1.0))
        ratio = suite.median("redlock-py") / ours
        suite.targets.append(at_least("redlock-py / holdfast", ratio, 3.5))
        return suite

    def hung_node(self) -> Suite:
        """Compare five nodes with five of which one hangs."""
        node = self._nodes[2]

        def around(entry: Entry, go: Callable[[], float]) -> float:
            if entry.title == HUNG:
                node.pause()
            try:
                return go()
            finally:
                node.resume()

        entries = [Entry(title, "holdfast", self._urls) for title in (ALL_UP, HUNG)]
        suite = self._measure("blocking, five nodes, one hung (SIGSTOP)", entries, around)
        change = suite.median(HUNG) / suite.median(ALL_UP)
        suite.targets.append(at_most(f"{HUNG} / {ALL_UP}", change, 1.1))
        return suite

    def many_tasks(self, urls: Sequence[str], times: float) -> Suite:
        """Compare a hundred tasks, asyncio."""
        one = self._urls[:1]
        unguarded = [Entry(UNGUARDED, UNGUARDED, urls, TASKS)] if len(urls) > 1 else []
        suite = self._measure(f"asyncio, {TASKS} tasks, {len(urls)} node(s)", [
            Entry(FLOOR, "floor", urls, TASKS), Entry(OURS, "holdfast", urls, TASKS), *unguarded,
            Entry(REDIS_PY, "redis-py", one, TASKS),
            Entry(REDIS_PY_BARE, "redis-py", one, TASKS, hiredis=False),
        ])  # fmt: skip
        for peer in (REDIS_PY_BARE, REDIS_PY):
            ratio = suite.median(peer) / suite.median(OURS)
            suite.targets.append(at_least(f"{peer}, on one / holdfast", ratio, times))
        return suite

    def scripts(self) -> Suite:
        """Measure what each script costs a server, by its own account."""
        suite = Suite("on the server, per script (INFO commandstats)", {}, "µs per call")
        costs: dict[str, list[float]] = {}
        for _ in range(self._repeats):
            for title, cost in script_costs(self._urls[0]):
                costs.setdefault(title, []).append(cost)
            self._tick()
        suite.figures.update({title: Figure.of(each) for title, each in costs.items()})
        return suite

    def many_leases(self) -> Suite:
        """Measure what it costs to keep many leases, in processor time."""
        leases, ttl = (
            (LEASES, LEASE_TTL) if self._seconds >= LONG else (LEASES // 10, LEASE_TTL / 10)
        )
        suite = Suite(f"{leases:,} leases with a ttl of {ttl:g} s, renewed", {}, "% of a core")
        for urls in (self._urls[:1], self._urls):
            title, share = f"{len(urls)} node(s)", kept(leases, ttl, urls)
            suite.figures[title] = Figure(share, share, share)
            suite.targets.append(at_most(f"% of a core, {title}", share, 10.0))
            for _ in range(self._repeats):
                self._tick()
        return suite
