"""Small numbers for the parts of a state, and rules looked up instead of computed.

The rules of a model are written for readable records. A state of tens of fields would be slow to
hash and to copy, so each record has a number, and what a rule makes of it is computed once.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Record = TypeVar("Record", bound=Hashable)


class Codes(Generic[Record]):
    """Numbers for records, in the order in which they are first met."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._codes: dict[Record, int] = {}

    def __getitem__(self, record: Record) -> int:
        code = self._codes.setdefault(record, len(self.records))
        if code == len(self.records):
            self.records.append(record)
        return code

    def table(self, rule: Callable[[Record], Record]) -> "Table":
        """Return a rule on records as one on their numbers."""
        return Table(lambda code: self[rule(self.records[code])])


class Table(dict[int, int]):
    """A function of small numbers that is computed when it is first needed."""

    def __init__(self, function: Callable[[int], int]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, code: int) -> int:
        self[code] = value = self._function(code)
        return value
