"""The guard: what clients and nodes must agree on, and the shipped Lua on a model of a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import validity
from holdfast.core.effects import Verb
from holdfast.core.guard import NO_GUARD, SLACK_MS, Guard, abstention_ms
from holdfast.core.tally import Tally
from holdfast.core.terms import Terms
from holdfast.core.validity import RATE_ERROR, STEP_TOLERANCE
from holdfast.core.votes import GRANTED, MISSING, Answer, Vote
from holdfast.wire import commands
from holdfast.wire.round import Round
from unit.node import MINUTE, Node

max_ttls = st.integers(int(validity.MIN_GUARDED_TTL * 1000), int(validity.MAX_TTL * 1000))


def forgetful(guard: Guard = MINUTE) -> Node:
    node = Node(guard)
    node.server.restart()
    return node


# -- how long -------------------------------------------------------------------------------------


@given(max_ttls)
def test_the_lua_abstains_for_as_long_as_clients_think(max_ttl_ms: int) -> None:
    node = forgetful(Guard(max_ttl_ms))
    vote = node.requests()
    assert vote.answer is Answer.ABSTAINED
    assert vote.remaining_ms == abstention_ms(max_ttl_ms)
    assert node.floor_us() == node.now_us + abstention_ms(max_ttl_ms) * 1000


@given(max_ttls, st.floats(-RATE_ERROR, RATE_ERROR), st.floats(-RATE_ERROR, RATE_ERROR))
def test_it_lasts_longer_than_any_forgotten_lease(
    max_ttl_ms: int, ours: float, theirs: float
) -> None:
    """Whatever the rates of the holder's clock and the node's: both count from about one moment."""
    believed = Terms("x", max_ttl_ms, 3, 0.05, guard=Guard(max_ttl_ms)).validity / (1 + ours)
    abstained = abstention_ms(max_ttl_ms) / 1000 / (1 + theirs)
    assert believed < abstained


def test_a_minute_and_a_little() -> None:
    assert abstention_ms(60_000) == 61_200 + SLACK_MS == 62_200


# -- validity -------------------------------------------------------------------------------------

guarded_ttls = st.integers(int(validity.MIN_GUARDED_TTL * 1000), 60_000)


@given(guarded_ttls)
def test_where_clocks_are_checked_leases_end_so_much_earlier(ttl_ms: int) -> None:
    plain, guarded = Terms("x", ttl_ms, 3, 0.05), Terms("x", ttl_ms, 3, 0.05, guard=MINUTE)
    assert guarded.validity == pytest.approx(plain.validity - STEP_TOLERANCE)
    assert guarded.validity > 0.4 * ttl_ms / 1000
    assert guarded.patience < guarded.validity, "a round that is answered late is still of use"


@given(
    guarded_ttls,
    st.floats(-RATE_ERROR, RATE_ERROR),
    st.floats(-RATE_ERROR, RATE_ERROR),
    st.floats(-STEP_TOLERANCE, STEP_TOLERANCE),
)
def test_the_holder_stops_in_time_also_if_a_clock_is_set_a_little(
    ttl_ms: int, ours: float, theirs: float, step: float
) -> None:
    believed = Terms("x", ttl_ms, 3, 0.05, guard=MINUTE).validity / (1 + ours)
    kept = (ttl_ms / 1000 - 0.001 - step) / (1 + theirs)
    assert believed < kept


def test_without_a_guard_nothing_is_taken_off() -> None:
    assert (NO_GUARD.is_on, NO_GUARD.tolerance) == (False, 0.0)
    assert Terms("x", 10_000, 1, 0.05).validity == pytest.approx(10 - 0.2 - 0.002)
    assert (MINUTE.is_on, MINUTE.tolerance) == (True, STEP_TOLERANCE)


# -- the shipped Lua ------------------------------------------------------------------------------


def test_a_node_that_forgot_counts_from_when_it_is_first_asked() -> None:
    node = forgetful()
    node.passes(600_000)
    assert node.requests().remaining_ms == 62_200
    node.passes(62_199)
    assert node.requests().remaining_ms == 1
    node.passes(1)
    assert node.requests() == GRANTED


def test_a_node_that_was_initialised_votes_at_once() -> None:
    assert Node().requests() == GRANTED


def test_without_a_guard_it_is_not_asked_to_abstain() -> None:
    assert forgetful(NO_GUARD).requests() == GRANTED


def test_a_restart_with_its_memory_is_noticed() -> None:
    node = Node()
    assert node.requests() == GRANTED
    node.server.restart(memory=node.server.store)
    vote = node.requests("other", name="y")
    assert vote.answer is Answer.ABSTAINED
    assert "restarted" in str(vote)


def test_what_it_still_has_it_renews_and_releases_while_it_abstains() -> None:
    node = Node()
    assert node.requests() == GRANTED
    node.server.restart(memory=node.server.store)
    assert node.renews() == GRANTED
    assert node.requests().answer is Answer.ABSTAINED
    assert node.renews("another").answer is Answer.HELD
    assert node.releases() == GRANTED
    assert node.repairs("another").answer is Answer.ABSTAINED


def test_a_renewal_takes_nothing_again_unless_it_repairs() -> None:
    node = Node()
    assert [node.renews(), node.renews()] == [MISSING, MISSING]
    assert node.requests("another") == GRANTED


def test_a_repair_takes_again_what_is_missing_and_it_counts_from_the_next_one() -> None:
    node = Node()
    assert node.repairs() == MISSING
    assert node.renews() == GRANTED
    assert node.requests("another").answer is Answer.HELD


def test_a_repair_takes_nothing_from_somebody_else() -> None:
    node = Node()
    assert node.requests("another") == GRANTED
    assert node.repairs().answer is Answer.HELD


def test_a_repair_takes_nothing_from_a_node_that_abstains() -> None:
    node = forgetful()
    assert node.repairs().answer is Answer.ABSTAINED
    node.passes(62_200)
    assert node.repairs() == MISSING
    assert node.renews() == GRANTED


def test_a_repair_that_comes_too_late_takes_nothing() -> None:
    node = Node()
    until_ms = node.now_us // 1000
    node.passes(1)
    assert "came too late" in str(node.repairs(not_after_ms=until_ms))
    assert node.requests("another") == GRANTED


def test_a_late_repair_does_not_bring_back_what_was_released() -> None:
    node = Node()
    assert node.requests() == GRANTED
    assert node.releases(repaired=True) == GRANTED
    assert [node.repairs(), node.repairs()] == [MISSING, MISSING]
    assert node.requests("another") == GRANTED
    assert node.releases("another") == GRANTED
    node.passes(node.terms().ttl_ms + 1001)
    assert node.repairs() == MISSING
    assert node.renews() == GRANTED, "noted for longer than the lease could last, not for ever"


@pytest.mark.parametrize("late_ms", [0, 1, 5000])
def test_what_comes_too_late_is_not_done(late_ms: int) -> None:
    node = Node()
    until_ms = node.now_us // 1000
    node.passes(late_ms)
    vote = node.requests(not_after_ms=until_ms)
    if late_ms:
        assert str(vote) == f"came too late: {late_ms} ms after its round was over"
        assert node.requests("another") == GRANTED
    else:
        assert vote == GRANTED


def test_all_clients_of_a_node_must_have_the_same_max_ttl() -> None:
    node = Node()
    assert node.requests() == GRANTED
    node.guard = Guard(30_000)
    assert "was told of another max_ttl: 60 s" in str(node.requests())
    assert node.renews() == GRANTED, "what is held is not at stake"
    node.told(Verb.INIT)
    assert node.requests() == GRANTED


def test_another_database_is_another_memory() -> None:
    node = Node()
    assert node.requests(db=1).answer is Answer.ABSTAINED


def test_evicted_keys_are_noticed() -> None:
    node = Node()
    assert node.requests() == GRANTED
    node.server.evicted += 1
    node.passes(1000)
    vote = node.requests("another", name="y")
    assert vote.answer is Answer.ABSTAINED
    assert "evicted" in str(vote)


def test_at_once_where_keys_may_be_evicted() -> None:
    node = Node(Guard(60_000, evicting=True))
    assert node.requests() == GRANTED
    node.server.evicted += 1
    assert node.requests().answer is Answer.ABSTAINED


def test_draining_and_admitting() -> None:
    node = Node()
    assert node.requests() == GRANTED
    node.told(Verb.DRAIN)
    assert "drained 0 s ago; abstains" in str(node.requests("another", name="y"))
    assert node.renews() == GRANTED
    node.passes(10**9)
    assert node.requests().answer is Answer.ABSTAINED, "until somebody admits it"
    node.told(Verb.ADMIT)
    assert node.requests() == GRANTED
    node.server.restart(memory=node.server.store)
    assert node.requests("another", name="y").answer is Answer.ABSTAINED, "for that run only"


def test_a_jump_is_waited_for_once_however_many_have_seen_it() -> None:
    node = Node()
    right = str(node.now_us)
    node.passes(60_000)
    node.told(Verb.SUSPECT, "60000000", right)
    assert "its clock was seen to jump" in str(node.requests())
    node.passes(62_200)
    node.told(Verb.SUSPECT, "60000100", right)  # somebody else, who has not looked since
    assert node.requests() == GRANTED
    node.told(Verb.SUSPECT, "60000100", str(node.now_us))  # it was right meanwhile: a new jump
    assert node.requests().answer is Answer.ABSTAINED


def test_durable_memory_is_adopted_unless_it_may_be_anothers() -> None:
    node = Node()
    node.told(Verb.ADOPT, "1")
    assert node.requests() == GRANTED
    node.server.restart(memory=node.server.store)
    node.told(Verb.ADOPT, "1")
    assert node.requests() == GRANTED
    node.server.follow(node.server.store)
    node.told(Verb.ADOPT, "1")
    assert node.requests("another", name="y").answer is Answer.ABSTAINED


@pytest.mark.parametrize(("before", "after"), [("0", "1"), ("1", "0"), (None, "1")])
def test_memory_is_adopted_only_if_it_was_durable_before_and_after(
    before: str | None, after: str
) -> None:
    node = Node()
    if before is not None:
        node.told(Verb.ADOPT, before)
    assert node.requests() == GRANTED
    node.server.restart(memory=node.server.store)
    node.told(Verb.ADOPT, after)
    assert node.requests("another", name="y").answer is Answer.ABSTAINED


# -- examinations ---------------------------------------------------------------------------------


def test_who_may_grant_as_before_is_not_examined() -> None:
    node = Node()
    node.requests()
    node.heard.clear()
    for token in ("t", "another"):
        node.requests(token)
        node.passes(5000)
    node.renews()
    assert node.heard == [Verb.REQUEST, Verb.REQUEST, Verb.RENEW]


def test_the_first_client_with_a_guard_says_what_the_longest_ttl_is() -> None:
    node = Node()
    assert node.requests() == GRANTED
    assert node.heard == [Verb.REQUEST]
    assert node.server.store.call(b"HGET", b"hf:node", b"max_ttl_ms") == b"60000"


def test_whoever_is_in_doubt_is_examined_and_that_is_its_vote() -> None:
    node = forgetful()
    assert node.requests().answer is Answer.ABSTAINED
    assert node.heard == [Verb.REQUEST, Verb.EXAMINE]


def test_nobody_is_examined_without_a_guard() -> None:
    node = forgetful(NO_GUARD)
    node.requests()
    assert node.heard == [Verb.REQUEST]


def test_a_round_that_is_over_asks_nothing_again() -> None:
    node = forgetful()
    command = node.terms().request("t", node.now_us)
    round_ = Round(command, Tally(1))
    round_.close()
    node.say(commands.pack_whole(command) + node.peer.ending(0), round_)
    assert node.heard == [Verb.REQUEST, Verb.EXAMINE], "and yet it abstains from here on"
    node.told(Verb.INIT)
    assert node.requests("another") == GRANTED, "it has nothing of what was asked too late"


# -- marks ----------------------------------------------------------------------------------------


def test_a_mark_only_rises_and_survives_a_release() -> None:
    node = Node()
    terms, mark = node.terms(), node.now_us + 50
    assert node.asks(terms.request("t", mark)) == GRANTED
    assert node.releases() == GRANTED
    for stamp in (mark - 49, mark):
        assert node.asks(terms.request("u", stamp)) == Vote(Answer.GRANTED, mark=mark)
    assert node.asks(terms.raise_("u", mark + 1)) == GRANTED
    assert node.asks(terms.raise_("u", mark + 1)) == Vote(Answer.OUTBID, mark=mark + 1)
    assert node.asks(terms.raise_("other", mark + 9)).answer is Answer.HELD, "only holders raise"


@given(max_ttls)
def test_a_stamp_far_ahead_of_the_nodes_clock_is_refused(max_ttl_ms: int) -> None:
    node = Node(Guard(max_ttl_ms))
    terms = Terms("x", 100, 3, 0.05, guard=node.guard)
    horizon = node.now_us + node.guard.horizon_us
    assert node.asks(terms.request("t", horizon + 1)).mark > 0
    assert node.asks(terms.request("t", horizon)) == GRANTED


def test_without_a_guard_too() -> None:
    node = Node(NO_GUARD)
    horizon = node.now_us + NO_GUARD.horizon_us
    assert node.asks(node.terms().request("t", horizon + 1)).mark > 0
    assert node.asks(node.terms().request("t", horizon)) == GRANTED


def test_one_node_goes_on_when_its_clock_was_set_back() -> None:
    node = Node(NO_GUARD)
    terms, mark = Terms("x", 10_000, 1, 0.05), node.now_us + 1
    assert node.asks(terms.request("t", mark)) == GRANTED
    node.passes(-3_600_000)
    assert node.asks(terms.request("t", node.now_us)).mark == mark
    assert node.asks(terms.raise_("t", mark + 1)) == GRANTED


def test_a_node_that_forgot_accepts_nothing_that_may_have_been_a_fence() -> None:
    node = Node()
    before = node.now_us + MINUTE.horizon_us  # the highest that it may have accepted
    node.server.restart()
    node.requests()
    node.passes(62_200)
    assert node.asks(node.terms().request("t", before)).mark == node.floor_us() > before
    assert node.asks(node.terms().raise_("t", node.now_us + 1)) == GRANTED
