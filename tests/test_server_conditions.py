"""What servers may be in: each is named as itself, is no refusal, and counts as no vote."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire.keys import lock_key
from rig.fake import FakeServer, greets, scripted
from rig.servers import token_on
from rig.waiting import until

Connect = Callable[..., holdfast.Client]


@pytest.fixture(scope="module")
def servers() -> Iterator[ThrowawayNodes]:
    """Return two servers of this module's own; every test puts back what it changes."""
    with ThrowawayNodes(2, config=["--enable-debug-command", "yes"]) as nodes:
        yield nodes


@pytest.fixture
def node(servers: ThrowawayNodes) -> ThrowawayNode:
    return servers[0]


def with_login(node: ThrowawayNode, login: str) -> str:
    return f"unix://{login}@{node.socket}"


@pytest.fixture
def check(healthy: list[ThrowawayNode], connect: Connect, name: str) -> Callable[..., None]:
    """Return what checks a condition, alone and beside a healthy majority."""

    def check(url: str, words: str, *, lasting: bool | None = None) -> None:
        with pytest.raises(holdfast.Unreachable) as caught:
            connect(url).lock(name).acquire(wait=0)
        assert words in caught.value.reports[0].answer
        if lasting:  # waiting would not help, and is not tried
            with pytest.raises(holdfast.Unreachable) as caught:
                connect(url).lock(name).acquire(wait=600)
        one, two, _ = (node.url for node in healthy)
        with connect(url, one, two).lock(name, wait=20) as lease:
            assert lease.is_held
        mostly = connect(url, one, f"unix://{healthy[0].socket}-nobody")
        with pytest.raises(holdfast.Unreachable) as caught:
            mostly.lock(name).acquire(wait=0)
        assert words in caught.value.reports[0].answer
        assert "granted" in caught.value.reports[1].answer or caught.value.reports[1].answer
        until(lambda: token_on(healthy[0], name) == "")

    return check


# -- login ----------------------------------------------------------------------------------------


@pytest.fixture
def users(node: ThrowawayNode) -> Iterator[Callable[..., None]]:
    """Return what makes users; the default one needs a password as long as the test runs."""
    made = []

    def make(user: str, *rules: str) -> None:
        made.append(user)
        assert node.call("ACL", "SETUSER", user, "reset", "on", ">secret", *rules) == "OK"

    yield make
    for user in made:
        node.call("ACL", "DELUSER", user)


@pytest.fixture
def guarded(own_nodes: Callable[..., ThrowawayNodes]) -> ThrowawayNode:
    """Return a server that asks for a password."""
    [node] = own_nodes(1, config=["--requirepass", "secret"])
    return node


def test_passwords(
    own_nodes: Callable[..., ThrowawayNodes], short_dir: Path, check, connect: Connect, name: str,
    cleanup: contextlib.ExitStack,
) -> None:  # fmt: skip
    guarded = ThrowawayNode(short_dir / "n", config=["--requirepass", "secret"])
    cleanup.callback(guarded.kill)
    guarded.start(wait=False)
    until(lambda: "NOAUTH" in (guarded.call("PING") or ""))
    check(with_login(guarded, ":wrong"), "authentication failed", lasting=True)
    check(with_login(guarded, "nobody:secret"), "authentication failed", lasting=True)
    check(guarded.url, "authentication failed", lasting=True)
    for login in (":secret", "default:secret"):
        with connect(with_login(guarded, login)).lock(name, wait=0):
            pass


@pytest.mark.parametrize(
    "rules",
    [
        ("+@all", "-eval", "-evalsha", "~*"),
        ("+@all", "-@scripting", "~*"),
        ("+@all", "~other:*"),
        ("+@all", "-set", "~*"),
        ("+@all", "-get", "-set", "~*"),
    ],
    ids=" ".join,
)
def test_users_without_rights(node: ThrowawayNode, users, check, rules: tuple[str, ...]) -> None:
    users("ann", *rules)
    check(with_login(node, "ann:secret"), "permission denied", lasting=True)


@pytest.mark.parametrize("guard", [False, True])
def test_a_user_with_the_least_rights_is_enough(
    node: ThrowawayNode, users, connect: Connect, name: str, guard: bool
) -> None:
    rights = ["+evalsha", "+eval", "+get", "+set", "+del", "+exists", "+pexpire", "+pttl", "+time"]
    if guard:
        rights += ["+info", "+hget", "+hmget", "+hset"]
    users("ben", "~hf:*", *rights)
    client = connect(with_login(node, "ben:secret"), guard=guard)
    with client.lock(name, wait=0) as lease:
        lease.renew()
        assert client.try_lock(name) is None


def test_rights_taken_away_while_running(
    node: ThrowawayNode, users, connect: Connect, name: str
) -> None:
    users("cid", "+@all", "~*")
    client = connect(with_login(node, "cid:secret"))
    lease = client.lock(name, ttl=60).acquire(wait=0)
    node.call("ACL", "SETUSER", "cid", "-evalsha", "-eval")
    with pytest.raises(holdfast.Unreachable, match="permission denied"):
        lease.renew()
    node.call("ACL", "SETUSER", "cid", "+evalsha", "+eval")
    lease.renew()
    lease.release()


# -- nobody there ---------------------------------------------------------------------------------


def test_nobody_there(check, free_port: int, short_dir: Path) -> None:
    check(f"redis://127.0.0.1:{free_port}", "unreachable: Connection refused")
    check(f"unix://{short_dir}/nobody.sock", "unreachable: No such file")
    check("redis://no-such-host.invalid", "unreachable: name look-up failed")
    check(f"unix:///{'x' * 200}", "unreachable: AF_UNIX path too long")


def test_somebody_else_there(check, fake: Callable[..., FakeServer]) -> None:
    check(fake(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n").url, "unintelligible reply")
    check(fake(lambda _: b"").url, "connection lost")


# -- a server's own conditions --------------------------------------------------------------------


def test_a_key_of_another_type(
    node: ThrowawayNode, connect: Connect, name: str, healthy: list[ThrowawayNode]
) -> None:
    node.call("RPUSH", lock_key(name), "x")
    with pytest.raises(holdfast.Unreachable, match="another type of value") as caught:
        connect(node.url).lock(name).acquire(wait=600)
    assert "WRONGTYPE" in caught.value.reports[0].answer
    one, two, _ = (node.url for node in healthy)
    with connect(node.url, one, two).lock(name, wait=20) as lease:
        lease.renew()
    assert node.call("LLEN", lock_key(name)) == "1"


def test_a_replica(node: ThrowawayNode, check, connect: Connect, name: str) -> None:
    lease = connect(node.url).lock(name + "held", ttl=60).acquire(wait=0)
    node.call("REPLICAOF", "127.0.0.1", "1")
    try:
        check(node.url, "read-only replica")
        with pytest.raises(holdfast.Unreachable, match="read-only replica"):
            lease.renew()
    finally:
        node.call("REPLICAOF", "NO", "ONE")
    lease.renew()
    lease.release()


def test_a_full_server(node: ThrowawayNode, check, connect: Connect, name: str) -> None:
    lease = connect(node.url).lock(name + "held", ttl=60).acquire(wait=0)
    node.call("CONFIG", "SET", "maxmemory", "1")
    try:
        check(node.url, "out of memory")
        assert lease.release() is holdfast.Released.FREED
        assert token_on(node, name + "held") == ""
    finally:
        node.call("CONFIG", "SET", "maxmemory", "0")


def test_a_full_house(node: ThrowawayNode, check, connect: Connect, name: str) -> None:
    node.call("CONFIG", "SET", "maxclients", "1")
    holding = connect(node.url)
    try:
        until(lambda: "max number" in (node.call("PING") or ""))
        check(node.url, "no more connections accepted")
    finally:
        holding.close()
        until(lambda: node.call("CONFIG", "SET", "maxclients", "1000") == "OK")


def test_a_script_that_does_not_end(
    node: ThrowawayNode, check, connect: Connect, name: str, in_thread: Callable
) -> None:
    node.call("CONFIG", "SET", "busy-reply-threshold", "1")
    running = in_thread(node.call, "EVAL", "while true do end", "0")
    try:
        until(lambda: (node.call("PING") or "").startswith("BUSY"))
        with pytest.raises(holdfast.Unreachable, match="busy running another script"):
            connect(node.url).lock(name).acquire(wait=0)
        check(node.url, "busy running another script")
    finally:
        node.call("SCRIPT", "KILL")
        running.result()


def test_no_such_database(node: ThrowawayNode, check) -> None:
    check(f"{node.url}?db=99", "no such database", lasting=True)


def test_a_server_that_loads_its_data(
    short_dir: Path, cleanup: contextlib.ExitStack, check, connect: Connect, name: str
) -> None:
    config = ["--appendonly", "yes", "--appenddirname", "aof"]
    loading = ThrowawayNode(short_dir / "n", config=config)
    cleanup.callback(loading.kill)
    loading.start()
    loading.call("EVAL", "for i = 1, 60000 do redis.call('SET', i, i) end", "0")
    loading.stop()
    loading._config += ["--key-load-delay", "150"]  # microseconds, for each of them
    loading.start(wait=False)
    until(lambda: (loading.call("PING") or "").startswith("LOADING"))
    check(loading.url, "loading its data set")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading its data set"),
        (b"-MISCONF Errors writing to the AOF file: No space left\r\n", "cannot persist to disk"),
        (b"-NOREPLICAS Not enough good replicas to write.\r\n", "cannot persist to disk"),
        (b"-MASTERDOWN Link with MASTER is down\r\n", "read-only replica"),
        (b"-MOVED 3999 127.0.0.1:6381\r\n", "cluster answers for another slot"),
        (b"-CLUSTERDOWN Hash slot not served\r\n", "cluster answers for another slot"),
        (b"-ERR something new\r\n", "server error: ERR something new"),
        (b"+OK\r\n", "unintelligible reply"),
        (b":1\r\n", "unintelligible reply"),
        (b"*2\r\n:7\r\n:1\r\n", "unintelligible reply"),
        (b"*0\r\n", "unintelligible reply"),
        (b"_\r\n", "unintelligible reply"),
        (b"#f\r\n", "unintelligible reply"),
        (b"?what\r\n", "unintelligible reply"),
    ],
    ids=lambda value: ascii(value)[2:14],
)
def test_what_a_server_may_say(check, fake: Callable, reply: bytes, words: str) -> None:
    check(fake(greets(reply)).url, words)


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (b"-ERR max number of clients reached\r\n", "no more connections accepted"),
        (b"-DENIED Redis is running in protected mode\r\n", "permission denied"),
        (b"-NOAUTH Authentication required.\r\n", "authentication failed"),
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading its data set"),
    ],
    ids=lambda value: ascii(value)[2:10],
)
def test_how_a_server_may_greet(check, fake: Callable, greeting: bytes, words: str) -> None:
    check(fake(lambda _: greeting).url, words)


def test_a_server_that_stops_in_its_greeting(check, fake: Callable) -> None:
    check(fake(scripted([b"%1\r\n+server\r\n+fake\r\n"])).url, "connection lost")
