"""The two clients have the same face: names, options, documentation."""

import inspect

import pytest

import holdfast
import holdfast.aio

PAIRS = [
    (holdfast.Client, holdfast.aio.AsyncClient),
    (holdfast.Lock, holdfast.aio.AsyncLock),
    (holdfast.Lease, holdfast.aio.AsyncLease),
]
IDS = [blocking.__name__ for blocking, _ in PAIRS]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def signature(function: object) -> list[tuple[str, object, object]]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters]


@pytest.mark.parametrize(("blocking", "mirror"), PAIRS, ids=IDS)
def test_the_names_are_the_same(blocking: type, mirror: type) -> None:
    assert public(blocking) == public(mirror)


@pytest.mark.parametrize(("blocking", "mirror"), PAIRS, ids=IDS)
def test_the_options_are_the_same(blocking: type, mirror: type) -> None:
    for name in public(blocking):
        ours, theirs = getattr(blocking, name), getattr(mirror, name)
        if callable(ours):
            assert signature(ours) == signature(theirs), name
        else:
            assert isinstance(theirs, type(ours)), name


@pytest.mark.parametrize(("blocking", "mirror"), PAIRS, ids=IDS)
def test_everything_is_documented_alike(blocking: type, mirror: type) -> None:
    for name in public(blocking):
        ours, theirs = getattr(blocking, name).__doc__, getattr(mirror, name).__doc__
        assert ours
        assert theirs.replace("this task", "this thread") == ours, name


def test_connect_takes_the_same_options() -> None:
    ours, theirs = signature(holdfast.connect), signature(holdfast.aio.connect)
    # A loop has one connection per node, so there is no number of them to choose.
    assert [each for each in ours if each[0] != "connections"] == theirs


@pytest.mark.parametrize(("blocking", "mirror"), PAIRS, ids=IDS)
def test_context_managers_have_their_counterparts(blocking: type, mirror: type) -> None:
    assert hasattr(blocking, "__enter__") is hasattr(mirror, "__aenter__") is True
    assert not hasattr(mirror, "__enter__")


def test_what_is_meant_for_the_other_colour_is_refused() -> None:
    client = holdfast.aio.connect("unix:///nonexistent")
    with pytest.raises(holdfast.BadInput, match="not async"):

        @client.locked("x")
        def plain() -> None:
            pass
