"""How much of each moment somebody held the lock: what a row of the picture is made of."""

_BINS = 240
"""More than a terminal has columns to spare, so that any width can be made of them."""


class Timeline:
    """Busy time over a span of `length` seconds; what is beyond the end counts at the end."""

    def __init__(self, length: float) -> None:
        self.length = length
        self._bins = [0.0] * _BINS

    def add(self, start: float, end: float) -> None:
        """Note that it was busy from `start` to `end`, in seconds since the beginning."""
        step = self.length / _BINS
        first, last = self._bin(start, _BINS), self._bin(end, _BINS)
        for index in range(first, last + 1):
            overlap = min(end, (index + 1) * step) - max(start, index * step)
            self._bins[index] += max(overlap, 0.0)

    def shares(self, width: int) -> list[float]:
        """Return how busy it was, from 0 to 1, in `width` equal parts of the span."""
        busy = [0.0] * width
        for index, seconds in enumerate(self._bins):
            busy[index * width // _BINS] += seconds
        return [min(seconds * width / self.length, 1.0) for seconds in busy]

    def column(self, moment: float, width: int) -> int:
        """Return which of `width` parts a moment is in."""
        return self._bin(moment, width)

    def _bin(self, moment: float, count: int) -> int:
        return max(0, min(int(moment / self.length * count), count - 1))
