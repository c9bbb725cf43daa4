"""Without the right to hear or to call: correct and in order all the same, by asking again."""

import logging
import time
from collections.abc import Callable, Iterator

import pytest

from holdfast.embedded import ThrowawayNode, ThrowawayNodes
from rig.actor import Actor
from rig.lineup import HEARTBEAT, SLACK, LineUp, nothing_left
from rig.waiting import until


@pytest.fixture
def node(own_nodes: Callable[..., ThrowawayNodes]) -> ThrowawayNode:
    return own_nodes(1)[0]


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """Return what returns the warnings that were logged."""
    with caplog.at_level(logging.INFO, logger="holdfast"):
        yield lambda: [
            each.getMessage()
            for each in caplog.records
            if each.name == "holdfast" and each.levelno >= logging.WARNING
        ]


def missing(warnings: list[str]) -> list[str]:
    """Return the rights that are named, as often as they are."""
    hints = [warning.partition("hint: ACL SETUSER …")[2] for warning in warnings]
    return sorted(right for hint in hints for right in hint.split())


def login(node: ThrowawayNode, *rules: str) -> str:
    """Make a user who may do everything, but for some; return where it finds the node."""
    everything = ["reset", "on", ">secret", "~*", "&*", "+@all"]
    assert node.call("ACL", "SETUSER", "waiter", *everything, *rules) == "OK"
    return f"unix://waiter:secret@{node.socket}"


def chain(line: LineUp, actor: Actor, other: Actor, name: str, *, people: int = 4) -> None:
    """Hand a lock on from one to the other; each has it soon, and in order."""
    lease = actor.acquire(name)
    for each in [actor, other, actor, other][:people]:
        line.join(each)
    for guest in line.guests:
        begun = time.monotonic()
        (lease.release if guest.number == 0 else line.guests[guest.number - 1].leave)()
        guest.be_served()
        assert time.monotonic() - begun < HEARTBEAT + SLACK
    line.hurry()
    assert line.served == list(range(people))


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (["resetchannels"], ["&hf:inbox:*"]),
        (["-subscribe"], ["+subscribe"]),
        (["-publish"], ["+publish"]),
        (["-subscribe", "-publish"], ["+subscribe", "+publish"]),
        (["resetchannels", "&hf:inbox:*"], []),
    ],
    ids=" ".join,
)
def test_a_right_that_is_missing_is_named_once(
    node: ThrowawayNode,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    warnings: Callable[[], list[str]],
    name: str,
    rules: list[str],
    named: list[str],
) -> None:
    url = login(node, *rules)
    line, actor = line_up([node], name), new_actor([url])
    chain(line, actor, actor, name)
    until(lambda: missing(warnings()) == sorted(named), what="for the rights to be named")
    line.served.clear()
    line.guests.clear()
    chain(line, actor, actor, name, people=2)
    assert missing(warnings()) == sorted(named), "each is named once, and no other"
    until(lambda: nothing_left([node], name))


@pytest.mark.parametrize("rules", [["resetchannels"], ["-subscribe"], ["-publish"]], ids=" ".join)
def test_with_and_without_rights_in_one_line(
    node: ThrowawayNode,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    warnings: Callable[[], list[str]],
    name: str,
    rules: list[str],
) -> None:
    line = line_up([node], name)
    chain(line, new_actor([login(node, *rules)]), new_actor([node]), name)
    until(lambda: nothing_left([node], name))


def test_resp2_is_enough(
    node: ThrowawayNode,
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    warnings: Callable[[], list[str]],
    name: str,
) -> None:
    line = line_up([node], name)
    chain(line, new_actor([f"{node.url}?protocol=2"]), new_actor([node]), name)
    assert len(warnings()) <= 1
    assert all("RESP3" in warning for warning in warnings())


def test_rights_on_a_quorum(
    own_nodes: Callable[..., ThrowawayNodes],
    new_actor: Callable,
    line_up: Callable[..., LineUp],
    warnings: Callable[[], list[str]],
    name: str,
) -> None:
    """All three refuse, and it is said once."""
    nodes = list(own_nodes(3))
    line = line_up(nodes, name)
    without = new_actor([login(node, "resetchannels") for node in nodes])
    chain(line, without, new_actor(nodes), name)
    until(warnings)
    assert missing(warnings()) == ["&hf:inbox:*"]
    until(lambda: nothing_left(nodes, name))
