"""Servers that run on, and whose memory somebody takes away."""

import pytest

from amnesia.harness import MAX_TTL, Event, Site, try_out

OTHER = "?db=1"


def flush_all(site: Site) -> None:
    site.strike_now()
    for node in site.nodes[:2]:
        assert node.call("FLUSHALL") == "OK"


def flush_the_database(site: Site) -> None:
    site.strike_now()
    for node in site.nodes[:2]:
        assert node.call("FLUSHDB") == "OK"


def swap(site: Site) -> None:
    site.strike_now()
    for node in site.nodes[:2]:
        assert node.call("SWAPDB", "0", "1") == "OK"


def use_the_other_database(site: Site) -> None:
    """Let somebody lock things in another database of the same servers."""
    client = site.connect(*(node.url + OTHER for node in site.nodes))
    if site.guard:
        client.nodes.init()
    with client.lock("somebody else's", ttl=MAX_TTL, wait=0):
        pass


EVENTS = [
    Event("FLUSHALL", flush_all),
    Event("FLUSHDB", flush_the_database),
    Event("SWAPDB with an empty one", swap),
    Event("SWAPDB with one in use", swap, prepare=use_the_other_database),
    Event("SWAPDB there and back", swap, prepare=swap),
]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_with_a_guard_there_is_one_lease(event: Event, name: str) -> None:
    try_out(event, name, guard=True)


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_without_a_guard_there_are_two(event: Event, name: str) -> None:
    try_out(event, name, guard=False)
