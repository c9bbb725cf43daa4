"""What a channel needs of whoever moves its bytes, in the way of a driver."""

from typing import Protocol


class Carrier(Protocol):
    """Moves one connection's bytes, and tells its channel what happens to them."""

    def open(self) -> None:
        """Begin to connect. What fails at once is told to the channel as well."""

    def write(self, data: bytes | bytearray) -> None:
        """Take bytes and send them in order. Raises OSError if the connection is broken."""

    def look(self) -> None:
        """Pass on what has come and was not looked at, if that can happen."""

    def finish(self) -> None:
        """See that what was written is sent, as far as that needs no waiting."""

    def close(self) -> None:
        """Close the connection, if there is one, and tell the channel nothing about it."""
