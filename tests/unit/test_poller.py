"""The poller stays usable when an interruption parts two of its steps."""

import socket

import pytest

from holdfast.drivers.blocking.poller import READ, Poller


class Struck(BaseException):
    """What Ctrl-C would raise."""


class Striking(dict):
    """Raises where a pop would be."""

    def pop(self, *_: object) -> object:
        raise Struck


def test_an_interruption_while_forgetting_leaves_nothing_to_call() -> None:
    one, other = socket.socketpair()
    with one, other:
        poller = Poller()
        poller.watch(one, READ, lambda: None)
        poller.calls = Striking(poller.calls)
        with pytest.raises(Struck):
            poller.forget(one)
        other.send(b"x")
        assert poller.wait(0) == []
        poller.calls = dict(poller.calls)
        poller.forget(one)  # once more, and for good
        assert poller.calls == {}
