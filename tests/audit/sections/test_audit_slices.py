"""`--by`: every headline statistic in every slice, as it is for the slice alone."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, rows_of, scores, values, write

COMMON = ("--score", "score", "--gold", "gold", "--scale", "1-5", "--draws", "50")


@pytest.mark.parametrize("slices", [4, 120])  # with over 100, intervals are linearised or drawn less often
def test_slices_of_scores_carry_every_headline_statistic(slices: int, tmp_path: Path, run_audit: Run) -> None:
    rows = [row for k in range(slices) for row in scores(25, seed=k, kind=f"k{k}")]
    file = write(tmp_path / "x.csv", [{**row, "id": i} for i, row in enumerate(rows)])
    found = run_audit(file, *COMMON, "--by", "kind")
    by = rows_of(found, "by kind", "kind")
    told = any("with more than 100 slices" in note for note in found["tables"]["by kind"]["notes"])
    assert told == (slices > 100)
    alone = values(run_audit(file, *COMMON, "--where", "kind=k2"))
    for name, estimate in alone.items():
        if name == "pearson (Fisher)":
            continue
        mine = by["k2"][name]
        assert math.isclose(mine["value"], estimate["value"], abs_tol=1e-12), name
        assert mine["low"] <= mine["value"] <= mine["high"], name
        assert mine["low"] < mine["high"], name
        assert mine["n"] == 25
    assert {"spearman", "quadratic_kappa", "ordered_pairs"} < set(alone)


def test_slices_of_continuous_scores(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for k in range(110):
        gold = rng.normal(size=20)
        rows += [
            {"score": s, "gold": g, "kind": f"k{k}"} for s, g in zip(gold + rng.normal(size=20), gold, strict=True)
        ]
    file = write(tmp_path / "x.csv", rows)
    by = rows_of(run_audit(file, *COMMON[:4], "--draws", "50", "--by", "kind"), "by kind", "kind")
    alone = values(run_audit(file, *COMMON[:4], "--draws", "50", "--where", "kind=k3"))
    assert set(alone) - {"pearson (Fisher)"} <= set(by["k3"])
    assert math.isclose(by["k3"]["spearman"]["value"], alone["spearman"]["value"])
    assert by["k3"]["spearman"]["low"] < by["k3"]["spearman"]["value"] < by["k3"]["spearman"]["high"]


def test_slices_of_pairs_lead_with_the_joint_verdict(tmp_path: Path, run_audit: Run) -> None:
    kinds = {"x": [("a", "a")] * 6 + [("a", "b")] * 4, "y": [("a", "b")] * 5 + [("b", "b")] * 4 + [("tie", "a")] * 3}
    rows = [
        {"shown": one, "swapped": two, "gold": "a", "kind": kind} for kind, said in kinds.items() for one, two in said
    ]
    common = (write(tmp_path / "x.csv", rows), "--score", "shown", "--swapped", "swapped", "--draws", "50")
    by = rows_of(run_audit(*common, "--gold", "gold", "--by", "kind"), "by kind", "kind")
    assert list(by["x"])[4] == "both together"
    assert [by[kind]["both together"]["value"] for kind in "xy"] == [6 / 10, 0]
    assert by["y"]["both together (half)"]["value"] == pytest.approx((5 + 3) / 2 / 12)
    assert (by["y"]["first slot, where they differ"]["value"], by["y"]["first slot, where they differ"]["n"]) == (1, 5)
    bare = rows_of(run_audit(*common, "--by", "kind"), "by kind", "kind")
    assert [bare["y"][side]["value"] for side in ("first wins", "tie", "disagree", "second wins")] == [
        0, 0, pytest.approx(8 / 12), pytest.approx(4 / 12),
    ]  # fmt: skip


def test_where_the_orders_differ_says_of_how_many(tmp_path: Path, run_audit: Run) -> None:
    orders = [("a", "b")] * 58 + [("b", "a")] * 18 + [("tie", "a")] * 34 + [("a", "a")] * 10
    rows = [{"shown": one, "swapped": two} for one, two in orders]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "shown", "--swapped", "swapped")
    orders_of = rows_of(found, "orders", "statistic")
    slot = orders_of["first slot, where they differ"]
    assert (slot["value"]["value"], slot["value"]["n"]) == (pytest.approx(58 / 76), 76)
    assert (
        slot["of"]
        == "76 pairs whose orders name different responses, of 110 that differ (a tie in one order is left out)"
    )
    assert (orders_of["disagree"]["value"]["value"], orders_of["disagree"]["value"]["n"]) == (
        pytest.approx(110 / 120),
        120,
    )
    assert orders_of["disagree: a tie in one order"]["value"]["value"] == pytest.approx(34 / 120)
    assert all(row["of"] for row in orders_of.values())
