"""Typed results hold the numbers of the tables; nothing that renders an audit reads a title or the text of a cell."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from audit_tables import Run, scores, write
from dikast.audit.audit import audit_file
from dikast.audit.estimate import Estimate
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import Audit
from dikast.audit.results import (
    Accuracy,
    Agreement,
    Baseline,
    Baselines,
    Calibration,
    Failures,
    Orders,
    PlayerRanking,
    Players,
    RaterAgreement,
    RaterPairs,
    Replacement,
    Slices,
    plain,
)
from dikast.audit.statistics.drift import Drift
from dikast.core.scale import Scale
from dikast.surface.report import gates, headline
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.embedded.long_tables import slices


def audit_of_scores(folder: Path) -> Audit:
    rows = [{**row, "part": "ab"[k % 2], "again": row["score"]} for k, row in enumerate(scores(60))]
    for row in rows[:3]:
        row["score"] = None
    file = write(folder / "scores.jsonl", rows)
    plan = AuditPlan(file, score="score", gold=("gold", "again"), scale=Scale.parse("1-5"), by=("part",), draws=40)
    return audit_file(plan)


def audit_of_pairs(folder: Path, *, swapped: bool) -> Audit:
    rng = np.random.default_rng(1)
    names = ("one", "two", "gold")
    rows = [dict(zip(names, rng.choice(["a", "b", "tie"], 3).tolist(), strict=True)) for _ in range(60)]
    file = write(folder / f"pairs-{swapped}.jsonl", rows)
    more = "two" if swapped else ""
    return audit_file(AuditPlan(file, score="one", swapped=more, gold=("gold",), pairwise=True, draws=40))


def test_results_are_the_cells_of_the_tables(tmp_path: Path) -> None:
    found = audit_of_scores(tmp_path)
    failures, agreement = found.result(Failures), found.result(Agreement)
    baselines, by_part = found.result(Baselines), found.result(Slices)
    assert failures is not None
    assert agreement is not None
    assert baselines is not None
    assert by_part is not None
    assert (failures.failed, failures.statuses) == (found["failures"].estimate("failed", "share"), {"missing": 3})
    for name, each in agreement.statistics.items():
        row = found["agreement"][name]
        assert (each.value, each.worst, each.best) == (row["value"], row["worst"], row["best"])
    for each_row in baselines.rows:
        assert each_row.statistics["mae"] == found["beside"].estimate(each_row.label, "mae")
    assert [row.key for row in baselines.rows if row.role == "floor"] == ["constant", "random"]
    rows = "judge against one rater", "one rater against another (ceiling)"
    assert baselines.people("exact") == tuple(found["beside"].estimate(row, "exact") for row in rows)
    assert by_part.statistics["pearson"] == {name: found["by part"].estimate(name, "pearson") for name in "ab"}
    assert found.result(Calibration) is None


def test_the_best_baseline_by_hand() -> None:
    rows = [
        Baseline(key, "floor", key, {"exact": Estimate(value, 9)})
        for key, value in (("constant", 0.2), ("random", 0.4), ("other", float("nan")))
    ]
    best = Baselines(tuple(rows)).best("exact")
    assert best is not None
    assert best.key == "random"
    assert Baselines(tuple(rows[2:])).best("exact") is None
    assert Baselines(()).judge == {}


def test_results_of_pairs(tmp_path: Path) -> None:
    both, one = audit_of_pairs(tmp_path, swapped=True), audit_of_pairs(tmp_path, swapped=False)
    accuracy, orders = both.result(Accuracy), both.result(Orders)
    assert accuracy is not None
    assert orders is not None
    assert accuracy.rules["all"] == both["accuracy"].estimate("accuracy (all)", "both together")
    assert orders.same == both["orders"].estimate("same verdict in both orders")
    assert sum(each.value for each in orders.disagreements.values()) == pytest.approx(orders.disagree.value)
    assert one.result(Orders) is None
    alone = one.result(Accuracy)
    assert alone is not None
    assert (alone.one_order, one["accuracy"].one_order, accuracy.one_order) == (True, True, False)
    assert one["accuracy"].title.endswith(", in one order")


@pytest.mark.parametrize("kind", ["scores", "both orders", "one order"])
def test_the_first_screen_reads_no_title_and_no_cell(kind: str, tmp_path: Path) -> None:
    found = audit_of_scores(tmp_path) if kind == "scores" else audit_of_pairs(tmp_path, swapped=kind == "both orders")
    silent = [dataclasses.replace(each, title="", rows=(), columns=(), notes=()) for each in found.tables]
    told = []
    for tables in (found.tables, tuple(silent)):
        page = RunPage(tmp_path, "run", kind="absolute" if kind == "scores" else "pairwise")
        page.audit, page.one_order = dataclasses.replace(found, tables=tables), kind == "one order"
        drawn = [(each.column, each.rows, each.told) for each in slices(tables)]
        told.append((headline.sentence(page), headline.cards(page), headline.ruled(page), drawn))
    assert told[0] == told[1]


def test_gates_know_one_order_without_reading_a_title(tmp_path: Path) -> None:
    found = audit_of_pairs(tmp_path, swapped=False)
    untitled = dataclasses.replace(found, tables=tuple(dataclasses.replace(each, title="") for each in found.tables))
    gate = gates.check(untitled, "run", "under", "accuracy (all)=.9")
    assert gate.full == "accuracy/accuracy (all)/as shown, in one order"


def test_the_schema_of_the_json(tmp_path: Path, run_audit: Run) -> None:
    file = write(tmp_path / "x.jsonl", scores())
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--draws", "20")
    assert found["schema"] == 2
    assert set(found) == {"schema", "source", "rows", "notes", "plan", "tables", "results"}
    rows = {row["statistic"]: row["value"] for row in found["tables"]["agreement"]["rows"]}
    results = found["results"]["agreement"]["statistics"]
    assert {name: each["value"] for name, each in results.items()} == {name: rows[name] for name in results}
    assert found["results"]["beside"]["rows"][0]["key"] == "judge"
    assert plain(float("nan")) is None
    json.dumps(found, allow_nan=False)


def test_rankings_raters_drift_and_the_alt_test_are_typed_too(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(4)
    games = [
        {"first": "abc"[k % 3], "second": "bca"[k % 3], "say": rng.choice(["a", "b", "tie"]).item()} for k in range(60)
    ]
    file = write(tmp_path / "games.jsonl", games)
    found = audit_file(
        AuditPlan(file, score="say", pairwise=True, first="first", second="second", anchor="b", draws=40)
    )
    ranking, players = found.result(PlayerRanking), found.result(Players)
    assert ranking is not None
    assert players is not None
    assert ranking.anchor == "b"
    assert list(ranking.players) == [row[0] for row in found["ranking"].rows]
    for name, player in ranking.players.items():
        row = found["ranking"][name]
        assert (row["beats anchor"], row["strength"], row["rank"]) == (
            player.beats_anchor, player.strength, player.rank
        )  # fmt: skip
        record, row = players.players[name], found["players"][name]
        assert (record.games, record.outcomes["ties"], record.grade) == (row["games"], row["ties"], row["mean grade"])
        assert (record.win_rates["half"], record.win_rates["wins"]) == (row["win rate (half)"], row["share won"])
    rated = [
        {**row, "r2": int(rng.integers(1, 6)), "r3": row["gold"], "then": int(rng.integers(1, 6))} for row in scores(50)
    ]
    plan = AuditPlan(
        write(tmp_path / "rated.jsonl", rated), score="score", gold=("gold", "r2", "r3"), earlier="then",
        scale=Scale.parse("1-5"), draws=40,
    )  # fmt: skip
    found = audit_file(plan)
    raters, pairs = found.result(RaterAgreement), found.result(RaterPairs)
    test, drift = found.result(Replacement), found.result(Drift)
    assert raters is not None
    assert raters.raters == 3
    assert raters.statistics["alpha (ordinal)"] == found["raters"].estimate("alpha (ordinal)")
    assert pairs is not None
    same = next(each for each in pairs.pairs if (each.first, each.second) == ("gold", "r3"))
    assert same.statistics["exact"].value == 1
    assert test is not None
    left_out = test.annotators["r2"]
    assert left_out is not None
    assert found["alt-test"].estimate("r2", "judge as close") == left_out.judge
    assert drift is not None
    assert drift.shift == found["drift"].estimate("shift (this run less the earlier)")
    told = plain(drift)
    assert told["shift"]["n"] == 50
    json.dumps(found.to_dict(), allow_nan=False)
