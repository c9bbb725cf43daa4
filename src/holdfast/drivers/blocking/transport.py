"""A non-blocking socket on its way to a server and after, with or without TLS.

Every method returns at once. `wants_write` says what the poller should wait for besides input.
"""

import contextlib
import errno
import os
import socket
import ssl

from ...wire.endpoint import Endpoint
from .resolver import Address

NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""What reading and writing raise if they would have to wait."""


class Transport:
    """One connection's bytes."""

    __slots__ = (
        "_connected", "_endpoint", "_handshaking", "recv", "secure", "send", "sock", "wants_write",
    )  # fmt: skip

    def __init__(self, endpoint: Endpoint, address: Address) -> None:
        """Begin to connect. Raises OSError if that fails at once."""
        family, place = address
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            if family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            code = sock.connect_ex(place)
            # EAGAIN is a failure: a unix socket's queue is full, and nothing is under way.
            if code and code != errno.EINPROGRESS:
                raise OSError(code, os.strerror(code))
            self._connected = not code
        except BaseException:
            sock.close()
            raise
        self.sock = sock
        self.recv, self.send = sock.recv, sock.send
        """The socket's own methods. They raise one of `NOT_NOW` if there is nothing to do."""
        self._endpoint = endpoint
        self.secure = endpoint.tls is not None
        """True if TLS may have decrypted more than was taken, which the poller cannot see."""
        self._handshaking = self.secure
        self.wants_write = True
        """True while there is something to write, or a connect or handshake to go on with."""

    def advance(self) -> bool:
        """Go on connecting; True once bytes can flow. Raises OSError if it has failed."""
        if not self._connected:
            code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            try:
                self.sock.getpeername()
            except OSError as error:
                if error.errno == errno.ENOTCONN:
                    return False
                raise
            self._connected = True
        if self._handshaking:
            try:
                self._secured().do_handshake()
            except ssl.SSLWantReadError:
                self.wants_write = False
                return False
            except ssl.SSLWantWriteError:
                self.wants_write = True
                return False
            self._handshaking = False
        self.wants_write = False
        return True

    def _secured(self) -> ssl.SSLSocket:
        """Return the socket with TLS around it: only a connected one can be wrapped."""
        if isinstance(self.sock, ssl.SSLSocket):
            return self.sock
        endpoint = self._endpoint
        assert endpoint.tls is not None  # noqa: S101  # for the type checker
        try:
            sock = endpoint.tls.wrap_socket(
                self.sock, do_handshake_on_connect=False, server_hostname=endpoint.host
            )
        except ValueError as error:  # a host name that no certificate can have
            raise ssl.SSLError(str(error)) from None
        self.sock = sock  # the descriptor stays the same: whoever watches it need not know
        self.recv, self.send = sock.recv, sock.send
        return sock

    def close(self) -> None:
        """Close the socket. Sends nothing: in a forked child the connection is the parent's."""
        with contextlib.suppress(OSError):
            self.sock.close()
