"""What makes no sense is refused before anything is sent, and secrets are never shown."""

import copy
import decimal
import fractions
import functools
import math
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.wire import endpoint as endpoints
from rig.servers import calls

Connect = Callable[..., holdfast.Client]

HUGE = 10**400


def shortly(value: object) -> str:
    return ascii(value)[:12]


@pytest.fixture
def client(healthy: list[ThrowawayNode], connect: Connect) -> holdfast.Client:
    return connect(healthy[0].url)


@pytest.mark.parametrize(
    "name", ["", None, 5, b"bytes", ["list"], "x" * 1025, "é" * 513, "\ud800"], ids=shortly
)
def test_names(client: holdfast.Client, name: object) -> None:
    with pytest.raises(holdfast.BadInput):
        client.lock(name)
    with pytest.raises(holdfast.BadInput):
        client.try_lock(name)
    with pytest.raises(holdfast.BadInput):
        client.release_lock(name)


@pytest.mark.parametrize(
    "ttl",
    [0, -1, math.nan, math.inf, -math.inf, 0.0199, 86_401, True, "30", None, [], HUGE,
     fractions.Fraction(HUGE), decimal.Decimal(3), 1j],
    ids=shortly,
)  # fmt: skip
def test_ttls(client: holdfast.Client, healthy: list[ThrowawayNode], ttl: object) -> None:
    for act in (
        lambda: client.lock("x", ttl=ttl),
        lambda: client.try_lock("x", ttl=ttl),
        lambda: client.locked("x", ttl=ttl),
        lambda: holdfast.connect(healthy[0].url, ttl=ttl),
    ):
        with pytest.raises(holdfast.BadInput, match="ttl"):
            act()


@pytest.mark.parametrize(
    "wait", [-1, -0.001, math.nan, math.inf, True, False, "1", [], HUGE], ids=shortly
)
def test_waits(client: holdfast.Client, healthy: list[ThrowawayNode], wait: object) -> None:
    for act in (
        lambda: client.lock("x", wait=wait),
        lambda: client.lock("x").acquire(wait=wait),
        lambda: client.locked("x", wait=wait),
        lambda: holdfast.connect(healthy[0].url, wait=wait),
    ):
        with pytest.raises(holdfast.BadInput, match="wait"):
            act()


@pytest.mark.parametrize("node_timeout", [0, -1, math.nan, math.inf, True, "1", None, 1e9, HUGE])
def test_node_timeouts(healthy: list[ThrowawayNode], node_timeout: object) -> None:
    with pytest.raises(holdfast.BadInput, match="node_timeout"):
        holdfast.connect(healthy[0].url, node_timeout=node_timeout)


@pytest.mark.parametrize("connections", [0, -1, 1.5, True, "4", None])
def test_connections(healthy: list[ThrowawayNode], connections: object) -> None:
    with pytest.raises(holdfast.BadInput, match="connections"):
        holdfast.connect(healthy[0].url, connections=connections)


def test_what_is_at_the_edge_is_fine(client: holdfast.Client) -> None:
    client.lock("x" * 1024, ttl=0.02, wait=0)
    client.lock("x", ttl=86_400, wait=None)
    client.lock("x", ttl=fractions.Fraction(5, 2), wait=1e300)


def test_nothing_was_sent(client: holdfast.Client, healthy: list[ThrowawayNode]) -> None:
    before = calls(healthy[0], "evalsha"), calls(healthy[0], "eval")
    for act in (
        lambda: client.try_lock(""),
        lambda: client.try_lock("x", ttl=0),
        lambda: client.lock("x").acquire(wait=-1),
    ):
        with pytest.raises(holdfast.BadInput):
            act()
    assert (calls(healthy[0], "evalsha"), calls(healthy[0], "eval")) == before


# -- templates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "template", ["{nobody}", "{}", "{0}", "{user", "user}", "{user:{width}}", "{.id}"]
)
def test_templates(client: holdfast.Client, template: str) -> None:
    with pytest.raises(holdfast.BadInput, match="template"):

        @client.locked(template)
        def work(user: int) -> None: ...


def test_a_partial_is_a_function_too(connect: Callable) -> None:
    client = connect("unix:///nonexistent", node_timeout=0.01)
    with pytest.raises(holdfast.BadInput, match="partial"):
        client.locked("{nothing}")(functools.partial(print))


def test_the_asyncio_client_is_there_when_it_is_spoken_of() -> None:
    assert callable(holdfast.aio.connect)
    with pytest.raises(AttributeError):
        _ = holdfast.nothing


def test_a_template_that_is_none(client: holdfast.Client) -> None:
    def work() -> None: ...

    with pytest.raises(holdfast.BadInput, match="string"):
        client.locked(work)(5)  # the parentheses were forgotten


def test_functions_that_return_before_they_have_run(client: holdfast.Client) -> None:
    async def coroutine() -> None: ...

    def generator():
        yield

    async def async_generator():
        yield

    for function in (coroutine, generator, async_generator):
        with pytest.raises(holdfast.BadInput, match=function.__name__):
            client.locked("x")(function)


def test_a_template_that_becomes_no_name(client: holdfast.Client) -> None:
    @client.locked("{user}")
    def work(user: str) -> None:
        pytest.fail("called")

    for user in ("", "x" * 2000):
        with pytest.raises(holdfast.BadInput):
            work(user)


# -- nodes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", " ", ",", " , ,"])
def test_an_environment_without_nodes(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("HOLDFAST_NODES", given)
    with pytest.raises(holdfast.BadInput, match="HOLDFAST_NODES"):
        holdfast.connect()


def test_an_environment_with_nodes(
    monkeypatch: pytest.MonkeyPatch, healthy: list[ThrowawayNode], connect: Connect
) -> None:
    one, two, three = healthy
    monkeypatch.setenv("HOLDFAST_NODES", f"{one.url}, {two.url}  {three.url},")
    assert connect().addresses == (one.url, two.url, three.url)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "no scheme"),
        ("localhost", "no scheme"),
        ("localhost:6379", "no scheme"),
        ("http://localhost", "unknown scheme"),
        ("redis://localhost:port", "malformed"),
        ("redis://localhost:99999", "malformed"),
        ("redis://localhost:-1", "malformed"),
        ("redis://[::1", "malformed"),
        ("redis://localhost/abc", "database"),
        ("redis://localhost/-1", "database"),
        ("redis://localhost?db=-1", "negative"),
        ("redis://localhost?db=x", "malformed"),
        ("redis://localhost?no_such_option=1", "no_such_option"),
        ("redis://a%00b", "zero byte"),
        ("unix:///tmp/a%00b", "zero byte"),
        ("unix://", "names no socket"),
    ],
)
def test_urls(url: str, complaint: str) -> None:
    with pytest.raises(holdfast.BadInput, match=complaint):
        holdfast.connect(url)


@pytest.mark.parametrize("node", [None, 5, b"redis://x", object(), ["redis://x"], {}])
def test_nodes_that_are_none(node: object) -> None:
    with pytest.raises(holdfast.BadInput, match="a node is"):
        holdfast.connect(node)


def test_a_client_with_an_odd_database() -> None:
    with pytest.raises(holdfast.BadInput, match="numbers"):
        holdfast.connect(redis.Redis(db="x"))


def test_the_same_address_twice(healthy: list[ThrowawayNode]) -> None:
    url = healthy[0].url
    with pytest.raises(holdfast.DuplicateNode) as caught:
        holdfast.connect(url, healthy[1].url, url)
    assert (caught.value.first, caught.value.second) == (url, url)


def test_one_server_under_two_addresses(healthy: list[ThrowawayNode], short_dir: Path) -> None:
    other = short_dir / "other.sock"
    other.symlink_to(healthy[0].socket)
    with pytest.raises(holdfast.DuplicateNode) as caught:
        holdfast.connect(healthy[0].url, f"unix://{other}", healthy[1].url, node_timeout=20)
    assert {caught.value.first, caught.value.second} == {healthy[0].url, f"unix://{other}"}


def test_one_server_by_socket_and_by_port(
    own_nodes: Callable[..., ThrowawayNodes], free_port: int
) -> None:
    [node] = own_nodes(1, config=["--port", str(free_port)])
    tcp = f"redis://127.0.0.1:{free_port}"
    for pair in ((node.url, tcp), (tcp, f"redis://localhost:{free_port}/1")):
        with pytest.raises(holdfast.DuplicateNode):
            holdfast.connect(*pair, node_timeout=20)


# -- secrets --------------------------------------------------------------------------------------

SECRET = "hunter2"


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:hunter2@localhost:port",
        "redis://:hunter2@localhost/abc",
        "redis://localhost?password=hunter2&no_such_option=1",
        "http://user:hunter2@localhost",
        "user:hunter2@localhost",
        "redis://user:hunter2#x@localhost:6379",
        "redis://user:hunter2/x@localhost:6379",
        "redis://user:1/hunter2@localhost:6379",
        "redis://user:x/hunter2@localhost:6379",
        "redis://user:x?hunter2@localhost:port",
        "redis://:x://hunter2@localhost:port",
        "redis://:hunter2://x@localhost:port",
        "redis://user:x@hunter2@localhost:port",
        "redis://:[hunter2@localhost",
    ],
)
def test_a_bad_url_does_not_give_the_password_away(url: str) -> None:
    with pytest.raises(holdfast.BadInput) as caught:
        holdfast.connect(url)
    assert SECRET not in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))


def test_no_description_gives_the_password_away(
    healthy: list[ThrowawayNode], connect: Connect, name: str
) -> None:
    url = f"unix://user:{SECRET}@{healthy[0].socket}"
    client = connect(url)
    with pytest.raises(holdfast.Unreachable) as caught:
        client.try_lock(name)
    place = endpoints.read(url)
    for shown in (repr(client), str(client.addresses), str(caught.value), repr(caught.value),
                  repr(place), str(place), repr(place.credentials)):  # fmt: skip
        assert SECRET not in shown
    assert SECRET in place.login()


# -- errors ---------------------------------------------------------------------------------------

REPORTS = [holdfast.NodeReport("redis://a:6379", "granted")]
ERRORS = [
    holdfast.BadInput("x"),
    holdfast.DuplicateNode("a", "b"),
    holdfast.EmbeddedServerError("x"),
    holdfast.ClientClosed("x"),
    holdfast.Busy("x", REPORTS),
    holdfast.TimedOut("x", REPORTS, 1.5),
    holdfast.Unreachable("x", REPORTS, 1.5),
    holdfast.LeaseLost("x", holdfast.LossReason.TAKEN),
    holdfast.NotHeld("x", "why"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_survive_copying(error: holdfast.HoldfastError) -> None:
    error.add_note("a note")
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(copied) is type(error)
        assert str(copied) == str(error)
        assert copied.args == error.args
        assert copied.__dict__ == error.__dict__
        assert isinstance(copied, holdfast.HoldfastError)


@pytest.mark.parametrize(
    ("error", "parent"),
    [
        (holdfast.BadInput, ValueError),
        (holdfast.TimedOut, TimeoutError),
        (holdfast.Unreachable, ConnectionError),
        (holdfast.ClientClosed, RuntimeError),
        (holdfast.LeaseLost, RuntimeError),
    ],
)
def test_errors_have_a_standard_parent(error: type, parent: type) -> None:
    assert issubclass(error, parent)
    assert not issubclass(holdfast.Busy, OSError)
