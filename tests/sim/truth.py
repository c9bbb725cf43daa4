"""A real server to compare the model with, and how replies are compared."""

import socket
from typing import Any

import hiredis

EPOCH_US = 10**15


class Real:
    """A raw connection to a real server."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._reader = hiredis.Reader(notEnoughData=Ellipsis)

    def call(self, *words: bytes) -> Any:
        self._socket.sendall(hiredis.pack_command(words))
        while (reply := self._reader.gets()) is Ellipsis:
            self._reader.feed(self._socket.recv(65536))
        return reply

    def close(self) -> None:
        self._socket.close()


def equal(ours: Any, theirs: Any) -> bool:
    """Compare replies, errors by their text."""
    if isinstance(ours, hiredis.ReplyError):
        return isinstance(theirs, hiredis.ReplyError) and str(ours) == str(theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    return bool(ours == theirs)


def same(ours: Any, theirs: Any) -> bool:
    """Compare replies, times within what passed meanwhile."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if (our_time := _time(ours)) is not None and (their_time := _time(theirs)) is not None:
        slack = 20_000_000 if our_time > EPOCH_US else 20_000
        return abs(our_time - their_time) <= slack
    return equal(ours, theirs)


def _time(value: Any) -> int | None:
    """Return a number that may be a time, in whatever unit."""
    if isinstance(value, bytes) and value.isdigit() and len(value) > 3:
        return int(value)
    return value if isinstance(value, int) and abs(value) > 1000 else None
