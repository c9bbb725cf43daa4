"""Waiting for many sockets at once.

`poll`, and not what `selectors` would choose: an epoll's list is shared with forked children, which
could take connections off their parent's list; and this is the hot path of every round.
"""

import contextlib
import math
import select
import socket
from collections.abc import Callable

READ = select.POLLIN
READ_WRITE = select.POLLIN | select.POLLOUT


class Poller:
    """Sockets, and what to call when something happens to them."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._calls: dict[int, Callable[[], None]] = {}

    def watch(self, sock: socket.socket, mask: int, on_event: Callable[[], None]) -> None:
        """Look for `mask` on a socket, and for its end."""
        self._calls[sock.fileno()] = on_event  # first: see `forget`
        self._poll.register(sock, mask)

    def forget(self, sock: socket.socket) -> None:
        """Look for nothing on a socket any more, if it was looked at."""
        if sock.fileno() in self._calls:  # in this order: an interruption must not part the two
            with contextlib.suppress(KeyError):
                self._poll.unregister(sock)
            self._calls.pop(sock.fileno(), None)

    def wait(self, timeout: float) -> list[Callable[[], None]]:
        """Return what to call, after `timeout` seconds at most; rounded up to milliseconds."""
        calls, milliseconds = self._calls, math.ceil(timeout * 1000)
        return [calls[fd] for fd, _ in self._poll.poll(milliseconds if milliseconds > 0 else 0)]
