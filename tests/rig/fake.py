"""A server that says what real ones say rarely: canned answers on a unix socket.

It knows the greeting and answers every script with the same words. Only for conditions that a real
server cannot be brought into within a test.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import hiredis

Words = list[bytes]


class FakeServer:
    """Answers each command with the bytes that `answer` returns; b"" hangs up."""

    def __init__(self, listen: Path, answer: Callable[[Words], bytes]) -> None:
        self.socket = listen
        self.commands: list[Words] = []
        self._answer = answer
        self._threads: list[threading.Thread] = []
        self._socks: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(listen))
        self._listener.listen(64)
        self._spawn(self._accept)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"unix://{self.socket}"

    def said(self, verb: bytes) -> list[Words]:
        """Return the commands that were said to it and start with a word."""
        return [words for words in list(self.commands) if words[0].upper() == verb]

    def close(self) -> None:
        """Hang up on everybody."""
        for sock in (self._listener, *self._socks):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(10)

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._socks.append(sock)
                self._spawn(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        reader = hiredis.Reader()
        with contextlib.suppress(OSError), sock:
            while data := sock.recv(65536):
                reader.feed(data)  # commands are arrays of strings, which a reader reads as well
                while (words := reader.gets()) is not False:
                    self.commands.append(words)
                    reply = self._answer(words)
                    if not reply:
                        return
                    sock.sendall(reply)


def bulk(text: str) -> bytes:
    """Write a text as a reply."""
    data = text.encode()
    return b"$%d\r\n%s\r\n" % (len(data), data)


def greets(then: bytes, *, run_id: str = "f" * 40) -> Callable[[Words], bytes]:
    """Return an answer that greets as a server does, and gives `then` to everything else."""

    def answer(words: Words) -> bytes:
        match words[0].upper():
            case b"HELLO":
                return b"%1\r\n+server\r\n+fake\r\n"
            case b"SELECT" | b"CLIENT" | b"AUTH":
                return b"+OK\r\n"
            case b"INFO":
                return bulk(f"redis_version:7.0.0\r\nrun_id:{run_id}\r\n")
        return then

    return answer


def scripted(answers: Sequence[bytes]) -> Callable[[Words], bytes]:
    """Return an answer that gives each of `answers` once, in order, and then hangs up."""
    left = list(answers)
    return lambda _: left.pop(0) if left else b""
