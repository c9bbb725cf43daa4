"""Nodes whose wall clocks a test can set.

A server's expiry follows its wall clock. A small library, `shim/clock.c`, is preloaded into the
server and answers for the system's wall clock; monotonic and boot time stay true. Nothing but the
one process sees it. Needs a C compiler, and a server program that is linked dynamically.
"""

import mmap
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.embedded import ThrowawayNode
from holdfast.embedded.binary import server_binary
from rig.waiting import until

SOURCE = Path(__file__).parent / "shim" / "clock.c"

VARIABLE = "RIG_CLOCK"
"""The environment variable that tells the shim its file."""

FROZEN_PPM = -1_000_000

SEEN = 0.5
"""Seconds. Less than the steps that tests make, more than it takes to ask for the time."""

_MICRO = 1_000_000
_CURRENT = struct.Struct("=q")
_SETTING = struct.Struct("=qqq")


class CannotBuild(Exception):
    """There is no shim on this machine, and the message says why."""


class Clock:
    """A wall clock: the system's, until it is stepped, made to drift or frozen."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(_CURRENT.size + 2 * _SETTING.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self._since_us, self._offset_us, self._rate_ppm = _real_us(), 0, 0
        self.until_seen: Callable[[], object] = lambda: None
        """Waits until whoever runs with this clock has seen its last change."""

    @property
    def ahead(self) -> float:
        """How many seconds it is ahead of the system's clock now."""
        return self._ahead_us(_real_us()) / _MICRO

    def step(self, seconds: float) -> None:
        """Move it, forwards or (below zero) backwards, at once."""
        self._set(round(seconds * _MICRO), self._rate_ppm)

    def drift(self, ppm: int) -> None:
        """Let it run too fast by so many millionths, or (below zero) too slowly."""
        self._set(0, ppm)

    def freeze(self) -> None:
        """Stop it."""
        self._set(0, FROZEN_PPM)

    def close(self) -> None:
        """Let go of the file; whoever runs with this clock goes on with it."""
        self._map.close()

    def _ahead_us(self, real_us: int) -> int:
        return self._offset_us + (real_us - self._since_us) * self._rate_ppm // _MICRO

    def _set(self, by_us: int, rate_ppm: int) -> None:
        """Change it from now on: fill in the setting that does not count, and let it count."""
        now = _real_us()
        self._offset_us = self._ahead_us(now) + by_us
        self._since_us, self._rate_ppm = now, rate_ppm
        [current] = _CURRENT.unpack_from(self._map)
        place = _CURRENT.size + (1 - current) * _SETTING.size
        _SETTING.pack_into(self._map, place, self._since_us, self._offset_us, rate_ppm)
        _CURRENT.pack_into(self._map, 0, 1 - current)
        self.until_seen()


class Shim:
    """The library, built once into a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._library = directory / "clock.so"
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if compiler is None:
            raise CannotBuild("there is no C compiler")
        flags = ["-O1", "-shared", "-fPIC", "-o", str(self._library)]
        built = subprocess.run(
            [compiler, *flags, str(SOURCE)], capture_output=True, text=True, timeout=60
        )
        if built.returncode:
            raise CannotBuild(f"{compiler} cannot build it: {built.stderr.strip()}")

    def environment(self, clock: Clock) -> dict[str, str]:
        """Return the environment of a process that is to run with a clock."""
        return os.environ | {"LD_PRELOAD": str(self._library), VARIABLE: str(clock.path)}

    def wrap(self, binary: Path, clock: Clock, wrapper: Path) -> Path:
        """Write a program that runs another one with a clock."""
        settings = f"LD_PRELOAD='{self._library}' {VARIABLE}='{clock.path}'"
        wrapper.write_text(f"#!/bin/sh\nexec env {settings} '{binary}' \"$@\"\n")
        wrapper.chmod(0o755)
        return wrapper

    def node(
        self, directory: Path, *, binary: Path | None = None, config: Sequence[str] = ()
    ) -> "ShimmedNode":
        """Describe a node with a clock of its own; it is not started."""
        directory.mkdir(parents=True)
        clock = Clock(directory / "clock")
        wrapper = self.wrap(binary or server_binary(), clock, directory / "server")
        return ShimmedNode(clock, directory, binary=wrapper, config=config)


class ShimmedNode(ThrowawayNode):
    """A node with a clock that can be set while it runs."""

    def __init__(
        self, clock: Clock, directory: Path, *, binary: Path, config: Sequence[str] = ()
    ) -> None:
        super().__init__(directory, binary=binary, config=config)
        self.clock = clock
        clock.until_seen = self._see_clock

    def time(self) -> float:
        """Return what the node says the time is, in seconds since the epoch."""
        word = self.call("EVAL", "local t = redis.call('TIME') return t[1] .. '.' .. t[2]", "0")
        assert word is not None, "the node does not answer"
        seconds, _, micros = word.partition(".")
        return int(seconds) + int(micros) / _MICRO

    def _see_clock(self) -> None:
        """Wait until it goes by its clock: a server may look at it once a millisecond only."""
        if self.pid is not None:
            until(lambda: abs(self.time() - time.time() - self.clock.ahead) < SEEN)

    def end(self) -> None:
        """Kill it, and let go of its clock."""
        self.kill()
        self.clock.close()


def _real_us() -> int:
    return time.time_ns() // 1000
