"""What a node is inside: a store, the shipped scripts that it has been sent, and who it is."""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import hiredis

from ..core.effects import NodeCommand, Verb
from ..core.guard import NO_GUARD
from ..wire import commands
from ..wire.scripts import SCRIPTS
from .lua import machine
from .store import Store, nobody_listens

_SHIPPED = {script.sha: script.text for script in SCRIPTS.values()}

_NOBODY = "0" * 40


class Server:
    """Executes packed commands one after the other, as a server does. Expiry follows its clock."""

    def __init__(
        self,
        now_us: Callable[[], int],
        planted: Mapping[str, str] | None = None,
        *,
        name: str = "server",
    ) -> None:
        """Be a new server, and initialised by whoever makes it. Its `name` makes its run ids."""
        self.evicted = 0
        """How many keys it says that it has evicted."""
        self.on_publish: Callable[[bytes, bytes], int] = nobody_listens
        """Who hears what scripts publish: gets channel and payload, returns how many it reached.

        It is called in the midst of a script, and may be replaced at any time, for whatever memory.
        """
        self.now_us = now_us
        self._planted = tuple((planted or {}).items())
        """Texts to replace in scripts: planted bugs."""
        self._name = name
        self._runs = self._histories = 0
        self.run = self._id("run 0")
        """What names this run of the server: `run_id`."""
        self._history, self._history_before = self._id("history 0"), _NOBODY
        """What names the memory's history, `master_replid`, and the one that it went on from."""
        self._disturbances: dict[str, int] = {}
        self._started_us = now_us()
        self._scripts: set[str] = set()
        self.store = self.empty_store()
        self.initialise()

    def initialise(self, database: int = 0) -> None:
        """Let it vote at once: nobody can have held a lock here."""
        init = commands.pack_whole(NodeCommand(Verb.INIT, NO_GUARD))
        self.execute(init + b"$1\r\n%d\r\n$1\r\n0\r\n" % database)

    def _id(self, what: str) -> str:
        text = f"{self._name} {what}".encode()
        return hashlib.sha1(text, usedforsecurity=False).hexdigest()

    def _info(self, section: str) -> str:
        if section == "server":
            uptime = (self.now_us() - self._started_us) // 1_000_000
            facts = f"redis_version:7.0.0\r\nrun_id:{self.run}\r\nuptime_in_seconds:{uptime}"
        elif section == "replication":
            facts = (
                f"role:master\r\nconnected_slaves:0\r\nmaster_replid:{self._history}"
                f"\r\nmaster_replid2:{self._history_before}"
            )
        elif section == "stats":
            facts = f"evicted_keys:{self.evicted}"
        elif section == "commandstats":
            facts = "\r\n".join(
                f"cmdstat_{name}:calls={calls},usec=1" for name, calls in self._disturbances.items()
            )
        else:
            facts = ""
        return f"# {section}\r\n{facts}\r\n"

    def _publish(self, channel: bytes, payload: bytes) -> int:
        return self.on_publish(channel, payload)

    # -- what befalls its memory ------------------------------------------------------------------

    def empty_store(self) -> Store:
        """Return a memory of its own with nothing in it."""
        return Store(self.now_us, self._info, self._publish)

    def restart(self, *, memory: Store | None = None) -> None:
        """Come back as a new run, with that memory or none. Scripts are forgotten either way."""
        self._runs += 1
        self.run = self._id(f"run {self._runs}")
        self._begin_history(_NOBODY)
        self.evicted = 0
        self._disturbances.clear()
        self._scripts.clear()
        self._started_us = self.now_us()
        self.store = memory or self.empty_store()

    def flush(self) -> None:
        """Delete everything, in the same run. Scripts stay."""
        self._disturb("flushall")
        self.store.call(b"FLUSHALL")

    def swap(self, memory: Store) -> Store:
        """Get another database's memory in place of its own, which is returned."""
        self._disturb("swapdb")
        before, self.store = self.store, memory
        return before

    def follow(self, memory: Store) -> None:
        """Become a replica of somebody with that memory, and be promoted, in the same run."""
        self._disturb("replicaof")
        self._begin_history(self._id(f"history of a master before {self._histories}"))
        self.store = memory

    def fail_over(self, run: str | None, memory: Store) -> str:
        """Let another server take over with its copy of the memory: a new one, or that `run`.

        Returns the run that was replaced.
        """
        before = self.run
        if run is None:
            self._runs += 1
            run = self._id(f"run {self._runs}")
        self.follow(memory)
        self.run = run
        self._scripts.clear()
        return before

    def _begin_history(self, before: str) -> None:
        self._histories += 1
        self._history = self._id(f"history {self._histories}")
        self._history_before = before

    def _disturb(self, command: str) -> None:
        self._disturbances[command] = self._disturbances.get(command, 0) + 1

    # -- what it does -----------------------------------------------------------------------------

    def execute(self, packed: bytes) -> Any:
        """Run the script that a packed command names or carries; its reply, as from a socket."""
        reader = hiredis.Reader()
        reader.feed(packed)
        name, script, keys, *rest = reader.gets()
        if name == b"EVAL":
            text = script.decode()
            self._scripts.update(sha for sha, known in _SHIPPED.items() if known == text)
        elif script.decode() in self._scripts:
            text = _SHIPPED[script.decode()]
        else:
            return hiredis.ReplyError("NOSCRIPT No matching script. Please use EVAL.")
        if self._planted:
            text = _edited(text, self._planted)
        count = int(keys)
        return machine().run(text, rest[:count], rest[count:], self.store)


@lru_cache(maxsize=64)
def _edited(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    for old, new in edits:
        text = text.replace(old, new)
    return text
