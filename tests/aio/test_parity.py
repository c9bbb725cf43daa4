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


COLOURED = {"lock", "on_endangered", "on_lost", "transfer"}
"""Methods that differ in more than what they wait for, and therefore in what they say of it."""


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
            # Only a task can be cancelled, so only that client has the option.
            shared = [each for each in signature(theirs) if each[0] != "cancel_on_lost"]
            assert shared == signature(ours), name
        else:
            assert isinstance(theirs, type(ours)), name


@pytest.mark.parametrize(("blocking", "mirror"), PAIRS, ids=IDS)
def test_everything_is_documented_alike(blocking: type, mirror: type) -> None:
    for name in public(blocking):
        ours, theirs = getattr(blocking, name).__doc__, getattr(mirror, name).__doc__
        assert ours
        assert theirs
        if name in COLOURED:
            ours, theirs = ours.splitlines()[0], theirs.splitlines()[0]
        assert theirs.replace("this task", "this thread").replace("await ", "") == ours, name


def test_every_way_to_acquire_can_cancel_its_body() -> None:
    for method in (holdfast.aio.AsyncClient.lock, holdfast.aio.AsyncClient.try_lock,
                   holdfast.aio.AsyncClient.locked):  # fmt: skip
        assert ("cancel_on_lost", inspect.Parameter.KEYWORD_ONLY, False) in signature(method)


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
