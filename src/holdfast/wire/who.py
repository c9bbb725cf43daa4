"""Who a client is. It is part of every token, so that nodes know who holds and who waits.

    3f9c…40 hex digits…e1 + web-3/4711/invoices/5d2c9a10
    └── the secret ──────┘ │ └── host / process / label / serial: also the name of its inbox
                           └── whether it can be called there

So whoever looks at a lock finds out who has it without a question to anybody else, also if that
client is dead; and whoever hands it over knows where to call. Nobody else reads the secret.
"""

import contextlib
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, unquote

INBOX = "hf:inbox:"
"""What the names of inboxes begin with: a user needs the right to `&hf:inbox:*`."""

SECRET_DIGITS = 40
"""Hexadecimal digits of a secret: 20 bytes, as the Redlock paper asks for. queue.lua knows it."""

_LONGEST_PART = 64


class Sign(Enum):
    """Whether a client can be called."""

    HEARS = "+"
    HEARS_FAR = "?"
    """It can, and a node of a cluster cannot know it."""
    POLLS = "-"


@dataclass(frozen=True, slots=True)
class Who:
    """A client, as nodes know it."""

    host: str
    pid: int
    label: str
    serial: str
    """Tells the clients of a process apart."""

    @property
    def address(self) -> str:
        """Write it, for tokens and inboxes."""
        host, label = (_written(part) for part in (self.host, self.label))
        return f"{host}/{self.pid}/{label}/{self.serial}"

    @property
    def inbox(self) -> str:
        """The channel on which it is called."""
        return INBOX + self.address


def _written(part: str) -> str:
    """Write a name so that nothing in it can be taken for something else, and not too long."""
    part = part[:_LONGEST_PART]
    while len(written := quote(part, safe="", errors="replace")) > _LONGEST_PART:
        part = part[:-1]
    return written


def who_of(token: str) -> Who | None:
    """Read who has a token; None if it is not one of ours."""
    parts = token[SECRET_DIGITS + 1 :].split("/")
    if token[SECRET_DIGITS : SECRET_DIGITS + 1] not in {sign.value for sign in Sign}:
        return None
    with contextlib.suppress(ValueError):
        host, pid, label, serial = parts
        return Who(unquote(host), int(pid), unquote(label), serial)
    return None
