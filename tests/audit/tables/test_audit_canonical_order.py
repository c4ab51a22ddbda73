"""No figure depends on the order of rows or of `--gold` columns, to the last bit; and ties of means are ties."""

import itertools
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from audit_tables import Run, rows_of, values, write
from dikast.audit.statistics.alt_test import alt_test
from dikast.audit.statistics.building_blocks.exact_means import (
    group_means,
    means_of_others,
    row_means,
    row_medians,
    settled,
    units_of,
)
from dikast.core.scale import Scale
from dikast.core.verdict import Question
from dikast.judging.panel import PanelVerdict

NAN = math.nan
SLOW = settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def raters_of_tenths(n: int = 60, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    ratings = rng.integers(0, 4, (3, n)) / 10
    score = np.round(np.clip(ratings.mean(0) + rng.integers(-1, 2, n) / 10, 0, 0.3), 1)
    return [
        {"id": f"i{k}", "score": float(score[k]), **{f"h{i}": float(ratings[i, k]) for i in range(3)}} for k in range(n)
    ]


def exact_mean(ratings: list[float]) -> Fraction:
    return sum((Fraction(str(each)) for each in ratings), Fraction()) / len(ratings)


def test_means_of_decimals_by_hand() -> None:
    # (.1 + .2 + .3) / 3 = .2 = (.2 + .2 + .2) / 3 = (.3 + .3 + 0) / 3; the sum of floats .1 + .2 + .3 is above .6
    table = np.array([[0.1, 0.2, 0.3, 0.1, NAN], [0.2, 0.2, 0.3, NAN, NAN], [0.3, 0.2, 0.0, 0.3, NAN]])
    assert (0.1 + 0.2 + 0.3) / 3 != 0.2
    assert row_means(table).tolist()[:4] == [0.2, 0.2, 0.2, 0.2]
    assert np.isnan([row_means(table)[4], row_medians(table)[4]]).all()
    assert row_medians(table).tolist()[:4] == [0.2, 0.2, 0.3, 0.2]
    assert row_medians(np.array([[0.1], [0.2]])).tolist() == [0.15]
    assert means_of_others(table[:, :3]).tolist() == [[0.25, 0.2, 0.15], [0.2, 0.2, 0.15], [0.15, 0.2, 0.3]]
    assert group_means(np.array([0.1, 0.2, 0.3, 0.2]), np.array([0, 0, 0, 1])).tolist() == [0.2, 0.2]


def test_numbers_that_are_no_decimals_are_rounded_far_below_their_resolution() -> None:
    thirds = np.array([[1 / 3, 2 / 3], [2 / 3, 0.0], [0.0, 1 / 3]])
    assert units_of(np.array([math.pi, math.e])) is None
    quarters = units_of(np.array([0.25, 3.0, NAN]))
    assert quarters is not None
    assert (quarters.whole[:2].tolist(), quarters.per) == ([25, 300], 100)
    for order in itertools.permutations(range(3)):
        assert len(set(row_means(thirds[list(order)]).tolist())) == 1
    irrational = np.array([[math.pi, 2 * math.e], [math.e, math.pi - math.e], [2.0, 2.0]])
    assert all(
        row_means(irrational[list(order)]).tobytes() == row_means(irrational).tobytes()
        for order in itertools.permutations(range(3))
    )
    assert settled([1e300, 0.1]).tolist() == [1e300, 0.1]
    assert settled([-0.0, NAN, math.inf, 0.30000000000000004])[3] == 0.3


@given(st.lists(st.tuples(*[st.integers(0, 30)] * 3), min_size=1, max_size=30), st.sampled_from([1, 10, 100, 1000]))
def test_means_are_those_of_fractions(rows: list[tuple[int, int, int]], per: int) -> None:
    table = np.array(rows, np.float64).T / per
    due = [float(exact_mean(list(column))) for column in table.T.tolist()]
    assert row_means(table).tolist() == due
    others = means_of_others(table)
    for i in range(3):
        assert others[i].tolist() == [float(exact_mean(list(c))) for c in np.delete(table, i, 0).T.tolist()]


def test_ties_of_means_of_raters_are_ties(tmp_path: Path, run_audit: Run) -> None:
    rows = raters_of_tenths()
    golds = [exact_mean([row[f"h{i}"] for i in range(3)]) for row in rows]
    place = {value: k for k, value in enumerate(sorted(set(golds)))}
    due = spearmanr([row["score"] for row in rows], [place[value] for value in golds]).statistic
    rest = []  # each rater against the mean of the others
    for i in range(3):
        means = [exact_mean([row[f"h{j}"] for j in range(3) if j != i]) for row in rows]
        rest.append(spearmanr([row[f"h{i}"] for row in rows], [sorted(set(means)).index(m) for m in means]).statistic)
    file, told = write(tmp_path / "x.jsonl", rows), []
    for names in itertools.permutations(["h0", "h1", "h2"]):
        golds_named = itertools.chain.from_iterable(("--gold", name) for name in names)
        found = run_audit(file, "--score", "score", *golds_named, "--draws", "50")
        assert math.isclose(values(found)["spearman"]["value"], due, rel_tol=1e-12)
        ceiling = rows_of(found, "beside", "who")["one rater against the mean of the others"]["spearman"]
        assert math.isclose(ceiling["value"], np.mean(rest), rel_tol=1e-12)
        told.append(json.dumps(found["tables"]))
    assert len(set(told)) == 1


def test_a_distance_of_one_is_within_one(tmp_path: Path, run_audit: Run) -> None:
    assert 2.2 - 1.2 > 1
    rows = [
        {"score": s, "gold": g} for s, g in ((2.2, 1.2), (1.2, 2.2), (1.2, 1.2), (2.2, 2.2), (1.1, 2.3), (2.3, 1.1))
    ]
    file = write(tmp_path / "x.jsonl", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "0-4/0.1", "--draws", "50")
    assert values(found)["within_1"]["value"] == 4 / 6
    assert rows_of(found, "beside", "who")["a judge that draws its labels at random"]["within_1"][
        "value"
    ] == pytest.approx(26 / 36)


def test_equal_distances_of_the_alt_test_are_equal() -> None:
    # judge .1 and annotator .5 both lie .2 from the others' .3, though .3 - .1 and .5 - .3 differ as floats
    assert 0.3 - 0.1 != 0.5 - 0.3
    found = alt_test([0.1] * 40, [[0.5] * 40, [0.3] * 40, [0.3] * 40]).annotators[0]
    assert found is not None
    assert (found.judge.value, found.annotator.value) == (1, 1)


def test_equal_goodness_on_different_scales_is_equal() -> None:
    one, two = Scale.parse("1-4"), Scale(("1", "2", "3", "4"), (1, 2, 3, 4), lower_is_better=True)
    assert one.goodness(3) == two.goodness(2) == 2 / 3
    tenths = Scale.parse("0-1/0.1")
    assert Scale(tenths.labels, tenths.values, lower_is_better=True).goodness(0.7) == tenths.goodness(0.3) == 0.3


def test_the_mean_of_a_panel_is_exact() -> None:
    def panel(*scores: float) -> PanelVerdict:
        return PanelVerdict(Question("i", "c", (0,), 0), scores, tuple(map(str, scores)))

    assert panel(0.1, 0.2, 0.3).mean == panel(0.2, 0.2, 0.2).mean == 0.2
    assert panel(0.1, 0.2).median == 0.15


def shuffled(rows: list[dict[str, Any]], rng: np.random.Generator) -> list[dict[str, Any]]:
    return [rows[i] for i in rng.permutation(len(rows))]


def assert_order_is_nothing(
    run: Run, file: Path, rows: list[dict[str, Any]], seed: int, arguments: tuple[str, ...], golds: tuple[str, ...] = ()
) -> None:
    rng = np.random.default_rng(seed)
    told = []
    for again in range(2):
        write(file, shuffled(rows, rng) if again else rows)
        names = [golds[i] for i in rng.permutation(len(golds))]
        found = run(file, *arguments, *itertools.chain.from_iterable(("--gold", name) for name in names))
        told.append({**found, "plan": None})
    assert told[0] == told[1]


def tabled(rng: np.random.Generator, n: int) -> list[dict[str, Any]]:
    """Scores with everything beside them that an audit reads; many ties, some missing."""
    gold = rng.integers(0, 11, (3, n)) / 10
    score = np.round(np.clip(gold.mean(0) + rng.normal(0, 0.2, n), 0, 1), 1)
    rows = []
    for k in range(n):
        row: dict[str, Any] = {"id": f"i{k}", "score": float(score[k]), "scene": f"s{k % 11}", "part": f"p{k % 3}"}
        row |= {f"h{i}": float(gold[i, k]) if rng.random() < 0.9 else None for i in range(3)}
        row |= {"other": float(rng.integers(0, 11) / 10), "was": float(rng.integers(0, 11) / 10)}
        row |= {"words": int(rng.integers(1, 9)), "system": f"m{k % 4}"}
        row |= {"said": [{"text": f"c{j}", "verdict": "ny"[rng.integers(2)]} for j in range(rng.integers(3))]}
        row |= {"due": [{"text": f"c{j}", "verdict": "ny"[rng.integers(2)]} for j in range(3)]}
        if rng.random() < 0.05:
            row["score"] = None
        rows.append(row)
    return rows


SCORES = (
    "--score", "score", "--rival", "other", "--earlier", "was", "--retest", "other", "--length", "words", "--by",
    "part", "--system", "system", "--claims", "said", "--gold-claims", "due", "--draws", "40",
)  # fmt: skip


@SLOW
@given(seed=st.integers(0, 10**6), n=st.integers(3, 90), more=st.sampled_from([(), ("--cluster", "scene")]))
def test_scores_in_any_order(seed: int, n: int, more: tuple[str, ...], run_audit: Run, tmp_path: Path) -> None:
    rows = tabled(np.random.default_rng(seed), n)
    golds = ("h0", "h1", "h2")
    for scale in ((), ("--scale", "0-1/0.1")):
        assert_order_is_nothing(run_audit, tmp_path / "x.jsonl", rows, seed, (*SCORES, *scale, *more), golds)


@SLOW
@given(seed=st.integers(0, 10**6), rule=st.sampled_from(["median", "majority"]))
def test_rules_and_few_labels_in_any_order(seed: int, rule: str, run_audit: Run, tmp_path: Path) -> None:
    rows = tabled(np.random.default_rng(seed), 90)
    for row in rows[50:]:
        row |= {"h0": None, "h1": None, "h2": None}
    arguments = ("--score", "score", "--system", "system", "--scale", "0-1/0.1", "--gold-rule", rule, "--draws", "40")
    assert_order_is_nothing(run_audit, tmp_path / "x.jsonl", rows, seed, arguments, ("h0", "h1", "h2"))
    again = ("--score", "tens", "--equate", "1-11", "--scale", "0-1/0.1", "--draws", "40")
    tens = [{**row, "tens": None if row["score"] is None else round(row["score"] * 10) + 1} for row in rows]
    assert_order_is_nothing(run_audit, tmp_path / "y.jsonl", tens, seed, again, ("h0", "h1", "h2"))


@SLOW
@given(seed=st.integers(0, 10**6), cluster=st.booleans())
def test_probabilities_in_any_order(seed: int, cluster: bool, run_audit: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 6, (120, 3)).astype(float)  # many distributions are equal, or permutations of each other
    logs = np.log(p / p.sum(1, keepdims=True))
    gold = [int(rng.choice(3, p=each / each.sum())) + 1 for each in p]
    rows = [
        {
            "id": k,
            "gold": gold[k],
            "scene": k // 4,
            "part": "ab"[k % 2],
            **{f"l{i}": float(logs[k, i]) for i in range(3)},
        }
        for k in range(120)
    ]
    columns = ("--logprobs", "l0,l1,l2")
    more = ("--cluster", "scene") if cluster else ()
    arguments = (*columns, "--scale", "1-3", "--by", "part", "--draws", "40", *more)
    assert_order_is_nothing(run_audit, tmp_path / "x.jsonl", rows, seed, arguments, ("gold",))


@SLOW
@given(seed=st.integers(0, 10**6), cluster=st.booleans())
def test_pairs_in_any_order(seed: int, cluster: bool, run_audit: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    names = ["m1", "m2", "m10", "base"]
    rows: list[dict[str, Any]] = []
    for k in range(100):
        a, b = rng.choice(4, 2, replace=False)
        one, two, *golds = rng.choice(["a", "b", "tie", ""], 5, p=[0.4, 0.3, 0.2, 0.1])
        row = {"id": f"i{k}", "first": names[a], "second": names[b], "one": str(one), "two": str(two)}
        row |= {f"h{i}": str(each) for i, each in enumerate(golds)}
        rows.append({**row, "other": str(rng.choice(["a", "b"])), "scene": k // 3, "words": int(rng.integers(-3, 4))})
    more = ("--cluster", "scene") if cluster else ()
    arguments = (
        "--pairwise", "--score", "one", "--swapped", "two", "--first", "first", "--second", "second", "--rival",
        "other", "--length", "words", "--anchor", "base", "--draws", "40", *more,
    )  # fmt: skip
    assert_order_is_nothing(run_audit, tmp_path / "x.jsonl", rows, seed, arguments, ("h0", "h1", "h2"))
    by = ("--pairwise", "--score", "one", "--swapped", "two", "--by", "first", "--draws", "40", *more)
    assert_order_is_nothing(run_audit, tmp_path / "y.jsonl", rows, seed, by)


@SLOW
@given(seed=st.integers(0, 10**6))
def test_rankings_in_any_order(seed: int, run_audit: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        {"id": k, "said": rng.permutation(list("abcd")).tolist(), "gold": rng.permutation(list("abcd")).tolist()}
        for k in range(40)
    ]
    assert_order_is_nothing(
        run_audit, tmp_path / "x.jsonl", rows, seed, ("--ranked", "--score", "said", "--draws", "40"), ("gold",)
    )


def run_of(folder: Path, verdicts: list[dict[str, Any]], gold: Mapping[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in verdicts))
    (folder / "gold.jsonl").write_text("".join(json.dumps({"item": k, "gold": v}) + "\n" for k, v in gold.items()))
    return folder


def test_a_run_in_any_order(run_audit: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    verdicts = []
    for k in range(60):
        for sample, criterion in itertools.product(range(2), "cd"):
            p = rng.integers(1, 6, 3) / 10
            p = p / p.sum()
            label = int(p.argmax()) + 1
            question = {"item": f"i{k}", "criterion": criterion, "responses": [0], "sample": sample}
            key = f"{k}{criterion}{sample}".rjust(32, "0")
            verdicts.append({
                "key": key, "question": question, "status": "ok", "label": str(label),
                "score": float(label), "distribution": {str(i + 1): float(each) for i, each in enumerate(p)},
                "expected": float(sum((i + 1) * each for i, each in enumerate(p))), "mass": 1.0, "marker": "own",
            })  # fmt: skip
    gold = {f"i{k}": int(rng.integers(1, 4)) for k in range(60)}
    told = []
    for again in range(3):
        run = run_of(tmp_path / "run", shuffled(verdicts, rng) if again else verdicts, gold)
        told.append(
            [run_audit(run, "--scale", "1-3", "--draws", "40", *more) for more in ((), ("--score", "expected"))]
        )
    assert told[0] == told[1] == told[2]
    assert "rows of 60 items" in " ".join(told[0][0]["notes"])


def test_equal_players_share_a_rank(tmp_path: Path, run_audit: Run) -> None:
    outcomes = [("x", "z", "a"), ("y", "z", "a"), ("x", "z", "b"), ("y", "z", "b"), ("x", "z", "a"), ("y", "z", "a")]
    rows = [{"first": a, "second": b, "won": won} for a, b, won in outcomes * 3 + [("x", "y", "tie")]]
    file = write(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "won", "--pairwise", "--first", "first", "--second", "second", "--draws", "20")
    ranks = {name: row["rank"]["value"] for name, row in rows_of(found, "ranking", "player").items()}
    assert ranks == {"x": 1, "y": 1, "z": 3}


def test_names_are_in_their_own_order(tmp_path: Path, run_audit: Run) -> None:
    rows = [{"score": k % 5, "part": f"m{k % 12}"} for k in range(60)]
    found = run_audit(write(tmp_path / "x.jsonl", rows[::-1]), "--score", "score", "--by", "part", "--draws", "20")
    assert [row["part"] for row in found["tables"]["by part"]["rows"]] == [f"m{k}" for k in range(12)]
