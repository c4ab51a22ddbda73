"""Recorded verdicts as the replies of a live judge: `bench run` on the published rows gives the published figures."""

import csv
import gzip
import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from benches.own_bench import cards, figure, judge_own, own, run
from benches.published import lay_out
from dikast.benches.bench_rows import read_rows
from dikast.benches.definition import load_bench

PARTS = ("Natural", "Neighbor", "GPTInst", "GPTOut", "Manual")  # of LLMBar
OF_CHOICES = ("--format", "choice-only", "--read", "never")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        yield from map(json.loads, file)


def auto_j(recorded: Path) -> Iterator[tuple[str, str, str]]:
    """The item, and the slot that was chosen in both orders."""
    files = [recorded / f"prometheus/autoj_outputs{end}.jsonl.gz" for end in ("", "_swapped")]
    slots = {0: "A", 1: "B", 2: "tie"}
    for number, (one, two) in enumerate(zip(*map(_lines, files), strict=True), 1):
        yield str(number), slots[one["output"]], slots[two["output"]]


def pandalm(recorded: Path) -> Iterator[tuple[str, str, str]]:
    """What gpt-3.5-turbo said in the one order in which it was asked, in both."""
    slots = {"1": ("A", "B"), "2": ("B", "A"), "Tie": ("tie", "tie")}
    for row in json.loads((recorded / "pandalm/gpt-3.5-turbo-testset-v1.json").read_text()):
        yield str(row["idx"]), *slots.get(str(row["gpt_result"]), ("none", "none"))


def llmbar(recorded: Path, rows: Path) -> Iterator[tuple[str, str, str]]:
    """What GPT-4 said of LLMBar's five parts, whose rows have no id: they are told by their place."""
    items = read_rows(load_bench("llmbar"), rows, unverified=True).items
    named = {part: [item.id for item in items if item.meta["dataset"] == part] for part in PARTS}
    with gzip.open(recorded / "llmbar/verdicts.tsv.gz", "rt") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["evaluator"] == "GPT-4/Vanilla" and row["dataset"].startswith("LLMBar/"):
                names = named[row["dataset"].rpartition("/")[2]]
                one, two = (row[name] == "1" for name in ("winner_orig", "winner_swap"))  # both name responses
                yield names[int(row["i"])], "A" if one else "B", "B" if two else "A"


CASES = {
    "auto-j": (auto_j, (0.5999, 0.6063, 0.5496, 0.8341, 0.7890), "1 of 1,392 items hold an empty response"),
    "pandalm": (pandalm, (0.7107, 0.5879, 0.5736, 0.5755), "54 of 999 items hold an empty response"),
}


@pytest.mark.parametrize("bench", CASES)
def test_recorded_verdicts_of_a_live_judge_give_the_published_figures(
    bench: str, recorded: Path, tmp_path: Path
) -> None:
    said, figures, told = CASES[bench]
    lay_out(recorded, tmp_path / "rows")
    lines = [
        {"item": item, "responses": order, "reply": f"Verdict: {slot}"}
        for item, *slots in said(recorded)
        for order, slot in zip(([0, 1], [1, 0]), slots, strict=True)
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run(
        "run", bench, "--judge", f"replay:{tmp_path / 'r.jsonl'}", "--data", tmp_path / "rows", "--unverified-rows",
        "--out", tmp_path / "out", "-q", *OF_CHOICES,
    )  # fmt: skip
    assert done.exit_code == (3 if bench == "pandalm" else 0), (done.output, done.exception)
    card = cards(tmp_path / "out")[bench]
    assert tuple(round(each["value"]["value"], 4) for each in card["official"]) == figures
    assert any(each.startswith(told) for each in card["told"])


def test_orders_that_disagree_are_no_class_of_a_live_judge(recorded: Path, tmp_path: Path) -> None:
    """The first slot in both orders: each response is chosen once in each pair, so half of either's gold is found."""
    lay_out(recorded, tmp_path / "rows")
    done = run(
        "run", "pandalm", "--judge", "mock:first-slot", "--data", tmp_path / "rows", "--unverified-rows", "--out",
        tmp_path / "out", "-q", *OF_CHOICES,
    )  # fmt: skip
    assert done.exit_code == 0, (done.output, done.exception)
    found = {each["metric"]: each["value"]["value"] for each in cards(tmp_path / "out")["pandalm"]["official"]}
    assert found["macro recall"] == pytest.approx((0.5 + 0.5 + 0) / 3)  # of a, b, tie


def test_each_cell_of_a_judge_of_llmbar_comes_out_of_a_live_run(recorded: Path, tmp_path: Path) -> None:
    lay_out(recorded, tmp_path / "rows")
    lines = [
        {"item": item, "responses": order, "reply": f"Verdict: {slot}"}
        for item, *slots in llmbar(recorded, tmp_path / "rows")
        for order, slot in zip(([0, 1], [1, 0]), slots, strict=True)
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run(
        "run", "llmbar", "--judge", f"replay:{tmp_path / 'r.jsonl'}", "--data", tmp_path / "rows", "--unverified-rows",
        "--out", tmp_path / "out", "-q", *OF_CHOICES,
    )  # fmt: skip
    assert done.exit_code == 0, (done.output, done.exception)
    published = json.loads((recorded / "llmbar/statistics.json").read_text())
    names = ("correct_False", "correct_True", "correct_both", "equal")
    for official, name in zip(cards(tmp_path / "out")["llmbar"]["official"], names, strict=True):
        for part in PARTS:
            cell = f"LLMBar/{'' if part == 'Natural' else 'Adversarial/'}{part}|GPT-4/Vanilla"
            hits, n = map(int, re.findall(r"\d+", published[cell][name])[:2])
            assert official["groups"][part]["value"] == pytest.approx(hits / n), (name, part)


def test_strong_verdicts_against_a_baseline_count_in_a_live_run(tmp_path: Path) -> None:
    """The model loses strongly, wins, wins strongly and ties: rewards -1, .5, 1, 0; of 8 games it wins 1 + 3 + .5."""
    rows = [{"id": f"p{i}", "q": f"{i}?", "base": "b"} for i in range(4)]
    official = {"metric": ["bradley-terry score", "win rate", "reward"], "failures": "tie", "strong": 3}
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response": "base"}, "official": official,
        "responses": "to be brought", "baseline": "base",
    }  # fmt: skip
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps({"id": f"p{i}", "response": "r", "model": "m"}) + "\n" for i in range(4))
    )
    form = (resources.files("dikast.prompts") / "formats/choice-only.yaml").read_text("utf-8")
    (tmp_path / "arena.yaml").write_text(form.replace('dialect: verdict\nmarker: "Verdict:"', "dialect: arena"))
    bench, found = own(tmp_path, rows, **keys), {}
    for name, said in {"marked": ("A>>B", "B>A", "B>>A", "A=B"), "plain": ("A>B", "B>A", "B>A", "A=B")}.items():
        turned = [each.translate(str.maketrans("AB", "BA")) for each in said]
        lines = [
            {"item": f"p{i}", "responses": order, "reply": f"[[{both[i]}]]"}
            for i in range(4)
            for order, both in (([0, 1], said), ([1, 0], turned))
        ]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = ("--responses", tmp_path / "answers.jsonl", "--format", tmp_path / "arena.yaml", "--read", "never")
        found[name] = judge_own(bench, f"replay:{tmp_path / name}", tmp_path / f"out-{name}", *words)
    score, wins, reward = (each["groups"]["m"]["value"] for each in found["marked"]["official"])
    assert (score, wins, reward) == (pytest.approx(4.5 / 8), 0.5, 0.125)
    score, wins, reward = (each["groups"]["m"]["value"] for each in found["plain"]["official"])
    assert (score, wins, reward) == (pytest.approx(2.5 / 4), 0.5, 0.125)
    told = "no reply says how strongly a response is better ([[A>>B]]): every win counts as a plain one"
    assert told in found["plain"]["told"]
    assert told not in found["marked"]["told"]


def test_an_empty_response_is_judged_and_its_length_is_0(tmp_path: Path) -> None:
    """Formats refuse it, but it is a row of the bench: a right judge could not reach 1 without it."""
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": ("an answer", "", " ")[i], "b": "another"} for i in range(3)]
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "q", "default": "a"}, "official": {"metric": "accuracy"},
    }  # fmt: skip
    found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "out")
    assert (figure(found)["value"], found["ours"]["failed"]["value"]) == (0.5, 0)
    assert "2 of 3 items hold an empty response: the judge is shown '(empty response)'" in found["told"]
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert [item["responses"][0] for item in items] == ["an answer", "(empty response)", "(empty response)"]
    assert [item["meta"]["length"] for item in items] == [-2, 7, 6]

    keys = {"kind": "scores", "fields": {"id": "id", "instruction": "q"}, "responses": "to be brought"}
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps({"id": f"p{i}", "response": ("r", "", "s")[i]}) + "\n" for i in range(3))
    )
    bench = own(tmp_path, rows, **keys, official={"metric": "mean score"})
    found = judge_own(bench, "mock:constant", tmp_path / "brought", "--responses", tmp_path / "answers.jsonl")
    assert (figure(found)["n"], found["ours"]["failed"]["value"]) == (3, 0)
