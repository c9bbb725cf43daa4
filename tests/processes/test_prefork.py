"""Servers that make a client and then fork: the real gunicorn, and the real celery."""

import contextlib
import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import textwrap
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest

from holdfast.embedded import ThrowawayNodes
from processes.conftest import Witnesses, end, run
from rig.servers import holders
from rig.waiting import until

SHARED = """
    import json, os, sys, threading, holdfast

    name, urls = os.environ["LOCK"], os.environ["URLS"].split()
    hf = holdfast.connect(*urls, node_timeout=5)
    mine = hf.lock(name, ttl=0.9).acquire(wait=20)  # before the fork, and the keeper runs

    @mine.on_lost
    def note(lease):
        with open(os.environ["COUNT"] + ".lost", "w") as file:
            file.write(f"{os.getpid()} {lease.lost!r} {hf.stats()}")

    def renewed(lease, times):
        before = hf.stats().renewals
        while hf.stats().renewals < before + times:
            assert lease.lost.wait(0.01) is None, lease.lost

    def work():
        with hf.lock(name + ":shared", ttl=0.6, wait=40) as lease:
            path = os.environ["COUNT"]
            seen = int(open(path).read())
            renewed(lease, 2)
            with open(path, "w") as file:
                file.write(str(seen + 1))
        keepers = [each for each in threading.enumerate() if each.name == "holdfast-keeper"]
        return {"pid": os.getpid(), "held": mine.is_held, "keepers": len(keepers)}
"""


@pytest.fixture
def place(short_dir: Path, witnesses: Witnesses, name: str) -> Path:
    """Return a directory with what both servers import."""
    (short_dir / "shared.py").write_text(textwrap.dedent(SHARED))
    (short_dir / "count").write_text("0")
    return short_dir


@pytest.fixture
def surroundings(place: Path, witnesses: Witnesses, name: str) -> dict[str, str]:
    return os.environ | {
        "LOCK": name,
        "URLS": " ".join(witnesses.urls),
        "COUNT": str(place / "count"),
        "C_FORCE_ROOT": "1",  # celery does not like to be root, as it is in a container
        "PYTHONPATH": os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]),
        "HOME": str(place),  # where newer gunicorns put a socket
        "XDG_RUNTIME_DIR": str(place),
    }


def why_lost(place: Path) -> str:
    """Say why the master's lease is gone, which was to be renewed all the time."""
    note = place / "count.lost"
    return note.read_text() if note.exists() else "it is gone, and its owner was not told"


def needs(module: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed")


# -- gunicorn -------------------------------------------------------------------------------------

SITE = """
    import json, shared

    def app(environ, start_response):
        if environ["PATH_INFO"] == "/hold":
            shared.hold = shared.hf.lock(shared.name + ":hold", ttl=0.9).acquire(wait=20)
            shared.renewed(shared.hold, 1)
            shared.hold.lost.wait()
        body = json.dumps(shared.work()).encode()
        start_response("200 OK", [("Content-Type", "application/json")])
        return [body]
"""


class Wire(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=50)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def get(path: Path, what: str = "/") -> dict:
    """Ask a server that may not be there yet."""

    def answer() -> dict | None:
        with contextlib.closing(Wire(path)) as wire:
            try:
                wire.connect()
            except (FileNotFoundError, ConnectionRefusedError):
                return None
            wire.request("GET", what)
            return json.loads(wire.getresponse().read())

    return until(answer)


@pytest.fixture
def gunicorn(
    place: Path, surroundings: dict[str, str], cleanup: contextlib.ExitStack
) -> Callable[..., tuple]:
    """Return what starts gunicorn with two workers and the application loaded before the fork."""

    def start(*options: str) -> tuple:
        (place / "site_.py").write_text(textwrap.dedent(SITE))
        log, sock = place / "log", place / "web.sock"
        arguments = [
            "-m", "gunicorn", "--preload", "--workers", "2", "--bind", f"unix:{sock}",
            "--log-level", "warning", "--log-file", str(log), "--graceful-timeout", "10",
            "--timeout", "50", *options, "site_:app",
        ]  # fmt: skip
        process = run(cleanup, *arguments, options=(), env=surroundings, cwd=place)
        # Before it is killed: workers whose master is gone would only notice after a while.
        cleanup.callback(process.wait, 20)
        cleanup.callback(process.terminate)
        return process, sock, log

    return start


@needs("gunicorn")
@pytest.mark.parametrize("kind", ["sync", "gthread"])
def test_gunicorns_workers_share_a_client_made_before_the_fork(
    witnesses: Witnesses, place: Path, gunicorn: Callable, in_thread: Callable, name: str, kind: str
) -> None:
    process, sock, log = gunicorn("--worker-class", kind, "--threads", "2")
    get(sock)
    [token] = until(lambda: set(holders(witnesses, name)))
    asked: list[Future] = [in_thread(get, sock) for _ in range(6)]
    answers = [each.result() for each in asked]
    assert {(each["held"], each["keepers"]) for each in answers} == {(False, 1)}
    assert process.pid not in {each["pid"] for each in answers}
    assert (place / "count").read_text() == "7", "one at a time"
    assert set(holders(witnesses, name)) == {token}, why_lost(place)
    process.terminate()
    assert end(process) == (0, "", "")
    assert "Traceback" not in log.read_text()
    until(lambda: holders(witnesses, name) == [])
    until(lambda: holders(witnesses, f"{name}:shared") == [])


@needs("gunicorn")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_killed_worker_is_replaced_and_its_lease_lapses(
    witnesses: Witnesses, gunicorn: Callable, in_thread: Callable, name: str
) -> None:
    process, sock, _ = gunicorn()
    get(sock)
    holding = in_thread(get, sock, "/hold")
    until(lambda: holders(witnesses, f"{name}:hold"))
    [holder] = children_of(process.pid) - {get(sock)["pid"]}  # which the other one answers
    os.kill(holder, signal.SIGKILL)
    with pytest.raises((http.client.HTTPException, OSError, ValueError)):
        holding.result()
    until(lambda: holders(witnesses, f"{name}:hold") == [])  # nobody else renews it
    until(lambda: len(children_of(process.pid) - {holder}) == 2)
    assert {each.result()["held"] for each in [in_thread(get, sock) for _ in range(4)]} == {False}
    process.terminate()
    assert end(process) == (0, "", "")


def children_of(pid: int) -> set[int]:
    """Return a process's children."""
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


# -- celery ---------------------------------------------------------------------------------------

TASKS = """
    import os, celery, shared

    app = celery.Celery("tasks", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
    app.conf.update(
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        worker_prefetch_multiplier=1,
    )

    @app.task
    def work():
        return shared.work()
"""

ASKING = """
    import json, os, celery
    app = celery.Celery(broker=os.environ["BROKER"], backend=os.environ["BROKER"])
    results = [app.send_task("tasks.work") for _ in range(6)]
    print(json.dumps([result.get(timeout=50) for result in results]))
"""


@needs("celery")
def test_celerys_workers_share_a_client_made_before_the_fork(
    witnesses: Witnesses,
    place: Path,
    surroundings: dict[str, str],
    own_nodes: Callable[..., ThrowawayNodes],
    cleanup: contextlib.ExitStack,
    name: str,
) -> None:
    [broker] = own_nodes(1)
    surroundings["BROKER"] = f"redis+socket://{broker.socket}"
    (place / "tasks.py").write_text(textwrap.dedent(TASKS))
    worker = run(
        cleanup,
        *("-m", "celery", "--app", "tasks", "--quiet", "worker", "--pool", "prefork"),
        *("--concurrency", "2", "--loglevel", "WARNING", "--without-gossip", "--without-mingle"),
        *("--without-heartbeat", "--logfile", str(place / "log")),
        options=("-W", "ignore"),
        env=surroundings,
        cwd=place,
    )
    cleanup.callback(worker.wait, 20)
    cleanup.callback(worker.terminate)
    [token] = until(lambda: set(holders(witnesses, name)))
    asking = ("-c", textwrap.dedent(ASKING))
    asked = run(cleanup, *asking, options=("-W", "ignore"), env=surroundings, cwd=place)
    code, said, complaints = end(asked, within=50)
    assert (code, complaints) == (0, "")
    answers = json.loads(said)
    assert {(each["held"], each["keepers"]) for each in answers} == {(False, 1)}
    assert worker.pid not in {each["pid"] for each in answers}
    assert (place / "count").read_text() == "6", "one at a time"
    assert set(holders(witnesses, name)) == {token}, why_lost(place)
    worker.terminate()
    code, _, complaints = end(worker)
    assert code == 0
    assert not re.search("Traceback|Exception|holdfast", complaints), complaints
    assert "Traceback" not in (place / "log").read_text()
    until(lambda: holders(witnesses, name) == [])
    until(lambda: holders(witnesses, f"{name}:shared") == [])
