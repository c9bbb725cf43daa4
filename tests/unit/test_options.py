"""What users may ask for about waiting, checked before anything is sent."""

from decimal import Decimal
from fractions import Fraction

import pytest

from holdfast.core.place import CLAIM
from holdfast.errors import BadInput
from holdfast.options import MAX_CLAIM, MAX_LABEL, MIN_CLAIM, check_claim, check_label


@pytest.mark.parametrize("claim", [MIN_CLAIM, CLAIM, 1, Fraction(1, 2), MAX_CLAIM])
def test_a_claim_is_a_number_of_seconds(claim: float) -> None:
    assert check_claim(claim) == float(claim)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (0, "claim=0 must be from 0.05 to 2 s"),
        (MIN_CLAIM - 0.001, "must be from"),
        (MAX_CLAIM + 0.001, "must be from"),
        (-1, "must be from"),
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
        ("0.3", "claim is a number of seconds, not str"),
        (None, "claim is a number of seconds, not NoneType"),
        (True, "claim is a number of seconds, not bool"),
        (Decimal("0.3"), "claim is a number of seconds, not Decimal"),
    ],
)
def test_not_every_claim(claim: object, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        check_claim(claim)


@pytest.mark.parametrize("label", [None, "web", "Rechnungen / März", "x" * MAX_LABEL, " "])
def test_a_label_is_a_short_name(label: str | None) -> None:
    assert check_label(label) == label


@pytest.mark.parametrize("label", ["", "x" * (MAX_LABEL + 1), 7, b"web", True, ["web"]])
def test_not_every_label(label: object) -> None:
    with pytest.raises(BadInput, match="label is a name of 1 to 64 characters, not"):
        check_label(label)


def test_a_label_that_is_no_text_is_refused_where_it_enters() -> None:
    with pytest.raises(BadInput):
        check_label("caf\udce9")
