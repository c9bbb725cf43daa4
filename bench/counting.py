"""How many commands nodes were sent, and how many they executed. The two are not the same.

`INFO stats` (total_commands_processed), `INFO commandstats`, `CLIENT LIST` (tot-cmds) and the slow
log all count the commands within a script beside the script itself, and none of them says which
were which: the GET of a script and the GET of a client are one line. So they tell what a node
*executed*. What it was *sent* is told by MONITOR alone, where what a script does is marked `lua`.
MONITOR slows a node down, so it runs after the measured span, for the count and for nothing else;
nobody reads its output before that is over, and the node keeps it until then.
"""

import contextlib
import socket
from collections.abc import Iterable, Sequence

import redis

from .dial import dial

BEGIN, END = b'"ECHO" "bench:begin"', b'"ECHO" "bench:end"'
PATIENCE = 30.0
"""Seconds; a node that says nothing for so long has failed."""


class Executed:
    """What nodes executed, by their own account."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._clients = [redis.Redis.from_url(url) for url in urls]
        self._asked = 0
        self.total()  # connects

    def total(self) -> int:
        """Return how many commands all nodes have executed so far, without these questions."""
        stats = [int(each.info("stats")["total_commands_processed"]) for each in self._clients]
        total = sum(stats) - self._asked
        self._asked += len(stats)  # a node counts a command after it has answered it
        return total

    def close(self) -> None:
        """Disconnect."""
        for client in self._clients:
            client.close()


class Received:
    """What clients send to the nodes, from here to `count`."""

    def __init__(self, urls: Sequence[str]) -> None:
        with contextlib.ExitStack() as stack:
            self._streams = [stack.enter_context(_connected(url)) for url in urls]
            self._markers = [stack.enter_context(_connected(url)) for url in urls]
            self._stack = stack.pop_all()
        for stream in self._streams:
            stream.sendall(b"MONITOR\r\n")
            assert stream.recv(5) == b"+OK\r\n"  # so many bytes are never in pieces on loopback
        self._mark(b"bench:begin")

    def count(self) -> int:
        """Return how many commands there were, and end."""
        with self._stack:
            self._mark(b"bench:end")
            return sum(sent(_until_end(stream)) for stream in self._streams)

    def _mark(self, word: bytes) -> None:
        for marker in self._markers:
            marker.sendall(b"ECHO " + word + b"\r\n")
        for marker in self._markers:
            marker.recv(64)


def sent(lines: Iterable[bytes]) -> int:
    """Count what clients sent between the two marks: what MONITOR shows, without `lua`."""
    count, within = 0, False
    for line in lines:
        if line.endswith(END):
            break
        where, _, _ = line.partition(b"]")  # +1794827779.143384 [0 lua] "lpush" "q" "1"
        count += within and not where.endswith(b" lua")
        within = within or line.endswith(BEGIN)
    return count


def _connected(url: str) -> socket.socket:
    sock = dial(url)
    sock.settimeout(PATIENCE)
    return sock


def _until_end(stream: socket.socket) -> list[bytes]:
    seen = bytearray()
    while END not in seen[-(1 << 17) :]:
        piece = stream.recv(1 << 16)
        if not piece:
            raise RuntimeError("a node ended while its commands were counted")
        seen += piece
    return bytes(seen).split(b"\r\n")
