"""A holder that is stopped between its last look and its write: the resource refuses it.

Real processes, real time. What the resource does is the same code on both sides.
"""

import signal
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode
from processes.conftest import end, hear, tell

REDIS = """
import redis
from holdfast.fencing import RedisFences

client = redis.Redis.from_url(place)
fences = RedisFences(client)

def enter(fence):
    fences.enter(name, fence)

def write(fence, value):
    fences.set(name, value, fence=fence)

def read():
    return (client.get(name) or b"").decode()
"""

UNCHECKED = (
    REDIS
    + """
def write(fence, value):
    client.set(name, value)
"""
)

SQLITE = """
import sqlite3
from contextlib import closing
from holdfast.fencing import SqlFences

def enter(fence, value=None):
    with closing(sqlite3.connect(place, timeout=20)) as connection, connection:
        SqlFences(connection).create_table()
        connection.execute("CREATE TABLE IF NOT EXISTS report (id integer PRIMARY KEY, line text)")
        SqlFences(connection).enter(name, fence)
        if value is not None:
            connection.execute("REPLACE INTO report VALUES (1, ?)", (value,))

write = enter

def read():
    with closing(sqlite3.connect(place, timeout=20)) as connection:
        return "".join(line for (line,) in connection.execute("SELECT line FROM report"))
"""

HOLDER = """
import sys, holdfast

name, place, *urls = sys.argv[1:]
{resource}
hf = holdfast.connect(*urls, node_timeout=5)
lease = hf.lock(name, ttl=1).acquire(wait=20)
enter(lease.fence)
lease.ensure_held()
print("about to write", flush=True)
sys.stdin.readline()                    # here it is stopped, for longer than its ttl
try:
    write(lease.fence, "stale")
    print("written", lease.is_held)
except holdfast.fencing.FencedOff as error:
    print("refused", lease.is_held, error.fence == lease.fence, error.last)
"""


class Resource:
    """What both sides do with it, as seen from here."""

    def __init__(self, code: str, name: str, place: str) -> None:
        self.code = code
        self.name = name
        self.place = place
        self._verbs: dict[str, Any] = {"name": name, "place": place}
        exec(code, self._verbs)

    def enter(self, fence: int) -> None:
        self._verbs["enter"](fence)

    def write(self, fence: int, value: str) -> None:
        self._verbs["write"](fence, value)

    def read(self) -> str:
        return self._verbs["read"]()


class Scene:
    """Nodes, a resource, and a process that holds the lock and is stopped before it writes."""

    def __init__(
        self, resource: Resource, urls: list[str], python: Callable[..., subprocess.Popen[str]]
    ) -> None:
        self.resource = resource
        code = HOLDER.format(resource=textwrap.dedent(resource.code))
        self._holder = python(code, resource.name, resource.place, *urls)
        hear(self._holder, "about to write")
        self._holder.send_signal(signal.SIGSTOP)

    def resume(self) -> str:
        """Let the holder go on; return what has become of its write."""
        tell(self._holder)
        self._holder.send_signal(signal.SIGCONT)
        code, said, complaints = end(self._holder)
        assert code == 0, complaints
        return said


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, healthy: list[ThrowawayNode], database: Path, python, name: str
) -> Scene:
    """Return a scene whose holder is stopped already."""
    place = str(database) if request.param is SQLITE else healthy[0].url
    return Scene(Resource(request.param, name, place), [node.url for node in healthy], python)


@pytest.fixture
def successor(connect: Callable[..., holdfast.Client], healthy: list[ThrowawayNode]) -> Any:
    """Return a client of the next holder."""
    return connect(*(node.url for node in healthy))


checked = pytest.mark.parametrize("scene", [REDIS, SQLITE], ids=["redis", "sqlite"], indirect=True)


@checked
def test_its_write_is_refused(scene: Scene, successor: holdfast.Client) -> None:
    resource = scene.resource
    with successor.lock(resource.name, wait=20) as lease:
        resource.enter(lease.fence)
        resource.write(lease.fence, "by the successor")
        assert scene.resume() == f"refused False True {lease.fence}\n"
        assert resource.read() == "by the successor"
        resource.write(lease.fence, "still by the successor")
    assert resource.read() == "still by the successor"


@checked
def test_it_is_refused_as_soon_as_the_successor_has_entered(
    scene: Scene, successor: holdfast.Client
) -> None:
    resource = scene.resource
    with successor.lock(resource.name, wait=20) as lease:
        resource.enter(lease.fence)
        before = resource.read()
        assert scene.resume() == f"refused False True {lease.fence}\n"
        assert resource.read() == before == ""


@pytest.mark.parametrize("scene", [UNCHECKED], ids=["unchecked"], indirect=True)
def test_without_a_check_it_destroys_what_the_successor_wrote(
    scene: Scene, successor: holdfast.Client
) -> None:
    resource = scene.resource
    with successor.lock(resource.name, wait=20) as lease:
        resource.write(lease.fence, "by the successor")
        assert scene.resume() == "written False\n"
        assert resource.read() == "stale"
