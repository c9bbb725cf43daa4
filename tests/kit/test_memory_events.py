"""What a test can do to a universe: lose, take, fail, heal, advance, and all of it later."""

import pytest

import holdfast
from holdfast.testing import Memory


def test_holder_names_the_token(memory: Memory) -> None:
    assert memory.holder("a") is None
    with memory.client().lock("a") as lease:
        assert memory.holder("a") == lease.token
        assert memory.holder("b") is None
    assert memory.holder("a") is None


def test_a_minority_holds_nothing(memory: Memory) -> None:
    memory.fail(1, 2)
    memory._universe.nodes[0].server.store.call(b"SET", b"hf:{a}", b"token")
    assert memory.holder("a") is None


def test_advance_ends_leases_and_frees_locks(memory: Memory) -> None:
    lease = memory.client().lock("a", ttl=30, renew=False).acquire()
    memory.advance(29)
    assert lease.is_held
    assert memory.holder("a")
    memory.advance(0.9)
    assert not lease.is_held, "its holder stops believing before the nodes forget"
    assert memory.holder("a") is None, "and so the keeper tells them"
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.release()
    assert caught.value.reason is holdfast.LossReason.EXPIRED


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_time_passes_forwards(memory: Memory, seconds: float) -> None:
    with pytest.raises(holdfast.BadInput):
        memory.advance(seconds)
    with pytest.raises(holdfast.BadInput):
        memory.after(seconds, lambda: None)
    assert memory.now == 0


def test_what_is_lost_is_heard_of_when_renewing(memory: Memory) -> None:
    lease = memory.client().lock("a").acquire()
    memory.lose("a")
    assert lease.is_held, "nobody has asked yet"
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.renew()
    assert caught.value.reason is holdfast.LossReason.DELETED
    assert not lease.is_held


def test_what_is_lost_is_heard_of_when_leaving(memory: Memory) -> None:
    with pytest.raises(holdfast.LeaseLost), memory.client().lock("a"):
        memory.lose("a")


def test_what_is_lost_and_taken_says_so(memory: Memory) -> None:
    lease = memory.client().lock("a").acquire()
    memory.lose("a")
    other = memory.take("a")
    with pytest.raises(holdfast.LeaseLost) as caught:
        lease.release()
    assert caught.value.reason is holdfast.LossReason.TAKEN
    assert memory.holder("a") == other.token


def test_what_nobody_has_cannot_be_lost(memory: Memory) -> None:
    with pytest.raises(holdfast.NotHeld):
        memory.lose("a")


def test_what_is_taken_is_busy_until_it_is_released(memory: Memory) -> None:
    client, other = memory.client(), memory.take("a", ttl=5)
    assert client.try_lock("a") is None
    with pytest.raises(holdfast.Busy) as caught:
        client.lock("a").acquire(wait=0)
    assert "held by somebody else, 5.000 s left" in str(caught.value)
    other.release()
    assert client.try_lock("a", renew=False)


def test_what_is_taken_ends_with_its_ttl(memory: Memory) -> None:
    taken = memory.take("a", ttl=5)
    memory.advance(6)
    assert not taken.is_held
    assert memory.holder("a") is None


def test_what_is_taken_and_forgotten_ends_with_its_ttl_at_the_nodes(memory: Memory) -> None:
    memory.take("a", ttl=5)
    memory.advance(4.95)
    assert memory.holder("a")
    memory.advance(0.06)
    assert memory.holder("a") is None


def test_what_is_taken_may_be_renewed(memory: Memory) -> None:
    taken = memory.take("a", ttl=5, renew=True)
    memory.advance(600)
    assert taken.is_held
    assert memory.holder("a") == taken.token
    taken.release()


def test_what_is_held_cannot_be_taken(memory: Memory) -> None:
    with memory.client().lock("a") as lease:
        with pytest.raises(holdfast.Busy):
            memory.take("a")
        assert memory.holder("a") == lease.token


def test_a_minority_may_fail(memory: Memory) -> None:
    memory.fail(2)
    with memory.client().lock("a") as lease:
        lease.renew()


def test_a_majority_may_not(memory: Memory) -> None:
    client = memory.client()
    lease = client.lock("a").acquire()
    memory.fail(0, 1)
    with pytest.raises(holdfast.Unreachable) as caught:
        client.lock("b").acquire(wait=0)
    assert [str(report) for report in caught.value.reports] == [
        "unix://memory/0: unreachable: by memory.fail()",
        "unix://memory/1: unreachable: by memory.fail()",
        "unix://memory/2: granted",
    ]
    with pytest.raises(holdfast.Unreachable):
        lease.renew()
    assert lease.is_held, "what could not be renewed holds until its old end"
    assert lease.release() is holdfast.Released.LAPSING


def test_a_node_that_is_back_has_kept_what_it_had(memory: Memory) -> None:
    lease = memory.client().lock("a").acquire()
    memory.fail()
    memory.heal(0, 1)
    lease.renew()
    memory.heal()
    assert lease.release() is holdfast.Released.FREED


@pytest.mark.parametrize("number", [3, -1])
def test_a_node_that_there_is_not(memory: Memory, number: int) -> None:
    with pytest.raises(holdfast.BadInput, match="0 to 2"):
        memory.fail(0, number)
    assert memory.take("a")


def test_later_somebody_releases(memory: Memory) -> None:
    memory.after(3, memory.take("a").release)
    with memory.client().lock("a", wait=5):
        assert 3 <= memory.now < 3.5


def test_later_nodes_come_back(memory: Memory) -> None:
    memory.fail()
    memory.after(2, memory.heal)
    with memory.client().lock("a", wait=5):
        assert 2 <= memory.now < 2.5


def test_later_things_happen_in_order(memory: Memory) -> None:
    seen: list[tuple[str, float]] = []
    memory.after(3, lambda: seen.append(("third", memory.now)))
    memory.after(1, lambda: seen.append(("first", memory.now)))
    memory.after(1, lambda: seen.append(("second", memory.now)))
    memory.after(9, lambda: pytest.fail("too early"))
    memory.advance(4)
    assert seen == [("first", 1), ("second", 1), ("third", 3)]
    assert memory.now == 4


def test_later_may_be_later_again(memory: Memory) -> None:
    beats: list[float] = []

    def beat() -> None:
        beats.append(memory.now)
        memory.after(1, beat)

    beat()
    memory.advance(3.5)
    assert beats == [0, 1, 2, 3]


def test_what_happens_later_may_use_clients_and_pass_time(memory: Memory) -> None:
    leases: list[holdfast.Lease | None] = []

    def rob() -> None:
        memory.lose("a")
        memory.advance(1)
        leases.append(memory.client().try_lock("a", renew=False))

    lease = memory.client().lock("a").acquire()
    memory.after(5, rob)
    memory.advance(6)
    assert memory.now == 6
    assert leases[0] is not None
    with pytest.raises(holdfast.LeaseLost):
        lease.renew()


def test_what_happens_later_must_not_wait(memory: Memory) -> None:
    memory.take("a")
    memory.after(1, lambda: memory.client().lock("a").acquire(wait=5))
    with pytest.raises(RuntimeError, match="must not wait"):
        memory.advance(2)
    memory.advance(40)
    assert memory.take("a"), "and the universe goes on"


def test_what_is_raised_later_is_raised_to_whoever_waits(memory: Memory) -> None:
    def fail() -> None:
        raise KeyError("mine")

    other = memory.take("a")
    memory.after(1, fail)
    with pytest.raises(KeyError, match="mine"):
        memory.client().lock("a").acquire(wait=5)
    assert memory.now == 1
    other.release()
    assert memory.holder("a") is None


def test_two_clients_contend(memory: Memory) -> None:
    ours, theirs = memory.client(), memory.client()
    with ours.lock("a"):
        assert theirs.try_lock("a") is None
        with theirs.lock("b"):
            assert ours.try_lock("b") is None
    assert theirs.try_lock("a", renew=False)
