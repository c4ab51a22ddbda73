"""Published numbers through what the command line can say besides columns: derived columns, long form, replies, slices.

Skipped without the recordings; docs/reproductions.md names the public source of each and the command.
"""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audit_tables import Run, rows_of, values
from dikast.core.records import read_records

FEW = ("--draws", "20")


def settings(tmp_path: Path, text: str) -> Path:
    (tmp_path / "audit.yaml").write_text(text)
    return tmp_path / "audit.yaml"


def test_means_of_raters_are_the_published_ones(tmp_path: Path, recorded: Path, run_audit: Run) -> None:
    file = recorded / "tifa" / "human_annotations_with_scores.json"
    config = settings(tmp_path, "columns: {people: {mean: human_scores}, both: {total: human_scores}}")
    found = run_audit(file, "--config", config, "--score", "people", "--gold", "human_avg", "--scale", "1-5", *FEW)
    assert (values(found)["exact"]["value"], values(found)["mae"]["value"]) == (1, 0)
    metric = run_audit(file, "--config", config, "--score", "tifa_mplug-large", "--gold", "people", *FEW)
    assert round(values(metric)["kendall_tau_b"]["value"], 4) == 0.4717
    means = rows_of(run_audit(file, "--config", config, "--mean", "both", "--mean", "human_avg"), "means", "column")
    assert means["both"]["mean"]["value"] == pytest.approx(2 * means["human_avg"]["mean"]["value"], abs=1e-12)


def test_metrics_combined(tmp_path: Path, recorded: Path, run_audit: Run) -> None:
    file = recorded / "tifa" / "human_annotations_with_scores.json"
    text = """
columns:
  geometric: {geometric: [tifa_mplug-large, tifa_vilt]}
  least: {least: [tifa_mplug-large, tifa_vilt]}
  ratio: {ratio: [tifa_mplug-large, tifa_vilt]}
"""
    names = ("geometric", "least", "ratio")
    found = run_audit(
        file, "--config", settings(tmp_path, text), *(word for name in names for word in ("--mean", name))
    )
    rows = list(json.loads(file.read_text()).values())
    one, two = (np.array([row[name] for row in rows]) for name in ("tifa_mplug-large", "tifa_vilt"))
    means = rows_of(found, "means", "column")
    assert means["geometric"]["mean"]["value"] == pytest.approx(np.sqrt(one * two).mean(), abs=1e-10)
    assert means["least"]["mean"]["value"] == pytest.approx(np.minimum(one, two).mean(), abs=1e-12)
    zeros = int((two == 0).sum())
    assert zeros > 0
    assert f"column 'ratio': {zeros} rows of 800 undefined ({zeros} divided by zero)" in found["notes"]


def test_a_garbage_reply_as_a_spelling_of_a_tie(recorded: Path, run_audit: Run) -> None:
    labels = {row["gpt_result"] for row in json.loads((recorded / "pandalm/gpt-3.5-turbo-testset-v1.json").read_text())}
    garbage = "|".join(sorted(labels - {"1", "2", "Tie"}))
    golds = [word for k in (1, 2, 3) for word in ("--gold", f"annotator{k}")]
    found = run_audit(
        recorded / "pandalm" / "testset-v1.json", "--id", "idx", *golds, "--pair-labels", f"1,2,0|{garbage}",
        "--score", "gpt_result@gpt-3.5-turbo-testset-v1.json", *FEW,
    )  # fmt: skip
    row = rows_of(found, "classes", "verdict")["as shown"]
    published = (0.7107, 0.5879, 0.5736, 0.5755)
    assert row["n"] == 999
    assert tuple(round(row[name]["value"], 4) for name in ("accuracy", "macro P", "macro R", "macro F1")) == published


def test_recorded_replies_say_the_recorded_verdicts(recorded: Path, run_audit: Run) -> None:
    file = recorded / "wildvision" / "raw_judgements_4models.jsonl.gz"
    found = run_audit(file, "--score", "judgement", "--parse", "arena", "--gold", "score", "--pairwise", *FEW)
    assert rows_of(found, "failures", "status")["ok"]["count"] == 1959
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]["as shown"]
    assert (accuracy["value"], accuracy["n"]) == (1, 1959)


def test_the_winner_of_two_scores_is_the_recorded_one(tmp_path: Path, recorded: Path, run_audit: Run) -> None:
    config = settings(tmp_path, "columns: {rated: {winner: [score_1_raw, score_2_raw]}}")
    found = run_audit(
        recorded / "llmbar" / "verdicts.tsv.gz", "--config", config, "--score", "rated", "--gold", "winner_orig",
        "--pair-labels", "1,2", "--by", "evaluator", *FEW,
    )  # fmt: skip
    decided = {
        name: row["as shown (decided)"]
        for name, row in rows_of(found, "by evaluator", "evaluator").items()
        if row["as shown (decided)"]["n"]
    }
    assert len(decided) == 7  # the judges that rate; the recorded winner of equal scores is another matter
    assert {cell["value"] for cell in decided.values()} == {1.0}
    assert decided["GPT-4/Rating"]["n"] == 350


def test_one_row_a_judge(recorded: Path, run_audit: Run) -> None:
    found = run_audit(
        recorded / "llmbar" / "verdicts.tsv.gz", "--long", "evaluator", "--id", "dataset,i", "--pair-labels", "1,2",
        "--score", "winner_orig.GPT-4/Vanilla", "--rival", "winner_orig.ChatGPT/Vanilla", "--gold", "label",
        "--by", "dataset", *FEW,
    )  # fmt: skip
    published = json.loads((recorded / "llmbar" / "statistics.json").read_text())

    def share(judge: str, name: str) -> tuple[int, int]:
        hits, n = map(int, re.findall(r"\d+", published[f"{name}|{judge}"]["correct_False"])[:2])
        return hits, n

    by = rows_of(found, "by dataset", "dataset")
    sets = [name for name in by if name.startswith("LLMBar/")]
    shares = {name: share("GPT-4/Vanilla", name) for name in sets}
    for name, (hits, n) in shares.items():
        assert by[name]["as shown"]["value"] == pytest.approx(hits / n, abs=1e-12)
    over = rows_of(found, "over dataset", "statistic")["as shown"]
    assert over["slices"] == 5
    assert over["mean"]["value"] == pytest.approx(np.mean([hits / n for hits, n in shares.values()]), abs=1e-12)
    rival = rows_of(found, "rival", "statistic")["accuracy (all)"]
    theirs = [share("ChatGPT/Vanilla", name) for name in sets]
    assert rival["winner_orig.ChatGPT/Vanilla"]["value"] == pytest.approx(
        sum(hits for hits, _ in theirs) / sum(n for _, n in theirs), abs=1e-12
    )


def test_means_over_data_sets(recorded: Path, run_audit: Run) -> None:
    found = run_audit(
        recorded / "vlm_judge_uncertainty" / "llava_critic7b_mllmjudge.csv", "--score", "parsed_score",
        "--gold", "gt_score", "--scale", "1-5", "--id", "sample_id",
        "--by", "orig_dataset@llava_critic7b_mllmjudge_error.csv", *FEW,
    )  # fmt: skip
    with (recorded / "vlm_judge_uncertainty" / "published_per_dataset.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["dataset"] != "OVERALL"]
    over = rows_of(found, "over orig_dataset", "statistic")
    names = {"exact_accuracy": "exact", "within_1_accuracy": "within_1", "mae": "mae", "judge_bias": "bias"}
    for published, ours in names.items():
        mean = np.mean([float(row[published]) for row in rows])
        assert over[ours]["mean"]["value"] == pytest.approx(mean, abs=5e-5)  # theirs are rounded to four digits
    assert round(over["pearson"]["mean"]["value"], 4) == 0.3174
    assert round(over["pearson"]["mean (Fisher's z)"]["value"], 4) == 0.3212


@pytest.mark.parametrize(
    ("rule", "ties", "disagree"), [("both", 0.0216, 0.1659), ("net", 0.0216, 0.1264), ("tie", 0.1875, 0.0)]
)
def test_two_games(rule: str, ties: float, disagree: float, recorded: Path, run_audit: Run) -> None:
    found = run_audit(
        recorded / "prometheus" / "autoj_outputs.jsonl.gz", "--id", "line", "--score", "output", "--swapped",
        "output@autoj_outputs_swapped.jsonl.gz", "--swapped-as", "slots", "--gold", "label@autoj_pairwise.jsonl.gz",
        "--pair-labels", "0,1,2", "--two-games", rule, *FEW,
    )  # fmt: skip
    sides = rows_of(found, "preferences", "side")
    assert round(sides["tie"]["share"]["value"], 4) == ties
    assert round(sides["disagree"]["share"]["value"], 4) == disagree
    files = [recorded / "prometheus" / f"autoj_outputs{each}.jsonl.gz" for each in ("", "_swapped")]
    one, two = ([record.value["output"] for record in read_records(str(each))] for each in files)
    net = [{0: 1, 1: -1, 2: 0}[a] + {0: -1, 1: 1, 2: 0}[b] for a, b in zip(one, two, strict=True)]
    won = {"both": 2, "net": 1, "tie": 2}[rule]
    expected = sum(each >= won for each in net) / len(net)
    assert sides["first wins"]["share"]["value"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("task", ["t2i", "edit", "interleaved"])
def test_the_side_that_people_chose(task: str, tmp_path: Path, recorded: Path, run_audit: Run) -> None:
    # three people said from 1 (B) to 6 (A) which they prefer; the published choice is the side of their mean
    file = recorded / "benches" / "mmrb2" / f"{task}.jsonl.gz"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    config = settings(tmp_path, "columns: {people: {mean: human_annotations}}")
    found = run_audit(
        file, "--config", config, "--score", "people", "--soft", "--pair-labels", "6|A,1|B", "--gold", "chosen",
        "--first", "response_a.model_name", "--second", "response_b.model_name", *FEW,
    )  # fmt: skip
    accuracy = rows_of(found, "accuracy", "statistic")["accuracy (all)"]["as shown"]
    assert (accuracy["value"], accuracy["n"]) == (1, 100)
    rows = [record.value for record in read_records(str(file))]
    worth = {id(row): (np.mean(row["human_annotations"]) - 1) / 5 for row in rows}
    players: dict[str, list[Any]] = {}
    for row in rows:
        first, second = (row[f"response_{side}"]["model_name"] for side in "ab")
        if first != second:
            players.setdefault(first, []).append(worth[id(row)])
            players.setdefault(second, []).append(1 - worth[id(row)])
    told = rows_of(found, "players", "player")
    for name, earned in players.items():
        assert told[name]["win rate (soft)"]["value"] == pytest.approx(np.mean(earned), abs=1e-9), name
        if len(earned) > 2:
            error = np.std(earned, ddof=1) / len(earned) ** 0.5
            assert told[name]["s.e. (soft)"] == pytest.approx(error, abs=1e-9), name
