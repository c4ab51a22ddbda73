"""What counts are of: n of slices and of baselines, reasons for undefined figures, zeros without a sign, singulars."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from audit_tables import rows_of, scores, write
from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Cell, shown, table
from dikast.audit.results import plain
from dikast.audit.statistics.against_gold.chance import chance_within
from dikast.audit.statistics.calibration import floored_told
from dikast.audit.statistics.intervals import Resampling
from dikast.surface.commands.audit_command import show
from dikast.surface.measuring import audit
from dikast.surface.report.gates import Gate

FAILED = [3, 9, 14, 15, 21]  # rows without a verdict
NO_GOLD = [0, 9, 33]


def _scored() -> list[dict[str, Any]]:
    rows = [each | {"kind": "xy"[i % 2]} for i, each in enumerate(scores(40))]
    for i in FAILED:
        rows[i]["score"] = None
    for i in NO_GOLD:
        rows[i]["gold"] = None
    return rows


def _paired(seed: int = 1) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    told = ["first", "second", "tie"]
    rows = [
        {"id": f"p{i}", "say": told[rng.integers(3)], "gold": told[rng.integers(3)], "kind": "xy"[i % 2]}
        for i in range(40)
    ]
    for i in FAILED:
        rows[i]["say"] = ""
    for i in NO_GOLD:
        rows[i]["gold"] = ""
    return rows


def _counts(rows: list[dict[str, Any]], kind: str, *, with_gold: bool) -> tuple[int, int]:
    verdict = "say" if "say" in rows[0] else "score"
    mine = [each for each in rows if each["kind"] == kind]
    both = [each for each in mine if each[verdict] not in (None, "")]
    return len(mine), sum(each["gold"] not in (None, "") for each in both) if with_gold else len(both)


@pytest.mark.parametrize("with_gold", [True, False])
@pytest.mark.parametrize("pairs", [True, False])
def test_the_n_of_a_slice_is_that_of_its_figures_in_every_table(
    tmp_path: Path, run_audit: Any, pairs: bool, with_gold: bool
) -> None:
    rows = _paired() if pairs else _scored()
    words = ["--score", "say", "--pairwise"] if pairs else ["--score", "score", "--scale", "1-5"]
    words += ["--gold", "gold"] if with_gold else []
    found = run_audit(write(tmp_path / "x.jsonl", rows), *words, "--by", "kind", "--draws", "50")
    for name, row in rows_of(found, "by kind", "kind").items():
        assert (row["total"], row["n"]) == _counts(rows, name, with_gold=with_gold)
        assert row["failed"]["n"] == row["total"]
        main = "mean score" if not (pairs or with_gold) else "exact" if not pairs else "as shown"
        assert row[main if not pairs or with_gold else "first wins"]["n"] == row["n"]
    assert any(note.startswith("total: all ") for note in found["tables"]["by kind"]["notes"])


def test_baselines_of_pairs_are_of_the_rows_of_the_judge(tmp_path: Path, run_audit: Any) -> None:
    rows = _paired()
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "say", "--gold", "gold", "--pairwise")
    both = [each for each in rows if each["say"] and each["gold"]]
    decided = [each for each in both if each["gold"] != "tie"]
    table_of = rows_of(found, "beside", "who")
    assert len(table_of) == 5
    for row in table_of.values():
        assert (row["n"], row["all"]["n"]) == (len(both), len(both))
        if "random" not in row["who"]:  # of which the expected value is of all, for any rule
            assert (row["n (no_gold_ties)"], row["no_gold_ties"]["n"]) == (len(decided), len(decided))
    always = table_of["a judge that always says first"]["all"]["value"]
    assert always == pytest.approx(sum(each["gold"] == "first" for each in both) / len(both))


def test_an_undefined_figure_names_its_own_reason(tmp_path: Path, run_audit: Any) -> None:
    lost = [each | {"score": None} for each in scores(12)]
    found = run_audit(write(tmp_path / "x.jsonl", lost), "--score", "score", "--gold", "gold", "--scale", "1-5")
    assert rows_of(found, "beside", "who")["judge"]["discrimination"]["note"] == "no scores"
    between = [each | {"score": each["score"] + 0.5} for each in scores(12)]
    for row in between:
        row["score"] = min(row["score"], 4.5)
    given = (write(tmp_path / "y.jsonl", between), "--score", "score", "--gold", "gold")
    found = run_audit(*given, "--scale", "1-5", "--between")
    note = "scores lie between the labels of the scale"
    assert rows_of(found, "beside", "who")["judge"]["discrimination"]["note"] == note
    found = run_audit(*given)
    note = "no scale that all scores share"
    assert rows_of(found, "beside", "who")["judge"]["discrimination"]["note"] == note


def test_a_judge_of_one_label_drawn_at_random_has_no_correlation_either(tmp_path: Path, run_audit: Any) -> None:
    rows = [each | {"score": 3} for each in scores(30)]
    found = run_audit(write(tmp_path / "x.jsonl", rows), "--score", "score", "--gold", "gold", "--scale", "1-5")
    row = rows_of(found, "beside", "who")["a judge that draws its labels at random"]
    assert row["pearson"]["value"] is None
    assert "every score is 3" in row["pearson"]["note"]
    assert row["quadratic_kappa"]["value"] == 0  # of a constant judge the kappa is 0, not undefined


def test_no_zero_has_a_sign_anywhere() -> None:
    small = Estimate(-1e-9, 9, -2e-9, 1e-9)
    cells: list[Cell] = [small, Estimate(-1e-9, 9, -0.1, 2e-9), -1e-9, -0.0, Estimate(-0.0, 9)]
    told = [shown(cell, compact=compact) for cell in cells for compact in (False, True)]
    told += [f"{small:.3f}", f"{small:+.3f}", str(Gate("x=0", "x", "under", 0.0, "r", -1e-9, -1e-9, 1e-9))]
    assert not [text for text in told if re.search(r"-0\.0+(?!\d)", text)]
    assert f"{Estimate(-0.5, 9, -0.6, 0.1):.1f}" == "-0.5 [-0.6, 0.1]"  # other signs stay
    made = table("x", "x", ("a", "b", "c"), [["r", Estimate(-0.0, 9, -0.0, 0.0), -0.0]])
    assert "-0.0" not in json.dumps(made.to_dict())
    assert math.copysign(1, plain(-0.0)) == 1


def test_what_chance_gives_within_scales_is_0_where_it_is_0() -> None:
    # within each code all pairs of a score and a gold occur, so that no statistic of order is above or below 0
    x, y, code = (np.repeat(each, 3) for each in np.meshgrid([0.1, 0.2, 0.7], [0.3, 0.6, 0.9], [0, 1], indexing="ij"))
    names = ["pearson", "spearman", "kendall_tau_b"]
    found = chance_within(names, x.ravel(), y.ravel(), code.ravel(), Resampling(20))
    assert all(each.value == 0 and math.copysign(1, each.value) == 1 for each in found.values())


def test_one_is_told_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = [{"id": "a", "score": 3, "gold": 3, "r": 3, "lp1": -0.1, "lp2": -3.0, "lp3": -4.0}]
    pair = [{"id": "a", "say": "first", "back": "second", "gold": "first"}]
    for rows, words in (
        (one, {"score": "score", "gold": ["gold", "r"], "scale": "1-5"}),
        (one, {"logprobs": ["lp1", "lp2", "lp3"], "gold": "gold", "scale": "1-3"}),
        (pair, {"score": "say", "swapped": "back", "gold": "gold", "pairwise": True}),
    ):
        show(audit(write(tmp_path / "x.jsonl", rows), **words))
    told = capsys.readouterr().out
    assert "1 verdict" in told
    assert not re.findall(r"(?<![\d.,-])1 (?:\w+ )?(?:verdicts|rows|pairs|scores|items|labels|raters|values)\b", told)


def test_a_loss_that_is_cut_off_says_so() -> None:
    p = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    assert floored_told(p, [0, 0, 1]) == ""
    assert floored_told(p, [1, 0, 0]).startswith("log loss is cut off at 27.6 nats: of 2 rows")


def test_the_command_line_says_one_row(tmp_path: Path, audit_app: Any) -> None:
    rows = write(tmp_path / "x.jsonl", [{"score": 3, "gold": 3}])
    told = CliRunner().invoke(audit_app, ["audit", str(rows), "--score", "score", "--gold", "gold"]).stdout
    assert told.splitlines()[0].endswith(": 1 row")
