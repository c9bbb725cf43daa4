"""Distributed locks on Redis and Valkey: one server, or a quorum of independent ones."""

from importlib import import_module
from types import ModuleType

from .client import Client, connect
from .core.outcomes import LossReason, Released
from .errors import (
    BadInput,
    Busy,
    ClientClosed,
    DuplicateNode,
    EmbeddedServerError,
    EvictingNode,
    FencedOff,
    HoldfastError,
    LeaseError,
    LeaseLost,
    NodeReport,
    NotConfirmed,
    NotHeld,
    RoundFailed,
    TimedOut,
    Unreachable,
)
from .inspection import Holder, Waiter
from .journal import Stats
from .lease import Lease
from .lock import Lock
from .nodes import NodeStatus

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """Load `holdfast.aio` when it is first spoken of: whoever uses threads needs no asyncio."""
    if name == "aio":
        return import_module("holdfast.aio")
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


__all__ = [
    "BadInput",
    "Busy",
    "Client",
    "ClientClosed",
    "DuplicateNode",
    "EmbeddedServerError",
    "EvictingNode",
    "FencedOff",
    "Holder",
    "HoldfastError",
    "Lease",
    "LeaseError",
    "LeaseLost",
    "Lock",
    "LossReason",
    "NodeReport",
    "NodeStatus",
    "NotConfirmed",
    "NotHeld",
    "Released",
    "RoundFailed",
    "Stats",
    "TimedOut",
    "Unreachable",
    "Waiter",
    "connect",
]
