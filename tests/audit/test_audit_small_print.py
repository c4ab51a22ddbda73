"""Numbers as they are printed: ranks, counts of one, and what decides all of its games."""

import math
from pathlib import Path

import numpy as np
import pytest

from audit_tables import Run, write
from dikast.audit.audit import audit_file
from dikast.audit.estimate import Estimate
from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import shown
from dikast.audit.statistics.intervals import bounded_mean, share
from dikast.audit.statistics.paired_comparison.bradley_terry import Games, fit_players
from dikast.audit.statistics.paired_comparison.ranking import win_rate
from dikast.core.errors import UserError
from dikast.core.scale import Scale


def test_a_rank_is_a_whole_number_also_without_an_interval() -> None:
    assert shown(Estimate(4.0, 9, whole=True)) == "4"
    assert shown(Estimate(2.0, 9, 1.0, 3.0, whole=True)) == "2 [1, 3]"
    assert shown(Estimate(2.0, 9, 1.0, 3.0)) == "2.0000 [1.0000, 3.0000]"  # a temperature is no rank


def test_an_interval_that_is_not_symmetric_is_printed_with_both_ends() -> None:
    """No failure among 40 is [0, .088]: "±0.044" would name shares below 0 and leave out half of the others."""
    none_of_40 = share(np.zeros(40), 0.95)
    assert shown(none_of_40, compact=True) == "0.0000 [0.000, 0.088]"
    assert shown(Estimate(0.7257, 24, 0.5602, 0.8709), compact=True) == "0.7257 [0.560, 0.871]"
    assert shown(Estimate(0.5, 9, 0.4, 0.61), compact=True) == "0.5000 [0.400, 0.610]"
    assert shown(Estimate(0.5, 9, 0.4001, 0.6003), compact=True) == "0.5000 ±0.100"
    assert shown(Estimate(2.0, 9, 1.4, 2.7, whole=True), compact=True) == "2 [1, 3]"


def test_rates_of_few_games_by_hand() -> None:
    # 1, 1, .5: mean 5/6, deviations 1/6, 1/6, -1/3, standard error sqrt((1 + 1 + 4) / 36 / (3 * 2)) = 1/6;
    # (5/6)(1/6) / (1/6)**2 = 5 independent rows would have that error, with t(.975, 2) = 4.30265 in place of 1.95996
    def ends(p: float, k: float) -> tuple[float, float]:  # Wilson's, k = z**2 / n
        middle, half = (p + k / 2) / (1 + k), math.sqrt(k * p * (1 - p) + k**2 / 4) / (1 + k)
        return middle - half, middle + half

    three = share([1, 1, 0.5], 0.95, np.array([0, 1, 2]))
    assert (three.low, three.high) == pytest.approx(ends(5 / 6, 4.30265**2 / 5), abs=1e-5)
    alone = win_rate([1, 1, 0.5], "half").rate  # no three values vary more than zeros and ones: n is at least 3
    assert (alone.low, alone.high) == pytest.approx(ends(5 / 6, 1.95996**2 / 3), abs=1e-5)
    won = win_rate([1, 1, 1], "half").rate
    assert (won.low, won.high) == pytest.approx((3 / (3 + 1.95996**2), 1), abs=1e-5)
    once_each = win_rate([1, 0], "half").rate  # z * error is .98: the interval was [0, 1], and told as 0.5 +/- 0.5
    assert (once_each.low, once_each.high) == pytest.approx(ends(0.5, 1.95996**2 / 2), abs=1e-5)
    net = bounded_mean([1, 1, 0], 0.95, np.array([0, 1, 2]))  # 2 * share - 1
    assert (net.value, net.low, net.high) == pytest.approx((2 / 3, 2 * three.low - 1, 2 * three.high - 1))


@pytest.mark.parametrize("cluster", [(), ("--cluster", "scene")])
def test_a_rate_has_one_interval_in_all_tables(tmp_path: Path, run_audit: Run, cluster: tuple[str, ...]) -> None:
    rows = [
        {"said": "A" if k % 5 else "B", "score": 1 + k % 5, "gold": "A", "gold_score": 1 + k * 7 % 5,
         "scene": k // 3, "part": "all"}
        for k in range(30)
    ]  # fmt: skip
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "said", "--gold", "gold", "--pairwise", "--by", "part", *cluster)["tables"]
    accuracy = found["accuracy"]["rows"][0]["as shown"]
    same = [found["classes"]["rows"][0]["accuracy"], found["by part"]["rows"][0]["as shown"]]
    same.append(next(row["all"] for row in found["beside"]["rows"] if row["who"] == "judge"))
    assert [(each["low"], each["high"]) for each in same] == [(accuracy["low"], accuracy["high"])] * 3
    found = run_audit(file, "--score", "score", "--gold", "gold_score", "--scale", "1-5", "--by", "part", *cluster)
    exact = next(row["value"] for row in found["tables"]["agreement"]["rows"] if row["statistic"] == "exact")
    slice_of = found["tables"]["by part"]["rows"][0]["exact"]
    judge = found["tables"]["beside"]["rows"][0]["exact"]
    assert {(each["low"], each["high"]) for each in (slice_of, judge)} == {(exact["low"], exact["high"])}


def test_two_raters_have_one_interval_in_all_tables(tmp_path: Path, run_audit: Run) -> None:
    """The ceiling of two raters is their row in the table of raters."""
    rng = np.random.default_rng(0)
    gold = rng.integers(1, 6, 30)
    rows = [
        {"score": int(g), "one": int(g), "two": int(np.clip(g + rng.integers(-1, 2), 1, 5)), "said": "AB"[k % 2],
         "human": "AB"[g % 2], "other": "AB"[(g + (k % 3 == 0)) % 2]}
        for k, g in enumerate(gold)
    ]  # fmt: skip
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "one", "--gold", "two", "--scale", "1-5")["tables"]
    ceiling, pair = found["beside"]["rows"][1], found["rater pairs"]["rows"][0]
    for name in ("pearson", "spearman", "kendall_tau_b", "exact", "mae", "quadratic_kappa"):
        assert [ceiling[name][end] for end in ("value", "low", "high")] == pytest.approx(
            [pair[name][end] for end in ("value", "low", "high")]
        ), name
    equal = found["raters"]["rows"][0]["value"]
    assert (equal["low"], equal["high"]) == (pair["exact"]["low"], pair["exact"]["high"])
    found = run_audit(file, "--score", "said", "--gold", "human", "--gold", "other", "--pairwise")["tables"]
    ceiling, pair = found["beside"]["rows"][1]["all"], found["rater pairs"]["rows"][0]["exact"]
    assert (ceiling["low"], ceiling["high"]) == pytest.approx((pair["low"], pair["high"]))


def test_what_no_score_can_match_is_said(tmp_path: Path, run_audit: Run) -> None:
    # means 1, 1.5, 2.5, 3: two of four are no label
    rows = [{"score": s, "one": a, "two": b} for s, a, b in ((1, 1, 1), (1, 1, 2), (2, 2, 3), (3, 3, 3))]
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "one", "--gold", "two", "--scale", "1-5"
    )
    told = (
        "exact and cohen_kappa: gold lies between the labels in 2 of 4 rows, where no score on a label is equal to it"
    )
    assert any(note.startswith(told) for note in found["tables"]["agreement"]["notes"])
    alone = run_audit(tmp_path / "x.csv", "--score", "score", "--gold", "one", "--scale", "1-5")
    assert not any("between the labels" in note for note in alone["tables"]["agreement"]["notes"])


def test_two_labels_one_apart_are_always_within_one(tmp_path: Path, run_audit: Run) -> None:
    """ "within_1 1.0000" of a judge that is never right says nothing; and 0 is called by its label."""
    rows = [{"score": "pass", "gold": "fail"} for _ in range(12)]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "pass/fail")
    assert "within_1" not in {row["statistic"] for row in found["tables"]["agreement"]["rows"]}
    assert "within_1" not in found["tables"]["beside"]["rows"][0]
    assert "a judge that always says fail" in {row["who"] for row in found["tables"]["beside"]["rows"]}


def test_a_covariate_that_decides_its_games_leaves_the_others_alone() -> None:
    # 0 beats 1 in 6 of 9 games, log 2 apart; in 4 further games a mark stands for the winner, whoever that is
    first, second = np.zeros(13, int), np.ones(13, int)
    outcome = np.array([0] * 6 + [1] * 3 + [0, 0, 1, 1])
    mark = np.array([0.0] * 9 + [1, 1, -1, -1])
    other = np.array([1.0, -1, 0, 1, -1, 0, 0, 0, 0, 1, -1, 1, -1])
    games = Games.of(first, second, outcome, players=2, covariates=np.column_stack([mark, other]))
    found = fit_players(games)
    alone = fit_players(
        Games.of(first[:9], second[:9], outcome[:9], players=2, covariates=other[:9, None])
    )  # the limit: games that the mark decides say nothing of the rest
    assert math.isnan(found.effects[0])
    assert found.effects[1] == pytest.approx(alone.effects[0])
    assert found.strength == pytest.approx(alone.strength)
    assert np.isfinite(found.strength).all()
    every = fit_players(
        Games.of(first, second, outcome, players=2, covariates=np.where(outcome == 0, 1.0, -1)[:, None])
    )
    assert np.isnan(every.strength).all()
    assert np.isnan(every.effects).all()


def test_coefficients_of_raters_say_of_how_many_items(tmp_path: Path, run_audit: Run) -> None:
    rows = [
        {"score": s, "one": a, "two": b, "three": c}
        for s, a, b, c in (
            (1, 1, 1, 1),
            (2, 2, 2, None),
            (3, 3, 4, 3),
            (4, 4, None, 4),
            (5, 5, None, None),
            (2, 2, 2, 2),
        )
    ]
    raters = ("--gold", "one", "--gold", "two", "--gold", "three")
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", *raters, "--scale", "1-5")["tables"]
    counts = {row["statistic"]: row["n"] for row in found["raters"]["rows"]}
    assert (counts["alpha (ordinal)"], counts["fleiss_kappa"], counts["all raters equal"]) == (5, 3, 3)
    assert "gold: the mean of 3 raters, of fewer in 3 of 6 rows" in found["agreement"]["notes"]
    rows = [{"score": s, "one": a, "two": b} for s, a, b in ((1, 1, None), (2, None, 2), (3, 3, None))]
    found = run_audit(write(tmp_path / "y.csv", rows), "--score", "score", *raters[:4], "--scale", "1-5")["tables"]
    assert any(note.startswith("no item was rated by all 2 raters") for note in found["raters"]["notes"])


def test_no_width_is_wider_than_the_scale(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(0)
    rows = [{"score": int(s), "gold": int(g), "part": "ab"[k % 2]} for k, (s, g) in
            enumerate(rng.integers(1, 7, (60, 2)))]  # fmt: skip
    found = run_audit(
        write(tmp_path / "x.csv", rows), "--score", "score", "--gold", "gold", "--scale", "1-6", "--by", "part"
    )
    for row in found["tables"]["conformal"]["rows"]:
        for name in ("width", "width (own)"):
            assert row[name]["low"] < row[name]["value"] <= row[name]["high"] <= 5, (row["rows"], name)
        assert row["share of scale (own)"]["high"] <= 1


def test_a_judge_that_is_as_close_is_not_told_to_be_farther(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(1)
    true = rng.normal(3, 1, 40)
    said = np.clip(np.round(true + 0.8 * rng.normal(size=(4, 40))), 1, 5)
    rows = [dict(zip(("score", "one", "two", "three"), map(int, each), strict=True)) for each in said.T]
    raters = ("--gold", "one", "--gold", "two", "--gold", "three")
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", *raters, "--scale", "1-5", "--epsilon", "0")
    table = found["tables"]["alt-test"]
    assert table["title"].startswith("May the judge replace an annotator? not shown")
    assert {row["judge wins"] for row in table["rows"]} == {"not shown"}


def test_a_column_of_slots_that_is_read_as_responses_is_pointed_out(tmp_path: Path, run_audit: Run) -> None:
    turned = {"a": "b", "b": "a"}
    rows = [{"one": said, "other": turned[said] if k % 5 else said} for k, said in enumerate("ab" * 30)]
    file = write(tmp_path / "x.csv", rows)
    asked = (file, "--score", "one", "--swapped", "other", "--pairwise")
    assert any("--swapped-as slots" in note for note in run_audit(*asked)["tables"]["orders"]["notes"])
    told = run_audit(*asked, "--swapped-as", "slots")["tables"]["orders"]["notes"]
    assert not any("--swapped-as" in note for note in told)


def test_rows_of_one_id_answer_the_same_prompt_where_nothing_else_says_so(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"id": f"q{k}", "system": name, "judge_score": 3 + (name == "good") + k % 2}
            for k in range(12) for name in ("good", "bad")]  # fmt: skip
    found = run_audit(write(tmp_path / "x.csv", rows))["results"]["leaderboard"]
    assert found["systems"]["good"]["win_rate"]["value"] == 1
    assert found["lead"]["value"] == 1
    alone = run_audit(write(tmp_path / "y.csv", [row | {"id": str(k)} for k, row in enumerate(rows)]))
    assert alone["results"]["leaderboard"]["lead"]["value"] is None  # no prompt has both


@pytest.mark.parametrize(
    ("rated", "told"),
    [
        (3, "people are compared on the 3 rows that all 3 rated, of 40 with two ratings or more; without --gold c it"),
        (0, "no human ceiling: no row was rated by all 3, of 40 with two ratings or more; without --gold d it would"),
        (30, ""),
    ],
)
def test_a_rater_of_few_rows_is_named(tmp_path: Path, rated: int, told: str) -> None:
    """The ceiling is of rows that all rated: one rater of three rows leaves three of forty."""
    last = "c" if rated else "d"
    rows = [
        {"id": k, "judge": k % 5 + 1, "a": k % 5 + 1, "b": k % 4 + 1,
         last: (k % 3 + 1 if k < rated or (not rated and k == 40) else "")}
        for k in range(41)
    ]  # fmt: skip
    rows[40] |= {"a": "", "b": ""}
    plan = AuditPlan(write(tmp_path / "x.csv", rows), score="judge", gold=("a", "b", last), scale=Scale.parse("1-5"))
    note = " ".join(audit_file(plan)["beside"].notes)
    assert (told in note) if told else ("rated" not in note)


def test_raters_who_are_equal_in_every_row_are_named(tmp_path: Path, run_audit: Run) -> None:
    """A copied column of gold makes a perfect ceiling; raters of few rows may well agree."""
    rows: list[dict[str, object]] = [
        {"score": 1 + k % 5, "one": 1 + k % 4, "copy": 1 + k % 4, "own": 1 + k % 3, "ten": 1 + k % 4 if k < 9 else ""}
        for k in range(30)
    ]
    golds = ("--gold", "one", "--gold", "copy", "--gold", "own", "--gold", "ten")
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "score", *golds, "--scale", "1-5")
    said = [note for note in found["tables"]["rater pairs"]["notes"] if "equal in all" in note]
    assert said == [
        "'copy' and 'one' are equal in all 30 rows that both rated: if one is a copy of the other, agreement among"
        " raters and its ceiling say nothing"
    ]
    rows = [{"said": "AB"[k % 2], "human": "AB"[k % 3 % 2], "again": "AB"[k % 3 % 2]} for k in range(30)]
    pairs = ("--score", "said", "--gold", "human", "--gold", "again", "--pairwise")
    found = run_audit(write(tmp_path / "y.csv", rows), *pairs)
    assert any("are equal in all 30 rows" in note for note in found["tables"]["rater pairs"]["notes"])


def test_what_is_off_the_scale_of_scores_is_told_where_too_few_can_be_equated(tmp_path: Path) -> None:
    rows = [{"score": k % 5 / 2, "gold": 1 + k % 5} for k in range(40)]  # 24 are off the scale: 1/2, 3/2, 2
    table, scale = write(tmp_path / "x.csv", rows), Scale.parse("1-5")
    plan = AuditPlan(table, score="score", gold=("gold",), scale=scale, equate=Scale.parse("0-1"), allow_unread=True)
    with pytest.raises(UserError, match=r"with score and gold; it takes 30; 24 scores off the scale 0-1 that --equate"):
        audit_file(plan)
