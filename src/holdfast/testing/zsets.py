"""Sorted sets, as a server keeps them: members ranked by score, and by their bytes among equals.

Scores are whole numbers up to 2**53, which servers of all ages keep exactly and write alike. About
others they differ: `0.1` is `0.10000000000000001` on some. The model refuses those.
"""

import re
from bisect import bisect_left, insort

LARGEST = 2**53

_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e\+?\d+)?", re.IGNORECASE)
_UNUSUAL = re.compile(rb"[+-]?(inf(inity)?|0x[\da-f.p+-]+|[\d.]+e-\d+)", re.IGNORECASE)


class SortedSet:
    """Members and their scores."""

    def __init__(self) -> None:
        self._scores: dict[bytes, int] = {}
        self._ranked: list[tuple[int, bytes]] = []

    def __len__(self) -> int:
        return len(self._ranked)

    def __copy__(self) -> "SortedSet":
        other = SortedSet()
        other._scores, other._ranked = self._scores.copy(), self._ranked.copy()
        return other

    def put(self, member: bytes, score: int) -> bool:
        """Give a member that score; say whether it is a new one."""
        new = not self.remove(member)
        self._scores[member] = score
        insort(self._ranked, (score, member))
        return new

    def remove(self, member: bytes) -> bool:
        """Remove a member; say whether it was there."""
        rank = self.rank(member)
        if rank is None:
            return False
        del self._ranked[rank], self._scores[member]
        return True

    def score(self, member: bytes) -> int | None:
        """Return a member's score, None if it is not there."""
        return self._scores.get(member)

    def rank(self, member: bytes) -> int | None:
        """Return how many are before a member, None if it is not there."""
        score = self._scores.get(member)
        return None if score is None else bisect_left(self._ranked, (score, member))

    def range(self, first: int, last: int) -> list[tuple[int, bytes]]:
        """List scores and members from one rank to another; negative ones count from the end."""
        first, last = (rank + len(self) if rank < 0 else rank for rank in (first, last))
        return self._ranked[max(first, 0) : max(last + 1, 0)]


def read_score(text: bytes) -> int | None:
    """Return the score that a command gives, None if it is not a number to any server.

    Raises NotImplementedError if it is one that the model does not have.
    """
    if _DECIMAL.fullmatch(text):
        number = float(text)
        negative_zero = not number and text.startswith(b"-")  # "-0" or "0", as the server's age
        if number.is_integer() and abs(number) <= LARGEST and not negative_zero:
            return int(number)
    elif not _UNUSUAL.fullmatch(text):
        return None
    raise NotImplementedError(f"the model has no score {text.decode()}")
