"""Waiting for many sockets at once.

`poll`, and not what `selectors` would choose: an epoll's list is shared with forked children, which
could take connections off their parent's list; and this is the hot path of every round.
"""

import contextlib
import select
import socket
from collections.abc import Callable

READ = select.POLLIN
READ_WRITE = select.POLLIN | select.POLLOUT


class Poller:
    """Sockets, and what to call when something happens to them."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self.wait = self._poll.poll
        """Return whose `calls` to call, after so many milliseconds at most."""
        self.calls: dict[int, Callable[[], None]] = {}
        """What to call, by the descriptor that `wait` names."""

    def watch(self, sock: socket.socket, mask: int, on_event: Callable[[], None]) -> None:
        """Look for `mask` on a socket, and for its end."""
        self.calls[sock.fileno()] = on_event  # first: see `forget`
        self._poll.register(sock, mask)

    def forget(self, sock: socket.socket) -> None:
        """Look for nothing on a socket any more, if it was looked at."""
        if sock.fileno() in self.calls:  # in this order: an interruption must not part the two
            with contextlib.suppress(KeyError):
                self._poll.unregister(sock)
            self.calls.pop(sock.fileno(), None)
