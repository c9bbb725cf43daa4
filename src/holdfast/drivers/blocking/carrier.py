"""One connection's bytes, on a line's poller."""

import contextlib
import weakref
from typing import TYPE_CHECKING

from ..channel import Channel
from .poller import READ, READ_WRITE
from .resolver import Address, Lookup, lookup, unix_address
from .transport import NOT_NOW, Transport

if TYPE_CHECKING:
    from .line import Line

CHUNK = 65536


class BlockingCarrier:
    """Moves bytes for one channel, over one connection after the other."""

    __slots__ = (
        "_addresses", "_channel", "_gathering", "_line", "_lookup", "_opened", "_transport",
        "_unsent", "_watched",
    )  # fmt: skip

    def __init__(self, line: "Line", channel: Channel, *, gathering: bool) -> None:
        """Move bytes for a channel; `gathering` keeps them until `flush`."""
        self._line: Line = weakref.proxy(line)  # no cycle: a line that is lost ends at once
        self._channel = channel
        self._gathering = gathering
        self._lookup: Lookup | None = None
        self._addresses: list[Address] = []
        self._transport: Transport | None = None
        self._opened = False
        self._watched = 0
        self._unsent = bytearray()

    @property
    def unsent(self) -> bool:
        """True if there are bytes that the socket has not taken yet."""
        return bool(self._unsent)

    # -- what the channel calls -------------------------------------------------------------------

    def open(self) -> None:
        """Begin to connect: look the name up, then try its addresses in turn."""
        endpoint = self._channel.endpoint
        if endpoint.path:
            self._addresses = [unix_address(endpoint.path)]
            self._try_next_address(OSError("no address"))
        else:
            self._lookup = lookup(endpoint.host, endpoint.port, self._line.bell)
            self.on_lookup()

    def write(self, data: bytes | bytearray) -> None:
        """Write at once what the socket takes, unless it gathers; the poller sees to the rest."""
        transport = self._transport
        if transport is None:
            raise BrokenPipeError("there is no connection")
        if self._unsent or self._gathering:
            self._unsent += data
            return
        try:
            sent = transport.send(data)
        except NOT_NOW:
            sent = 0
        except (BrokenPipeError, ConnectionResetError):
            self._watch()
            return  # the end is found by reading, after what the server had to say about it
        if sent < len(data):
            self._unsent += data[sent:]
            self._watch()

    def look(self) -> None:
        """Read what has come between rounds, when nobody looked."""
        self.on_lookup()
        self.on_event()

    def finish(self) -> None:
        """Do nothing: whatever the socket took is sent even after it is closed."""

    def close(self) -> None:
        """Close the connection, or stop making one."""
        transport, self._transport, self._lookup = self._transport, None, None
        self._addresses = []
        self._opened, self._watched = False, 0
        self._unsent = bytearray()
        if transport is not None:
            self._line.unwatch(transport.sock)
            transport.close()

    def drop(self) -> None:
        """Close the socket and no more: the line itself is gone."""
        if self._transport is not None:
            self._transport.close()

    # -- what the line calls ----------------------------------------------------------------------

    def flush(self) -> None:
        """Write what was gathered."""
        transport = self._transport
        if not self._unsent or transport is None or self._watched != READ:
            return  # nothing to write, or the poller sees to it
        try:
            self._flush(transport)
        except OSError as error:
            self._channel.broke(error)

    def on_lookup(self) -> None:
        """Go on after a name look-up, if it is done."""
        done = self._lookup
        if done is None or done.addresses is None:
            return
        self._lookup = None
        self._channel.progressed()
        self._addresses = done.addresses
        self._try_next_address(OSError(f"name look-up failed: {done.error or 'no address'}"))

    def on_event(self) -> None:
        """Move on: something can be read or written."""
        transport = self._transport
        if transport is None:  # broken by an earlier event of the same turn
            return
        try:
            if self._opened:
                try:
                    data = transport.recv(CHUNK)
                except NOT_NOW:
                    data = None
                if data:
                    self._channel.received(data)
                    if transport.secure:
                        self._receive_rest(transport)
                elif data is not None:
                    raise ConnectionResetError("the server closed the connection")
                if not self._unsent and self._watched == READ:  # the usual case
                    return
            elif transport.advance():
                self._opened = True
                self._channel.opened()
            if self._transport is transport:
                self._flush(transport)
        except OSError as error:
            if self._opened:
                self._channel.broke(error)
            else:
                self._line.unwatch(transport.sock)
                transport.close()
                self._transport, self._watched = None, 0
                self._try_next_address(error)

    def _receive_rest(self, transport: Transport) -> None:
        """Read what TLS has decrypted besides, which the poller cannot see."""
        with contextlib.suppress(*NOT_NOW):
            while self._transport is transport:  # until there is no more, or it is given up
                data = transport.recv(CHUNK)
                if not data:
                    raise ConnectionResetError("the server closed the connection")
                self._channel.received(data)

    def _flush(self, transport: Transport) -> None:
        if self._unsent:
            with contextlib.suppress(*NOT_NOW):
                del self._unsent[: transport.send(self._unsent)]
        self._watch()

    # -- connecting -------------------------------------------------------------------------------

    def _try_next_address(self, error: Exception) -> None:
        """Begin to connect to the next address; with none left, fail as the last one did."""
        while self._addresses:
            address = self._addresses.pop(0)
            try:
                self._transport = Transport(self._channel.endpoint, address)
            except (OSError, ValueError) as failure:  # ValueError: TLS without a usable host name
                error = failure
                continue
            self._watch()
            return
        self._channel.broke(error)

    def _watch(self) -> None:
        """Tell the poller what to look for."""
        transport = self._transport
        if transport is None:
            return
        wanted = READ_WRITE if transport.wants_write or self._unsent else READ
        if wanted != self._watched:
            self._line.watch(transport.sock, wanted, self)
            self._watched = wanted
