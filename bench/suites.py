"""What is compared with what, and what must come of it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from holdfast.embedded import ThrowawayNodes

from . import contenders
from .measure import Figure, Runnable, interleaved

TASKS = 100


@dataclass(frozen=True)
class Target:
    """A ratio that should be reached: what it says, what came out, and the bound."""

    says: str
    value: float
    bound: float
    at_most: bool

    @property
    def met(self) -> bool:
        """True if the bound is kept."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass
class Suite:
    """One table of results."""

    title: str
    figures: dict[str, Figure]
    targets: list[Target] = field(default_factory=list)


class Bench:
    """Five nodes, and the suites that run on them."""

    def __init__(
        self, nodes: ThrowawayNodes, *, repeats: int, seconds: float, tick: Callable[[], None]
    ) -> None:
        self._nodes = nodes
        self._paths = [str(node.socket) for node in nodes]
        self._repeats = repeats
        self._seconds = seconds
        self._tick = tick

    STEPS = 5 + 4 + 2 + 3 + 3
    """How many contenders there are in all, for the progress bar."""

    def run(self) -> Iterator[Suite]:
        """Run the suites one after the other."""
        one = self.one_node()
        yield one
        yield self.five_nodes(one.figures["redis-py Lock"])
        yield self.hung_node()
        yield self.tasks(self._paths[:1], 8.0)
        yield self.tasks(self._paths, 3.0)

    def _measure(
        self, subjects: Sequence[Runnable], **options: Callable[..., None]
    ) -> dict[str, Figure]:
        with ExitStack() as stack:
            for subject in subjects:
                stack.callback(subject.close)  # type: ignore[attr-defined]  # all of them have it
            return interleaved(
                subjects,
                repeats=self._repeats,
                seconds=self._seconds,
                tick=self._tick,
                **options,
            )

    def one_node(self) -> Suite:
        """Compare on one node, blocking."""
        path = self._paths[0]
        figures = self._measure([
            contenders.floor([path]), contenders.ours([path]), contenders.redis_py(path),
            contenders.python_redis_lock(path), contenders.redlock_py([path]),
        ])  # fmt: skip
        base, ours, peer = (figures[name].median for name in ("floor", "holdfast", "redis-py Lock"))
        return Suite("blocking, one node", figures, [
            Target("holdfast / floor", ours / base, 1.3, at_most=True),
            Target(
                "time above the floor: holdfast / redis-py", (ours - base) / (peer - base), 0.35,
                at_most=True,
            ),
        ])  # fmt: skip

    def five_nodes(self, redis_py_one_node: Figure) -> Suite:
        """Compare on five nodes, blocking."""
        figures = self._measure([
            contenders.floor(self._paths), contenders.ours(self._paths),
            contenders.redlock_py(self._paths), contenders.pottery_redlock(self._paths),
        ])  # fmt: skip
        ours = figures["holdfast"].median
        return Suite("blocking, five nodes", figures, [
            Target(
                "holdfast on five / redis-py Lock on one", ours / redis_py_one_node.median, 1.0,
                at_most=True,
            ),
            Target(
                "redlock-py / holdfast", figures["redlock-py"].median / ours, 3.5, at_most=False
            ),
        ])  # fmt: skip

    def hung_node(self) -> Suite:
        """Compare five nodes with five of which one hangs."""
        node = self._nodes[2]

        def around(subject: Runnable, go: Callable[[], None]) -> None:
            if subject.name == "one of five hung":
                node.pause()
            try:
                go()
            finally:
                node.resume()

        figures = self._measure(
            [contenders.ours(self._paths, name) for name in ("all five up", "one of five hung")],
            around=around,
        )
        change = figures["one of five hung"].median / figures["all five up"].median
        return Suite("blocking, five nodes, one hung (SIGSTOP)", figures, [
            Target("hung / all up", change, 1.1, at_most=True)
        ])  # fmt: skip

    def tasks(self, paths: Sequence[str], times: float) -> Suite:
        """Compare a hundred tasks, asyncio."""
        figures = self._measure([
            contenders.async_floor(paths, TASKS), contenders.async_ours(paths, TASKS),
            contenders.async_redis_py(self._paths[0], TASKS),
        ])  # fmt: skip
        ratio = figures["redis-py asyncio Lock"].median / figures["holdfast"].median
        says = "redis-py asyncio Lock on one / holdfast"
        return Suite(f"asyncio, {TASKS} tasks, {len(paths)} node(s)", figures, [
            Target(says, ratio, times, at_most=False)
        ])  # fmt: skip
