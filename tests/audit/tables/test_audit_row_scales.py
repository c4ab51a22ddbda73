"""Scales meet or are refused: gold off the scale, several scales in one run, raters and judges on different ones."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dikast.audit.statistics.against_gold.bounds import bounds
from dikast.audit.statistics.against_gold.chance import chance_within
from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.audit.statistics.intervals import Resampling
from dikast.audit.tables.row_scales import RowScales, check_alike
from dikast.core.errors import UserError
from dikast.core.scale import Scale
from runs import dikast_here as dikast
from runs import write_jsonl

Run = Callable[..., dict[str, Any]]
HOW = Resampling(200, seed=3)
FIVE, PASS = Scale.parse("1-5"), Scale.parse("pass/fail")
TEN = Scale(Scale.parse("0-10").labels, Scale.parse("0-10").values, lower_is_better=True)
RUBRICS = [
    {"name": "kind", "criterion": "Is it kind?", "scale": "1-5"},
    {"name": "right", "criterion": "Is it right?", "scale": "pass/fail"},
    {"name": "harm", "criterion": "Does it harm?", "scale": "0-10", "lower_is_better": True},
]
SCALES = [FIVE, PASS, TEN]


@pytest.fixture(scope="session")
def run_audit(run_audit: Run) -> Run:
    """As everywhere, with few draws: nothing here is about the width of an interval."""
    return lambda *arguments: run_audit(*arguments, "--draws", "100")


def refused(run: Run, *arguments: Any) -> str:
    with pytest.raises(UserError) as caught:
        run(*arguments)
    return str(caught.value)


def values(found: dict[str, Any], table: str, key: str = "statistic") -> dict[str, Any]:
    return {row[key]: row for row in found["tables"][table]["rows"]}


def csv(path: Path, columns: dict[str, Any]) -> Path:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 240 items under three rubrics, each on a scale of its own, one of them reversed; gold on each scale."""
    folder, rng = tmp_path_factory.mktemp("mixed"), np.random.default_rng(5)
    items = []
    for k in range(240):
        which = k % 3
        labels = SCALES[which].values
        items.append(
            {"id": f"i{k}", "instruction": "?", "response": f"{k}.", "rubric": RUBRICS[which],
             "gold": float(rng.choice(labels[: len(labels) - (which == 0)]))}
        )  # fmt: skip
    done = dikast("grade", write_jsonl(folder / "items.jsonl", items), "--judge", "mock:oracle,r=.7,seed=1", "--out",
                  folder / "run")  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def read(run: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Scores, gold, both as goodness by hand, and which scale."""
    gold = {row["item"]: row["gold"] for row in map(json.loads, (run / "gold.jsonl").read_text().splitlines())}
    rows = []
    for line in (run / "verdicts.jsonl").read_text().splitlines():
        verdict = json.loads(line)
        item = verdict["question"]["item"]
        rows.append((int(item[1:]) % 3, verdict["score"], gold[item]))
    which = np.array([row[0] for row in rows])
    score, due = (np.array([row[i] for row in rows], float) for i in (1, 2))

    def good(x: np.ndarray) -> np.ndarray:  # 1-5: (x - 1) / 4; pass/fail: x; 0-10 of harm: 1 - x / 10
        return np.round(np.select([which == 0, which == 1], [(x - 1) / 4, x], 1 - x / 10), 12)

    return good(score), good(due), which, score


# gold that does not lie on the scale


def old_run(folder: Path) -> Path:
    """A run made before gold was checked: gold 1-5, scores pass or fail."""
    items = [{"id": f"i{k}", "instruction": "?", "response": f"{k}."} for k in range(100)]
    write_jsonl(folder / "items.jsonl", items)
    judge = ("--judge", "mock:random,seed=4", "--rubric", "correctness")
    assert dikast("grade", folder / "items.jsonl", *judge, "--out", folder / "run").returncode == 0
    gold = [{"item": f"i{k}", "gold": k % 5 + 1} for k in range(100)]
    write_jsonl(folder / "run" / "gold.jsonl", gold)
    sums = folder / "run" / "checksums.json"
    sums.unlink(missing_ok=True)
    return folder / "run"


def test_an_old_run_whose_gold_is_off_the_scale_is_refused_not_partly_used(tmp_path: Path, run_audit: Run) -> None:
    run = old_run(tmp_path)
    told = refused(run_audit, run)
    assert "gold 'gold' does not lie on the scale pass/fail (0 to 1): 80 of 100 values are off it" in told
    assert "from 1 to 5" in told
    assert "--equate 1-5 says that gold has a scale of its own" in told
    equated = run_audit(run, "--equate", "1-5")
    assert (equated["plan"]["scale"], equated["plan"]["equate"]) == ("1-5", "pass/fail")
    assert values(equated, "agreement")["exact"]["value"]["n"] == 100
    alone = run_audit(run, "--scale", "none")
    assert set(values(alone, "agreement")) >= {"pearson", "spearman", "kendall_tau_b"}
    assert "exact" not in values(alone, "agreement")


def test_a_table_whose_gold_is_off_the_scale_is_refused(tmp_path: Path, run_audit: Run) -> None:
    file = csv(tmp_path / "x.csv", {"score": [k % 5 + 1 for k in range(40)], "gold": [k % 10 + 1 for k in range(40)]})
    columns = (file, "--score", "score", "--gold", "gold")
    told = refused(run_audit, *columns, "--scale", "1-5")
    assert (
        "x.csv:7: gold 'gold' does not lie on the scale 1-5: 20 of 40 values are off it (the first is 6), and it "
        in told
    )
    assert "goes from 1 to 10. " in told
    assert "--scale 1-10 --equate 1-5" in told
    assert values(run_audit(*columns, "--scale", "1-10", "--equate", "1-5"), "agreement")["exact"]["value"]["n"] == 40
    assert "1-5: 20 of 40" in refused(run_audit, file, "--gold", "gold", "--scale", "1-5")  # raters alone, too
    kept = run_audit(*columns, "--scale", "1-5", "--failed", "6", "--failed", "7", "--failed", "8", "--failed", "9",
                     "--failed", "10")  # fmt: skip
    assert values(kept, "agreement")["exact"]["value"]["n"] == 20


def test_a_run_that_was_made_with_equate_tells_goodness_and_can_be_equated(tmp_path: Path, run_audit: Run) -> None:
    items = [{"id": f"i{k}", "instruction": "?", "response": f"{k}.", "gold": k % 5 + 1} for k in range(100)]
    path, run = write_jsonl(tmp_path / "items.jsonl", items), tmp_path / "run"
    judge = ("--judge", "mock:oracle,r=.6", "--rubric", "correctness", "--equate", "1-5", "--out", run)
    assert dikast("grade", path, *judge).returncode == 0
    found = run_audit(run)
    assert any("gold on 1-5: all figures are of goodness" in note for note in found["notes"])
    agreement = values(found, "agreement")
    assert not {"exact", "within_1", "cohen_kappa", "quadratic_kappa"} & set(agreement)  # no label is one of gold's
    assert agreement["pearson"]["value"]["value"] > 0.3
    told = [json.loads(line)["score"] for line in (run / "verdicts.jsonl").read_text().splitlines()]
    gold = [((k % 5) / 4) for k in range(100)]
    assert agreement["bias"]["value"]["value"] == pytest.approx(np.mean(told) - np.mean(gold))
    assert agreement["mae"]["value"]["n"] == 100
    spread = found["tables"]["beside"]["rows"][0]["discrimination"]
    assert spread["value"] is not None  # scores lie on one scale, whatever gold lies on
    assert "exact" in values(run_audit(run, "--equate", "1-5"), "agreement")


def test_gold_as_labels_is_read_on_each_rows_own_scale(tmp_path: Path, run_audit: Run) -> None:
    items = [
        {"id": f"i{k}", "instruction": "?", "response": f"{k}.", "rubric": RUBRICS[k % 2],
         "gold": str(k % 5 + 1) if k % 2 == 0 else ("fail", "pass")[k % 4 == 1]} for k in range(40)
    ]  # fmt: skip
    run = tmp_path / "run"
    path = write_jsonl(tmp_path / "items.jsonl", items)
    assert dikast("grade", path, "--judge", "mock:oracle,r=1", "--out", run).returncode == 0
    assert values(run_audit(run), "agreement")["exact"]["value"]["value"] == 1


# several scales in one run


def test_pooled_figures_are_of_goodness(mixed: Path, run_audit: Run) -> None:
    good, gold, _, raw = read(mixed)
    found = run_audit(mixed)
    assert any("all pooled figures are of goodness" in note for note in found["notes"])
    assert "as goodness" in found["tables"]["agreement"]["title"]
    agreement = values(found, "agreement")
    told = agreement["pearson"]["value"]["value"]
    assert math.isclose(told, np.corrcoef(good, gold)[0, 1], abs_tol=1e-12)
    assert not math.isclose(told, np.corrcoef(raw, gold)[0, 1], abs_tol=0.02)
    assert math.isclose(agreement["mae"]["value"]["value"], np.abs(good - gold).mean(), abs_tol=1e-12)
    assert math.isclose(agreement["exact"]["value"]["value"], (good == gold).mean(), abs_tol=1e-12)
    assert "within_1" not in agreement  # a step of 1-5, and all of pass/fail


def test_raw_scores_stand_by_scale(mixed: Path, run_audit: Run) -> None:
    good, gold, which, _ = read(mixed)
    by = values(run_audit(mixed), "by scale", "scale")
    assert set(by) == {"1-5", "pass/fail", "0-10, lower is better"}
    mine = which == 0
    raw = np.abs(good[mine] - gold[mine]).mean() * 4  # of 1-5, in its own units
    assert math.isclose(by["1-5"]["mae"]["value"], raw, abs_tol=1e-9)
    assert by["1-5"]["within_1"]["value"] is not None
    assert by["pass/fail"]["within_1"]["value"] is None  # all of it: 1.0000 would be printed of any judge
    assert by["0-10, lower is better"]["n"] == 80


def test_probabilities_that_cannot_be_pooled_are_told_not_denied(mixed: Path, run_audit: Run) -> None:
    found = run_audit(mixed)["tables"]["calibration"]
    assert found["rows"] == []
    told = (
        "label probabilities were read, and are not used: the rows are on several scales: pick those of one with"
        " --where"
    )
    assert found["notes"] == [told]
    page = mixed.parent / "page.html"
    assert dikast("report", mixed, "--out", page).returncode == 0
    assert told in page.read_text("utf-8")


def test_floors_know_the_scale_of_an_item_and_nothing_else(mixed: Path, run_audit: Run) -> None:
    good, gold, which, _ = read(mixed)
    beside = values(run_audit(mixed), "beside", "who")
    random = beside["a judge that draws its labels at random"]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(400):
        mixed_up = good.copy()
        for code in range(3):
            mixed_up[which == code] = rng.permutation(good[which == code])
        drawn.append((np.corrcoef(mixed_up, gold)[0, 1], (mixed_up == gold).mean(), np.abs(mixed_up - gold).mean()))
    for name, value in zip(("pearson", "exact", "mae"), np.mean(drawn, 0), strict=True):
        assert math.isclose(random[name]["value"], value, abs_tol=0.01), name
        assert random[name]["low"] <= random[name]["value"] <= random[name]["high"]
    constant = beside["a judge that always says the same on each scale"]
    best = np.empty(len(gold))
    for code, scale in enumerate(SCALES):
        labels = np.array([scale.goodness(each) for each in scale.values])
        mine = which == code
        best[mine] = labels[np.argmin([np.abs(gold[mine] - label).sum() for label in labels])]
    assert math.isclose(constant["mae"]["value"], np.abs(best - gold).mean(), abs_tol=1e-12)


def test_one_scale_left_of_several_is_told_raw(mixed: Path, run_audit: Run) -> None:
    found = run_audit(mixed, "--where", "criterion=kind")
    assert found["plan"]["scale"] == "1-5"
    assert "within_1" in values(found, "agreement")
    told = refused(run_audit, mixed, "--scale", "1-5")
    assert "the rows lie on pass/fail (80), 1-5 (80), 0-10, lower is better (80)" in told


def test_a_reversed_scale_beside_the_same_one_is_turned(tmp_path: Path, run_audit: Run) -> None:
    # both criteria on 1-5, for one of them 1 is best: the judge is right on goodness, whatever raw numbers do
    sheet = [
        {"name": "kind", "criterion": "Is it kind?", "scale": "1-5"},
        {"name": "harm", "criterion": "Does it harm?", "scale": "1-5", "lower_is_better": True},
    ]
    items = [
        {"id": f"i{k}", "instruction": "?", "response": f"{k}.", "rubric": sheet[k % 2],
         "gold": 1 + k // 2 % 2 if k % 2 else 5 - k // 2 % 2} for k in range(60)
    ]  # fmt: skip
    path, run = write_jsonl(tmp_path / "items.jsonl", items), tmp_path / "run"
    assert dikast("grade", path, "--judge", "mock:random,seed=2", "--out", run).returncode == 0
    found = run_audit(run)
    assert "as goodness" in found["tables"]["agreement"]["title"]
    random = values(found, "beside", "who")["a judge that draws its labels at random"]["pearson"]
    assert abs(random["value"]) < 0.1  # of raw numbers it would be far from 0: gold is 4 or 5 here, 1 or 2 there
    assert any("most of the interval lies above the value" in note for note in found["tables"]["beside"]["notes"])
    alone = run_audit(run, "--where", "criterion=harm")
    assert any("lower is better on the scale 1-5" in note for note in alone["notes"])


def test_at_random_within_scales_of_equal_means_chance_only_adds() -> None:
    # score and gold are equal and both scales have the mean 1/2: 0; a draw has the square of the difference of its
    # means over the variance, never below 0
    values = np.tile([0.0, 0.25, 0.5, 0.75, 1.0], 16)
    codes = np.repeat([0, 1], 40)
    found = chance_within(["pearson"], values, values, codes, Resampling(500, 0.95, 0))["pearson"]
    assert found.value == 0
    assert 0 <= found.low < 0.001 < 0.02 < found.high


def test_scores_without_gold_are_of_goodness_too(mixed: Path, tmp_path: Path, run_audit: Run) -> None:
    good, *_ = read(mixed)
    run = tmp_path / "run"
    run.mkdir()
    for file in mixed.iterdir():
        if file.name not in ("gold.jsonl", "checksums.json"):
            (run / file.name).write_bytes(file.read_bytes())
    found = run_audit(run)
    mean = values(found, "scores", "rows")["all"]["mean score"]
    assert math.isclose(mean["value"], good.mean(), abs_tol=1e-12)
    assert "as goodness" in found["tables"]["scores"]["title"]
    assert set(values(found, "by scale", "scale")) == {"1-5", "pass/fail", "0-10, lower is better"}


def test_chance_within_by_hand() -> None:
    # two scales of two items: scores 0 0 | 1 1, gold 0 .5 | .5 1. Within each, any pairing gives the same table:
    # exact 1/4 + 1/4 of a half each: rows (0: 0, .5) and (1: .5, 1): exact = (1/2 + 1/2) / 2 = .5;
    # mae = (0 + .5 + .5 + 0) / 4 = .25; covariance between the scales: r = .25 / (.5 * sqrt(.125)) = 1 / sqrt(2)
    score, gold, codes = np.array([0.0, 0, 1, 1]), np.array([0.0, 0.5, 0.5, 1]), np.array([0, 0, 1, 1])
    found = chance_within(("exact", "mae", "pearson"), score, gold, codes, HOW)
    assert math.isclose(found["exact"].value, 0.5)
    assert math.isclose(found["mae"].value, 0.25)
    assert math.isclose(found["pearson"].value, 1 / math.sqrt(2))
    together = chance_within(("exact", "pearson"), score, gold, codes * 0, HOW)
    # of one scale: scores half 0, half 1; gold 1/4 0, 1/4 1: exact 1/8 + 1/8, r 0
    assert math.isclose(together["exact"].value, 0.25)
    assert math.isclose(together["pearson"].value, 0, abs_tol=1e-12)
    alone = chance_within(("pearson",), score[:1], gold[:1], codes[:1], HOW)["pearson"]
    assert math.isnan(alone.value)
    assert alone.n == 1
    assert math.isnan(chance_within(("pearson",), score * 0, gold, codes, HOW)["pearson"].value)


def test_chance_within_covers_what_it_estimates() -> None:
    rng, inside, n = np.random.default_rng(1), 0, 60
    for _ in range(200):
        codes = rng.integers(0, 2, n)
        score, gold = (rng.integers(0, 3, n) / 2 * 0.5 + 0.5 * codes for _ in range(2))
        found = chance_within(("mae",), score, gold, codes, HOW)["mae"]
        # within a scale both are 0, .25 or .5 (+ .5), independent: mean distance (6 pairs of 9: 4 by .25, 2 by .5) / 9
        inside += found.low <= (4 * 0.25 + 2 * 0.5) / 9 <= found.high
    assert inside >= 180


def test_bounds_give_each_row_only_what_its_own_scale_has() -> None:
    exact, mae = MEASURES["exact"].table, MEASURES["mae"].table
    # one scored row, right; one unscored with gold 0 on {0, 1}: exact between 1/2 and 1, mae 0 to 1/2.
    # Were .25 allowed too, exact would be the same, but a third label .25 is not on its scale: mae best stays 0
    score, gold, lost = np.array([0.25]), np.array([0.25]), np.array([0.5])
    labels = np.array([0, 0.25, 0.5, 0.75, 1])
    two = np.array([[True, False, False, False, True]])
    assert bounds(score, gold, lost, labels, exact, "high", two) == (0.5, 0.5)  # .5 cannot be given
    assert bounds(score, gold, lost, labels, mae, "low", two) == (
        0.25,
        0.25,
    )  # 0 and 1 are .5 away, half of rows
    assert bounds(score, gold, lost, labels, exact, "high") == (0.5, 1)
    both = np.array([0.5, 0.5])
    apart = np.array([two[0], ~two[0]])
    assert bounds(score, gold, both, labels, exact, "high", apart) == (1 / 3, 2 / 3)


def test_goodness_ties_where_it_should() -> None:
    tenths = Scale.parse("0-1/0.1")
    back = Scale(tenths.labels, tenths.values, lower_is_better=True)
    scales = RowScales((tenths, back), np.array([0, 1]))
    for k in range(11):
        one, other = scales.goodness(np.array([tenths.values[k], tenths.values[10 - k]]))
        assert one == other


# raters and judges on different scales


def test_a_second_run_on_another_scale_is_refused(tmp_path: Path, run_audit: Run) -> None:
    items = [{"id": f"i{k}", "instruction": "?", "response": f"{k}.", "gold": k % 5 + 1} for k in range(20)]
    path = write_jsonl(tmp_path / "items.jsonl", items)
    judge = ("grade", path, "--judge", "mock:random", "--rubric", "helpfulness")
    assert dikast(*judge, "--out", tmp_path / "five").returncode == 0
    assert dikast(*judge, "--out", tmp_path / "ten", "--scale", "1-10").returncode == 0
    told = refused(run_audit, tmp_path / "five", "--rival", f"score@{tmp_path / 'ten'}")
    assert "ten: its scores lie on 1-10, those of" in told
    assert "five on 1-5: judge both with one --scale" in told


def test_what_a_rival_says_off_the_scale_is_counted(tmp_path: Path, run_audit: Run) -> None:
    k = range(20)
    rows = {"score": [i % 5 + 1 for i in k], "gold": [i % 5 + 1 for i in k], "other": [i % 7 + 1 for i in k]}
    file = csv(tmp_path / "x.csv", rows)
    found = run_audit(file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--rival", "other")
    assert "5 values of other that are not on the scale, left out" in found["tables"]["rival"]["notes"]


def people(path: Path, judge: Callable[[np.ndarray], np.ndarray]) -> Path:
    rng = np.random.default_rng(7)
    truth = rng.integers(1, 6, 200)
    raters = {f"h{i}": np.clip(truth + rng.integers(-1, 2, 200), 1, 5) for i in range(3)}
    return csv(path, {"score": judge(truth), **raters})


GOLD = ("--gold", "h0", "--gold", "h1", "--gold", "h2")


def test_the_alt_test_equates_or_refuses(tmp_path: Path, run_audit: Run) -> None:
    small = people(tmp_path / "small.csv", lambda truth: (truth - 1) / 4)
    found = run_audit(small, "--score", "score", *GOLD)
    assert "alt-test" not in found["tables"]
    assert any("no alt-test: it measures the distance between judge and raters" in note for note in found["notes"])
    same = people(tmp_path / "same.csv", lambda truth: truth)
    due = run_audit(same, "--score", "score", *GOLD, "--scale", "1-5")["tables"]["alt-test"]["title"]
    put = run_audit(small, "--score", "score", *GOLD, "--scale", "1-5", "--equate", "0-1/0.25")
    assert put["tables"]["alt-test"]["title"] == due == "May the judge replace an annotator? yes (winning rate 1.00)"


def test_decimals_are_equated_between_the_labels_of_their_scale(tmp_path: Path, run_audit: Run) -> None:
    # judge: truth / 7 + 1/10, never on a label of 0-1, and in the order of gold; 5 rows hold -1, off any reading
    rows = {"score": [round(k % 5 / 7 + 0.1, 4) for k in range(60)] + [-1] * 5, "h0": [k % 5 + 1 for k in range(65)]}
    file = csv(tmp_path / "x.csv", rows)
    columns = (file, "--score", "score", "--gold", "h0", "--scale", "1-5", "--equate", "0-1")
    found = run_audit(*columns, "--between")
    told = values(found, "agreement")
    assert (told["exact"]["value"]["value"], told["exact"]["value"]["n"]) == (1, 60)
    assert values(found, "failures", "status")["off_scale"]["count"] == 5
    assert any("5 of 65 values off the scale 0-1 (from -1 to 0.6714), such as -1" in note for note in found["notes"])
    refusal = refused(run_audit, *columns)
    assert "column 'score': 65 of 65 values off the scale 0-1" in refusal
    assert "--between allows values between the labels" in refusal
    ten = csv(tmp_path / "ten.csv", rows | {"score": [k % 9 + 2 for k in range(65)]})
    assert "Name their scale with --equate" in refused(run_audit, ten, *columns[1:], "--between")


def test_gold_columns_on_different_scales_are_refused(tmp_path: Path, run_audit: Run) -> None:
    rows = {"score": [k % 5 + 1 for k in range(40)], "five": [k % 5 + 1 for k in range(40)],
            "ten": [k % 10 + 1 for k in range(40)]}  # fmt: skip
    file = csv(tmp_path / "x.csv", rows)
    told = refused(run_audit, file, "--score", "score", "--gold", "five", "--gold", "ten")
    assert "gold on different scales: 'five' goes from 1 to 5, 'ten' goes from 1 to 10 (perhaps 1-5 and 1-10)" in told
    assert "'ten' does not lie on the scale 1-5" in refused(
        run_audit, file, "--score", "score", "--gold", "five", "--gold", "ten", "--scale", "1-5"
    )
    run_audit(file, "--score", "score", "--gold", "five", "--gold", "ten", "--scale", "1-10")  # said to be shared


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (range(1, 6), range(1, 11), False), (range(1, 6), range(11), False), ((0, 1), range(1, 6), False),
        ((0, 0.5, 1), range(0, 101, 10), False), ((20, 50, 90), range(1, 6), False), ((-1, 0, 1), range(1, 6), False),
        ((4, 5), range(1, 6), True), ((1, 2, 3), range(1, 11), True), (range(3, 6), range(1, 6), True),
        ((2, 3, 4, 5), (1, 2, 3, 4), True), ((3,), range(1, 11), True), ((0, 1), (0, 1, 2, 3), True),
    ],
)  # fmt: skip
def test_which_ranges_plainly_differ(one: Any, other: Any, same: bool) -> None:
    columns = [np.resize(np.array(list(each), float), 30) for each in (one, other)]
    if same:
        check_alike(("a", "b"), columns)
    else:
        with pytest.raises(UserError, match="gold on different scales"):
            check_alike(("a", "b"), columns)
    check_alike(("a", "b"), [each[:9] for each in columns])  # too few to say


def test_raters_who_rated_nothing_are_told_and_left_out(tmp_path: Path, run_audit: Run) -> None:
    k = range(60)
    rows = {"score": [i % 5 + 1 for i in k], "h0": [i % 5 + 1 for i in k], "h1": ["" for _ in k],
            "h2": [max(1, i % 5) for i in k], "h3": [min(5, i % 5 + 2) for i in k]}  # fmt: skip
    file = csv(tmp_path / "x.csv", rows)
    gold = [word for i in range(4) for word in ("--gold", f"h{i}")]
    found = run_audit(file, "--score", "score", *gold, "--scale", "1-5")
    assert "'h1' rated nothing: left out" in found["notes"]
    assert [row["raters"] for row in found["tables"]["rater pairs"]["rows"]] == ["h0 - h2", "h0 - h3", "h2 - h3"]
    without = [word for i in (0, 2, 3) for word in ("--gold", f"h{i}")]
    assert run_audit(file, "--score", "score", *without, "--scale", "1-5")["tables"] == found["tables"]
    told = refused(run_audit, file, "--score", "score", "--gold", "h1", "--scale", "1-5")
    assert "no row has gold in 'h1'" in told
    pairs = csv(tmp_path / "p.csv", {"won": ["a", "b"] * 10, "g0": ["a", "b"] * 10, "g1": [""] * 20})
    found = run_audit(pairs, "--score", "won", "--gold", "g0", "--gold", "g1", "--pairwise")
    assert "'g1' rated nothing: left out" in found["notes"]


def test_a_scale_and_its_reverse_are_calibrated_as_goodness(tmp_path: Path, run_audit: Run) -> None:
    """1-5 and 1-5 turned round: a label of one has the goodness of a label of the other, so rows share one scale."""
    rng, items, golds = np.random.default_rng(2), [], dict[str, int]()
    for k in range(160):
        rubric = {"name": "harm" if k % 2 else "kind", "criterion": "?", "scale": "1-5", "lower_is_better": bool(k % 2)}
        gold = int(rng.integers(1, 6))
        golds[f"i{k}"] = gold
        items.append({"id": f"i{k}", "instruction": "?", "response": f"{k}.", "rubric": rubric, "gold": gold})
    run = tmp_path / "run"
    done = dikast("grade", write_jsonl(tmp_path / "items.jsonl", items), "--judge", "mock:oracle,r=.8,seed=2", "--out",
                  run)  # fmt: skip
    assert done.returncode == 0, done.stderr
    p, true, said = [], [], []
    for verdict in map(json.loads, (run / "verdicts.jsonl").read_text().splitlines()):
        turned = verdict["question"]["criterion"] == "harm"
        given = [verdict["distribution"][label] for label in "12345"]
        p.append(given[::-1] if turned else given)
        gold = golds[verdict["question"]["item"]]
        true.append(5 - gold if turned else gold - 1)
        said.append(5 - int(verdict["label"]) if turned else int(verdict["label"]) - 1)
    shares, places = np.array(p), np.arange(160)
    onehot = np.eye(5)[true]
    found = run_audit(run)["tables"]
    assert found["calibration"]["title"].endswith("as goodness (0 worst, 1 best)")
    row = next(each for each in found["calibration"]["rows"] if each["probabilities"] == "as read")
    expected = {
        "accuracy": np.mean(np.array(said) == true), "confidence": shares.max(1).mean(),
        "Brier": ((shares - onehot) ** 2).sum(1).mean(), "log loss": -np.log(shares[places, true]).mean(),
        "MAE of expected": np.abs(shares @ np.arange(5) / 4 - np.array(true) / 4).mean(),
    }  # fmt: skip
    for name, value in expected.items():
        assert row[name]["value"] == pytest.approx(value, abs=1e-9), name
        assert row[name]["n"] == 160
    assert {"readout", "reliability", "abstaining", "conformal"} <= set(found)
    assert found["conformal"]["rows"][0]["width"]["value"] <= 1  # of goodness, not of 1-5


def test_scales_share_goodness_only_where_all_of_their_labels_do() -> None:
    harm = Scale(FIVE.labels, FIVE.values, lower_is_better=True)
    codes = np.zeros(3, np.int64)
    shared = RowScales((FIVE, harm, Scale.parse("A-E")), codes).shared
    assert shared is not None
    assert shared.values == (0, 0.25, 0.5, 0.75, 1)
    thirds = Scale(Scale.parse("1-4").labels, Scale.parse("1-4").values, lower_is_better=True)
    assert RowScales((thirds, Scale.parse("1-4")), codes).shared is not None
    assert RowScales((FIVE, PASS), codes).shared is None
    uneven = Scale(("no", "partly", "yes"), (0.0, 1.0, 3.0))
    turned = Scale(uneven.labels, uneven.values, lower_is_better=True)
    assert RowScales((uneven, turned), codes).shared is None  # "partly" has 1/3 one way and 2/3 the other
