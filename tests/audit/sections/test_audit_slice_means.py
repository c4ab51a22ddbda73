"""Means over slices, plain and through Fisher's z."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, rows_of, write
from dikast.audit.sections.slice_means import fisher_mean_over, mean_over
from dikast.audit.statistics.building_blocks.linearised import Linear, linear_pearson, linear_spearman
from dikast.audit.statistics.intervals import error_of, mean_estimate

EVEN = np.array([0.1, -0.1, 0.1, -0.1])


def test_means_by_hand() -> None:
    rows = [np.arange(4), np.arange(4, 8)]
    found = mean_over([Linear(0.2, EVEN), Linear(0.8, EVEN)], rows, 0.95)
    # parts of .05 in 8 rows: the error is sqrt(8 / 7 * 8 * .0025) = .15119, 1.96 times it is .29632
    assert (found.value, found.n) == (0.5, 2)
    assert math.isclose(found.high - found.value, 1.959964 * math.sqrt(8 / 7 * 8 * 0.0025), rel_tol=1e-6)
    z = fisher_mean_over([Linear(0.2, EVEN), Linear(0.8, EVEN)], rows, 0.95)
    # atanh .2 = .2027, atanh .8 = 1.0986: their mean .65067 is the z of .5721
    assert math.isclose(z.value, math.tanh((math.atanh(0.2) + math.atanh(0.8)) / 2))
    assert round(z.value, 4) == 0.5721
    assert z.low < z.value < z.high


def test_no_end_lies_where_the_statistic_cannot() -> None:
    # as above, .2 and .2: .2 less .29632 would be a share below 0
    slices, rows = [Linear(0.2, EVEN), Linear(0.2, EVEN)], [np.arange(4), np.arange(4, 8)]
    assert mean_over(slices, rows, 0.95).low < 0
    assert mean_over(slices, rows, 0.95, within=(0.0, 1.0)).low == 0
    assert mean_over([Linear(0.9, EVEN)] * 2, rows, 0.95, within=(0.0, 1.0)).high == 1
    one = mean_estimate([0.0, 0.0, 1.0], 0.95, within=(0.0, math.inf))  # 1/3 ± 4.30 * 1/3
    assert (one.low, round(one.high, 3)) == (0, 1.768)


def test_undefined_slices_are_left_out_and_counted() -> None:
    slices = [Linear(0.2, EVEN), Linear(math.nan, np.zeros(3)), Linear(0.6, EVEN)]
    rows = [np.arange(4), np.arange(4, 7), np.arange(7, 11)]
    found = mean_over(slices, rows, 0.95)
    assert (found.value, found.n, found.dropped) == (0.4, 2, 1)
    nothing = mean_over(slices[1:2], rows[1:2], 0.95)
    assert math.isnan(nothing.value)
    assert math.isnan(fisher_mean_over([*slices, Linear(1.0, EVEN)], [*rows, rows[0]], 0.95).value)
    assert math.isnan(mean_over([Linear(0.2, EVEN), Linear(1.0, np.zeros(2))], [rows[0], np.arange(2)], 0.95).low)


def test_clusters_across_slices_are_summed() -> None:
    rows, cluster = [np.arange(4), np.arange(4, 8)], np.array([0, 1, 2, 3, 0, 1, 2, 3])
    slices = [Linear(0.2, EVEN), Linear(0.8, EVEN)]
    alone, together = mean_over(slices, rows, 0.95), mean_over(slices, rows, 0.95, cluster)
    assert together.high - together.value > 1.3 * (alone.high - alone.value)  # what moves both moves the mean twice


@pytest.mark.parametrize("levels", [5, 1000])
def test_spearman_linearised(levels: int) -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = x + rng.normal(size=300)
    x, y = (np.floor(each * levels / 6) for each in (x, y))
    found = linear_spearman(x, y)
    assert math.isclose(found.value, spearmanr(x, y).statistic, abs_tol=1e-12)
    assert abs(found.parts.sum()) < 1e-12
    jackknife = [linear_spearman(np.delete(x, i), np.delete(y, i)).value for i in range(300)]
    spread = math.sqrt(299 / 300 * float(((np.array(jackknife) - np.mean(jackknife)) ** 2).sum()))
    assert math.isclose(error_of(found.parts).error, spread, rel_tol=0.03)
    assert math.isnan(linear_spearman([1, 1, 1], [1, 2, 3]).value)
    assert math.isclose(linear_spearman([1, 2, 3, 4], [1, 4, 9, 16]).value, 1)


def test_means_over_slices_from_the_command_line(tmp_path: Path, run_audit: Run) -> None:
    rng = np.random.default_rng(1)
    rows: list[dict[str, Any]] = []
    for name, n, noise in (("a", 40, 0), ("b", 120, 2), ("c", 20, 1)):
        gold = rng.integers(1, 6, n)
        said = np.clip(gold + rng.integers(-noise, noise + 1, n), 1, 5)
        rows += [{"set": name, "gold": int(g), "score": int(s)} for g, s in zip(gold, said, strict=True)]
    rows += [{"set": "d", "gold": 3, "score": 3}] * 6
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--by", "set", "--draws", "50")
    over, by = rows_of(found, "over set", "statistic"), rows_of(found, "by set", "set")
    exact = over["exact"]["mean"]
    assert math.isclose(exact["value"], np.mean([by[name]["exact"]["value"] for name in "abcd"]))
    assert exact["low"] < exact["value"] < exact["high"]
    assert over["pearson"]["slices"] == 3
    assert math.isclose(over["pearson"]["mean"]["value"], np.mean([by[name]["pearson"]["value"] for name in "abc"]))
    assert any("pearson in 1, spearman in 1" in note for note in found["tables"]["over set"]["notes"])


def test_means_over_slices_of_pairs(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"set": name, "said": said, "gold": "a"} for name, all_of in (("x", "aab"), ("y", "ab")) for said in all_of]
    found = run_audit(write(tmp_path / "x.csv", rows), "--score", "said", "--gold", "gold", "--pairwise", "--by", "set")
    over = found["tables"]["over set"]["rows"]
    assert math.isclose(over[0]["mean"]["value"], (2 / 3 + 1 / 2) / 2)


def test_means_of_few_rows_stay_within_their_range(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"set": "xy"[k % 2], "said": 1 + k % 5, "gold": 5 if k < 9 else 1 + k % 5} for k in range(10)]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "said", "--gold", "gold", "--scale", "1-5", "--by", "set")
    means = {row["statistic"]: row["mean"] for row in found["tables"]["over set"]["rows"]}
    assert all(means[name]["low"] >= 0 for name in ("exact", "within_1", "mae"))
    assert all(means[name]["high"] <= 1 for name in ("exact", "within_1"))


def test_means_of_scores_stay_on_the_scale(tmp_path: Path, run_audit: Run) -> None:
    # 5, 5, 4 has the mean 4.667 with 4.303 * .333 to each side, which is above 5; 1, 1, 2 goes below 1
    rows = [{"id": f"{k}{m}", "q": k, "model": m, "said": said} for m, own in
            (("x", (5, 5, 4)), ("y", (1, 1, 2))) for k, said in enumerate(own)]  # fmt: skip
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "said", "--scale", "1-5", "--by", "model")
    tables = [found["tables"][name]["rows"] for name in ("scores", "by model")]
    means = [row["mean score"] for rows in tables for row in rows]
    assert all(1 <= each["low"] < each["value"] < each["high"] <= 5 for each in means), means
    assert 5 in {each["high"] for each in means}
    assert 1 in {each["low"] for each in means}
    free = run_audit(file, "--score", "said", "--by", "model")["tables"]["by model"]["rows"]  # no scale is known
    assert max(row["mean score"]["high"] for row in free) > 5


def test_coverage_of_means_over_slices() -> None:
    rng = np.random.default_rng(2)
    truth, hits, tries = [0.3, 0.6, 0.8], np.zeros(2), 400
    for _ in range(tries):
        slices, rows, begun = list[Linear](), list[np.ndarray[Any, Any]](), 0
        for r, n in zip(truth, (60, 90, 200), strict=True):
            x = rng.normal(size=n)
            slices.append(linear_pearson(x, r * x + math.sqrt(1 - r * r) * rng.normal(size=n)))
            rows.append(np.arange(begun, begun + n))
            begun += n
        due = (float(np.mean(truth)), math.tanh(float(np.mean(np.arctanh(truth)))))
        for k, found in enumerate((mean_over(slices, rows, 0.95), fisher_mean_over(slices, rows, 0.95))):
            hits[k] += found.low <= due[k] <= found.high
    assert ((hits / tries > 0.925) & (hits / tries < 0.975)).all(), hits / tries


def test_within_one_is_exact_for_decimals(tmp_path: Path, run_audit: Run) -> None:
    """2.2 - 1.2 is 1.0000000000000002: each slice held half of its rows for further apart than one."""
    rows = [{"score": s, "gold": g, "part": part} for part in "ab" for s, g in ((2.2, 1.2), (1.2, 2.2), (3.2, 3.2))] * 4
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--between", "--by", "part")
    assert rows_of(found, "over part", "statistic")["within_1"]["mean"]["value"] == 1
    assert {row["within_1"]["value"] for row in found["tables"]["by part"]["rows"]} == {1}
