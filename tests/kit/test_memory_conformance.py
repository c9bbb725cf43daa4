"""The conformance suite once more, with in-memory clients and virtual time."""

import contextlib
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

import holdfast.aio
from holdfast.testing import Memory
from rig.actor import Actor, AsyncActor, BlockingActor

T = TypeVar("T")

MODULES = [
    f"conformance.test_{subject}"
    for subject in ("acquire", "by_name", "contention", "locked", "release", "renew", "with")
]
pytest.register_assert_rewrite(*MODULES)
SUITE = [import_module(module) for module in MODULES]
for module in SUITE:
    for key, value in vars(module).items():
        if key.startswith("test_"):
            assert key not in globals(), f"two tests are called {key}"
            globals()[key] = value


class MemoryActor(BlockingActor):
    """The blocking client's adapter, in memory."""

    def __init__(self, memory: Memory) -> None:
        self.client = memory.client()


class AsyncMemoryActor(AsyncActor):
    """The asyncio client's adapter, in memory."""

    def __init__(self, memory: Memory) -> None:
        super().__init__("redis://nowhere")  # it is replaced before it connects
        self.client: holdfast.aio.AsyncClient = memory.async_client()


class NodeView:
    """A node, as the suite looks at one."""

    def __init__(self, memory: Memory, number: int) -> None:
        self._memory = memory
        self._number = number

    def call(self, *words: str) -> str | None:
        if words[0] == "STRLEN":
            return str(len(self.call("GET", *words[1:]) or ""))
        universe = self._memory._universe
        with universe.time.mutex:
            reply = universe.nodes[self._number].server.store.call(*map(str.encode, words))
        return reply.decode() if isinstance(reply, bytes) else None if reply is None else str(reply)


@pytest.fixture(params=[1, 3, 5], ids=lambda count: f"memory-{count}")
def memory(request: pytest.FixtureRequest) -> Memory:
    return Memory(request.param)


@pytest.fixture
def nodes(memory: Memory) -> list[NodeView]:
    return [NodeView(memory, number) for number in range(len(memory.client().addresses))]


@pytest.fixture(params=[MemoryActor, AsyncMemoryActor], ids=["blocking", "asyncio"])
def new_actor(
    request: pytest.FixtureRequest, memory: Memory, cleanup: contextlib.ExitStack
) -> Callable[[], Actor]:
    def make() -> Actor:
        actor = request.param(memory)
        cleanup.callback(actor.close)
        return actor

    return make


@pytest.fixture
def actor(new_actor: Callable[[], Actor]) -> Actor:
    return new_actor()


@pytest.fixture
def rival(new_actor: Callable[[], Actor]) -> Actor:
    return new_actor()


@pytest.fixture(autouse=True)
def _virtual_time(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the suite lets real time pass, let virtual time pass."""

    def until(condition: Callable[[], T], **_: Any) -> T:
        for _turn in range(2000):
            if value := condition():
                return value
            memory.advance(0.02)
        raise AssertionError(f"in vain: {condition}")

    for module in SUITE:
        monkeypatch.setattr(module, "until", until, raising=False)
        monkeypatch.setattr(
            module, "time", SimpleNamespace(monotonic=lambda: memory.now), raising=False
        )
