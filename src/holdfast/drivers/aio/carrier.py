"""One connection's bytes, as an asyncio protocol.

What is written within one turn of the loop goes out together at its end: many tasks that ask at
once cost one system call per node, or one for every `BATCH` of them, so that client and server
work at the same time.
"""

import asyncio
import contextlib
from typing import cast

from ..channel import Channel

BATCH = 32
"""How many commands are gathered before they are written: the server begins while we go on."""


class AsyncCarrier:
    """Moves bytes for one channel, over one connection after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
        self._opening: asyncio.Task[None] | None = None
        self._expected: _Connection | None = None
        """The connection that is being made; an earlier one comes too late."""
        self._transport: asyncio.Transport | None = None
        self.ending: asyncio.Transport | None = None
        """The connection that was told to end after it has sent all; a hung node may keep it."""
        self._unwritten: list[bytes | bytearray] = []

    @property
    def opening(self) -> "asyncio.Task[None] | None":
        """The task that makes a connection, if one does."""
        return self._opening

    # -- what the channel calls -------------------------------------------------------------------

    def open(self) -> None:
        """Begin to connect, name look-up and TLS included."""
        self._opening = self._loop.create_task(self._open(), name="holdfast-connect")

    async def _open(self) -> None:
        endpoint, connection = self._channel.endpoint, _Connection(self)
        self._expected = connection
        try:
            if endpoint.path:
                await self._loop.create_unix_connection(lambda: connection, endpoint.path)
            else:
                await self._loop.create_connection(
                    lambda: connection, endpoint.host, endpoint.port, ssl=endpoint.tls
                )
        except (OSError, ValueError) as error:  # ValueError: TLS without a usable host name
            if self._opening is asyncio.current_task():
                self._opening = None
                self._channel.broke(error)

    def write(self, data: bytes | bytearray) -> None:
        """Keep the bytes for the end of this turn, or until there is a batch of them."""
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten.append(data)
        if len(self._unwritten) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, []
        if data and self._transport is not None:
            self._transport.write(b"".join(data))

    def look(self) -> None:
        """Do nothing: the loop looks all the time."""

    def finish(self) -> None:
        """Write what was kept, and let the transport end after it has sent all of it."""
        transport = self._transport
        if transport is not None and not self._loop.is_closed():
            self._flush()
            self.ending, self._transport = transport, None
            transport.close()

    def close(self) -> None:
        """Drop the connection, and a task that tries to make one."""
        opening, self._opening = self._opening, None
        transport, self._transport = self._transport, None
        self._expected = None
        self._unwritten = []
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            if opening is not None:
                opening.cancel()
            if transport is not None:
                transport.abort()

    # -- what a connection says -------------------------------------------------------------------

    def made(self, connection: "_Connection", transport: asyncio.Transport) -> None:
        """Begin to use a connection, unless it has been given up meanwhile."""
        if connection is not self._expected:
            transport.abort()
            return
        self._opening = self._expected = None
        self._transport = transport
        self._channel.opened()

    def received(self, transport: asyncio.BaseTransport | None, data: bytes) -> None:
        """Pass bytes on, unless they are a connection's that was given up."""
        if transport is self._transport:
            self._channel.received(data)

    def lost(self, transport: asyncio.BaseTransport | None, error: Exception | None) -> None:
        """Tell the channel, unless it has given this connection up itself."""
        if transport is self._transport and transport is not None:
            self._transport = None
            self._channel.broke(error or ConnectionResetError("the server closed the connection"))


class _Connection(asyncio.Protocol):
    """What asyncio calls for one connection; it may outlive the carrier's interest in it."""

    def __init__(self, carrier: AsyncCarrier) -> None:
        self._carrier = carrier
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by birth
        self._carrier.made(self, self._transport)

    def data_received(self, data: bytes) -> None:
        self._carrier.received(self._transport, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._carrier.lost(self._transport, error)
