"""Which nodes can be reached and vote, who wants to know, and what keeps us from the others."""

import ssl
from typing import Protocol

import hiredis

from ..core.votes import Condition, Failure, Vote


class Health(Protocol):
    """Who wants to know which nodes can be reached, and vote."""

    def up(self, node: int) -> None:
        """Hear that a node has been greeted."""

    def down(self, node: int, failure: Failure) -> None:
        """Hear that a node cannot be reached."""

    def abstains(self, node: int, vote: Vote) -> None:
        """Hear that a node grants nothing for a while."""

    def unheard(self, node: int, rights: tuple[str, ...], why: str) -> None:
        """Hear that a node does not let us hear calls, or call others, for want of some rights."""


class NobodyAsks:
    """Wants to know nothing."""

    def up(self, node: int) -> None:
        """Do nothing."""

    def down(self, node: int, failure: Failure) -> None:
        """Do nothing."""

    def abstains(self, node: int, vote: Vote) -> None:
        """Do nothing."""

    def unheard(self, node: int, rights: tuple[str, ...], why: str) -> None:
        """Do nothing."""


def failure_of(error: Exception) -> Failure:
    """Name the condition behind a local error."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):  # it hung up: it may be back
        return Failure(Condition.BROKEN, text)
    if isinstance(error, ssl.SSLError | ValueError):
        return Failure(Condition.TLS, text)
    if isinstance(error, hiredis.ProtocolError):
        return Failure(Condition.PROTOCOL, text)
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return Failure(Condition.BROKEN, text)
    return Failure(Condition.UNREACHABLE, text)
