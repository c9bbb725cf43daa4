"""Who a client is, written into its tokens and read again."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.keys import lock_key
from holdfast.wire.scripts import SCRIPTS
from holdfast.wire.who import INBOX, SECRET_DIGITS, Sign, Who, who_of

SECRET = "3f9c" * 10

names = st.text(max_size=5)
"""Short enough to be written in full, whatever is in them."""

long_names = st.text(max_size=300)
pids = st.integers(1, 2**22)
serials = st.text("0123456789abcdef", min_size=8, max_size=8)


def token_of(who: Who, sign: Sign = Sign.HEARS) -> str:
    return f"{SECRET}{sign.value}{who.address}"


@pytest.mark.parametrize("sign", list(Sign))
def test_a_token_shows_who_has_it(sign: Sign) -> None:
    who = Who("web-3", 4711, "invoices", "5d2c9a10")
    assert token_of(who, sign) == f"{SECRET}{sign.value}web-3/4711/invoices/5d2c9a10"
    assert who_of(token_of(who, sign)) == who
    assert who.inbox == "hf:inbox:web-3/4711/invoices/5d2c9a10"


@given(names, pids, names, serials, st.sampled_from(Sign))
def test_whatever_it_is_called(host: str, pid: int, label: str, serial: str, sign: Sign) -> None:
    who = Who(host, pid, label, serial)
    assert who_of(token_of(who, sign)) == who


@given(long_names, pids, long_names, serials)
def test_a_token_is_short_and_plain(host: str, pid: int, label: str, serial: str) -> None:
    """It is a word of a call and part of keys: ASCII, without spaces, and of a bounded length."""
    token = token_of(Who(host, pid, label, serial))
    assert token.isascii()
    assert token.isprintable()
    assert " " not in token
    assert len(token) < 200
    assert lock_key(token) == f"hf:{{{token.replace('%', '%25')}}}"


@given(long_names, pids, long_names, serials)
def test_a_long_name_is_cut_off_and_not_spoilt(
    host: str, pid: int, label: str, serial: str
) -> None:
    read = who_of(token_of(Who(host, pid, label, serial)))
    assert read is not None
    assert (read.pid, read.serial) == (pid, serial)
    assert host.startswith(read.host)
    assert label.startswith(read.label)


@given(names, names, pids, serials)
def test_two_clients_never_share_an_inbox(one: str, two: str, pid: int, serial: str) -> None:
    first, second = Who(one, pid, two, serial), Who(two, pid, one, serial)
    assert (first.inbox == second.inbox) == (one == two)


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "x",
        uuid.UUID(int=7).hex,
        str(uuid.UUID(int=7)),
        SECRET,
        SECRET + "+",
        SECRET + "!web-3/4711/invoices/5d2c9a10",
        SECRET + "+web-3/4711/invoices",
        SECRET + "+web-3/4711/invoices/5d2c9a10/more",
        SECRET + "+web-3/many/invoices/5d2c9a10",
        SECRET + "+web-3//invoices/5d2c9a10",
        SECRET[:-1] + "+web-3/4711/invoices/5d2c9a10",
        "a colleague's note, and it is a long one + a/1/b/c",
    ],
)
def test_another_programs_token_says_nothing(foreign: str) -> None:
    assert who_of(foreign) is None


@given(st.text(max_size=120))
def test_whatever_is_in_a_key_can_be_looked_at(token: str) -> None:
    who = who_of(token)
    assert who is None or token[SECRET_DIGITS] in "+?-"


def test_the_scripts_know_where_the_sign_is_and_how_inboxes_are_called() -> None:
    text = SCRIPTS[next(verb for verb in SCRIPTS if verb.value == "wait")].text
    assert f"local HEARS, HEARS_FAR, POLLS, SIGN_AT = '+', '?', '-', {SECRET_DIGITS + 1}\n" in text
    assert f"local INBOX = '{INBOX}'\n" in text
