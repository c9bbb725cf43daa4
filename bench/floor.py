"""The floor: the least that any client must do. Raw sockets, hiredis, the same scripts.

What is sent is what holdfast sends, with fence and guard, packed anew each time with a fresh token
and stamp. No timeouts, no errors, no retries, no clocks that are checked, no fork, no threads:
nobody could use it, and nobody can beat it.
"""

import asyncio
import os
import select
import socket
import time
from collections import deque
from collections.abc import Sequence

import hiredis

from holdfast.core.clocks import NodeClock
from holdfast.core.effects import Command, Verb
from holdfast.core.guard import NO_GUARD, Guard
from holdfast.drivers.aio.carrier import BATCH
from holdfast.wire.commands import pack
from holdfast.wire.packing import pack_words
from holdfast.wire.peer import Peer
from holdfast.wire.scripts import SCRIPTS

from .dial import dial

TTL_MS, MAX_TTL_MS = 30_000, 60_000

ENDING = Peer(NodeClock(trusting=True), 0).ending(0.0)
"""The last words of a request, without a deadline."""


def guard_of(nodes: int) -> Guard:
    """Return the guard that holdfast has on so many nodes."""
    return Guard(MAX_TTL_MS) if nodes > 1 else NO_GUARD


def request(name: str, token: str, guard: Guard) -> bytes:
    """Write a request."""
    stamp = int(time.time() * 1e6)
    return pack(Command(Verb.REQUEST, name, token, TTL_MS, stamp, guard)) + ENDING


def release(name: str, token: str) -> bytes:
    """Write a release."""
    return pack(Command(Verb.RELEASE, name, token))


def teach(urls: Sequence[str]) -> None:
    """Make the nodes know the scripts, so that EVALSHA works from the start."""
    for url in urls:
        with dial(url) as sock:
            for script in SCRIPTS.values():
                sock.sendall(pack_words(("SCRIPT", "LOAD", script.text)))
                sock.recv(4096)


class BlockingFloor:
    """Write to all nodes, then poll until a majority has answered; once per round."""

    def __init__(self, urls: Sequence[str]) -> None:
        teach(urls)
        self._poll = select.poll()
        self._by_fd: dict[int, tuple[socket.socket, hiredis.Reader]] = {}
        for url in urls:
            sock = dial(url)
            sock.setblocking(False)
            self._poll.register(sock, select.POLLIN)
            self._by_fd[sock.fileno()] = sock, hiredis.Reader(notEnoughData=Ellipsis)
        self._quorum, self._guard = len(urls) // 2 + 1, guard_of(len(urls))
        self._late = dict.fromkeys(self._by_fd, 0)

    def pair(self, name: str) -> None:
        """Acquire and release once."""
        token = os.urandom(20).hex()
        self._round(request(name, token, self._guard))
        self._round(release(name, token))

    def _round(self, packed: bytes) -> None:
        for sock, _ in self._by_fd.values():
            sock.send(packed)
        late, yes = self._late, 0
        for fd in late:
            late[fd] += 1
        while yes < self._quorum:
            for fd, _ in self._poll.poll():
                sock, reader = self._by_fd[fd]
                reader.feed(sock.recv(65536))
                while (reply := reader.gets()) is not Ellipsis:
                    late[fd] -= 1
                    if not late[fd]:
                        yes += reply[0]


class _Pipe(asyncio.Protocol):
    """One multiplexed connection: futures answered in order, written in batches."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reader = hiredis.Reader(notEnoughData=Ellipsis)
        self._waiting: deque[_Votes] = deque()
        self._unwritten: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def ask(self, packed: bytes, votes: "_Votes") -> None:
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten.append(packed)
        self._waiting.append(votes)
        if len(self._unwritten) == BATCH:
            self._flush()

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, []
        if data:
            self.transport.write(b"".join(data))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not Ellipsis:
            self._waiting.popleft().add(reply[0])


class _Votes:
    """Counts one round's grants."""

    __slots__ = ("_missing", "future")

    def __init__(self, future: "asyncio.Future[None]", quorum: int) -> None:
        self.future = future
        self._missing = quorum

    def add(self, vote: int) -> None:
        self._missing -= vote
        if self._missing == 0 and vote:
            self.future.set_result(None)


class AsyncFloor:
    """The same for many tasks on one loop: one connection per node."""

    def __init__(self, urls: Sequence[str]) -> None:
        teach(urls)
        self._urls = urls
        self._quorum, self._guard = len(urls) // 2 + 1, guard_of(len(urls))
        self._pipes: list[_Pipe] = []

    async def open(self) -> None:
        """Connect."""
        self._loop = asyncio.get_running_loop()
        for url in self._urls:
            _, pipe = await self._loop.create_connection(
                lambda: _Pipe(self._loop), sock=_non_blocking(dial(url))
            )
            self._pipes.append(pipe)

    async def pair(self, name: str) -> None:
        """Acquire and release once."""
        token = os.urandom(20).hex()
        await self._round(request(name, token, self._guard))
        await self._round(release(name, token))

    def _round(self, packed: bytes) -> "asyncio.Future[None]":
        votes = _Votes(self._loop.create_future(), self._quorum)
        for pipe in self._pipes:
            pipe.ask(packed, votes)
        return votes.future


def _non_blocking(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    return sock
