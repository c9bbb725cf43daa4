"""Targets are ratios against peers; a lock that excludes nobody is not passed over in silence."""

import json
import math
from dataclasses import replace

import pytest
from bench.contest import DEFAULT, EAGER, FIVE, ONE, SIGNALLED, Handovers, targets
from bench.handover import Outcome

BASE = Outcome(
    grants=3000, handovers=3000, overlaps=0, grants_per_s=500, handovers_per_s=500, stayed=0.0,
    latency_us_p50=1000, latency_us_p99=5000, held_us_p50=1060, luck=1.0,
    commands_per_grant=5, executed_per_grant=10,
)  # fmt: skip

WELL = {
    ONE: replace(
        BASE, latency_us_p50=800, latency_us_p99=2500, grants_per_s=700, handovers_per_s=700,
        luck=1.2,
    ),
    FIVE: replace(BASE, grants_per_s=600, handovers_per_s=600, luck=3.0),
    DEFAULT: BASE,
    EAGER: BASE,
    SIGNALLED: BASE,
}  # fmt: skip


def missed(**changed: Outcome) -> list[str]:
    return [target.says for target in targets(WELL | changed) if not target.met]


def test_all_are_met_at_their_bounds() -> None:
    assert missed() == []
    assert len(targets(WELL)) == 2 + 4 + 1


@pytest.mark.parametrize(
    ("who", "change", "says"),
    [
        (ONE, {"latency_us_p50": 801}, [f"latency p50: {ONE} / {SIGNALLED}"]),
        (ONE, {"latency_us_p99": 2501}, [f"latency p99: {ONE} / {SIGNALLED}"]),
        (ONE, {"luck": 1.21}, [f"luckiest / unluckiest process: {ONE}"]),
        (ONE, {"luck": math.inf}, [f"luckiest / unluckiest process: {ONE}"]),
        (DEFAULT, {"handovers_per_s": 601}, [f"hand-overs per second: {FIVE} / {DEFAULT}"]),
        (EAGER, {"handovers_per_s": 701}, [f"hand-overs per second: {ONE} / {EAGER}"]),
        (SIGNALLED, {"handovers_per_s": 701}, [f"hand-overs per second: {ONE} / {SIGNALLED}"]),
    ],
)
def test_each_is_missed_for_its_own_reason(
    who: str, change: dict[str, float], says: list[str]
) -> None:
    assert missed(**{who: replace(WELL[who], **change)}) == says


def test_what_could_not_be_measured_is_missed() -> None:
    stuck = replace(WELL[ONE], latency_us_p50=math.nan)
    assert missed(**{ONE: stuck}) == [f"latency p50: {ONE} / {SIGNALLED}"]


def test_more_than_nothing_is_more() -> None:
    assert missed(**{DEFAULT: replace(BASE, handovers_per_s=0.0)}) == []


def test_a_violation_is_named() -> None:
    table = Handovers(32, {title: [each] for title, each in WELL.items()})
    assert table.violations() == []
    table.repeats[EAGER].append(replace(BASE, overlaps=2))
    (said,) = table.violations()
    assert said.startswith(f"{EAGER}, 32 processes: 2 of 6000 grants")


def test_it_prints_and_is_valid_json_whatever_came_out() -> None:
    starved = replace(BASE, latency_us_p50=math.nan, latency_us_p99=math.nan, luck=math.inf)
    table = Handovers(2, {ONE: [starved]})
    header, (row,) = table.table()
    assert len(header) == len(row)
    written = json.dumps(table.as_json(), allow_nan=False)
    assert json.loads(written)["figures"][ONE]["luck"] is None
