"""The same as `fencing.redis`, for the asyncio clients of redis-py and valkey-py."""

from collections.abc import Iterable, Sequence
from typing import Any

from .keys import fence_key
from .scripts import SET, Scripting, refusal, registered, words


class AsyncFencedScript:
    """Lua that is run only for whoever is let in, in one step with the check."""

    def __init__(self, client: Scripting, lua: str) -> None:
        self._script = registered(client, lua, awaited=True)

    async def __call__(
        self,
        resource: str,
        fence: int,
        *,
        keys: Sequence[str] = (),
        args: Iterable[object] = (),
    ) -> Any:
        """Check the fence and run the script; return what it returns.

        Raises `FencedOff` if the resource has seen a later fence; then none of it was run.
        """
        try:
            return await self._script(**words(resource, fence, keys, args))
        except Exception as error:
            refused = refusal(error, resource, fence)
            if refused is None:
                raise
            raise refused from None


class AsyncRedisFences:
    """Check fences in Redis or Valkey, with an asyncio client of redis-py or valkey-py.

    Every check is one script, and so is the write that comes with it. Whatever the server or the
    connection has to say is raised by the client, as its own errors; whether a write was done is
    then unknown, and it may be repeated with the same fence. The same holds for a cancelled call.
    """

    def __init__(self, client: Scripting) -> None:
        self._client = client
        self._enter = self.script("")
        self._set = self.script(SET)

    async def enter(self, resource: str, fence: int) -> None:
        """Write your fence before you read: from now on lower fences are refused.

        When this has returned, no checked write with a lower fence takes place any more. Raises
        `FencedOff` if the resource has seen a later fence.
        """
        await self._enter(resource, fence)

    async def set(self, key: str, value: object, *, fence: int) -> None:
        """Set a key iff fence >= last, in one script; the fence is remembered.

        Raises `FencedOff` if the key has seen a later fence; then it is as it was. As with SET, the
        key loses its ttl, and what it held before, of whatever type.
        """
        await self._set(key, fence, keys=[key], args=[value])

    def script(self, lua: str) -> AsyncFencedScript:
        """Make a script of your own that runs only for whoever is let in.

        `KEYS[1]` and `ARGV[1]` are the fence's; yours begin at 2. In a Cluster your keys need the
        resource's hash tag.
        """
        return AsyncFencedScript(self._client, lua)

    @staticmethod
    def key(resource: str) -> str:
        """Return the key that keeps a resource's last fence, for `WATCH` and for looking at it."""
        return fence_key(resource)
