"""What nodes were sent and what they executed, on a real one."""

from collections.abc import Iterator

import pytest
import redis
from bench.counting import Executed, Received, sent

from holdfast.embedded import ThrowawayNodes

SCRIPT = "redis.call('get', 'a'); redis.call('set', 'a', 1); return redis.call('get', 'a')"


@pytest.fixture(scope="module")
def urls() -> Iterator[list[str]]:
    with ThrowawayNodes(2, tcp=True) as nodes:
        yield [nodes.tcp_urls[0], nodes.urls[1]]


@pytest.fixture
def clients(urls: list[str]) -> Iterator[list[redis.Redis]]:
    made = [redis.Redis.from_url(url) for url in urls]
    for client in made:
        client.ping()
    yield made
    for client in made:
        client.close()


def say(clients: list[redis.Redis]) -> None:
    """Say 12 commands: six scripts with three in each, a pipeline of five, and a wait."""
    first, second = clients
    for _ in range(6):
        second.eval(SCRIPT, 0)
    pipe = first.pipeline(transaction=False)
    for _ in range(5):
        pipe.get("a")
    pipe.execute()
    first.blpop(["nothing"], 0.01)


def test_a_script_is_one_command_to_send(urls: list[str], clients: list[redis.Redis]) -> None:
    received = Received(urls)
    say(clients)
    assert received.count() == 12


def test_a_script_is_executed_with_all_that_is_in_it(
    urls: list[str], clients: list[redis.Redis]
) -> None:
    executed = Executed(urls)
    before = executed.total()
    assert executed.total() == before, "its own questions do not count"
    say(clients)
    assert executed.total() - before == 12 + 6 * 3
    executed.close()


def test_only_what_is_between_the_marks_counts() -> None:
    lines = [
        b'+1.0 [0 127.0.0.1:1] "GET" "before"',
        b'+1.0 [0 127.0.0.1:2] "ECHO" "bench:begin"',
        b'+1.1 [0 127.0.0.1:1] "EVALSHA" "[0 lua]" "1"',
        b'+1.1 [0 lua] "get" "a"',
        b'+1.2 [0 unix:/tmp/node.sock] "SET" "a" "1"',
        b'+1.3 [0 127.0.0.1:2] "ECHO" "bench:end"',
        b'+1.4 [0 127.0.0.1:1] "GET" "after"',
    ]
    assert sent(lines) == 2
