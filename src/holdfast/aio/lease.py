"""A lease, for asyncio."""

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from contextvars import Context, copy_context
from types import TracebackType
from typing import Any, Self, TypeVar

from ..core.holding import Holding
from ..core.outcomes import LossReason, Lost, Released
from ..drivers.port import AsyncPort
from ..errors import BadInput, LeaseLost
from ..hearers import Hearers
from ..home import Home
from ..lease import Lease, LeaseFacts
from ..settings import UNSET
from ..shelf import Shelf
from .body import Body
from .callbacks import Callback, call
from .documented import documented_like
from .lost import AsyncLossSignal
from .tasks import this_task

F = TypeVar("F", bound=Callable[..., object])


@documented_like(Lease)
class AsyncLease(LeaseFacts):
    """The right to be the only one, until it ends by itself or is released.

    An asynchronous context manager: leaving the block releases, and raises `LeaseLost` if the lease
    did not last that long. If the body has failed already, its own exception goes on and the loss
    is attached to it as a note.

    The client's keeper renews it (unless the lock was made with `renew=False`) as long as its owner
    lives: the task that acquired it, or another one after `transfer`; also while the event loop is
    blocked. A lease belongs to the process that acquired it. Any of its tasks may use it, on any
    loop; a forked child may not, and for the child it is not held. A lease that nobody refers to
    any more is left to lapse, with a `ResourceWarning`.
    """

    __slots__ = ("_body", "_cancels")

    _home: Home[AsyncPort, "AsyncLease"]

    def __init__(
        self,
        home: "Home[AsyncPort, AsyncLease]",
        holding: Holding,
        shelf: "Shelf[AsyncLease]",
        *,
        cancels: bool,
    ) -> None:
        self._cancels = cancels
        self._body: Body | None = None
        super().__init__(home, holding, shelf)

    async def renew(self) -> None:
        flow, begun = self._renewing(), self._home.port.now()
        self._renewed(await self._home.port.run(flow), begun)

    async def release(self) -> Released:
        return self._released(await self._home.port.run(self._releasing))

    @property
    def lost(self) -> AsyncLossSignal:
        """The loss of this lease: `lost.is_set()`, `lost.reason`, `await lost.wait(timeout)`."""
        return AsyncLossSignal(self)

    def on_lost(self, callback: F) -> F:
        """Call `callback(lease)` when the lease is lost, once; at once if it is lost already.

        It is called on the event loop that runs now, and may be a coroutine function. Returns the
        callback, so that it may be a decorator.
        """
        self._add_lost((asyncio.get_running_loop(), copy_context(), callback))
        return callback

    def on_endangered(self, callback: F) -> F:
        """Call `callback(lease)` if the lease has not been renewed a `grace` before its end.

        In time to stop what the lease protects: `lease.valid_for` says how much of it is left. The
        renewal may still succeed after that; it is called again the next time. It is called on the
        event loop that runs now, and may be a coroutine function. Returns the callback, so that it
        may be a decorator.
        """
        hearers: Hearers[object] = Hearers.of(self)
        hearers.on_endangered((asyncio.get_running_loop(), copy_context(), callback))
        return callback

    def transfer(self, owner: "asyncio.Task[Any] | None" = UNSET) -> None:
        """Make this task the owner, or the one that is given; None is the whole process.

        The lease is renewed as long as its owner lives. For leases that are acquired in one task
        and used in another one. Raises `LeaseLost` or `NotHeld` if it is not held.
        """
        here = owner is UNSET
        if here:
            owner = this_task()
        elif owner is not None and not isinstance(owner, asyncio.Task):
            raise BadInput(f"a lease's owner is a task or None, not {type(owner).__name__}")
        elif owner is not None and owner.done():
            raise BadInput(f"{owner!r} has ended: it cannot be a lease's owner")
        self._hand_to(None if owner is None else weakref.ref(owner), here=here)

    def _deliver(self, callback: "tuple[asyncio.AbstractEventLoop, Context, Callback]") -> None:
        loop, context, function = callback
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is there to hear
            loop.call_soon_threadsafe(call, loop, function, self, context=context)

    def _come_upon(self, loss: Lost) -> None:
        self._body = None  # it is told by an exception, and need not be cancelled as well
        super()._come_upon(loss)

    def _tell_of_loss(self) -> None:
        body = self._body
        if body is not None:
            body.cancel(f"holdfast: the lease of lock {self.name!r} was lost")
        super()._tell_of_loss()

    def _enter(self) -> None:
        """Begin a block that may have to be cancelled."""
        if self._cancels:
            self._body = Body(this_task())
            if self._holding.reason is not None:  # lost while nobody could be cancelled
                self._tell_of_loss()

    async def __aenter__(self) -> Self:
        self.ensure_held()
        self._enter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        body, self._body = self._body, None
        if body is not None and body.was_cancelled_by_us(error):
            raise LeaseLost(self.name, self._loss() or LossReason.EXPIRED) from error
        if self._may_leave():
            return
        try:
            await self.release()
        except Exception as trouble:
            if error is None:
                raise
            error.add_note(f"holdfast: {trouble}")
        finally:
            self._abandon()  # if a cancellation has struck before the release could begin
