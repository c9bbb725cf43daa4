"""The stage: starts and kills workers and nodes, and leaves nothing behind.

All workers report through one pipe, because its order can be relied upon (see `events.py`).
"""

import contextlib
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.drivers.clock import now
from holdfast.embedded import ThrowawayNodes

from . import events
from .comeback import Comeback
from .counter import Counter
from .onlooker import Onlooker
from .plot import Plot
from .trap import Trap

_CHUNK = 65536


class Stage:
    """Nodes and workers that exist as long as the block."""

    def __init__(self, plot: Plot) -> None:
        self._plot = plot
        self._nodes = ThrowawayNodes(plot.nodes)
        self._directory = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
        self._trap = Trap(self._directory)
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._comeback: Comeback | None = None
        self._onlooker: Onlooker | None = None
        self._unfinished = b""
        self._pipe, self._workers_end = os.pipe()

    def __enter__(self) -> Self:
        try:
            self._nodes.__enter__()
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

    def start_workers(self) -> None:
        """Start all workers, which report when they are ready; with a lock, watch the line."""
        if self._plot.locked:
            self._onlooker = Onlooker(self._plot.workers, self._nodes.urls)
        for number in range(1, self._plot.workers + 1):
            self._workers[number] = self._start_worker(number)

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "holdfast.demo.worker", "--number", str(number)]
        command += ["--directory", str(self._directory), *self._nodes.urls]
        if not self._plot.locked:
            command.append("--without-lock")
        with self._words_of(number).open("wb") as words:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=self._workers_end,
                stderr=words,
                start_new_session=True,  # Ctrl-C is for us: we send them home
            )

    def begin(self) -> None:
        """Let the workers begin, all at once."""
        for process in self._workers.values():
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):  # it has ended; we hear of it soon
                    process.stdin.write(b"\n")
                    process.stdin.flush()

    def _words_of(self, number: int) -> Path:
        return self._directory / f"worker-{number}.err"

    @property
    def is_empty(self) -> bool:
        """True when no worker is left."""
        return not self._workers

    def listen(self, patience: float) -> list[events.Event]:
        """Return what was reported, who has gone, and what the nodes say.

        Waits up to `patience` seconds for reports.
        """
        gone = self._reap()  # first: what they said is in the pipe by now
        heard: list[events.Event] = []
        if select.select([self._pipe], [], [], 0 if gone else patience)[0]:
            *lines, self._unfinished = (self._unfinished + self._read()).split(b"\n")
            heard += [events.from_line(line) for line in lines]
        return heard + gone + self._ask_node() + self._look()

    def _read(self) -> bytes:
        return os.read(self._pipe, _CHUNK)

    def _reap(self) -> list[events.Event]:
        gone: list[events.Event] = []
        for number, process in list(self._workers.items()):
            code = process.poll()
            if code is not None:
                gone.append(events.WorkerGone(number, now(), code, self._last_words(number)))
                self._forget(number)
        return gone

    def _last_words(self, number: int) -> str:
        lines = self._words_of(number).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def kill_node(self) -> events.NodeKilled:
        """Kill a node, whichever."""
        number, node = random.choice(list(enumerate(self._nodes, start=1)))
        at = now()
        node.kill()
        return events.NodeKilled(number, at)

    def restart_node(self, number: int) -> events.NodeRestarted:
        """Start a killed node again, empty; `listen` tells how it is from now on."""
        self._nodes[number - 1].start()
        self._end_comeback()
        self._comeback = Comeback(number, self._nodes.urls)
        return events.NodeRestarted(number, now())

    def _look(self) -> list[events.Event]:
        """Return who is in line, if it is time to look."""
        line = self._onlooker.look() if self._onlooker is not None else None
        return [line] if line is not None else []

    def _ask_node(self) -> list[events.Event]:
        """Return how a node is that was started again."""
        news = self._comeback.news() if self._comeback is not None else None
        if isinstance(news, events.NodeVotes):
            self._end_comeback()
        return [news] if news is not None else []

    def _end_comeback(self) -> None:
        if self._comeback is not None:
            self._comeback.close()
        self._comeback = None

    def lay_trap(self) -> None:
        """Make the next worker inside a slow one."""
        self._trap.lay()

    def kill_worker(self, number: int) -> events.WorkerKilled:
        """Kill a worker and see it dead."""
        process, at = self._workers[number], now()
        process.kill()
        process.wait()
        self._forget(number)
        return events.WorkerKilled(number, at)

    def send_home(self) -> None:
        """Let the workers finish what they are at, and end."""
        for process in self._workers.values():
            _close_input(process)

    def read_counter(self) -> int:
        """Look at the counter itself, not at what anybody said of it."""
        counter = Counter(self._directory)
        try:
            return counter.read()
        finally:
            counter.close()

    def close(self) -> None:
        """End every process and remove every file."""
        for number, process in list(self._workers.items()):
            process.kill()
            process.wait()
            self._forget(number)
        self._end_comeback()
        if self._onlooker is not None:
            self._onlooker.close()
        self._nodes.close()
        os.close(self._pipe)
        os.close(self._workers_end)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _forget(self, number: int) -> None:
        _close_input(self._workers.pop(number))


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # closing flushes
            process.stdin.close()
