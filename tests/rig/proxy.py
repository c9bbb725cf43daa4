"""A proxy in front of one node, with the faults of a network.

It sees bytes. Faults are switched while traffic runs:

- `hold_requests()` ... `let_requests_pass()`: requests arrive late, in order
- `swallow_replies()`: what the server answers from now on is lost, on existing connections for ever
- `truncate_reply(n)`: only the first `n` bytes of the next reply arrive, then the line is cut
- `cut()`: all connections break now
- `refuse()` ... `accept()`: new connections are closed at once
"""

import contextlib
import socket
import threading
from pathlib import Path

CHUNK = 65536


class _Pair:
    """One client's connection and its counterpart to the server."""

    def __init__(self, near: socket.socket, far: socket.socket) -> None:
        self.near = near
        self.far = far
        self.deaf = False

    def close(self) -> None:
        for sock in (self.near, self.far):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Listens on a unix socket of its own, and passes everything on to a node's."""

    def __init__(self, upstream: Path, listen: Path) -> None:
        self.upstream = upstream
        self.socket = listen
        self.connections = 0
        """How many were ever made."""
        self.replies_lost = 0
        """How many pieces of replies were swallowed."""
        self.requests_held = 0
        """How many pieces of requests were held back."""
        self._flowing = threading.Event()
        self._flowing.set()
        self._swallow = False
        self._truncate: int | None = None
        self._refuse = False
        self._pairs: list[_Pair] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(listen))
        self._listener.listen(128)
        self._spawn(self._accept)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"unix://{self.socket}"

    # -- faults -----------------------------------------------------------------------------------

    def hold_requests(self) -> None:
        """Keep requests back from now on."""
        self._flowing.clear()

    def let_requests_pass(self) -> None:
        """Deliver what was kept back, and whatever comes."""
        self._flowing.set()

    def swallow_replies(self) -> None:
        """Lose replies from now on. A connection that lost one stays deaf until it is cut."""
        with self._lock:
            self._swallow = True
            for pair in self._pairs:
                pair.deaf = True

    def truncate_reply(self, size: int) -> None:
        """Let only `size` bytes of the next reply through, then cut that connection."""
        self._truncate = size

    def refuse(self) -> None:
        """Hang up on whoever connects from now on."""
        self._refuse = True

    def accept(self) -> None:
        """Serve new connections again."""
        self._refuse = False

    def cut(self) -> None:
        """Break all connections, now."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.close()

    def heal(self) -> None:
        """End all faults; deaf connections are cut."""
        self._swallow, self._truncate, self._refuse = False, None, False
        with self._lock:
            deaf = [pair for pair in self._pairs if pair.deaf]
        for pair in deaf:
            pair.close()
        self.let_requests_pass()

    def close(self) -> None:
        """End the proxy and all its threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flowing.set()
        self.cut()
        for thread in self._threads:
            thread.join(10)
        self.socket.unlink(missing_ok=True)

    # -- traffic ----------------------------------------------------------------------------------

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # closed
                return
            self.connections += 1
            if self._refuse:
                near.close()
                continue
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                far.connect(str(self.upstream))
            except OSError:
                near.close()
                far.close()
                continue
            pair = _Pair(near, far)
            with self._lock:
                pair.deaf = self._swallow
                self._pairs.append(pair)
            self._spawn(self._serve, pair)

    def _serve(self, pair: _Pair) -> None:
        upstream = threading.Thread(target=self._requests, args=(pair,), daemon=True)
        upstream.start()
        self._replies(pair)
        pair.close()
        self._flowing.wait()
        upstream.join()
        pair.near.close()
        pair.far.close()

    def _requests(self, pair: _Pair) -> None:
        with contextlib.suppress(OSError):
            while data := pair.near.recv(CHUNK):
                if not self._flowing.is_set():
                    self.requests_held += 1
                    self._flowing.wait()
                pair.far.sendall(data)
        with contextlib.suppress(OSError):
            pair.far.shutdown(socket.SHUT_WR)  # all that was sent is still delivered

    def _replies(self, pair: _Pair) -> None:
        with contextlib.suppress(OSError):
            while data := pair.far.recv(CHUNK):
                if pair.deaf:
                    self.replies_lost += 1
                    continue
                size, self._truncate = self._truncate, None
                if size is not None:
                    pair.near.sendall(data[:size])
                    return
                try:
                    pair.near.sendall(data)
                except OSError:  # nobody is there to read it; what was sent is still delivered
                    pair.deaf = True
