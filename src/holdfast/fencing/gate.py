"""A gate in front of what this process writes for others: files, devices, a store of its own.

What is bounded is memory: so many resources are remembered, and those whose turn it is. Forgetting
one must not let an old holder in, so the gate remembers the largest fence of all that it has
forgotten, its *floor*, and a resource it does not know counts as having seen that. Fences are
microseconds on a scale that all locks share, so a floor is a moment: who acquired before it is
refused at a forgotten resource, though it may be its holder still; nobody is let in by mistake.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import BadInput, FencedOff
from . import fence as fences

RESOURCES = 100_000
"""How many resources a gate remembers: about 35 MB, and more than most programs ever write to."""


class _Mark:
    """What the gate knows of one resource."""

    __slots__ = ("last", "turn", "visitors")

    def __init__(self, last: int) -> None:
        self.last = last
        self.turn = threading.RLock()
        """Of whoever checks or writes: an `enter` waits for the write that was let in before it."""
        self.visitors = 0
        """Who is writing, or waits for it. A mark with visitors is not forgotten."""


class FenceGate:
    """Accept a write iff its fence is at least the last one seen for that resource.

    For the process that does the writing, whichever thread of it; the fences come from holders that
    may be anywhere. Not fair among threads. It forgets everything with its process: where the
    resource outlives it, keep fences with the resource, as `SqlFences` and `RedisFences` do.

    `limit` bounds the resources that are remembered; of those that are over it the one that has
    waited longest is forgotten, in the safe direction (see the top of this module).
    """

    def __init__(self, *, limit: int = RESOURCES) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise BadInput(f"a gate remembers at least one resource, not {limit!r}")
        self._limit = limit
        self._floor = 0
        self._marks: OrderedDict[str, _Mark] = OrderedDict()
        self._lock = threading.Lock()
        """Guards the marks' coming and going; it is never held while somebody waits for a turn."""

    def enter(self, resource: str, fence: int) -> None:
        """Write your fence before you read: from now on lower fences are refused.

        Waits for a write that is under way, so when this returns, no write with a lower fence takes
        place any more. Raises `FencedOff` if the resource has seen a later fence.
        """
        with self.writing(resource, fence):
            pass

    @contextmanager
    def writing(self, resource: str, fence: int) -> Iterator[None]:
        """Check the fence, and keep everybody else out of the resource while the block writes.

        This is the gate's transaction: what is checked before the block and written after it is
        not protected. Raises `FencedOff` if the resource has seen a later fence; then the block
        does not run. A thread may nest blocks of one lease. Do not `await` in the block: it would
        let the thread's other tasks in.
        """
        fences.check(resource, fence)
        mark = self._visit(resource)
        try:
            with mark.turn:
                if fence < mark.last:
                    raise FencedOff(resource, fence, mark.last)
                mark.last = fence
                yield
        finally:
            self._leave(mark)

    def __len__(self) -> int:
        """Return how many resources are remembered."""
        return len(self._marks)

    def _visit(self, resource: str) -> _Mark:
        with self._lock:
            mark = self._marks.get(resource)
            if mark is None:
                mark = self._marks[resource] = _Mark(self._floor)
            self._marks.move_to_end(resource)
            mark.visitors += 1
            return mark

    def _leave(self, mark: _Mark) -> None:
        with self._lock:
            mark.visitors -= 1
            self._forget()

    def _forget(self) -> None:
        """Forget what is over the limit, but for marks with visitors: those are soon back here."""
        for _ in range(len(self._marks)):
            if len(self._marks) <= self._limit:
                return
            resource, mark = self._marks.popitem(last=False)
            if mark.visitors:
                self._marks[resource] = mark
            else:
                self._floor = max(self._floor, mark.last)
