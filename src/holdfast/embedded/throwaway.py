"""Nodes that live as long as a test or a demo, and can be killed, paused and restarted."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, overload

from . import process
from .binary import server_binary
from .birth import initialise


class ThrowawayNode:
    """One server process on a unix socket, without persistence unless `config` asks for it.

    With a `port` it listens on that TCP port of this machine as well.
    """

    def __init__(
        self,
        directory: Path,
        *,
        binary: Path | None = None,
        config: Sequence[str] = (),
        port: int = 0,
    ) -> None:
        self.directory = directory
        self.socket = directory / "node.sock"
        self.log = directory / "node.log"
        self._binary = binary or server_binary()
        self._config = list(config)
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._was_up = False
        process.check_socket_path(self.socket)

    @property
    def url(self) -> str:
        """Where clients find it; the same after a restart."""
        return f"unix://{self.socket}"

    @property
    def tcp_url(self) -> str:
        """Where clients find it by TCP, if it was given a port."""
        return f"redis://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """The server's process id, None if it is down."""
        return self._process.pid if self._process is not None else None

    def start(self, *, wait: bool = True) -> Self:
        """Start the server; it comes up empty, unless `config` made it persistent.

        The first time it is initialised, so that it votes at once. After that it has forgotten its
        locks, as any server that is restarted, and guarded clients let it abstain: `initialise` it
        if that is not what the test is about.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._process = process.start(self._binary, self._command_line(), self.log)
        if wait:
            self._wait()
        return self

    def _wait(self) -> None:
        process.wait_until_up(self.socket, self._process, self.log)
        if not self._was_up:
            self.initialise()

    def initialise(self) -> None:
        """Assert that no lock is held on it: it votes at once. Needed again after a FLUSHALL."""
        self._was_up = initialise(self.socket) or self._was_up

    def _command_line(self) -> list[str]:
        basics = ["--bind", "127.0.0.1", "--port", str(self._port)]
        basics += ["--unixsocket", str(self.socket), "--dir", str(self.directory)]
        return [*basics, "--save", "", "--appendonly", "no", *self._config]

    def kill(self) -> None:
        """End it with SIGKILL: it has no chance to save or to say goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Stop it with SIGSTOP: connections stay open and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused one go on: it executes what has arrived meanwhile."""
        self._signal(signal.SIGCONT)

    def call(self, *words: str) -> str | None:
        """Say one command to it, as an administrator would; simple replies as text."""
        return process.call(self.socket, *words)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)
            os.kill(self._process.pid, signal.SIGCONT)  # a paused one could not end
        self._process.wait()
        self._process = None


class ThrowawayNodes(Sequence[ThrowawayNode]):
    """Several independent nodes, as a context manager that leaves nothing behind."""

    def __init__(
        self,
        count: int,
        *,
        binary: Path | None = None,
        config: Sequence[str] = (),
        tcp: bool = False,
    ) -> None:
        binary = binary or server_binary()  # before there is anything to leave behind
        self._directory = Path(tempfile.mkdtemp(prefix="holdfast-"))
        self._nodes = [
            ThrowawayNode(self._directory / str(number), binary=binary, config=config, port=port)
            for number, port in enumerate(_free_ports(count) if tcp else [0] * count, 1)
        ]

    @property
    def urls(self) -> list[str]:
        """Where clients find them."""
        return [node.url for node in self]

    @property
    def tcp_urls(self) -> list[str]:
        """Where clients find them by TCP, if they were made with `tcp=True`."""
        return [node.tcp_url for node in self]

    def __enter__(self) -> Self:
        try:
            for node in self:
                node.start(wait=False)
            for node in self:
                node._wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all nodes and remove their files."""
        for node in self:
            node.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[ThrowawayNode]:
        return iter(self._nodes)

    @overload
    def __getitem__(self, index: int) -> ThrowawayNode: ...
    @overload
    def __getitem__(self, index: slice) -> list[ThrowawayNode]: ...
    def __getitem__(self, index: int | slice) -> ThrowawayNode | list[ThrowawayNode]:
        return self._nodes[index]


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on right now."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in socks:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in socks]
