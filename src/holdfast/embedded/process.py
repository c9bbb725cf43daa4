"""Starting a server program, and asking whether it is there."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ..errors import EmbeddedServerError

START_TIMEOUT = 10.0
"""Seconds. A server with little data is up in hundredths; a busy machine may take longer."""

_POLL = 0.005
_LONGEST_SOCKET_PATH = 103
"""macOS allows 104 bytes for a socket's path with the final zero, Linux 108."""


def check_socket_path(path: Path) -> None:
    """Raise if no socket can have this path."""
    if len(str(path).encode()) > _LONGEST_SOCKET_PATH:
        raise EmbeddedServerError(
            f"the socket path {path} is longer than {_LONGEST_SOCKET_PATH} bytes;"
            " hint: set HOLDFAST_RUNTIME_DIR to a shorter directory"
        )


def call(path: Path, *words: str, timeout: float = 1.0) -> str | None:
    """Say one command to the server at a socket; its reply as text, None if nobody answers."""
    request = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(timeout)
            sock.connect(str(path))
            sock.sendall(f"*{len(words)}\r\n{request}".encode())
            return _read_reply(sock)
    except OSError:
        return None


def _read_reply(sock: socket.socket) -> str | None:
    with sock.makefile("rb") as stream:
        line = stream.readline()
        if not line:
            return None
        if not line.startswith(b"$"):
            return line[1:].strip().decode(errors="replace")
        return stream.read(max(int(line[1:]), 0)).decode(errors="replace")


def answers(path: Path) -> bool:
    """True if a server is there and ready to serve."""
    return call(path, "PING") == "PONG"


def wait_until_up(path: Path, process: subprocess.Popen[bytes] | None, log: Path) -> None:
    """Wait until the server answers. Raises with the end of its log if it does not."""
    deadline = time.monotonic() + START_TIMEOUT
    while not answers(path):
        ended = process is not None and process.poll() not in (None, 0)
        if ended or time.monotonic() > deadline:
            why = "it ended" if ended else f"no answer after {START_TIMEOUT:.0f} s"
            raise EmbeddedServerError(f"the server at {path} did not start: {why}\n{_tail(log)}")
        time.sleep(_POLL)


def start(binary: Path, config: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a server in a session of its own, so that Ctrl-C in our terminal spares it."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(binary), *config],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _tail(log: Path, lines: int = 8) -> str:
    with contextlib.suppress(OSError):
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    return ""
