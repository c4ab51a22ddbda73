"""Verdicts against the length of responses, and how far those on pairs go with the slot."""

import math
from pathlib import Path

import pytest

import runs
from dikast.audit.plan import AuditPlan
from dikast.core.item import Item
from dikast.core.records import read_items
from dikast.surface.report import figures
from dikast.surface.report.by_length import Measured, by_length, of_lengths, slope_on_length
from dikast.surface.report.collect import collect
from dikast.surface.report.contents import Contents
from dikast.surface.report.gaps import slot_shift
from dikast.surface.report.page import render
from dikast.surface.report.report_options import Asked


def items_of(lengths: list[tuple[int, ...]], folder: Path) -> Contents:
    rows = [
        {"id": f"i{k}", "instruction": "?", "responses": ["x" * n for n in sizes]} for k, sizes in enumerate(lengths)
    ]
    found: dict[str, Item] = {each.id: each for each in read_items(str(runs.write_jsonl(folder / "i.jsonl", rows)))}
    return Contents(found)


def test_scores_by_length_by_hand(tmp_path: Path) -> None:
    # lengths 1 to 40; the judge scores a tenth of the length, gold is 2 throughout: five groups of eight
    found = items_of([(n,) for n in range(1, 41)], tmp_path)
    measured = [Measured(f"i{n - 1}", (0,), n / 10, 2.0) for n in range(1, 41)]
    groups = by_length(measured, found, 0.95, (0.4, 3.7))
    assert [each.judge.n for each in groups] == [8, 8, 8, 8, 8]
    assert [round(each.judge.value, 3) for each in groups] == [0.45, 1.25, 2.05, 2.85, 3.65]
    assert all(each.gold is not None and each.gold.value == 2 for each in groups)
    assert groups[0].name == "1 to 8 characters"
    # .1 to .8: a standard deviation of .245, Student's interval .45 +/- .205, which the scale cuts off at .4
    assert groups[0].judge.low == 0.4
    assert groups[0].judge.high == pytest.approx(0.45 + 2.3646 * 0.24495 / 8**0.5, abs=1e-4)
    assert groups[4].judge.high == 3.7
    slope = slope_on_length(measured, found, 0.95)
    assert slope is not None
    assert slope.low > 0
    bare = [each._replace(gold=math.nan) for each in measured]
    assert slope_on_length(bare, found, 0.95) is None
    assert all(each.gold is None for each in by_length(bare, found, 0.95, (0, 4)))
    assert by_length(measured[:19], found, 0.95, (0, 4)) == ()  # too few


def test_the_figure_keeps_its_name_beside_gold() -> None:
    rows = [figures.Row(name, 2.0, 1.0, 3.0, 8) for name in ("short", "long")]
    assert 'aria-label="Means by length"' in figures.forest(rows, 2.0, 1.0, 3.0, beside=rows, name="Means by length")


def test_of_pairs_it_is_the_longer_that_wins(tmp_path: Path) -> None:
    # the second response is 2 to 41 times as long; the judge always takes it, gold the first
    found = items_of([(10, 10 * n) for n in range(2, 42)], tmp_path)
    measured = [Measured(f"i{k}", (0, 1), 0.0, 1.0) for k in range(40)]
    groups = by_length(measured, found, 0.95, (0, 1))
    assert [(each.judge.value, each.gold and each.gold.value) for each in groups] == [(1.0, 0.0)] * 5
    assert groups[0].name.startswith("2.00 to ")
    equal = items_of([(5, 5)] * 40, tmp_path)
    assert by_length(measured, equal, 0.95, (0, 1)) == ()


@pytest.mark.parametrize(
    ("shown", "swapped", "read", "wanted"),
    [
        ("a", "b", None, 1.0),  # the first slot both times
        ("b", "a", None, -1.0),
        ("a", "a", None, 0.0),
        ("a", "tie", None, 0.5),
        ("a", None, None, None),
        ("a", "a", ({"a": 0.9, "b": 0.1}, {"a": 0.6, "b": 0.4}), 0.3),  # (.8 - .2) / 2
    ],
)
def test_how_far_a_pair_goes_with_the_slot(
    shown: str, swapped: str | None, read: tuple[dict[str, float], ...] | None, wanted: float | None
) -> None:
    row = {"shown": shown, "swapped": swapped}
    row |= {} if read is None else {"distribution_shown": read[0], "distribution_swapped": read[1]}  # type: ignore[dict-item]
    assert slot_shift(row) == (wanted if wanted is None else pytest.approx(wanted))


@pytest.mark.parametrize(
    ("equal", "wanted"), [(False, "length and position controlled"), (True, "position controlled")]
)
def test_the_leaderboard_holds_length_equal(equal: bool, wanted: str, tmp_path: Path) -> None:
    rows = runs.of_systems(60, 1.0)
    if equal:  # then length cannot be told from anything
        rows = [{**row, "response_a": "yes", "response_b": "no!"} for row in rows]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    done = runs.dikast_here(
        "compare", items, "--judge", "mock:oracle,r=.8", "--rubric", "helpfulness", "--out", tmp_path / "run", "--json"
    )
    assert done.returncode == 0, done.stderr
    asked = Asked(AuditPlan(file=tmp_path / "run", draws=50))
    page = collect(tmp_path / "run", asked)
    text = render([page], "Report", asked.plan.resampling).text
    assert f'<th scope="col">{wanted}</th>' in text
    assert sum(page.shifts.values()) == 60


def test_length_alone_by_hand() -> None:
    # log2(1 + length) is 1, 2, 3 and gold 1, 2, 3: 1. Of pairs the longer one is what gold prefers in one of two; rows
    # without a length, or without gold, do not count
    assert of_lengths([[1], [3], [7], [0]], [1, 2, 3, 9]) == pytest.approx(1)
    assert of_lengths([[5, 2], [2, 5], [1, 0], [4, 1]], [1.0, 1.0, 1.0, math.nan]) == 0.5
    assert math.isnan(of_lengths([[0], [0]], [1, 2]))
    assert math.isnan(of_lengths([[3, 3], [2, 2]], [1, 0.5]))
