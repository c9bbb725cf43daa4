"""One embedded server per user and machine.

Whichever process comes first starts it, under a file lock; all the user's processes share it; it
outlives them. It listens on a unix socket in a directory that only the user may enter, and keeps an
append-only file beside it, so that a crash of the server forgets nothing. The directory is
machine-local on purpose: a home directory may be on a network file system that several machines
share, and two servers must never write one file. Whoever removes the directory under a running
server makes the next client start another one.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import EmbeddedServerError
from . import process
from .binary import server_binary
from .birth import initialise

_STOP_TIMEOUT = 10.0

_ROOTS = (Path("/var/tmp"), Path("/tmp"))  # noqa: S108  # what is made there is checked
"""Machine-local and always there; the first is kept over a reboot."""


def shared_server_url() -> str:
    """Return the URL of the user's embedded server, starting it if it is not running."""
    return SharedServer().ensure_running().url


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a running server."""

    pid: int
    version: str
    uptime_s: int


class SharedServer:
    """The user's embedded server, running or not."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory()
        self.socket = self.directory / "valkey.sock"
        self.log = self.directory / "valkey.log"

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"unix://{self.socket}"

    def ensure_running(self) -> "SharedServer":
        """Start the server unless it answers. Any number of processes may call this at once."""
        process.check_socket_path(self.socket)
        _make_private(self.directory)
        if process.answers(self.socket):
            return self
        binary = server_binary()
        with self._starting():
            if not process.answers(self.socket):  # nobody was faster
                self._start(binary)
        return self

    def status(self) -> Status | None:
        """Return what is running, None if nothing is."""
        info = process.call(self.socket, "INFO", "server")
        if info is None:
            return None
        facts = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        return Status(
            pid=int(facts.get("process_id", 0)),
            version=facts.get("valkey_version") or facts.get("redis_version", "unknown"),
            uptime_s=int(facts.get("uptime_in_seconds", 0)),
        )

    def stop(self) -> bool:
        """Stop the server; its data stays. False if there was none."""
        if not self.directory.is_dir():
            return False
        with self._starting():
            status = self.status()
            if status is None:
                return False
            process.call(self.socket, "SHUTDOWN", timeout=_STOP_TIMEOUT)
            deadline = time.monotonic() + _STOP_TIMEOUT
            while _is_alive(status.pid):
                if time.monotonic() > deadline:
                    raise EmbeddedServerError(f"the server (pid {status.pid}) does not stop")
                time.sleep(0.01)
        return True

    def _start(self, binary: Path) -> None:
        if (process.call(self.socket, "PING") or "").startswith("LOADING"):
            process.wait_until_up(self.socket, None, self.log)
            return
        hung = _pid_in(self.directory / "valkey.pid")
        if hung is not None and _is_server(hung, binary):
            raise EmbeddedServerError(
                f"the embedded server (pid {hung}) is running but does not answer at {self.socket};"
                f" hint: kill -CONT {hung}, or kill {hung}"
            )
        self.socket.unlink(missing_ok=True)  # a dead server leaves it behind
        first = not (self.directory / "appendonlydir").exists()
        daemon = process.start(binary, self._config(), self.log)
        daemon.wait()  # it goes on in the background, as nobody's child
        process.wait_until_up(self.socket, daemon, self.log)
        if first:
            initialise(self.socket, only_if_new=True)

    def _config(self) -> list[str]:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "pidfile": str(self.directory / "valkey.pid"),
            "logfile": str(self.log),
            "daemonize": "yes",
            "appendonly": "yes",
            "save": "",
            "maxmemory-policy": "noeviction",
        }
        return [word for name, value in settings.items() for word in (f"--{name}", value)]

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """Hold the file lock: only one process at a time starts or stops the server."""
        with (self.directory / "start.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def default_directory() -> Path:
    """Return the user's own directory for the server, on this machine.

    The same for every process of the user: neither `TMPDIR` nor `XDG_RUNTIME_DIR` is asked, because
    a login shell, a service and a cron job have different ones, or none, and two servers would mean
    two holders.
    """
    if given := os.environ.get("HOLDFAST_RUNTIME_DIR"):
        return Path(given)
    root = next((path for path in _ROOTS if path.is_dir()), Path(tempfile.gettempdir()))
    return root / f"holdfast-{os.getuid()}"


def _make_private(directory: Path) -> None:
    """Make the directory; trust one that is there only if nobody else can get in."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = directory.lstat()
    except OSError as error:
        raise EmbeddedServerError(f"{directory} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise EmbeddedServerError(f"{directory} is not a directory of yours")
    if stat.S_IMODE(facts.st_mode) & 0o077:
        raise EmbeddedServerError(
            f"{directory} is open to others; hint: chmod 700 {directory}, or set"
            " HOLDFAST_RUNTIME_DIR to a directory of its own"
        )


def _pid_in(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text())
    return None


def _is_server(pid: int, binary: Path) -> bool:
    """True if the process is a server program: pids are used again after a reboot."""
    try:
        return binary.name in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
