"""The queue on one node: the shipped Lua on a model of a server."""

from dataclasses import replace

import hiredis
import pytest

from holdfast.core.guard import NO_GUARD, Guard
from holdfast.core.inspect import Sight
from holdfast.core.place import Place
from holdfast.core.terms import Terms
from holdfast.core.votes import GRANTED, MISSING, Answer, Vote
from holdfast.wire.keys import leases_key, lock_key, queue_key
from holdfast.wire.who import INBOX
from unit.node import MINUTE, STARTED_US, Node

NAME = "x"
TTL, CLAIM, HEARTBEAT, LEASE, FOREIGN = 10_000, 300, 1000, 3000, 100
MOST = 513
"""How many waiters a script looks at in one go."""


def token(number: int, sign: str = "+") -> str:
    return f"{number:040x}{sign}host/1/label/{number:08x}"


ME, ANN, BOB, CID, DAN = (token(number) for number in range(1, 6))
OUTSIDER = token(99)


class Line(Node):
    """A node that people wait at. It notes whom it calls; those who are `deaf` do not hear it."""

    def __init__(self, guard: Guard = MINUTE) -> None:
        super().__init__(guard)
        self.called: list[tuple[str, int, str]] = []
        """Token, for how long, and the fence that is proposed."""
        self.deaf: set[str] = set()
        self.server.on_publish = self._publish

    def _publish(self, channel: bytes, payload: bytes) -> int:
        name, shown_us, claim_ms, fence = payload.decode().split()
        assert channel.decode() == INBOX + name[41:]
        assert int(shown_us) == self.now_us
        self.called.append((name, int(claim_ms), fence))
        return 0 if name in self.deaf else 1

    def terms(self, name: str = NAME) -> Terms:
        return Terms(name, TTL, 3, 0.05, guard=self.guard)

    def takes(self, token: str, place: Place = Place.NOWHERE, *, stamp: int | None = None) -> Vote:
        stamp = self._stamp() if stamp is None else stamp
        return self._placed(token, self.asks(self.terms().request(token, stamp, place)))

    def waits(
        self,
        token: str,
        place: Place = Place.ABOVE,
        *,
        stamp: int | None = None,
        late: bool = False,
    ) -> Vote:
        stamp = self._stamp() if stamp is None else stamp
        not_after = self.now_us // 1000 - 1 if late else 0
        command = self.terms().wait(token, stamp, place)
        return self._placed(token, self.asks(command, not_after_ms=not_after))

    def _placed(self, token: str, vote: Vote) -> Vote:
        """See that a waiter is told at which stamp it stands in line; return the rest."""
        if vote.answer not in (Answer.QUEUED, Answer.RESERVED):
            return vote
        if self.sight().holder == token:
            return replace(vote, mark=0)
        assert [vote.mark] == [each.stamp for each in self.sight().line if each.token == token]
        return replace(vote, mark=0)

    def gives_back(self, token: str, *, stamp: int = 0) -> Vote:
        return self.asks(self.terms().release(token, stamp=stamp))

    def line(self) -> list[str]:
        return [each.token for each in self.sight().line]

    def sight(self) -> Sight:
        [seen] = self.asks(self.terms().inspect()).facts
        assert isinstance(seen, Sight)
        return seen

    def lease_of(self, token: str) -> float:
        """Return for how many milliseconds a waiter still counts as alive."""
        [ends] = [each.ends_ms for each in self.sight().line if each.token == token]
        return ends - self.now_us / 1000

    def left_of(self, key: str) -> object:
        return self.server.store.call(b"PTTL", key.encode())


def held(*waiters: str, guard: Guard = MINUTE) -> Line:
    """A lock that somebody has, and others wait for."""
    node = Line(guard)
    assert node.takes(ME) == GRANTED
    for waiter in waiters:
        assert node.waits(waiter).answer is Answer.QUEUED
    return node


def queued(milliseconds: int | None, rank: int) -> Vote:
    return Vote(Answer.QUEUED, remaining_ms=milliseconds, rank=rank)


def reserved(milliseconds: int = CLAIM) -> Vote:
    return Vote(Answer.RESERVED, remaining_ms=milliseconds)


# -- taking a place -------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [MINUTE, NO_GUARD])
@pytest.mark.parametrize("place", [Place.ABOVE, Place.LAST, Place.SETTLED])
def test_who_finds_the_lock_free_has_it_and_nobody_waits(place: Place, guard: Guard) -> None:
    node = Line(guard)
    assert node.takes(ME, place) == GRANTED
    assert (node.line(), node.left_of(queue_key(NAME))) == ([], -2)


def test_who_does_not_stands_in_line_in_the_order_of_stamps() -> None:
    node = held()
    assert node.takes(ANN, Place.ABOVE) == queued(TTL + 1, 0)
    assert node.takes(BOB, Place.ABOVE) == queued(TTL + 1 + CLAIM, 1)
    assert node.waits(CID) == queued(None, 2)
    assert node.line() == [ANN, BOB, CID]


def test_one_try_leaves_no_trace() -> None:
    node = held()
    for place in (Place.NOWHERE, Place.KEPT):
        assert node.takes(ANN, place) == Vote(Answer.HELD, remaining_ms=TTL)
    assert node.line() == []
    assert node.left_of(queue_key(NAME)) == -2


def test_asking_again_keeps_the_place() -> None:
    node = held(ANN, BOB)
    before = node.sight().line
    assert node.waits(ANN) == queued(TTL + 1, 0)
    assert node.takes(ANN, Place.ABOVE, stamp=STARTED_US + 10**6) == queued(TTL + 1, 0)
    assert [each.stamp for each in node.sight().line] == [each.stamp for each in before]


def test_a_stamp_that_is_not_above_all_before_is_refused() -> None:
    node = held()
    assert node.waits(ANN, stamp=STARTED_US + 50).answer is Answer.QUEUED
    for stamp in (STARTED_US + 50, STARTED_US + 20):
        assert node.waits(BOB, stamp=stamp) == Vote(Answer.OUTRANKED, mark=STARTED_US + 50)
        refused = node.takes(BOB, Place.ABOVE, stamp=stamp)
        assert refused == Vote(Answer.OUTRANKED, mark=STARTED_US + 50)
    assert node.line() == [ANN]
    assert node.waits(BOB, stamp=STARTED_US + 51).answer is Answer.QUEUED


def test_also_above_those_who_have_left() -> None:
    node = held(CID)
    assert node.waits(ANN, stamp=STARTED_US + 50).answer is Answer.QUEUED
    node.gives_back(ANN)
    assert node.line() == [CID]
    assert node.waits(BOB, stamp=STARTED_US + 50).mark == STARTED_US + 50


def test_a_settled_stamp_is_taken_where_it_belongs() -> None:
    node = held()
    assert node.waits(ANN, stamp=STARTED_US + 50).answer is Answer.QUEUED
    assert node.waits(BOB, Place.SETTLED, stamp=STARTED_US + 20) == queued(TTL + 1, 0)
    assert node.line() == [BOB, ANN]
    assert node.waits(CID, stamp=STARTED_US + 40).mark == STARTED_US + 50, "the mark stays"


def test_on_one_node_whoever_comes_is_last() -> None:
    node = held()
    assert node.waits(ANN, Place.LAST, stamp=STARTED_US + 50) == queued(TTL + 1, 0)
    assert node.waits(BOB, Place.LAST, stamp=STARTED_US + 20) == queued(TTL + 1 + CLAIM, 1)
    assert node.waits(CID, Place.LAST, stamp=STARTED_US + 50).rank == 2
    assert [each.stamp - STARTED_US for each in node.sight().line] == [50, 51, 52]


def test_what_comes_too_late_takes_no_place() -> None:
    node = held()
    assert "came too late" in str(node.waits(ANN, late=True))
    assert node.line() == []


# -- how long -------------------------------------------------------------------------------------


def test_only_its_own_word_keeps_a_waiter_alive() -> None:
    node = held(ANN, BOB)
    node.passes(2000)
    node.waits(BOB)
    assert (node.lease_of(ANN), node.lease_of(BOB)) == (LEASE - 2000, LEASE)
    assert node.left_of(queue_key(NAME)) == node.left_of(leases_key(NAME)) == LEASE


def test_a_queue_that_nobody_stands_in_ends_by_itself() -> None:
    node = held(ANN)
    node.passes(LEASE + 1)
    assert node.left_of(queue_key(NAME)) == node.left_of(leases_key(NAME)) == -2


def test_when_to_ask_again_follows_the_holder() -> None:
    node = held(ANN, BOB, CID)
    node.passes(TTL - 2500)
    for waiter in (ANN, BOB, CID):
        node.waits(waiter)
    assert node.waits(ANN) == queued(2500 + 1, 0), "when the holder's time is up"
    assert node.waits(BOB) == queued(2500 + 1 + CLAIM, 1), "and when the first had its chance"
    assert node.waits(CID) == queued(None, 2)


@pytest.mark.parametrize("left", [None, 5000, 40])
def test_who_does_not_hand_over_is_looked_at_often(left: int | None) -> None:
    node = Line()
    words = [b"SET", lock_key(NAME).encode(), b"another program"]
    node.server.store.call(*words, *([] if left is None else [b"PX", b"%d" % left]))
    soon = min(left or FOREIGN, FOREIGN)
    assert node.waits(ANN) == queued(soon + 1, 0)
    second = None if left is None else left + 1 + CLAIM
    assert node.waits(BOB) == queued(second, 1), "the first one will see it"


@pytest.mark.parametrize("sign", ["+", "?", "-"])
def test_who_does_is_not(sign: str) -> None:
    node = Line()
    assert node.takes(token(1, sign)) == GRANTED
    assert node.waits(ANN) == queued(TTL + 1, 0)


# -- handing over ---------------------------------------------------------------------------------


def test_a_release_reserves_the_lock_for_the_first_and_calls_it_alone() -> None:
    node = held(ANN, BOB)
    assert node.gives_back(ME, stamp=77) == GRANTED
    assert node.called == [(ANN, CLAIM, f"{77:016d}")]
    assert node.sight().called == ANN
    assert node.left_of(lock_key(NAME)) == CLAIM
    assert node.line() == [ANN, BOB], "it stays in line until it confirms"


@pytest.mark.parametrize("place", [Place.KEPT, Place.ABOVE, Place.NOWHERE])
def test_whom_it_is_reserved_for_takes_it_for_the_full_ttl(place: Place) -> None:
    node = held(ANN, BOB)
    node.gives_back(ME)
    node.passes(CLAIM - 1)
    assert node.takes(ANN, place) == GRANTED
    assert node.left_of(lock_key(NAME)) == TTL
    assert node.line() == [BOB]


def test_a_reservation_is_told_in_answer_too() -> None:
    node = held(ANN)
    node.gives_back(ME)
    node.passes(100)
    assert node.waits(ANN) == reserved(CLAIM - 100)
    assert len(node.called) == 1


def test_a_reservation_shortens_the_lease_of_whom_it_is_for() -> None:
    node = held(ANN, BOB)
    node.gives_back(ME)
    assert (node.lease_of(ANN), node.lease_of(BOB)) == (CLAIM, LEASE)
    node.waits(ANN)
    assert node.lease_of(ANN) == LEASE, "unless it speaks"


def test_whoever_does_not_claim_it_is_passed_over() -> None:
    node = held(ANN, BOB)
    node.gives_back(ME)
    node.passes(CLAIM + 1)
    assert node.waits(BOB) == reserved()
    assert node.line() == [BOB]
    assert [name for name, *_ in node.called] == [ANN, BOB]


def test_and_comes_back_where_it_was_if_its_stamp_is_settled() -> None:
    node = held()
    stamp = STARTED_US + 20
    node.waits(ANN, stamp=stamp)
    node.waits(BOB, stamp=stamp + 9)
    node.gives_back(ME)
    node.passes(CLAIM + 1)
    assert node.waits(BOB) == reserved()
    assert node.waits(ANN, Place.SETTLED, stamp=stamp).answer is Answer.QUEUED
    assert node.line() == [ANN, BOB]


def test_the_dead_are_buried_on_the_way() -> None:
    node = held(ANN, BOB, CID)
    node.passes(LEASE - 1)
    node.waits(CID)
    node.passes(2)
    assert node.gives_back(ME) == GRANTED
    assert [name for name, *_ in node.called] == [CID]
    assert node.line() == [CID]


@pytest.mark.parametrize(("late", "first"), [(0, ANN), (1, BOB)])
def test_at_its_last_millisecond_a_waiter_is_alive(late: int, first: str) -> None:
    node = held(ANN)
    node.passes(LEASE // 2)
    node.waits(BOB)
    node.passes(LEASE // 2 + late)
    node.gives_back(ME)
    assert [name for name, *_ in node.called] == [first]


def test_who_does_not_hear_is_skipped_and_stays_in_line() -> None:
    node = held(ANN, BOB, CID)
    node.deaf = {ANN, BOB}
    node.gives_back(ME)
    assert [name for name, *_ in node.called] == [ANN, BOB, CID]
    assert node.sight().called == CID
    assert node.line() == [ANN, BOB, CID]
    assert node.lease_of(ANN) == CLAIM, "unless it speaks"
    node.gives_back(CID)
    assert node.waits(ANN).answer is Answer.RESERVED, "it speaks, so it lives"


@pytest.mark.parametrize(("sign", "calls"), [("?", 1), ("-", 0)])
def test_who_polls_or_hears_elsewhere_is_not_skipped(sign: str, calls: int) -> None:
    first = token(7, sign)
    node = held(first, BOB)
    node.deaf = {first, BOB}
    node.gives_back(ME)
    assert node.sight().called == first
    assert len(node.called) == calls


def test_where_nobody_may_call_it_is_reserved_until_the_next_heartbeat() -> None:
    node = held(ANN, BOB)
    refusal = hiredis.ReplyError("NOPERM no permissions to access one of the channels")
    node.server.on_publish = lambda channel, payload: refusal
    node.gives_back(ME)
    assert node.sight().called == ANN
    assert node.left_of(lock_key(NAME)) == CLAIM + HEARTBEAT
    assert node.lease_of(ANN) == CLAIM + HEARTBEAT
    node.passes(HEARTBEAT)
    assert node.takes(ANN, Place.KEPT) == GRANTED


def test_if_nobody_hears_the_lock_is_free() -> None:
    node = held(ANN, BOB)
    node.deaf = {ANN, BOB}
    node.gives_back(ME)
    assert node.sight().holder == ""
    assert node.takes(OUTSIDER) == GRANTED


def test_a_release_looks_at_so_many_and_the_next_one_goes_on() -> None:
    crowd = [token(number) for number in range(1000, 1000 + MOST + 2)]
    node = held(*crowd)
    node.deaf = set(crowd[:MOST])
    node.gives_back(ME)
    assert [name for name, *_ in node.called] == crowd[:MOST]
    assert node.sight().holder == "", "somebody may be further down"
    assert node.takes(OUTSIDER).answer is Answer.HELD, "so nobody else may have it"


def test_a_crowd_of_dead_is_buried_in_several_goes() -> None:
    crowd = [token(number) for number in range(1000, 1000 + MOST + 2)]
    node = held(*crowd)
    node.passes(LEASE - 1)
    node.waits(ANN)
    node.passes(2)
    node.gives_back(ME)
    assert node.line() == [*crowd[MOST:], ANN]
    assert node.waits(ANN) == reserved()
    assert node.line() == [ANN]


def test_a_repair_takes_what_is_only_reserved() -> None:
    """A node that forgot its holder reserves for who waits, again and again; the holder lives."""
    node = held(ANN)
    node.server.store.call(b"DEL", lock_key(NAME).encode())
    assert node.waits(ANN) == reserved()
    assert node.renews(ME, name=NAME).answer is Answer.MISSING, "it is not to be repaired yet"
    assert node.repairs(ME, name=NAME).answer is Answer.MISSING
    assert node.sight().holder == ME
    assert node.renews(ME, name=NAME) == GRANTED
    assert node.takes(ANN, Place.KEPT).answer is Answer.HELD
    assert node.line() == [ANN]


def test_a_holder_whose_question_comes_late_waits_for_nothing() -> None:
    node = held(ANN)
    assert node.waits(ME) == reserved(TTL)
    assert node.line() == [ANN]
    assert node.repairs(ANN, name=NAME).answer is Answer.HELD
    assert node.sight().holder == ME


def test_a_repair_takes_nothing_that_was_claimed() -> None:
    node = held(ANN)
    node.server.store.call(b"DEL", lock_key(NAME).encode())
    assert node.takes(ANN, Place.KEPT) == GRANTED
    assert node.repairs(ME, name=NAME).answer is Answer.HELD
    assert node.sight().holder == ANN


# -- who may have it ------------------------------------------------------------------------------


def test_an_outsider_may_not_barge_in() -> None:
    node = held(ANN)
    node.server.store.call(b"DEL", lock_key(NAME).encode())
    assert node.takes(OUTSIDER) == Vote(Answer.HELD, remaining_ms=CLAIM)
    assert [name for name, *_ in node.called] == [ANN], "it is handed over to who waits"
    assert node.sight().called == ANN


def test_nor_may_who_is_second() -> None:
    node = held(ANN, BOB)
    node.passes(2500)
    node.waits(ANN)
    node.waits(BOB)
    node.server.store.call(b"DEL", lock_key(NAME).encode())
    assert node.waits(BOB) == queued(CLAIM + 1 + CLAIM, 1)
    assert node.takes(BOB, Place.KEPT).answer is Answer.HELD
    assert node.takes(ANN, Place.KEPT) == GRANTED


def test_who_is_first_takes_a_lock_whose_holder_died() -> None:
    node = held(ANN, BOB)
    for _ in range(TTL // 1000):
        node.passes(1000)
        node.waits(ANN)
        node.waits(BOB)
    node.passes(1)
    assert node.waits(ANN) == reserved()
    assert node.called[-1] == (ANN, CLAIM, "0"), "its answer may come too late for its round"
    assert node.takes(ANN, Place.KEPT) == GRANTED


def test_a_newcomer_goes_behind_who_waits_also_if_the_lock_is_free() -> None:
    node = held(ANN)
    node.server.store.call(b"DEL", lock_key(NAME).encode())
    assert node.takes(BOB, Place.ABOVE).answer is Answer.QUEUED
    assert node.line() == [ANN, BOB]
    assert node.sight().called == ANN


def test_a_request_whose_answer_was_lost_is_granted_again() -> None:
    node = held(ANN)
    node.gives_back(ME)
    assert node.takes(ANN, Place.KEPT) == GRANTED
    node.passes(50)
    assert node.takes(ANN, Place.KEPT).answer is Answer.GRANTED
    assert node.left_of(lock_key(NAME)) == TTL


# -- leaving --------------------------------------------------------------------------------------


def test_a_release_takes_a_waiter_out_of_line() -> None:
    node = held(ANN, BOB)
    assert node.gives_back(ANN) == Vote(Answer.HELD, remaining_ms=TTL)
    assert node.line() == [BOB]
    assert node.sight().holder == ME
    assert node.called == []


def test_who_leaves_with_a_reservation_passes_it_on() -> None:
    node = held(ANN, BOB)
    node.gives_back(ME)
    assert node.gives_back(ANN) == GRANTED
    assert [name for name, *_ in node.called] == [ANN, BOB]
    assert (node.line(), node.sight().called) == ([BOB], BOB)


def test_who_leaves_a_free_lock_hands_it_over_as_well() -> None:
    node = held(ANN, BOB)
    node.server.store.call(b"DEL", lock_key(NAME).encode())
    assert node.gives_back(ANN) == MISSING
    assert node.sight().called == BOB


def test_a_release_is_done_however_late_it_comes() -> None:
    node = held(ANN)
    command = node.terms().release(ME)
    assert node.asks(command, not_after_ms=node.now_us // 1000 - 60_000) == GRANTED
    assert node.sight().called == ANN


def test_the_old_name_leaves_and_the_new_one_is_next() -> None:
    """Whoever goes on under another name is not passed over by those behind it."""
    node = held()
    stamp = STARTED_US + 20
    node.waits(ANN, stamp=stamp)
    node.waits(CID, stamp=stamp + 9)
    assert node.waits(BOB, Place.SETTLED, stamp=stamp).answer is Answer.QUEUED
    node.gives_back(ANN)
    assert node.line() == [BOB, CID]


# -- nodes that abstain ---------------------------------------------------------------------------


def abstaining(*waiters: str) -> Line:
    """A node that was restarted with its memory."""
    node = held(*waiters)
    node.server.restart(memory=node.server.store)
    assert node.takes(OUTSIDER).answer is Answer.ABSTAINED
    return node


def test_a_node_that_abstains_hands_nothing_over() -> None:
    node = abstaining(ANN)
    assert node.gives_back(ME) == GRANTED
    assert (node.sight().holder, node.called) == ("", [])
    assert node.line() == [ANN]


def test_nor_does_one_that_was_not_asked_since_it_forgot() -> None:
    node = held(ANN)
    node.server.restart(memory=node.server.store)
    assert node.gives_back(ME) == GRANTED
    assert (node.sight().holder, node.called) == ("", [])


def test_it_takes_note_of_who_waits_all_the_same() -> None:
    node = abstaining()
    assert node.waits(ANN).answer is Answer.ABSTAINED
    assert node.waits(BOB).answer is Answer.ABSTAINED
    assert node.line() == [ANN, BOB]
    assert node.gives_back(ANN).answer is Answer.HELD
    assert node.line() == [BOB]


def test_and_serves_them_afterwards() -> None:
    node = abstaining()
    node.gives_back(ME)
    for _ in range(63):
        node.passes(1000)
        node.waits(ANN)
    assert node.waits(ANN).answer is Answer.RESERVED
    assert node.takes(ANN, Place.KEPT).answer is Answer.GRANTED


# -- looking --------------------------------------------------------------------------------------


def test_looking_changes_nothing() -> None:
    node = held(ANN, BOB)
    before = node.sight()
    assert (before.holder, before.remaining_ms) == (ME, TTL)
    assert before.fence > STARTED_US
    assert [each.token for each in before.line] == [ANN, BOB]
    assert node.sight() == before


def test_there_may_be_nothing_to_see() -> None:
    assert Line().sight() == Sight(STARTED_US, "", "", None, 0, ())


def test_a_key_that_is_something_else_is_said_to_be() -> None:
    node = Line()
    node.server.store.call(b"HSET", lock_key(NAME).encode(), b"a", b"b")
    for vote in (
        node.waits(ANN),
        node.takes(ANN, Place.ABOVE),
        node.gives_back(ANN),
        node.asks(node.terms().inspect()),
    ):
        assert "another type of value" in str(vote)


@pytest.mark.parametrize("key", [queue_key(NAME), leases_key(NAME)])
def test_a_queue_that_is_something_else_takes_nobody_and_frees_all_the_same(key: str) -> None:
    node = Line()
    node.takes(ME)
    node.server.store.call(b"SET", key.encode(), b"odd")
    assert node.waits(ANN).answer is Answer.FAILED
    assert node.takes(BOB, Place.ABOVE).answer is Answer.FAILED
    assert node.gives_back(ME) == GRANTED
    assert node.left_of(lock_key(NAME)) == -2
