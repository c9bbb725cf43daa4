"""A client's nodes, for asyncio."""

from collections.abc import Collection

from ..core.effects import Verb
from ..drivers.port import AsyncPort
from ..nodes import NodeBook, Nodes, NodeStatus
from .documented import documented_like


@documented_like(Nodes)
class AsyncNodes(NodeBook):
    """The nodes of a client. A node is named by its address, or by its number from 0."""

    _port: AsyncPort

    async def status(self) -> list[NodeStatus]:
        return self._statuses(await self._port.run(self._saying(Verb.STATUS, self._everybody())))

    async def init(self, *nodes: str | int) -> None:
        self._settings.guard.disputed_ms = 0
        await self._tell(Verb.INIT, self._numbers(nodes) if nodes else self._everybody())

    async def admit(self, node: str | int) -> None:
        await self._tell(Verb.ADMIT, self._heeded(node))

    async def drain(self, node: str | int) -> None:
        await self._tell(Verb.DRAIN, self._heeded(node))

    async def _tell(self, verb: Verb, to: Collection[int]) -> None:
        self._checked(await self._port.run(self._saying(verb, to)), to, verb.value)
