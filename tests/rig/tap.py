"""A tap on one node's wire: it knows connections apart and writes down what is said on each.

Single connections can be held, so that a client's keeper hears nothing while its workers do:

- `hold(line)`, `hold_new()`: what is said there from now on arrives late, in order
- `let_go()`: deliver what was held, and hold nothing any more
"""

import contextlib
import queue
import socket
import threading
from pathlib import Path
from typing import NamedTuple

import hiredis

from holdfast.wire.scripts import EXCLUSIVE

CHUNK = 65536

_VERBS = {
    word.encode(): verb.value
    for verb, script in EXCLUSIVE.items()
    for word in (script.sha, script.text)
}


class Said(NamedTuple):
    """One command about a lock, in the order of arrival at the tap."""

    line: int
    """The connection's number; the first one ever made is 1."""
    verb: str
    token: str


class Tap:
    """Listens on a unix socket of its own, and passes everything on to a node's."""

    def __init__(self, upstream: Path, listen: Path) -> None:
        self.upstream = upstream
        self.socket = listen
        self.lines = 0
        """How many connections were ever made."""
        self.said: list[Said] = []
        self._held: set[int] = set()
        self._holds_new = False
        self._change = threading.Condition()
        self._socks: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(listen))
        self._listener.listen(128)
        self._spawn(self._accept)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"unix://{self.socket}"

    def heard(self, verb: str, token: str = "") -> list[int]:
        """Return the connections on which a verb was said, in order, repeated if it was."""
        said = list(self.said)
        return [each.line for each in said if each.verb == verb and token in ("", each.token)]

    # -- faults -----------------------------------------------------------------------------------

    def hold(self, line: int) -> None:
        """Keep back what is said on a connection from now on."""
        with self._change:
            self._held.add(line)

    def hold_new(self) -> None:
        """Keep back whatever is said on connections that are made from now on."""
        self._holds_new = True

    def let_go(self) -> None:
        """Deliver what was kept back, and whatever comes."""
        with self._change:
            self._held.clear()
            self._holds_new = False
            self._change.notify_all()

    def close(self) -> None:
        """End the tap and all its threads."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.let_go()
        for sock in list(self._socks):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for sock in self._socks:
            sock.close()
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
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socks += [near, far]
            try:
                far.connect(str(self.upstream))
            except OSError:
                near.shutdown(socket.SHUT_RDWR)
                continue
            self.lines += 1
            if self._holds_new:
                self.hold(self.lines)
            self._spawn(self._requests, self.lines, near, far)
            self._spawn(self._replies, near, far)

    def _requests(self, line: int, near: socket.socket, far: socket.socket) -> None:
        reader, arrived = hiredis.Reader(), queue.SimpleQueue[bytes]()
        self._spawn(self._pass_on, line, arrived, far)
        with contextlib.suppress(OSError):
            while data := near.recv(CHUNK):
                reader.feed(data)
                while (words := reader.gets()) is not False:
                    self._note(line, words)
                arrived.put(data)
        arrived.put(b"")

    def _pass_on(self, line: int, arrived: "queue.SimpleQueue[bytes]", far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := arrived.get():
                with self._change:
                    self._change.wait_for(lambda: line not in self._held)
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)  # all that was sent is still delivered

    def _note(self, line: int, words: list[bytes]) -> None:
        if words[0].upper() in (b"EVALSHA", b"EVAL"):
            verb = _VERBS.get(words[1])
            if verb is not None:
                arguments = words[3 + int(words[2]) :]
                token = arguments[5]
                self.said.append(Said(line, verb, token.decode()))

    def _replies(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(CHUNK):
                near.sendall(data)
        with contextlib.suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)
