"""The gate in this process: it refuses what is older, and what it forgets it does not let in."""

import copy
import pickle
import random
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.fencing import FencedOff, FenceGate
from rig.waiting import until

TOP = 2**53 - 1


def test_a_lower_fence_is_refused() -> None:
    gate = FenceGate()
    gate.enter("a", 5)
    gate.enter("a", 5)
    gate.enter("a", 7)
    with pytest.raises(FencedOff) as caught:
        gate.enter("a", 6)
    assert (caught.value.resource, caught.value.fence, caught.value.last) == ("a", 6, 7)
    assert str(caught.value) == "resource 'a': fence 6 is refused, it has seen 7"
    gate.enter("a", 7)


def test_resources_do_not_know_of_each_other() -> None:
    gate = FenceGate()
    gate.enter("a", 7)
    gate.enter("b", 1)
    assert len(gate) == 2


def test_a_refused_block_does_not_run() -> None:
    gate, ran = FenceGate(), []
    gate.enter("a", 7)
    with pytest.raises(FencedOff), gate.writing("a", 6):
        ran.append("stale")
    assert ran == []


def test_a_block_that_fails_has_entered_all_the_same() -> None:
    gate = FenceGate()
    with pytest.raises(ZeroDivisionError), gate.writing("a", 7):
        raise ZeroDivisionError
    with pytest.raises(FencedOff):
        gate.enter("a", 6)
    gate.enter("a", 7)


def test_blocks_of_one_thread_nest() -> None:
    gate = FenceGate()
    with gate.writing("a", 5), gate.writing("b", 5), gate.writing("a", 5):
        gate.enter("b", 5)


NAMES = st.sampled_from("abcde")
FENCES = st.integers(0, TOP) | st.integers(0, 12)


@given(limit=st.integers(1, 6), visits=st.lists(st.tuples(NAMES, FENCES), max_size=60))
def test_nothing_older_is_let_in_however_little_is_remembered(
    limit: int, visits: list[tuple[str, int]]
) -> None:
    gate, last = FenceGate(limit=limit), dict[str, int]()
    for name, fence in visits:
        try:
            gate.enter(name, fence)
        except FencedOff:
            assert limit < len("abcde") or fence < last[name]
        else:
            assert fence >= last.get(name, 0)
            last[name] = fence
        assert len(gate) <= limit


def test_what_was_forgotten_counts_as_having_seen_the_latest_of_all_forgotten() -> None:
    gate = FenceGate(limit=1)
    gate.enter("a", 5)
    gate.enter("b", 9)
    gate.enter("c", 7)
    with pytest.raises(FencedOff) as caught:
        gate.enter("a", 8)
    assert caught.value.last == 9
    gate.enter("a", 9)


def test_what_is_in_use_is_remembered_the_longest() -> None:
    gate = FenceGate(limit=2)
    gate.enter("held", 5)
    for fence in range(6, 100):
        gate.enter(f"other {fence}", fence)
        gate.enter("held", 5)
    assert len(gate) == 2


def test_what_is_being_written_is_not_forgotten() -> None:
    gate = FenceGate(limit=1)
    with gate.writing("a", 5):
        gate.enter("b", 9)
        gate.enter("c", 9)
        gate.enter("a", 5)
    assert len(gate) == 1


def test_entering_waits_for_a_write_that_was_let_in_before(in_thread: Callable) -> None:
    gate, done = FenceGate(), []

    def successor() -> None:
        gate.enter("a", 6)
        done.append("entered")

    with gate.writing("a", 5):
        entering = in_thread(successor)
        until(lambda: gate._marks["a"].visitors == 2)
        gate.enter("b", 1)  # nobody else waits
        done.append("written")
    entering.result()
    assert done == ["written", "entered"]


def test_many_threads_write_in_the_order_of_their_fences(in_thread: Callable) -> None:
    gate, together = FenceGate(limit=3), threading.Barrier(16)
    written: dict[str, list[int]] = {name: [] for name in "abcde"}

    def writer(seed: int) -> int:
        chance, refused = random.Random(seed), 0
        together.wait()
        for fence in range(300):
            name = chance.choice("abcde")
            try:
                with gate.writing(name, fence):
                    written[name] = [*written[name], fence]  # lost, if two are in here
            except FencedOff:
                refused += 1
        return refused

    refused = sum(writer.result() for writer in [in_thread(writer, seed) for seed in range(16)])
    assert sum(map(len, written.values())) + refused == 16 * 300
    assert all(fences == sorted(fences) for fences in written.values())
    assert refused > 0
    assert len(gate) <= 3


@pytest.mark.parametrize("fence", [-1, 2**53, True, "7", 7.0, None])
def test_what_is_no_fence(fence: object) -> None:
    with pytest.raises(holdfast.BadInput, match="fence"):
        FenceGate().enter("a", fence)


@pytest.mark.parametrize("resource", ["", None, b"a", 7])
def test_what_is_no_resource(resource: object) -> None:
    with pytest.raises(holdfast.BadInput, match="resource"):
        FenceGate().enter(resource, 7)


@pytest.mark.parametrize("limit", [0, -1, None, 1.5, True])
def test_what_is_no_limit(limit: object) -> None:
    with pytest.raises(holdfast.BadInput, match="at least one"):
        FenceGate(limit=limit)


def test_a_refusal_survives_copying() -> None:
    error = FencedOff("a", 6, 7)
    error.add_note("a note")
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(copied) is FencedOff
        assert str(copied) == str(error)
        assert copied.__dict__ == error.__dict__
        assert isinstance(copied, holdfast.HoldfastError)
