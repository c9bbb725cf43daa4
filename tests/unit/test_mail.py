"""Mail: which calls count, for how long, and who is woken by them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.place import Mail

NOW = 100.0
CLAIM = 0.3


def test_who_has_no_mail_has_no_calls() -> None:
    mail = Mail("t")
    assert (mail.token, mail.news, mail.calls(NOW)) == ("t", False, 0)


def test_a_call_counts_until_the_reservation_ends() -> None:
    mail = Mail("t")
    mail.put(2, NOW, CLAIM)
    assert mail.calls(NOW) == 1
    assert mail.calls(NOW + CLAIM - 0.001) == 1
    assert mail.calls(NOW + CLAIM) == 0
    assert mail.calls(NOW) == 0, "and is forgotten then"


def test_a_node_that_calls_twice_is_one_and_its_last_word_counts() -> None:
    mail = Mail("t")
    mail.put(1, NOW, CLAIM)
    mail.put(1, NOW + 0.2, CLAIM)
    assert mail.calls(NOW + 0.2) == 1
    assert mail.calls(NOW + 0.4) == 1
    mail.put(0, NOW + 0.4, CLAIM)
    assert mail.calls(NOW + 0.45) == 2
    assert mail.calls(NOW + 0.55) == 1


@pytest.mark.parametrize("called", [True, False])
def test_whoever_waits_is_woken_by_a_call_and_by_a_doubt(called: bool) -> None:
    rung: list[int] = []
    mail = Mail("t")
    mail.ring = lambda: rung.append(1)
    if called:
        mail.put(0, NOW, CLAIM)
    else:
        mail.wake()
    assert (mail.news, rung) == (True, [1])
    assert mail.calls(NOW) == int(called)
    assert not mail.news, "who looks has seen it"


def test_who_does_not_wait_yet_finds_the_news() -> None:
    mail = Mail("t")
    mail.put(0, NOW, CLAIM)
    assert mail.news


def test_who_asks_for_the_lock_begins_anew() -> None:
    mail = Mail("t")
    for node in range(3):
        mail.put(node, NOW, CLAIM)
    mail.clear()
    assert mail.calls(NOW) == 0
    mail.put(1, NOW, CLAIM)
    assert mail.calls(NOW) == 1


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 2), st.floats(0, 2))), st.floats(0, 4))
def test_what_counts_is_what_still_lasts(calls: list[tuple[int, float, float]], now: float) -> None:
    mail, ends = Mail("t"), dict[int, float]()
    for node, when, claim in calls:
        mail.put(node, when, claim)
        ends[node] = when + claim
    assert mail.calls(now) == sum(now < end for end in ends.values())
