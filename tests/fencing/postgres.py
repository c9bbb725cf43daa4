"""A PostgreSQL cluster that lives as long as the tests, where its programs are installed."""

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rig.waiting import until

FOUNDING = ["-U", "tester", "-A", "trust", "--no-sync", "--locale=C", "--encoding=UTF8"]
HASTE = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off"]
"""It is there for this machine alone, and nothing in it has to outlive anything."""


def _programs() -> Path | None:
    """Return where PostgreSQL's programs are: on the PATH, or where Debian keeps them."""
    found = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    places = [Path(found)] if found else debian[-1:]
    return places[0].resolve().parent if places else None


def missing() -> str:
    """Return why there can be no PostgreSQL here; empty if there can."""
    if _programs() is None:
        return "PostgreSQL's programs are not installed"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed"
    return ""


def _unprivileged() -> dict[str, Any]:
    """Return as whom to run it: PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


class Postgres:
    """One server process on a unix socket, as a context manager that leaves nothing behind."""

    def __init__(self) -> None:
        programs = _programs()
        assert programs is not None
        self._programs = programs
        self._directory = Path(tempfile.mkdtemp(prefix="hf-pg-", dir="/tmp"))
        self._log = self._directory / "log"
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def connect(self, database: str, **options: Any) -> Any:
        """Return a connection of psycopg."""
        import psycopg

        where = {"host": str(self._directory), "user": "tester", "dbname": database}
        return psycopg.connect(**where, **options)

    def new_database(self) -> str:
        """Create a database, and return its name."""
        name = f"db{next(self._numbers)}"
        with self.connect("postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return name

    def close(self) -> None:
        """End it and remove its files."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self) -> None:
        somebody = _unprivileged()
        if somebody:
            os.chown(self._directory, somebody["user"], somebody["group"])
        data = self._directory / "data"
        surroundings = {"cwd": self._directory, **somebody}
        with self._log.open("wb") as log:
            subprocess.run(
                [self._programs / "initdb", "-D", data, *FOUNDING],
                check=True,
                stdout=log,
                stderr=log,
                **surroundings,
            )
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", data, "-k", self._directory, *HASTE],
                stdout=log,
                stderr=log,
                **surroundings,
            )
        until(self._answers, what="for PostgreSQL to start")

    def _answers(self) -> bool:
        import psycopg

        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True
