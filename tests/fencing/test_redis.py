"""Fences in Redis and Valkey, with the user's own client."""

import contextlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import redis
import redis.asyncio
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

import holdfast
from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from holdfast.fencing import FencedOff, RedisFences
from rig.waiting import until

TOP = 2**53 - 1


@pytest.fixture
def client(user: Callable[..., Any]) -> Any:
    return user()


@pytest.fixture
def fences(client: Any) -> RedisFences:
    return RedisFences(client)


# -- what every library and server does -----------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 3}], ids=str)
def test_a_lower_fence_writes_nothing(
    server: ThrowawayNode, library: ModuleType, options: dict[str, Any], name: str
) -> None:
    with library.from_url(server.url, **options) as client:
        fences = RedisFences(client)
        fences.set(name, "first", fence=5)
        fences.set(name, "second", fence=5)
        fences.set(name, "third", fence=7)
        with pytest.raises(FencedOff) as caught:
            fences.set(name, "stale", fence=6)
        assert (caught.value.resource, caught.value.fence, caught.value.last) == (name, 6, 7)
        assert caught.value.__suppress_context__
        assert client.get(name) in (b"third", "third")


def test_entering_shuts_out_who_came_before(fences: RedisFences, client: Any, name: str) -> None:
    fences.set(name, "first", fence=5)
    fences.enter(name, 6)
    with pytest.raises(FencedOff):
        fences.set(name, "stale", fence=5)
    with pytest.raises(FencedOff):
        fences.enter(name, 5)
    assert client.get(name) == b"first"
    fences.set(name, "second", fence=6)
    assert client.get(name) == b"second"


def test_fences_are_compared_and_kept_to_the_last_digit(
    fences: RedisFences, client: Any, name: str
) -> None:
    fences.enter(name, TOP - 1)
    fences.enter(name, TOP)
    assert client.get(fences.key(name)) == b"9007199254740991"
    with pytest.raises(FencedOff) as caught:
        fences.enter(name, TOP - 1)
    assert caught.value.last == TOP


def test_any_value_that_the_client_takes(fences: RedisFences, client: Any, name: str) -> None:
    for value, stored in [(b"\x00\xff", b"\x00\xff"), ("ä", "ä".encode()), (7, b"7"), ("", b"")]:
        fences.set(name, value, fence=1)
        assert client.get(name) == stored


def test_a_server_that_has_forgotten_the_script(
    fences: RedisFences, client: Any, name: str
) -> None:
    fences.set(name, "first", fence=5)
    client.script_flush()
    fences.set(name, "second", fence=6)
    client.script_flush()
    with pytest.raises(FencedOff):
        fences.enter(name, 5)


def test_a_fence_is_kept_for_good(fences: RedisFences, client: Any, name: str) -> None:
    fences.set(name, "first", fence=5)
    assert client.ttl(fences.key(name)) == -1
    client.delete(name)
    with pytest.raises(FencedOff):
        fences.set(name, "stale", fence=4)


# -- what the server says --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda client, key: client.rpush(key, "5"), "WRONGTYPE"),
        (lambda client, key: client.set(key, "five"), "holds no fence"),
        (lambda client, key: client.set(key, ""), "holds no fence"),
        (lambda client, key: client.set(key, "1e3"), "holds no fence"),
    ],
    ids=["a list", "words", "nothing", "an exponent"],
)
def test_somebody_else_has_written_where_the_fence_is(
    fences: RedisFences, client: Any, name: str, spoil: Callable[..., object], complaint: str
) -> None:
    spoil(client, fences.key(name))
    with pytest.raises(redis.ResponseError, match=complaint):
        fences.set(name, "value", fence=5)
    assert client.get(name) is None


def test_a_full_server_takes_neither(own_nodes: Callable[..., ThrowawayNodes], name: str) -> None:
    (node,) = own_nodes(1)
    with redis.Redis.from_url(node.url) as client:
        fences = RedisFences(client)
        fences.set(name, "first", fence=5)
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            fences.set(name, "second", fence=6)
        assert client.get(name) == b"first"
        assert client.get(fences.key(name)) == b"5"


def test_a_server_that_is_gone(own_nodes: Callable[..., ThrowawayNodes], name: str) -> None:
    (node,) = own_nodes(1)
    with redis.Redis.from_url(node.url) as client:
        node.kill()
        with pytest.raises(redis.ConnectionError):
            RedisFences(client).enter(name, 5)


# -- scripts and transactions of the user's own ----------------------------------------------------

TAKE = "return redis.call('DECRBY', KEYS[2], ARGV[2])"


def test_lua_of_ones_own_runs_only_for_who_is_let_in(
    fences: RedisFences, client: Any, name: str
) -> None:
    client.set(name, 10)
    take = fences.script(TAKE)
    assert take(name, 5, keys=[name], args=[3]) == 7
    fences.enter(name, 6)
    with pytest.raises(FencedOff):
        take(name, 5, keys=[name], args=[3])
    assert client.get(name) == b"7"
    assert take(name, 6, keys=[name], args=[1]) == 6


def test_errors_of_ones_own_lua_are_ones_own(fences: RedisFences, client: Any, name: str) -> None:
    client.rpush(name, "x")
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        fences.script(TAKE)(name, 5, keys=[name], args=[3])
    with pytest.raises(redis.ResponseError, match="MINE it is"):
        fences.script("return redis.error_reply('MINE it is')")(name, 5)


def test_a_transaction_watches_the_fence(
    fences: RedisFences, client: Any, user: Callable[..., Any], name: str
) -> None:
    """As the guide has it: the successor enters between the look and EXEC."""
    client.set(name, 10)
    fences.enter(name, 5)
    looks = []

    def take(pipe: Any) -> None:
        last = int(pipe.get(fences.key(name)))
        looks.append(last)
        if last > 5:
            raise FencedOff(name, 5, last)
        RedisFences(user()).enter(name, 6)
        pipe.multi()
        pipe.decrby(name, 3)

    with pytest.raises(FencedOff):
        client.transaction(take, fences.key(name))
    assert looks == [5, 6]
    assert client.get(name) == b"10"


# -- many at once ----------------------------------------------------------------------------------


def test_many_threads_write_in_the_order_of_their_fences(
    user: Callable[..., Any], in_thread: Callable[..., Any], name: str
) -> None:
    client, together = user(), threading.Barrier(8)
    log = RedisFences(client).script("return redis.call('RPUSH', KEYS[2], ARGV[1])")

    def writer(number: int) -> int:
        refused = 0
        together.wait()
        for step in range(100):
            try:
                log(name, step * 8 + number, keys=[name])
            except FencedOff:
                refused += 1
        return refused

    refused = sum(each.result() for each in [in_thread(writer, number) for number in range(8)])
    written = [int(fence) for fence in client.lrange(name, 0, -1)]
    assert len(written) + refused == 800
    assert written == sorted(written)
    assert written[-1] == 799


# -- clusters --------------------------------------------------------------------------------------

KEYS = st.text(st.sampled_from("ab{}:ä"), min_size=1, max_size=8)


@given(KEYS)
def test_a_fence_is_in_the_slot_of_its_resource(key: str) -> None:
    with contextlib.suppress(holdfast.BadInput):
        assert key_slot(RedisFences.key(key).encode()) == key_slot(key.encode())


@given(KEYS, KEYS)
def test_no_two_resources_share_a_fence(one: str, other: str) -> None:
    with contextlib.suppress(holdfast.BadInput):
        assert (RedisFences.key(one) == RedisFences.key(other)) == (one == other)


def test_a_key_whose_slot_no_other_is_sure_to_share() -> None:
    with pytest.raises(holdfast.BadInput, match="slot"):
        RedisFences.key("a}b")


def test_in_a_cluster(own_nodes: Callable[..., ThrowawayNodes], free_port: int, name: str) -> None:
    config = ["--cluster-enabled", "yes", "--cluster-port", str(free_port)]
    (node,) = own_nodes(1, config=config, tcp=True)
    assert node.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383") == "OK"
    until(lambda: "cluster_state:ok" in (node.call("CLUSTER", "INFO") or ""))
    with redis.RedisCluster.from_url(node.tcp_url) as client:
        fences = RedisFences(client)
        for key in (name, f"{{{name}}}:stock", f"stock:{{{name}}}"):
            fences.set(key, "first", fence=5)
            with pytest.raises(FencedOff):
                fences.set(key, "stale", fence=4)
            assert client.get(key) == b"first"
            client.script_flush()
        client.disconnect_connection_pools()  # closing it does not


# -- what is no client -----------------------------------------------------------------------------


def test_a_pipeline_is_refused(client: Any) -> None:
    with pytest.raises(holdfast.BadInput, match="pipeline"), client.pipeline() as pipe:
        RedisFences(pipe)


def test_an_asyncio_client_is_refused() -> None:
    with pytest.raises(holdfast.BadInput, match="hint: AsyncRedisFences"):
        RedisFences(redis.asyncio.Redis())


def test_something_else_is_refused() -> None:
    with pytest.raises(holdfast.BadInput, match="no client"):
        RedisFences("redis://localhost")


@pytest.mark.parametrize("fence", [-1, 2**53, None, "5"])
def test_what_is_no_fence_is_not_sent(fences: RedisFences, name: str, fence: Any) -> None:
    with pytest.raises(holdfast.BadInput):
        fences.set(name, "value", fence=fence)
