"""Published figures from recorded judgments, and scorecards of runs, through one and the same code."""

import csv
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benches.published import lay_out
from dikast.audit.plan import AuditPlan
from dikast.audit.results import Players, RaterPairs
from dikast.benches.definition import Bench, bench_from, load_bench
from dikast.benches.scorecard import Scorecard, measured
from dikast.core.errors import UserError
from dikast.core.text import Located
from dikast.surface.benching.bench_report import plan_from
from dikast.surface.cli import app


def card(file: Path, bench: str | Bench, tmp_path: Path, **columns: Any) -> Scorecard:
    """The scorecard of recorded verdicts, by the columns that `bench report --columns` reads."""
    path = tmp_path / "columns.yaml"
    path.write_text(json.dumps({"draws": 50, **columns}))
    return measured(load_bench(bench) if isinstance(bench, str) else bench, plan_from(file, path), "recorded")


def official(found: Scorecard) -> Mapping[str, float]:
    return {each.name: each.value.value for each in found.official}


def test_llmbar_gives_every_published_cell(recorded: Path, tmp_path: Path) -> None:
    found = card(
        recorded / "llmbar/verdicts.tsv.gz", "llmbar", tmp_path, score="winner_orig", swapped="winner_swap",
        gold="label", by=["dataset", "evaluator"], **{"pair-labels": "1,2"},
    )  # fmt: skip
    published = json.loads((recorded / "llmbar/statistics.json").read_text())
    names = {
        "accuracy as shown": "correct_False", "accuracy swapped": "correct_True",
        "right in both orders": "correct_both", "same in both orders": "equal",
    }  # fmt: skip
    figures = {each.name: each.groups for each in found.official}
    assert len(figures["accuracy as shown"]) == len(published) == 349
    for cell, row in published.items():
        for ours, theirs in names.items():
            hits, n = map(int, re.findall(r"\d+", row[theirs])[:2])
            mine = figures[ours][cell.replace("|", " x ")].value
            assert math.isclose(mine, hits / n, abs_tol=1e-12), (cell, ours)


def test_auto_j(recorded: Path, tmp_path: Path) -> None:
    folder = recorded / "prometheus"
    found = card(
        folder / "autoj_outputs.jsonl.gz", "auto-j", tmp_path, id="line", score="output",
        swapped="output@autoj_outputs_swapped.jsonl.gz", gold="label@autoj_pairwise.jsonl.gz",
        **{"pair-labels": "0,1,2", "swapped-as": "slots"},
    )  # fmt: skip
    assert {name: round(value, 4) for name, value in official(found).items()} == {
        "accuracy as shown": 0.5999, "accuracy swapped": 0.6063, "right in both orders": 0.5496,
        "same in both orders": 0.8341, "accuracy as shown without gold ties": 0.7890,
    }  # fmt: skip
    assert [each.value.n for each in found.official] == [1392, 1392, 1392, 1392, 1019]


@pytest.mark.parametrize(
    ("score", "figures"),
    [
        ("gpt_result@gpt-3.5-turbo-testset-v1.json", (0.7107, 0.5879, 0.5736, 0.5755)),
        ("pandalm_result@pandalm-7b-testset-v1.json", (0.6677, 0.5738, 0.5750, 0.5743)),
    ],
)
def test_pandalm_with_its_rule_that_failures_are_ties_beside_the_honest_figure(
    score: str, figures: tuple[float, ...], recorded: Path, tmp_path: Path
) -> None:
    found = card(
        recorded / "pandalm/testset-v1.json", "pandalm", tmp_path, id="idx", score=score,
        gold=["annotator1", "annotator2", "annotator3"], **{"pair-labels": "1,2,0"},
    )  # fmt: skip
    assert tuple(round(value, 4) for value in official(found).values()) == figures
    pairs = found.audit.result(RaterPairs)
    assert pairs is not None
    assert [round(each.statistics["cohen_kappa"].value, 4) for each in pairs.pairs] == [0.8520, 0.8789, 0.8617]
    assert round(found.audit["raters"].estimate("fleiss_kappa").value, 4) == 0.8642
    ours = found.to_dict()["ours"]
    dropped = ours["ours: accuracy"]
    if "gpt" in score:
        assert dropped["n"] == 974
        assert dropped["value"] != figures[0]
        assert ours["failed"]["value"] == pytest.approx(25 / 999)


@pytest.mark.parametrize(
    ("file", "bench", "runs", "equal"),
    [
        ("vicuna_eval", "vicuna", [0.799, 0.804, 0.822], 0.622),
        ("mt_bench_eval", "mt-bench", [0.836, 0.876, 0.841], 0.441),
    ],
)
def test_the_ceilings_of_gpt_4_against_itself(
    file: str, bench: str, runs: list[float], equal: float, recorded: Path, tmp_path: Path
) -> None:
    path = recorded / f"prometheus/{file}.json.gz"
    for one, two, value in zip((0, 0, 1), (1, 2, 2), runs, strict=True):
        found = card(path, bench, tmp_path, score=f"gpt4_score.{one}", gold=f"gpt4_score.{two}", scale="1-5")
        assert round(official(found)["pearson"], 3) == value
    raters = card(path, bench, tmp_path, gold=[f"gpt4_score.{i}" for i in range(3)], scale="1-5")
    assert round(raters.audit["raters"].estimate("all raters equal").value, 3) == equal


TIFA = {  # tau-b and Pearson, which the authors' notebook calls Spearman
    "meteor": (0.2741, 0.3397), "bleu": (0.1879, 0.1833), "rouge": (0.2449, 0.3289), "spice": (0.2318, 0.3281),
    "clipscore_vitb32": (0.2314, 0.3318), "tifa_vilt": (0.3824, 0.4932), "tifa_git-large": (0.4255, 0.5445),
    "tifa_ofa-large": (0.3725, 0.4961), "tifa_blip2-flant5xl": (0.4360, 0.5590), "tifa_mplug-large": (0.4717, 0.5967),
}  # fmt: skip


@pytest.mark.parametrize("metric", TIFA)
def test_tifa(metric: str, recorded: Path, tmp_path: Path) -> None:
    path = recorded / "tifa/human_annotations_with_scores.json"
    found = card(path, "tifa", tmp_path, score=metric, gold=["human_scores.0", "human_scores.1"])
    assert tuple(round(value, 4) for value in official(found).values()) == TIFA[metric]
    ranks = {"tifa_mplug-large": 0.5922, "clipscore_vitb32": 0.3198}  # Spearman's, which the notebook does not print
    if metric in ranks:
        assert round(found.to_dict()["ours"]["ours: spearman"]["value"], 4) == ranks[metric]
    assert round(found.audit["raters"].estimate("alpha (interval)").value, 4) == 0.6795


def test_wildvision_gives_the_published_board(recorded: Path, tmp_path: Path) -> None:
    baseline = "claude-3-sonnet-20240229"
    found = card(
        recorded / "wildvision/judgements.tsv", "wildvision", tmp_path, score="score", by="model", first=f"={baseline}",
        second="model", strong=3, draws=200, **{"strong-as": "copies"},
    )  # fmt: skip
    lines = (recorded / "wildvision/elo_leaderboard.md").read_text().splitlines()[2:]
    board = {row[0]: row for row in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}
    scores, groups, rewards = (each.groups for each in found.official)
    records = found.audit.result(Players)
    assert records is not None
    assert len(groups) == len(rewards) == len(board) == 22
    assert list(scores) == [name for name in board if name != baseline]  # the same order of all
    for model, row in board.items():
        assert groups[model].n == 500  # 26 missing verdicts are among them: ties, as the board has it
        assert round(100 * groups[model].value, 1) == float(row[3].rstrip("%")), model
        assert round(100 * rewards[model].value, 1) == float(row[4]), model
        assert groups[model].low < groups[model].value < groups[model].high
        if model == baseline:
            continue  # the baseline against itself: no player meets itself
        assert abs(100 * scores[model].value - float(row[1])) < 0.005, model
        below, above = map(float, row[2].strip("()").split(","))  # a published interval of another bootstrap
        ours = 100 * (scores[model].low - scores[model].value), 100 * (scores[model].high - scores[model].value)
        assert ours == pytest.approx((below, above), abs=1.5), model
        record = records.players[model]
        lost = 500 - record.games  # missing verdicts, which the board counts as ties
        answered = found.official[1].ours["rows with a verdict"][model]
        assert (answered.n, answered.dropped) == (500 - lost, lost)
        told = [record.outcomes[each] for each in ("strong wins", "wins", "ties", "losses", "strong losses")]
        assert told == [float(each) - lost * (place == 2) for place, each in enumerate(row[5:10])], model
    assert found.to_dict()["ours"]["failed"]["value"] == pytest.approx(26 / 11_000)
    table = next(each for each in found.tables if each.name == "official by group")
    assert [name for name in table.columns if "ours" in name] == [
        f"ours: {name}, rows with a verdict" for name in ("win rate", "reward")
    ]


OF_IMAGES = {  # n, then what `published_*_point.csv` prints
    ("llava_critic7b_mllmjudge", "mllm-as-a-judge"): (
        5716, {"pearson": 0.4020, "spearman": 0.3558, "kendall_tau_b": 0.3003, "exact": 0.3216, "mae": 1.031,
               "within_1": 0.7505, "bias": 0.3798},
    ),
    ("gemini25flash_mllmjudge", "mllm-as-a-judge"): (
        5409, {"pearson": 0.4586, "spearman": 0.4458, "kendall_tau_b": 0.3766, "exact": 0.3213, "mae": 1.1224,
               "within_1": 0.7025, "bias": -0.0453},
    ),
    ("phi4_mllmjudge", "mllm-as-a-judge"): (
        5653, {"pearson": 0.3030, "spearman": 0.2929, "kendall_tau_b": 0.2506, "exact": 0.3419, "mae": 1.005,
               "within_1": 0.7610, "bias": 0.0840},
    ),
    ("llava_critic7b_polaris", "polaris"): (
        8724, {"pearson": 0.9057, "spearman": 0.9247, "kendall_tau_b": 0.8643, "exact": 0.8085, "mae": 0.2425,
               "within_1": 0.9543, "bias": -0.0621},
    ),
    ("phi4_polaris", "polaris"): (
        None, {"pearson": 0.0362, "exact": 0.2001, "mae": 2.0705, "within_1": 0.3746, "bias": 1.9016},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("file", "bench"), OF_IMAGES)
def test_judges_of_images(file: str, bench: str, recorded: Path, tmp_path: Path) -> None:
    n, figures = OF_IMAGES[file, bench]
    path = recorded / f"vlm_judge_uncertainty/{file}.csv"
    found = card(path, bench, tmp_path, score="parsed_score", gold="gt_score", scale="1-5")
    theirs = official(found)
    ours = {name: found.audit["agreement"].estimate(name) for name in ("within_1", "bias")}
    for name, value in figures.items():
        mine = theirs[name] if name in theirs else ours[name].value
        assert mine == pytest.approx(value, abs=5.1e-5 if value < 1 else 5.1e-4), name
    assert n in (None, found.official[0].value.n)


def test_each_data_set_of_mllm_as_a_judge(recorded: Path, tmp_path: Path) -> None:
    folder = recorded / "vlm_judge_uncertainty"
    found = card(
        folder / "llava_critic7b_mllmjudge.csv", "mllm-as-a-judge", tmp_path, score="parsed_score", gold="gt_score",
        scale="1-5", id="sample_id", by="orig_dataset@llava_critic7b_mllmjudge_error.csv",
    )  # fmt: skip
    with (folder / "published_per_dataset.csv").open() as file:
        published = {row["dataset"]: row for row in csv.DictReader(file) if row["dataset"] != "OVERALL"}
    table = next(each for each in found.tables if each.name == "by orig_dataset")
    mine: dict[str, dict[str, Any]] = {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert len(published) == len(mine) == 14
    names = {"exact_accuracy": "exact", "within_1_accuracy": "within_1", "mae": "mae", "judge_bias": "bias"}
    for name, row in published.items():
        for theirs, ours in names.items():
            assert round(mine[name][ours].value, 4) == float(row[theirs]), (name, ours)


# upstream's rules, worked by hand

ROWS = [  # shown, swapped (as responses), gold, group
    ("a", "a", "a", "x"),  # right twice
    ("a", "b", "a", "x"),  # right once
    ("tie", "a", "a", "x"),  # a tie and a win
    ("", "a", "a", "y"),  # a failure and a win
    ("b", "b", "a", "y"),  # wrong twice
]


def pairs_bench(rule: dict[str, Any], groups: dict[str, str]) -> Bench:
    value = {
        "name": "t", "title": "T", "about": "t", "state": "schema only", "kind": "pairs", "licence": "-",
        "source": {"hub": "a/b", "files": {"x": ""}}, "fields": {"instruction": "q"}, "citation": "-",
        "groups": groups, "official": rule,
    }  # fmt: skip
    return bench_from(Located(value, "t.yaml"))


def judged(tmp_path: Path, **rule: Any) -> Scorecard:
    path = tmp_path / "verdicts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "shown", "swapped", "gold", "part"])
        writer.writerows([i, *row] for i, row in enumerate(ROWS))
    return card(
        path, pairs_bench(rule, groups={"part": "part"}), tmp_path, score="shown", swapped="swapped", gold="gold",
        by="part", **{"pair-labels": "a,b,tie", "allow-unread": True},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "value", "n"),
    [
        ({"metric": "accuracy", "failures": "wrong"}, (1 + 0.5 + 0.5 + 0.5 + 0) / 5, 5),
        ({"metric": "accuracy", "failures": "half"}, (1 + 0.5 + 0.5 + 0.75 + 0) / 5, 5),
        ({"metric": "accuracy", "failures": "quarter", "ties": "half"}, (1 + 0.5 + 0.75 + 0.625 + 0) / 5, 5),
        ({"metric": "accuracy", "failures": "skipped"}, (1 + 0.5 + 0.5 + 1 + 0) / 5, 5),
        ({"metric": "right in both orders"}, 1 / 5, 5),
        ({"metric": "net of two games"}, 3 / 5, 5),  # a win and a tie, and a win and a failure, are wins
        ({"metric": "accuracy as shown", "failures": "skipped"}, 2 / 4, 4),
        ({"metric": "accuracy as shown"}, 2 / 5, 5),
        ({"metric": "same in both orders"}, 2 / 5, 5),
        ({"metric": "accuracy", "over": "groups", "group": "part"}, (2 / 3 + 0.5 / 2) / 2, 5),
        ({"metric": "accuracy", "over": "sections", "group": "part", "sections": {"s": ["x", "y"]},
          "weights": {"y": 3}}, (3 * 2 / 3 + 3 * 2 * 0.25) / 9, 5),  # each of the two rows of y counts three times
        ({"metric": "all of a group", "group": "part"}, 0.0, 2),
        ({"metric": "win rate"}, (0 + 0.5 + 0 + 0 + 1) / 5, 5),
    ],
)  # fmt: skip
def test_official_rules_by_hand(rule: dict[str, Any], value: float, n: int, tmp_path: Path) -> None:
    found = judged(tmp_path, **rule).official[0].value
    assert found.value == pytest.approx(value)
    assert found.n == n
    assert found.low < found.value or found.value == 0
    assert 0 <= found.low <= found.high <= 1


def test_figures_of_classes_count_each_order_by_itself(tmp_path: Path) -> None:
    """As PandaLM's authors, who ask in one order: two orders that disagree are no class of their own."""
    path = tmp_path / "v.csv"
    rows = [("a", "a", "a"), ("a", "b", "b"), ("b", "b", "b"), ("a", "tie", "tie"), ("", "tie", "tie")]
    path.write_text("id,shown,swapped,gold\n" + "".join(f"{i},{','.join(row)}\n" for i, row in enumerate(rows)))
    rule = {"metric": ["macro precision", "macro recall", "macro f1"], "failures": "tie"}
    mine = pairs_bench(rule, groups={})
    found = card(path, mine, tmp_path, score="shown", swapped="swapped", gold="gold", **{"pair-labels": "a,b,tie"})
    # of 10 verdicts: a said 4 times (2 right), b 3 times (3 right), tie 3 times with the missing one (3 right)
    # gold a 2 verdicts (2 right), b 4 (3 right), tie 4 (3 right)
    precision, recall = (2 / 4 + 1 + 1) / 3, (1 + 3 / 4 + 3 / 4) / 3
    f1 = (2 * 2 / (4 + 2) + 2 * 3 / (3 + 4) + 2 * 3 / (3 + 4)) / 3
    assert list(official(found).values()) == pytest.approx([precision, recall, f1])
    assert found.official[0].value.n == 10
    assert found.official[0].rule.startswith("a missing verdict is a tie; the verdicts of both orders together")
    lost = card(path, pairs_bench({**rule, "failures": "wrong"}, groups={}), tmp_path, score="shown", swapped="swapped",
                gold="gold", **{"pair-labels": "a,b,tie"})  # fmt: skip
    assert official(lost)["macro recall"] == pytest.approx((1 + 3 / 4 + 2 / 4) / 3)


def test_figures_of_groups_are_undefined_where_no_column_tells_the_groups(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("id,choice,gold,subset\n" + "".join(f"{i},{'ab'[i % 2]},a,math-prm\n" for i in range(6)))
    columns = {"score": "choice", "gold": "gold", "pair-labels": "a,b,tie"}
    for name in ("rewardbench", "llmbar", "judgebench", "vl-rewardbench", "mt-bench-human"):
        found = card(path, name, tmp_path, **columns)
        group = load_bench(name).official.group
        apart = [each for each in found.official if not each.name.endswith("over all rows")]
        assert all(math.isnan(each.value.value) for each in apart), name
        assert all(f"(by: {group})" in each.value.note for each in apart), name
        assert not found.floors
        assert found.to_dict()["ours"]["ours: accuracy"]["value"] == 0.5
    assert official(card(path, "vl-rewardbench", tmp_path, **columns))["accuracy over all rows"] == 0.5


def test_verdicts_of_another_kind_are_refused(tmp_path: Path) -> None:
    choices, scores = tmp_path / "choices.csv", tmp_path / "scores.csv"
    choices.write_text("id,choice,gold\n1,a,a\n2,b,a\n")
    scores.write_text("id,score,gold\n1,3,4\n2,2,5\n")
    for file, bench, columns in (
        (choices, "vicuna", {"score": "choice", "gold": "gold", "pair-labels": "a,b,tie"}),
        (choices, "mt-bench-turn-1", {"score": "choice", "pair-labels": "a,b,tie"}),
        (scores, "rewardbench", {"score": "score", "gold": "gold", "scale": "1-5"}),
        (scores, "pandalm", {"score": "score", "gold": "gold", "scale": "1-5"}),
    ):
        with pytest.raises(UserError, match=rf"{file.name}: holds .*, and in bench '{bench}' .*--columns"):
            card(file, bench, tmp_path, **columns)


def test_a_section_says_which_of_its_groups_have_no_row(tmp_path: Path) -> None:
    sections = {"s": ["x", "absent"], "t": ["y"]}
    found = judged(tmp_path, metric="accuracy", over="sections", group="part", sections=sections).official[0]
    assert found.value.value == pytest.approx((2 / 3 + 0.25) / 2)
    assert found.rule.endswith("; groups without a row: absent")


def test_a_mean_of_sections_may_have_the_figure_over_all_rows_beside_it(tmp_path: Path) -> None:
    sections = {"s": ["x"], "t": ["y"]}
    rule = {"metric": "accuracy", "over": "sections", "group": "part", "sections": sections}
    macro, overall = judged(tmp_path, **rule, overall=True).official
    assert macro.value.value == pytest.approx((2 / 3 + 0.5 / 2) / 2)  # x: 1, .5, .5; y: .5, 0
    assert overall.name == "accuracy over all rows"
    assert overall.value.value == pytest.approx((1 + 0.5 + 0.5 + 0.5 + 0) / 5)
    assert overall.rule.endswith("all rows alike")
    assert [each.name for each in judged(tmp_path, **rule).official] == ["accuracy"]
    assert load_bench("vl-rewardbench").official.overall  # as its table has both
    assert "8f684707f2ca2e1a22707aeba686e23d" in load_bench("vl-rewardbench").hashes  # earlier runs are read on


def test_the_honest_figure_stands_beside_and_knows_its_failures(tmp_path: Path) -> None:
    told = judged(tmp_path, metric="accuracy", failures="half", trap="credits failures").to_dict()
    assert told["official"][0]["value"]["value"] == pytest.approx(0.55)
    # of the 4 pairs with a verdict in both orders only the first is right
    assert told["ours"]["ours: accuracy"]["value"] == pytest.approx(1 / 4)
    assert told["ours"]["failed"]["value"] == pytest.approx(1 / 5)


# live judges on rows from disk


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["bench", *map(str, words)])


def test_a_run_is_an_ordinary_run_with_a_scorecard_in_every_form(recorded: Path, tmp_path: Path) -> None:
    lay_out(recorded, tmp_path / "rows")
    out = tmp_path / "runs"
    words = (
        "run",
        "llmbar",
        "vicuna",
        "--judge",
        "mock:constant",
        "--out",
        out,
        "--data",
        tmp_path / "rows",
        "--limit",
        30,
    )
    refused = run(*words)
    assert isinstance(refused.exception, UserError)
    assert "SHA-256" in str(refused.exception)
    done = run(*words, "--unverified-rows", "-q")
    assert done.exit_code == 0, done.output
    assert (out / "llmbar" / "verdicts.jsonl").exists()
    assert (out / "vicuna" / "bench.json").exists()
    again = run(*words, "--unverified-rows", "-q", "--json")
    assert json.loads(again.stdout)["llmbar"]["asked"] == 0  # resumed: nothing is asked twice
    files = [tmp_path / f"cards{end}" for end in (".html", ".md", ".json", ".csv")]
    told = run("report", out, *(word for file in files for word in ("-o", file)))
    assert told.exit_code == 0, told.output
    assert "a sample of 30 of 419 rows, stratified by group, seed 0" in told.stdout
    assert "the rows differ from the published ones" in told.stdout
    cards = {each["bench"]: each for each in json.loads(files[2].read_text())}
    figures = {each["metric"]: each["value"]["value"] for each in cards["llmbar"]["official"]}
    assert figures["same in both orders"] == 1
    assert figures["right in both orders"] == 0
    pearson = cards["vicuna"]["official"][0]["value"]
    assert pearson["value"] is None
    assert pearson["note"]
    for file in files:
        assert "LLMBar" in file.read_text() or "llmbar" in file.read_text()
    page = files[0].read_text()
    assert page.count("<table") == page.count('class="wide" tabindex="0"') > 2  # a wide table moves by itself
    with files[3].open() as written:
        rows = list(csv.DictReader(written))
    assert {row["bench"] for row in rows} == {"llmbar", "vicuna"}
    assert all(row["told"] for row in rows)
    other = run(*words[:-1], 20, "--unverified-rows", "-q")
    assert isinstance(other.exception, UserError)
    assert "limit was 30, is 20" in str(other.exception)


def test_prompts_as_the_rows_have_them_and_formats_learnt_from_them(recorded: Path, tmp_path: Path) -> None:
    lay_out(recorded, tmp_path / "rows")
    common = ("--data", tmp_path / "rows", "--unverified-rows", "-q", "--limit", 4, "--judge", "mock:oracle")
    for prompt in ("native", "learnt"):
        done = run("run", "vicuna", "--prompt", prompt, "--out", tmp_path / prompt, *common)
        assert done.exit_code == 0, (done.output, done.exception)
    none = run("run", "llmbar", "--prompt", "native", "--out", tmp_path / "n", *common)
    assert isinstance(none.exception, UserError)
    assert "hold no rendered prompt" in str(none.exception)
    told = run("report", tmp_path / "native").stdout
    assert "prompt: native" in told


def test_responses_are_brought_or_sampled_and_other_ids_are_told(recorded: Path, tmp_path: Path) -> None:
    lay_out(recorded, tmp_path / "rows")
    common = ("--data", tmp_path / "rows", "--unverified-rows", "-q", "--judge", "mock:constant")
    lacking = run("run", "mt-bench-turn-1", "--out", tmp_path / "a", *common)
    assert isinstance(lacking.exception, UserError)
    assert "give --responses FILE" in str(lacking.exception)
    brought = tmp_path / "answers.jsonl"
    brought.write_text("".join(json.dumps({"id": i, "response": f"answer {i}"}) + "\n" for i in (81, 82, 999)))
    done = run("run", "mt-bench-turn-1", "--out", tmp_path / "b", "--responses", brought, *common)
    assert done.exit_code == 0, (done.output, done.exception)
    told = run("report", tmp_path / "b").stdout
    assert "1 response for other ids left out: 999" in told
    assert "78 prompts without a response left out" in told
    assert "official: mean score" in told
    idle = run("run", "llmbar", "--out", tmp_path / "c", "--responses", brought, *common)
    assert isinstance(idle.exception, UserError)
    assert "its rows hold the responses" in str(idle.exception)


def test_a_bench_without_gold_says_so_and_a_judge_whose_labels_are_gold_is_told(recorded: Path, tmp_path: Path) -> None:
    path = recorded / "prometheus/vicuna_eval.json.gz"
    columns = tmp_path / "columns.yaml"
    columns.write_text(json.dumps({"score": "gpt4_score.0", "gold": "gpt4_score.1", "scale": "1-5", "draws": 20}))
    plan = plan_from(path, columns)
    assert "agrees with itself" in measured(load_bench("vicuna"), plan, "openai:gpt-4-0613").warnings[0]
    for other in ("hf:other/judge", "openai:gpt-4o", "openai:gpt-4.1-mini"):  # names that only begin alike
        assert not measured(load_bench("vicuna"), plan, other).warnings
    bare = measured(load_bench("flask"), AuditPlan(path, score="gpt4_score.0", draws=20), "recorded")
    assert any("has no gold" in told for told in bare.told)
    assert "name the column that holds them (by: criterion)" in bare.official[0].value.note
    whole = measured(load_bench("mt-bench-turn-1"), AuditPlan(path, score="gpt4_score.0", draws=20), "recorded")
    assert not math.isnan(whole.official[0].value.value)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("id,choice,gold\n1,a,a\n2,b,a\n3,a,b\n")
    graded = card(pairs, "hhh", tmp_path, score="choice", gold="gold", **{"pair-labels": "a,b,tie"})
    assert graded.to_dict()["ours"]["ours: accuracy"]["rule"].startswith("each graded alone")  # and not "one order"
