"""Where nodes are and how to log in: URLs, TLS, credential providers, other libraries' clients."""

import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
import redis.asyncio
import trustme
import valkey

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire import endpoint as endpoints
from rig.fake import FakeServer, Words, bulk
from rig.servers import PROGRAMS, token_on

Connect = Callable[..., holdfast.Client]


@pytest.fixture
def tcp(own_nodes: Callable[..., ThrowawayNodes], free_port: int) -> tuple[ThrowawayNode, int]:
    """Return a server that listens at a port as well."""
    [node] = own_nodes(1, config=["--port", str(free_port)])
    return node, free_port


def works(client: holdfast.Client, name: str) -> str:
    """Acquire, renew and release; return the token."""
    with client.lock(name, ttl=30, wait=20) as lease:
        lease.renew()
        assert client.try_lock(name) is None
        return lease.token


def test_urls_over_tcp(tcp: tuple[ThrowawayNode, int], connect: Connect, name: str) -> None:
    _, port = tcp
    for url in (
        f"redis://127.0.0.1:{port}",
        f"redis://localhost:{port}/0",
        f"valkey://127.0.0.1:{port}?db=3",
        f"REDIS://127.0.0.1:{port}",
        f" redis://127.0.0.1:{port} ",
        f"redis://127.0.0.1:{port}?protocol=2",
    ):
        works(connect(url), name)


def test_urls_of_sockets(healthy: list[ThrowawayNode], connect: Connect, name: str) -> None:
    path = healthy[0].socket
    for url in (f"unix://{path}", f"redis+unix://{path}", f"valkey+unix://{path}?db=2"):
        works(connect(url), name)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h", "redis://h:6379"),
        ("redis://u:p@h:7/2", "redis://h:7/2"),
        ("rediss://h", "rediss://h:6379"),
        ("valkeys://h:7", "rediss://h:7"),
        ("redis://[::1]:7", "redis://[::1]:7"),
        ("unix://u:p@/tmp/s?db=2", "unix:///tmp/s?db=2"),
    ],
)
def test_how_an_address_is_shown(url: str, shown: str) -> None:
    assert str(endpoints.read(url)) == shown


def test_the_database_is_selected(
    healthy: list[ThrowawayNode], connect: Connect, name: str
) -> None:
    node = healthy[0]
    zero, five = connect(node.url), connect(f"{node.url}?db=5")
    lease = five.lock(name, ttl=30).acquire(wait=0)
    assert token_on(node, name) == "", "it is not in database 0"
    with redis.Redis(unix_socket_path=str(node.socket), db=5) as there:
        assert there.get(f"hf:{{{name}}}") == lease.token.encode()
    works(zero, name)
    lease.release()


def test_connections_have_a_name(healthy: list[ThrowawayNode], connect: Connect, name: str) -> None:
    node = healthy[0]
    client = connect(f"{node.url}?client_name={name}")
    works(client, name)
    assert f" name={name} " in (node.call("CLIENT", "LIST") or "")
    works(connect(node.url), name)
    assert " name=holdfast@" in (node.call("CLIENT", "LIST") or "")


def test_clients_of_other_libraries(
    tcp: tuple[ThrowawayNode, int], connect: Connect, name: str, cleanup: contextlib.ExitStack
) -> None:
    node, port = tcp
    path = str(node.socket)
    for theirs in (
        redis.Redis(port=port, db=1),
        redis.Redis(unix_socket_path=path),
        redis.Redis.from_url(f"redis://127.0.0.1:{port}/2"),
        redis.Redis(connection_pool=redis.BlockingConnectionPool(port=port, max_connections=3)),
        redis.asyncio.Redis(port=port),
        redis.asyncio.Redis(unix_socket_path=path, db=3),
        valkey.Valkey(port=port),
        valkey.Valkey(unix_socket_path=path),
        valkey.asyncio.Valkey(port=port),
    ):
        works(connect(theirs), name)  # their settings are copied: they never connect


def test_a_client_of_another_library_lends_its_login(
    node_with_ann: ThrowawayNode, connect: Connect, name: str
) -> None:
    path = str(node_with_ann.socket)
    for library in (redis.Redis, redis.asyncio.Redis, valkey.Valkey):
        client = connect(library(unix_socket_path=path, username="ann", password="secret"))
        works(client, name)
        assert " user=ann " in (node_with_ann.call("CLIENT", "LIST") or "")


@pytest.fixture
def node_with_ann(own_nodes: Callable[..., ThrowawayNodes]) -> ThrowawayNode:
    """Return a server with a user ann."""
    [node] = own_nodes(1)
    node.call("ACL", "SETUSER", "ann", "on", ">secret", "+@all", "~*")
    return node


class Provider(redis.CredentialProvider):
    """Gives passwords in turn."""

    def __init__(self, *passwords: str | Exception) -> None:
        self.passwords = list(passwords)
        self.asked = 0

    def get_credentials(self) -> tuple[str, str]:
        self.asked += 1
        password = self.passwords[min(self.asked, len(self.passwords)) - 1]
        if isinstance(password, Exception):
            raise password
        return "ann", password


def test_a_credential_provider_is_asked_at_every_connect(
    node_with_ann: ThrowawayNode, connect: Connect, name: str
) -> None:
    node, provider = node_with_ann, Provider("secret", "changed")
    theirs = redis.Redis(unix_socket_path=str(node.socket), credential_provider=provider)
    client = connect(theirs, connections=1)
    works(client, name)
    node.call("ACL", "SETUSER", "ann", "resetpass", ">changed")
    node.call("CLIENT", "KILL", "USER", "ann")
    works(client, name)
    assert provider.asked == 2


def test_a_credential_provider_that_fails_is_a_node_that_fails(
    node_with_ann: ThrowawayNode, healthy: list[ThrowawayNode], connect: Connect, name: str
) -> None:
    def with_provider(*passwords: str | Exception) -> redis.Redis:
        provider = Provider(*passwords)
        return redis.Redis(unix_socket_path=str(node_with_ann.socket), credential_provider=provider)

    with pytest.raises(holdfast.Unreachable, match="no credentials: KeyError: 'vault'"):
        connect(with_provider(KeyError("vault"))).try_lock(name)
    one, two, _ = (node.url for node in healthy)
    works(connect(with_provider(KeyError("vault")), one, two), name)
    works(connect(with_provider(KeyError("vault"), KeyError("vault"), "secret")), name)


# -- old servers ----------------------------------------------------------------------------------


def test_a_server_without_hello(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str
) -> None:
    [node] = own_nodes(1, config=["--rename-command", "HELLO", ""])
    client = connect(f"{node.url}?db=2")
    works(client, name)
    listed = node.call("CLIENT", "LIST") or ""
    assert " name=holdfast@" in listed
    assert " db=2 " in listed


def test_a_server_without_hello_and_without_select_is_not_used_in_another_database(
    own_nodes: Callable[..., ThrowawayNodes], connect: Connect, name: str
) -> None:
    hidden = ["--rename-command", "HELLO", "", "--rename-command", "SELECT", ""]
    [node] = own_nodes(1, config=hidden)
    with pytest.raises(holdfast.Unreachable, match="unknown command"):
        connect(f"{node.url}?db=2").try_lock(name)
    assert token_on(node, name) == ""
    works(connect(node.url), name)


def test_an_old_server_is_greeted_in_its_own_way(
    fake: Callable[..., FakeServer], connect: Connect, name: str
) -> None:
    def answer(words: Words) -> bytes:
        match words[0].upper():
            case b"HELLO":
                return b"-ERR unknown command `HELLO`, with args beginning with: `3`, \r\n"
            case b"CLIENT":
                return b"-ERR unknown subcommand\r\n"
            case b"AUTH" | b"SELECT":
                return b"+OK\r\n"
            case b"INFO":
                return bulk("redis_version:5.0.0\r\n")
        return b"*3\r\n:1\r\n:0\r\n:0\r\n"

    server = fake(answer)
    client = connect(f"unix://:secret@{server.socket}?db=1")
    assert client.try_lock(name, renew=False) is not None
    assert server.said(b"AUTH") == [[b"AUTH", b"secret"]]
    assert server.said(b"SELECT")[-1] == [b"SELECT", b"1"]


# -- TLS ------------------------------------------------------------------------------------------

needs_tls = pytest.mark.skipif("redis7" not in PROGRAMS, reason="no server with TLS is installed")


@pytest.fixture
def authority(short_dir: Path) -> trustme.CA:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(short_dir / "ca.pem"))
    return authority


@pytest.fixture
def secure(
    authority: trustme.CA, short_dir: Path, cleanup: contextlib.ExitStack, free_port: int
) -> int:
    """Return the port of a server that speaks TLS, and wants a certificate from its clients."""
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(str(short_dir / "pair.pem"))
    pair, ca = str(short_dir / "pair.pem"), str(short_dir / "ca.pem")
    node = ThrowawayNode(
        short_dir / "n",
        binary=PROGRAMS["redis7"],
        config=["--tls-port", str(free_port), "--tls-cert-file", pair, "--tls-key-file", pair,
                "--tls-ca-cert-file", ca, "--tls-auth-clients", "optional"],
    )  # fmt: skip
    cleanup.callback(node.kill)
    node.start()
    return free_port


@needs_tls
def test_tls(secure: int, short_dir: Path, connect: Connect, name: str) -> None:
    ca, pair = short_dir / "ca.pem", short_dir / "pair.pem"
    for url in (
        f"rediss://localhost:{secure}?ssl_ca_certs={ca}",
        f"valkeys://127.0.0.1:{secure}?ssl_ca_certs={ca}",
        f"rediss://localhost:{secure}?ssl_ca_certs={ca}&ssl_certfile={pair}&ssl_keyfile={pair}",
        f"rediss://localhost:{secure}?ssl_cert_reqs=none&ssl_check_hostname=false",
    ):
        works(connect(url), name)
    for library in (redis.Redis, redis.asyncio.Redis, valkey.Valkey):
        theirs = library(host="localhost", port=secure, ssl=True, ssl_ca_certs=str(ca))
        works(connect(theirs), name)


@needs_tls
def test_a_certificate_that_is_not_trusted(
    secure: int, healthy: list[ThrowawayNode], connect: Connect, name: str
) -> None:
    url = f"rediss://localhost:{secure}"
    with pytest.raises(holdfast.Unreachable, match="TLS handshake failed") as caught:
        connect(url).lock(name).acquire(wait=600)  # waiting does not help, and is not tried
    assert "certificate verify failed" in caught.value.reports[0].answer
    works(connect(url, healthy[0].url, healthy[1].url), name)


@needs_tls
def test_a_certificate_for_another_name(
    authority: trustme.CA, short_dir: Path, cleanup: contextlib.ExitStack, connect: Connect,
    name: str, free_port: int,
) -> None:  # fmt: skip
    other = authority.issue_cert("elsewhere.example")
    other.private_key_and_cert_chain_pem.write_to_path(str(short_dir / "pair.pem"))
    pair, ca = str(short_dir / "pair.pem"), str(short_dir / "ca.pem")
    node = ThrowawayNode(
        short_dir / "n",
        binary=PROGRAMS["redis7"],
        config=["--tls-port", str(free_port), "--tls-cert-file", pair, "--tls-key-file", pair,
                "--tls-ca-cert-file", ca],
    )  # fmt: skip
    cleanup.callback(node.kill)
    node.start()
    url = f"rediss://localhost:{free_port}?ssl_ca_certs={ca}&ssl_check_hostname=true"
    with pytest.raises(holdfast.Unreachable, match="TLS handshake failed"):
        connect(url).try_lock(name)


def test_a_server_that_hangs_up_in_the_handshake_may_come_back(
    fake_tcp: int, connect: Connect, name: str
) -> None:
    client = connect(f"rediss://127.0.0.1:{fake_tcp}?ssl_cert_reqs=none")
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock(name).acquire(wait=0.3)
    assert caught.value.waited >= 0.3, "it was waited for"
    assert "TLS handshake failed" not in caught.value.reports[0].answer


@pytest.fixture
def fake_tcp(cleanup: contextlib.ExitStack, in_thread: Callable) -> int:
    """Return a port where somebody accepts and hangs up."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = listener.accept()
                sock.recv(65536)  # all of it: then it is a plain end, and no reset
                sock.close()

    in_thread(serve)

    def end() -> None:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()

    cleanup.callback(end)
    return int(listener.getsockname()[1])


def test_tls_settings_that_cannot_be_read(short_dir: Path) -> None:
    with pytest.raises(holdfast.BadInput):
        holdfast.connect(f"rediss://localhost?ssl_ca_certs={short_dir}/nothing.pem")
    assert isinstance(endpoints.read("rediss://localhost").tls, ssl.SSLContext)


def test_tls_waits_for_a_connection_that_takes_its_time(name: str) -> None:
    """On loopback a connection is there at once; a full queue makes it late, as distance does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        with contextlib.ExitStack() as queue:
            for _ in range(4):  # whoever comes after them gets no answer to its SYN
                waiting = queue.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(("127.0.0.1", port))
            client = holdfast.connect(f"rediss://127.0.0.1:{port}", node_timeout=0.2)
            with client, pytest.raises(holdfast.Unreachable) as caught:
                client.try_lock(name)
    assert caught.value.reports[0].answer == "no answer in time"
