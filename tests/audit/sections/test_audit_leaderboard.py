"""The leaderboard, by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runs
from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.audit.results import Leaderboard
from dikast.audit.sections.leaderboard import leaderboard_tables
from dikast.audit.tables.columns import Words
from dikast.audit.tables.scored import Scored
from dikast.core.scale import Scale


def words(*names: str) -> Words:
    known = list(dict.fromkeys(names))
    return Words(np.array([known.index(each) for each in names]), known)


def board(scores: list[float], *, lower: bool = False) -> Leaderboard:
    """Three systems on two prompts, x before y before z; NaN is a failure."""
    systems, prompts = words(*"xxyyzz"), words(*"pqpqpq")
    scale = Scale.parse("1-5") if not lower else Scale(("1", "5"), (1.0, 5.0), lower_is_better=True)
    values = np.array(scores, np.float64)
    given = Scored(values, words(*["ok"] * 6), np.full(6, np.nan), np.zeros((0, 6)), None, scale, ())
    found = next(iter(leaderboard_tables(systems, prompts, words(*["c"] * 6), given, 0.95))).result
    assert isinstance(found, Leaderboard)
    return found


def test_means_and_win_rates() -> None:
    # x: 5, 4; y: 5, 2; z: 1, none. x meets y twice (a tie, a win) and z once (a win): 2.5 of 3.
    # y meets x twice (a tie, a loss) and z once: 1.5 of 3; z loses both of its comparisons.
    found = board([5, 4, 5, 2, 1, np.nan])
    assert list(found.systems) == ["x", "y", "z"]
    assert [each.mean.value for each in found.systems.values()] == [4.5, 3.5, 1.0]
    rates = [each.win_rate.value for each in found.systems.values() if each.win_rate]
    assert rates == pytest.approx([2.5 / 3, 1.5 / 3, 0.0])
    assert [each.failed for each in found.systems.values()] == [0, 0, 1]
    # x minus y: 0 on p, 2 on q; mean 1, standard error 1, Student's t with 1 degree of freedom is 12.706: on 1-5 no
    # difference is larger than 4, and no mean outside 1 to 5
    assert found.lead is not None
    assert (found.lead.value, found.lead.n) == (1.0, 2)
    assert (found.lead.low, found.lead.high) == (-4, 4)
    assert (found.systems["x"].mean.low, found.systems["x"].mean.high) == (1, 5)  # 4.5 -/+ 6.353 before


def test_lower_is_better_turns_the_order_round() -> None:
    found = board([5, 5, 1, 1, 5, 1], lower=True)
    assert list(found.systems) == ["y", "z", "x"]
    rates = {name: each.win_rate.value for name, each in found.systems.items() if each.win_rate}
    assert rates == {"y": (1 + 1 + 1 + 0.5) / 4, "z": (0.5 + 0 + 1 + 0.5) / 4, "x": (0 + 0 + 0.5 + 0) / 4}


def test_systems_that_share_no_prompt_have_no_win_rate() -> None:
    found = board([5, np.nan, np.nan, 2, np.nan, np.nan])
    assert np.isnan(found.systems["x"].win_rate.value) if found.systems["x"].win_rate else False
    assert found.lead is not None
    assert np.isnan(found.lead.value)


def ranked(*gaps: list[int]) -> list[tuple[float, float, float]]:
    """Systems s0, s1, ... with a score on each prompt."""
    k, n = len(gaps), len(gaps[0])
    systems = words(*(f"s{i}" for i in range(k) for _ in range(n)))
    prompts = words(*(f"p{j}" for _ in range(k) for j in range(n)))
    values = np.array(gaps, np.float64).ravel()
    given = Scored(
        values, words(*["ok"] * (k * n)), np.full(k * n, np.nan), np.zeros((0, k * n)), None, Scale.parse("1-5"), ()
    )
    found = next(iter(leaderboard_tables(systems, prompts, words(*["c"] * (k * n)), given, 0.95))).result
    assert isinstance(found, Leaderboard)
    ranks = [each.rank for each in found.systems.values()]
    return [(each.value, each.low, each.high) for each in ranks if each is not None]


def test_rank_sets_hold_every_place_that_paired_differences_leave_open() -> None:
    # s0 minus s1: +1, -1, +1, -1, ... : mean 0, open; both are about 3 above s2 on each of 8 prompts
    first, second = [5, 4] * 4, [4, 5] * 4
    third = [1, 1, 1, 1, 1, 1, 1, 2]
    assert ranked(first, second, third) == [(1, 1, 2), (1, 1, 2), (3, 3, 3)]
    # one prompt: nothing has an interval, every place is open
    assert ranked([5], [3]) == [(1, 1, 2), (2, 1, 2)]


WEIGHTED: list[dict[str, Any]] = [{"name": "right", "criterion": "Is it right?", "scale": "1-5", "weight": 3},
            {"name": "short", "criterion": "Is it short?", "scale": "1-5"}]  # fmt: skip


def board_of(tmp_path: Path, rows: list[dict[str, Any]], criteria: list[dict[str, Any]]) -> Leaderboard:
    """The leaderboard of rows graded as their gold says, by a sheet of these criteria."""
    items, sheet = runs.write_jsonl(tmp_path / "items.jsonl", rows), tmp_path / "sheet.json"
    sheet.write_text(json.dumps({"name": "answer", "criteria": criteria}))
    line = ("grade", items, "--judge", "mock:oracle,r=1", "--rubric", sheet, "--out", tmp_path / "run", "-q")
    done = runs.dikast_here(*line)
    assert done.returncode == 0, done.stderr
    board = audit_file(AuditPlan(tmp_path / "run", draws=20)).result(Leaderboard)
    assert board is not None
    return board


@pytest.mark.parametrize("own", [False, True], ids=["the run's sheet", "each item's own"])
def test_a_sheet_with_weights_ranks_by_weighted_totals(own: bool, tmp_path: Path) -> None:
    # x: right 4, short 1; y: right 3, short 5. Unweighted y leads (4 against 2.5); 3:1 x has 3.25, y 3.5; and of the
    # last prompt y has 3, 1 = 2.5 by weight: y (3.5 + 3.5 + 2.5) / 3 = 3.1667 is behind x
    sheet = {"name": "answer", "criteria": WEIGHTED}
    scores = {"x": [(4, 1)] * 3, "y": [(3, 5), (3, 5), (3, 1)]}
    rows = [
        {"id": f"{name}{k}", "instruction": f"Question {k}?", "response": f"{name} {k}", "model": name,
         "gold": {"right": right, "short": short}, **({"rubric": sheet} if own else {})}
        for name, given in scores.items() for k, (right, short) in enumerate(given)
    ]  # fmt: skip
    items, rubric = runs.write_jsonl(tmp_path / "items.jsonl", rows), tmp_path / "sheet.json"
    rubric.write_text(json.dumps(sheet))
    line = ("grade", items, "--judge", "mock:oracle,r=1", "--out", tmp_path / "run", "-q")
    done = runs.dikast_here(*line, *(() if own else ("--rubric", rubric)))
    assert done.returncode == 0, done.stderr
    found = audit_file(AuditPlan(tmp_path / "run", draws=20))
    board = found.result(Leaderboard)
    assert board is not None
    assert {name: each.mean.value for name, each in board.systems.items()} == pytest.approx({"x": 3.25, "y": 9.5 / 3})
    assert [each.mean.n for each in board.systems.values()] == [3, 3]
    totals: dict[str, list[float]] = {"x": [], "y": []}
    for each in runs.lines(tmp_path / "run" / "totals.jsonl"):
        totals[each["item"][0]].append(1 + 4 * each["total"])  # goodness on 1-5
    assert {name: sum(each) / 3 for name, each in totals.items()} == pytest.approx({"x": 3.25, "y": 9.5 / 3})
    rate = board.systems["x"].win_rate
    assert rate is not None
    assert rate.value == pytest.approx(1 / 3)  # by total: two lost, one won
    assert "(right 3, short 1)" in " ".join(found["leaderboard"].notes)
    assert any("(right 3, short 1): figures of all rows count each verdict alike" in note for note in found.notes)
    where = audit_file(AuditPlan(tmp_path / "run", draws=20, where=("criterion=short",))).result(Leaderboard)
    assert where is not None
    assert (list(where.systems), where.weights) == (["y", "x"], "")


def test_equal_totals_are_a_tie_whatever_they_are_made_of(tmp_path: Path) -> None:
    # by weights of .6 and .4, (1, 4) and (3, 1) are both 2.2, and (1, 5) and (3, 2) both 2.6, but not as floats
    criteria = [{**WEIGHTED[0], "weight": 3}, {**WEIGHTED[1], "weight": 2}]
    scores = {"x": [(1, 4), (1, 5), (1, 4), (1, 5)], "y": [(3, 1), (3, 2), (3, 1), (3, 2)]}
    rows = [
        {"id": f"{name}{k}", "instruction": f"Question {k}?", "response": f"{name} {k}", "model": name,
         "gold": {"right": right, "short": short}}
        for name, given in scores.items() for k, (right, short) in enumerate(given)
    ]  # fmt: skip
    board = board_of(tmp_path, rows, criteria)
    assert [each.win_rate and each.win_rate.value for each in board.systems.values()] == [0.5, 0.5]
    assert board.lead is not None
    assert board.lead.value == 0


def test_items_with_a_rubric_of_their_own_stand_beside_a_weighted_sheet(tmp_path: Path) -> None:
    own = {"name": "tone", "criterion": "Is it friendly?", "scale": "1-5"}
    rows = [
        {"id": f"{name}{k}", "instruction": f"Question {k}?", "response": f"{name} {k}", "model": name,
         "gold": {"right": 4, "short": 1} if k % 2 else {"tone": 2}, **({} if k % 2 else {"rubric": own})}
        for name in "xy" for k in range(6)
    ]  # fmt: skip
    board = board_of(tmp_path, rows, WEIGHTED)
    assert [(each.mean.n, each.failed) for each in board.systems.values()] == [(6, 0)] * 2
    assert [each.mean.value for each in board.systems.values()] == pytest.approx([(3.25 + 2) / 2] * 2)


def test_a_response_that_failed_by_one_criterion_has_no_weighted_score(tmp_path: Path) -> None:
    rows = [
        {"id": f"{name}{k}", "instruction": f"Question {k}?", "response": f"{name} {k}", "model": name, "gold": None}
        for name in "xy" for k in range(20)
    ]  # fmt: skip
    items, rubric = runs.write_jsonl(tmp_path / "items.jsonl", rows), tmp_path / "sheet.json"
    rubric.write_text(json.dumps({"name": "answer", "criteria": WEIGHTED}))
    runs.dikast_here(
        "grade", items, "--judge", "mock:random,failing=.3", "--rubric", rubric, "--out", tmp_path / "run", "-q"
    )
    found = audit_file(AuditPlan(tmp_path / "run", draws=20))
    board = found.result(Leaderboard)
    assert board is not None
    totals = runs.lines(tmp_path / "run" / "totals.jsonl")
    known = [1 + 4 * one["total"] for one in totals if one["total"] is not None]
    weighed = found["scores"].estimate("responses, by weight", "mean score")
    assert (weighed.n, weighed.dropped) == (len(known), 40 - len(known))
    assert weighed.value == pytest.approx(sum(known) / len(known))
    for name, each in board.systems.items():
        known = [one["total"] for one in totals if one["item"][0] == name and one["total"] is not None]
        assert (each.mean.n, each.failed) == (len(known), 20 - len(known))
        assert each.mean.value == pytest.approx(1 + 4 * sum(known) / len(known))
    assert sum(each.failed for each in board.systems.values()) > 3


@pytest.mark.filterwarnings("error")
def test_lengths_that_none_can_be_are_not_known(tmp_path: Path) -> None:
    rows = [
        {"id": f"{k}{name}", "prompt": f"p{k}", "model": name, "score": 1 + (k + 2 * (name == "y")) % 5, "length": n}
        for k in range(12)
        for name, n in (("x", 10 * k + 1), ("y", 300 - 7 * k * k % 90))
    ]

    def means(*odd: dict[str, Any]) -> list[Any]:
        file = runs.write_jsonl(tmp_path / "scores.jsonl", [*rows, *odd])
        plan = AuditPlan(file, score="score", length="length", players=("model", "prompt"), scale=Scale.parse("1-5"))
        found = audit_file(plan).result(Leaderboard)
        assert found is not None
        return [each.controlled for each in found.systems.values()]

    odd = [{"id": f"o{n}", "prompt": f"o{n}", "model": "x", "score": 5, "length": n} for n in (-1, -5)]
    assert means() == means(*odd)
