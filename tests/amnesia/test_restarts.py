"""Servers that are killed, and come back empty or with an older memory."""

import pytest

from amnesia.harness import MAX_TTL, Event, Site, abstention, restart, start, try_out
from rig.waiting import pass_time

EVERYSEC = ("--appendonly", "yes", "--appendfsync", "everysec")


def restart_the_second(site: Site) -> None:
    site.strike_now()
    restart(site.nodes[1:2])


def restart_two(site: Site) -> None:
    site.strike_now()
    restart(site.nodes[:2])


def restart_all(site: Site) -> None:
    site.strike_now()
    restart(site.nodes[:])


def restart_two_again(site: Site) -> None:
    """Restart two nodes again while they abstain."""
    restart_two(site)
    pass_time(abstention(MAX_TTL) / 2)
    restart_two(site)


def restart_two_again_with_their_markers(site: Site) -> None:
    """Restart two nodes again while they abstain, and let them remember that they do."""
    restart_two(site)
    pass_time(abstention(MAX_TTL) / 2)
    save(site)
    restart_two(site)


def save(site: Site) -> None:
    for node in site.nodes:
        assert node.call("SAVE") == "OK"


def note_logs(site: Site) -> None:
    """Take note of how much the nodes have written to their logs of changes."""
    logs = [next(node.directory.glob("appendonlydir/*.incr.aof")) for node in site.nodes]
    site.notes["logs"] = [(log, log.stat().st_size) for log in logs]


def lose_the_logs_ends(site: Site) -> None:
    """Kill two nodes, take away what they have written since `note_logs`, and start them."""
    site.strike_now()
    for node, (log, size) in zip(site.nodes[:2], site.notes["logs"], strict=False):
        node.kill()
        assert log.stat().st_size > size, "the lock was written"
        with log.open("r+b") as file:
            file.truncate(size)
    start(site.nodes[:2])


EVENTS = [
    Event("a minority", restart_the_second, unseen=[2], majority=False),
    Event("a majority", restart_two),
    Event("all", restart_all),
    Event("again while they abstain", restart_two_again),
    Event("again, and they know that they abstained", restart_two_again_with_their_markers),
    Event("an older snapshot is restored", restart_two, prepare=save),
    Event("the end of the log is lost", lose_the_logs_ends, prepare=note_logs, config=EVERYSEC),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_with_a_guard_there_is_one_lease(event: Event, name: str) -> None:
    try_out(event, name, guard=True)


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_without_a_guard_there_are_two(event: Event, name: str) -> None:
    try_out(event, name, guard=False)
