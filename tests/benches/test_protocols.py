"""The protocols of the authors on a handful of rows, their figures worked by hand."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dikast.benches
import tiny_models
from benches.own_bench import cards, figure, judge_own, own, run
from dikast.benches.definition import load_bench
from dikast.core.errors import DataError
from dikast.core.runs.run_files import write_checked


def listed(name: str) -> dict[str, Any]:
    """What asks and scores in a listed bench, without its source, its pictures and its clips."""
    path = Path(dikast.benches.__file__).parent / "catalogue" / f"{name}.yaml"
    keys = ("kind", "fields", "gold", "groups", "official", "protocol")
    found = {key: value for key, value in yaml.safe_load(path.read_text()).items() if key in keys}
    for shown in ("image", "video"):
        found["fields"].pop(shown, None)
    return found


def choices(path: Path, told: dict[str, tuple[str, str]]) -> str:
    """A judge that gives these choices of responses (a, b, tie, or none) in both orders."""
    slots = ({"a": "A", "b": "B", "tie": "tie"}, {"a": "B", "b": "A", "tie": "tie"})
    lines = [
        {"item": item, "responses": order, "reply": f"Verdict: {slots[place][both[place]]}" if both[place] else "Hm."}
        for item, both in told.items()
        for place, order in enumerate(([0, 1], [1, 0]))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{path}"


OF_CHOICES = ("--format", "choice-only", "--read", "never")


def test_judgebench_counts_two_games(tmp_path: Path) -> None:
    told = [
        ("A>B", "a", "a"),
        ("A>B", "a", "b"),
        ("B>A", "b", "tie"),
        ("B>A", "b", ""),
        ("A>B", "b", "b"),
        ("A>B", "", "tie"),
    ]
    rows = [{"pair_id": f"p{i}", "question": f"{i}?", "response_A": f"x {i}", "response_B": f"y {i}", "label": label,
             "source": "uv"[i // 3], "response_model": ("gpt-4o-2024-05-13", "claude-3-5-sonnet-20240620")[i > 3]}
            for i, (label, _, _) in enumerate(told)]  # fmt: skip
    judge = choices(tmp_path / "r.jsonl", {f"p{i}": (one, two) for i, (_, one, two) in enumerate(told)})
    found = judge_own(own(tmp_path, rows, **listed("judgebench")), judge, tmp_path / "out", *OF_CHOICES, code=3)
    gpt, claude = found["official"][:2]  # the authors print each model's responses by themselves
    net = found["pooled"][0]
    assert [each["metric"].partition(": ")[2] for each in (gpt, claude)] == [
        "gpt-4o-2024-05-13", "claude-3-5-sonnet-20240620",
    ]  # fmt: skip
    assert [(each["value"]["n"], each["value"]["value"]) for each in (gpt, claude)] == [(4, 3 / 4), (2, 0)]
    assert net["value"]["value"] == 3 / 6  # two wins; a win and a tie; a win and no verdict
    assert (net["groups"]["source u"]["value"], net["groups"]["source v"]["value"]) == pytest.approx((2 / 3, 1 / 3))
    assert figure(found, "right in both orders")["value"] == 1 / 6


def test_pairs_with_and_without_ties(tmp_path: Path) -> None:
    """MLLM-as-a-Judge and LLaVA-Critic: a tie is right where people saw one; then without pairs that people tied."""
    told = [
        ("A", "a", "a"),
        ("A", "a", "tie"),
        ("B", "b", ""),
        ("C", "tie", "tie"),
        ("C", "a", "tie"),
        ("B", "tie", "tie"),
    ]
    rows = [
        {
            "pair_id": f"p{i}",
            "instruction": f"{i}?",
            "answer1": {"answer": f"x {i}"},
            "answer2": {"answer": f"y {i}"},
            "human_answer": people,
            "original_dataset": "coco",
        }
        for i, (people, _, _) in enumerate(told)
    ]
    judge = choices(tmp_path / "r.jsonl", {f"p{i}": (one, two) for i, (_, one, two) in enumerate(told)})
    bench = own(tmp_path, rows, **listed("mllm-as-a-judge-pairs"))
    found = judge_own(bench, judge, tmp_path / "out", *OF_CHOICES, code=3)
    assert figure(found, "accuracy")["value"] == pytest.approx((1 + 0.5 + 0.5 + 1 + 0.5 + 0) / 6)
    without = figure(found, "accuracy without gold ties")
    assert (without["value"], without["n"]) == (pytest.approx((1 + 0.5 + 0.5 + 0) / 4), 4)
    # ours: both orders agree and are right in the first and the fourth of the five with both verdicts
    assert found["ours"]["ours: accuracy"]["value"] == pytest.approx(2 / 5)


def test_the_best_of_four_with_ties_apart(tmp_path: Path) -> None:
    """RewardBench 2: a share of a tie, a missing score never wins, .25 where all are missing, its Ties."""
    four = {"chosen": ["right"], "rejected": ["x", "y", "z"], "num_correct": 1}
    one = {"chosen": ["r"], "rejected": ["s", "t"], "num_correct": 1, "subset": "Ties"}
    two = {"chosen": ["r", "b"], "rejected": ["s"], "num_correct": 2, "subset": "Ties"}
    scores = {"f0": [5, 1, 2, 3], "f1": [4, 4, 2, 4], "f2": [3, 0, 1, 1], "f3": [0, 4, 4, 1], "f4": [0, 0, 0, 0],
              "g0": [2, 3, 1, 1],
              "ref:1": [5, 2, 1], "tied:1": [5, 4, 2], "ref:2": [3, 3, 1], "tied:2": [5, 2, 1]}  # fmt: skip
    rows: list[dict[str, Any]] = [
        {"id": name, "prompt": f"{name[-1]}?", **four, "subset": "Math" if name == "g0" else "Factuality"}
        for name in ("f0", "f1", "f2", "f3", "f4", "g0")
    ]
    rows += [
        {"id": f"{kind}:{i}", "prompt": f"tie {i}?", **each}
        for i in "12"
        for kind, each in (("ref", one), ("tied", two))
    ]
    lines = [{"item": item, "responses": [place], "reply": f"Verdict: {score}" if score else "Hm."}
             for item, each in scores.items() for place, score in enumerate(each)]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--format", "score-only", "--read", "never")
    found = judge_own(own(tmp_path, rows, **listed("rewardbench-2")), *words, code=3)
    groups = {name: each["value"] for name, each in found["official"][0]["groups"].items()}
    factual = (1 + 1 / 3 + 1 + 0 + 0.25) / 5
    # Ties: one of two single right answers wins and both of the several; the gap exceeds the spread in one of two, and
    # so does the smaller gap; margins tanh(2/1 - 1) and tanh(0/3 - 1) cancel out
    ties = 0.3 * 0.5 + 0.3 * 1 + 0.2 * 0.5 + 0.2 * 0.5
    assert groups == pytest.approx({"Factuality": factual, "Math": 0, "Ties": ties})
    assert figure(found)["value"] == pytest.approx((factual + 0 + ties) / 3)


def test_a_missing_score_of_the_ties_is_minus_one(tmp_path: Path) -> None:
    """As in `process_single_model` of the authors: [5, 1, none] is [5, 1, -1], and loses nothing by it."""
    four = {"id": "m0", "prompt": "0?", "chosen": ["r"], "rejected": ["x"], "num_correct": 1, "subset": "Math"}
    rows = [four]
    scores = {"m0": [5, 2]}
    for i in "12":
        rows += [
            {"id": f"ref:{i}", "prompt": f"tie {i}?", "chosen": ["r"], "rejected": ["x", "y"], "num_correct": 1},
            {"id": f"tied:{i}", "prompt": f"tie {i}?", "chosen": ["r", "s"], "rejected": ["x", "y"], "num_correct": 2},
        ]
        scores |= {f"ref:{i}": [5, 1, 0], f"tied:{i}": [5, 5, 1, 0] if i == "1" else [0, 5, 1, 0]}
    rows = [{"subset": "Ties", **row} for row in rows]
    lines = [{"item": item, "responses": [place], "reply": f"Verdict: {score}" if score else "Hm."}
             for item, each in scores.items() for place, score in enumerate(each)]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--format", "score-only", "--read", "never")
    found = judge_own(own(tmp_path, rows, **listed("rewardbench-2")), *words, code=3)
    # prompt 1: right everywhere, gap 4 over a spread of 0, margin tanh(inf) = 1; prompt 2: [-1, 5, 1, -1] is wrong,
    # its gap -2 and spread 6: margin tanh(-2/6 - 1)
    margin = (1 + np.tanh(-2 / 6 - 1)) / 2
    ties = 0.3 * 0.5 + 0.3 * 1 + 0.2 * 0.5 + 0.2 * 0.5 + 0.01 * margin
    assert found["official"][0]["groups"]["Ties"]["value"] == pytest.approx(ties)


def test_most_samples_of_both_orders_decide_a_pair(tmp_path: Path) -> None:
    """VL-RewardBench: more than half of all verdicts, those without one among them; other pairs are left out."""
    told = {  # what three samples say in each order: right, wrong or nothing
        "wildvision-1": "aaa" "abb", "mmmu_2": "abn" "abn", "RLHF-3": "ann" "nnn", "RLHF-4": "bbb" "ban",
        "RLHF-5": "aaa" "ann",
    }  # fmt: skip
    rows = [{"id": name, "query": f"{name}?", "response": ["x", "y"], "human_ranking": [0, 1], "query_source": "s"}
            for name in told]  # fmt: skip
    slots = ({"a": "A", "b": "B"}, {"a": "B", "b": "A"})
    lines = [
        {"item": name, "responses": order, "sample": k,
         "reply": f"Verdict: {slots[place][said[3 * place + k]]}" if said[3 * place + k] != "n" else "Hm."}
        for name, said in told.items() for place, order in enumerate(([0, 1], [1, 0])) for k in range(3)
    ]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    keys = listed("vl-rewardbench")
    bench = own(tmp_path, rows, **{**keys, "protocol": {**keys["protocol"], "samples": 3}})
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--protocol", "authors", *OF_CHOICES)
    found = judge_own(bench, *words, code=3)
    macro, overall = found["official"][:2]
    # 1: 4 of 6 right; 2: 2, 2 and 2; 3: 1 of 6; 4: 4 of 6 wrong; 5: 4 of 6 right
    assert overall["value"]["value"] == pytest.approx(2 / 3)
    assert (overall["value"]["n"], overall["value"]["dropped"]) == (3, 2)
    groups = {name: each["value"] for name, each in macro["groups"].items() if name.startswith("section")}
    assert groups == {"section general": 1, "section hallucination": 0.5, "section reasoning": None}
    assert "more than half of all decide" in macro["rule"]
    floor = found["ours"]["floor: a judge that always chooses the first slot (accuracy)"]
    assert "more than half" not in floor["rule"]  # in its samples neither response has more than half
    one = judge_own(bench, words[0], tmp_path / "one", *OF_CHOICES, code=3)  # a single sample: the mean of the orders
    assert figure(one, "accuracy over all rows")["value"] == pytest.approx((1 + 1 + 1 + 0 + 1) / 5)


def test_pairs_of_mm_rlhf_by_the_words_of_their_paths(tmp_path: Path) -> None:
    """Accuracy and ACC+ of each category, told by the first of its words in the path; questions are no slices."""
    told = [("1", "images/mcq/0.png", "a", "a"), ("1", "images/mcq/1.png", "a", "b"),
            ("3", "images/mcq/2.png", "a", "a"), ("2", "images/long/0.png", "a", "a"), ("4", "", "b", "b")]  # fmt: skip
    rows = [{"id": name, "prompt": f"{i}?", "chosen": "x", "rejected": "y", **({"image": path} if path else {})}
            for i, (name, path, *_) in enumerate(told)]  # fmt: skip
    judge = choices(tmp_path / "r.jsonl", {str(i): (one, two) for i, (*_, one, two) in enumerate(told, 1)})
    found = judge_own(own(tmp_path, rows, **listed("mm-rlhf-reward")), judge, tmp_path / "out", *OF_CHOICES)
    accuracy, plus = found["official"]
    groups = {name: each["value"] for name, each in accuracy["groups"].items()}
    assert groups == {"category long": 1, "category mcq": pytest.approx(2.5 / 3), "category none": 0}
    of_questions = {name: each["value"] for name, each in plus["groups"].items()}
    assert of_questions == {"category long": 1, "category mcq": 0.5, "category none": 0}
    assert plus["value"]["value"] == 0.5


def test_orders_of_four_answers(tmp_path: Path) -> None:
    """MLLM-as-a-Judge, batch: edits over length; equal scores leave two orders open; a missing score is skipped."""
    told = [("ABCD", [5, 4, 3, 2]), ("DCBA", [5, 4, 3, 2]), ("BADC", [5, 4, 3, 3]), ("ACBD", [1, 0, 2, 3])]
    rows = [{"id": f"b{i}", "instruction": f"{i}?", "answers": [{"answer": each} for each in "wxyz"],
             "human_answer": people, "original_dataset": "coco"} for i, (people, _) in enumerate(told)]  # fmt: skip
    lines = [{"item": f"b{i}", "responses": [place], "reply": f"Verdict: {score}" if score else "Hm."}
             for i, (_, each) in enumerate(told) for place, score in enumerate(each)]  # fmt: skip
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--format", "score-only", "--read", "never")
    found = judge_own(own(tmp_path, rows, **listed("mllm-as-a-judge-batch")), *words, code=3)
    # ABCD against DCBA: 4 edits; BADC against ABCD: 3 (insert, keep, replace, delete); against ABDC: 2
    assert figure(found)["value"] == pytest.approx((0 + 4 / 4 + (3 + 2) / 2 / 4) / 3)
    assert figure(found)["n"] == 3


def test_three_runs_are_audited_by_their_mean_and_exact_agreement_is_of_the_first(tmp_path: Path) -> None:
    """Prometheus (`eval/utils.py`): correlations of the mean of three runs, less those without a verdict."""
    runs = [[4, 4, 5], [3, 4, 4], [5, 5, 5], [2, 3, 1], [1, 0, 2]]  # 0: no verdict
    golds = [4, 4, 5, 3, 1]
    rows = [{"id": f"r{i}", "q": f"{i}?", "a": f"answer {i}", "score": gold} for i, gold in enumerate(golds)]
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "gold": {"column": "score", "scale": "1-5"}, "protocol": {"samples": 3, "temperature": 1.0},
        "official": {"metric": ["pearson", "kendall_tau_b", "exact", "mean score"]},
    }  # fmt: skip
    lines = [
        {"item": f"r{i}", "sample": n, "reply": f"Verdict: {score}" if score else "I cannot say."}
        for i, told in enumerate(runs)
        for n, score in enumerate(told)
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--format", "score-only", "--protocol", "authors")
    found = judge_own(own(tmp_path, rows, **keys), *words, "--read", "never", code=3)
    # means 13/3, 11/3, 5, 2, 3/2: mean 3.3; deviations from it and from the mean gold 3.4 give .9489
    means = np.array([13 / 3, 11 / 3, 5, 2, 3 / 2])
    assert figure(found, "mean score")["value"] == pytest.approx(3.3)
    assert figure(found, "pearson")["value"] == pytest.approx(np.corrcoef(means, golds)[0, 1])
    # 10 pairs of rows, one of them with equal gold, 9 in order: 9 / sqrt(10 * 9)
    assert figure(found, "kendall_tau_b")["value"] == pytest.approx(9 / (10 * 9) ** 0.5)
    assert figure(found, "exact")["value"] == 3 / 5  # 4, 3, 5, 2, 1 of 4, 4, 5, 3, 1
    assert found["official"][2]["rule"].startswith("of the first of the samples")
    assert found["ours"]["ours: mae"]["value"] == pytest.approx((1 / 3 + 1 / 3 + 0 + 1 + 1 / 2) / 5)
    missing = sum(not score for told in runs for score in told)
    assert found["spent"]["missing"] == missing > 0 == found["ours"]["failed"]["value"]  # each row has a verdict left
    shown = run("report", tmp_path / "out", "--draws", 20).stdout
    assert re.search(rf"answers without a verdict +15 +{missing} ", shown), shown
    retest = found["ours"]["beside: the judge asked again (test-retest) (exact)"]
    assert (retest["value"], retest["n"]) == (2 / 4, 4)  # 4, 3, 5, 2 and 4, 4, 5, 3; the fifth was not answered again


def test_verdicts_weigh_alike_where_the_authors_count_them(tmp_path: Path) -> None:
    """MMRB2 (`compute_accuracy.py`): right verdicts over all verdicts of both orders; missing ones are skipped."""
    said = {  # the choice as shown and swapped, as responses; gold; task
        "p0": ("a", "a", "a", "t2i"), "p1": ("b", "a", "b", "t2i"), "p2": ("a", "", "a", "edit"),
        "p3": ("b", "b", "a", "edit"), "p4": ("b", "", "a", "edit"), "p5": ("", "", "a", "edit"),
    }  # fmt: skip
    rows = [{"id": i, "q": f"{i}?", "a": f"x {i}", "b": f"y {i}", "l": each[2], "task": each[3]}
            for i, each in said.items()]  # fmt: skip
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"a": "a", "b": "b"}}, "groups": {"task": "task"},
        "official": {"metric": "accuracy", "failures": "skipped", "over": "verdicts", "group": "task"},
    }  # fmt: skip
    lines = [
        {"item": i, "responses": order, "reply": f"Verdict: {'AB'[(each[place] == 'b') != (place == 1)]}"}
        for i, each in said.items()
        for place, order in enumerate(([0, 1], [1, 0]))
        if each[place]
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--format", "choice-only")
    found = judge_own(own(tmp_path, rows, **keys), *words, code=3)
    whole, groups = figure(found), found["official"][0]["groups"]
    assert (whole["value"], whole["n"], whole["dropped"]) == (4 / 8, 8, 4)  # pairs alike: (1 + .5 + 1 + 0 + 0) / 5
    assert (groups["t2i"]["value"], groups["edit"]["value"]) == (3 / 4, 1 / 4)
    assert found["official"][0]["rule"].endswith("all verdicts alike")
    assert all(load_bench(name).official.over == "verdicts" for name in ("mmrb2", "mmrb2-built"))
    wrong = own(tmp_path, rows, **{**keys, "official": {"metric": "win rate", "over": "verdicts"}})
    assert "weighted equally in 'accuracy' alone" in str(run("show", wrong).exception)


def test_figures_of_two_orders_are_undefined_in_one(tmp_path: Path) -> None:
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": f"x {i}", "b": f"y {i}", "l": "a"} for i in range(4)]
    metrics = ["right in both orders", "same in both orders", "net of two games", "accuracy"]
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"a": "a"}}, "official": {"metric": metrics}, "protocol": {"orders": "one"},
    }  # fmt: skip
    found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "out")
    assert [each["value"]["value"] for each in found["official"]] == [None, None, None, 1]
    alone = judge_own(own(tmp_path, rows, **keys), "mock:oracle,r=1", tmp_path / "alone", "--from-absolute", code=3)
    assert figure(alone, "right in both orders")["n"] == 4  # graded alone, a choice depends on no order


def test_a_sample_holds_whole_groups_where_the_figure_is_of_whole_groups(tmp_path: Path) -> None:
    """Ten ids of three pairs each, of which the judge gets all right in four and the first two in the others."""
    rows = [
        {
            "prompt": f"{i}-{k}?",
            "id": f"g{i}",
            "chosen": "x" if i < 4 or k < 2 else "y",
            "rejected": "yx"[i >= 4 and k == 2],
        }
        for k in range(3)
        for i in range(10)
    ]
    keys = {**listed("mm-rlhf-reward"), "protocol": {"orders": "one"}}
    bench = own(tmp_path, rows, **keys)
    told = {str(n + 1): ("a" if row["chosen"] == "x" else "b", "") for n, row in enumerate(rows)}
    judge = choices(tmp_path / "r.jsonl", told)
    whole = judge_own(bench, judge, tmp_path / "all", *OF_CHOICES)
    assert figure(whole, "all of a group")["value"] == 4 / 10
    part = judge_own(bench, judge, tmp_path / "part", *OF_CHOICES, "--limit", 10)
    items = [json.loads(line)["meta"]["id"] for line in (tmp_path / "part/mine/items.jsonl").read_text().splitlines()]
    drawn = set(items)
    assert sorted(items) == sorted(3 * [*drawn])  # 9 rows, three groups
    assert len(drawn) == 3
    found = figure(part, "all of a group")
    assert (found["n"], found["value"]) == (3, pytest.approx(len(drawn & {"g0", "g1", "g2", "g3"}) / 3))
    assert any("a sample of 9 of 30 rows, whole groups, stratified" in each for each in part["told"])
    about = tmp_path / "part/mine/bench.json"
    before = {name: value for name, value in json.loads(about.read_text()).items() if name != "whole"}
    write_checked(about, json.dumps(before).encode())
    assert any("parts of them" in each for each in cards(tmp_path / "part")["mine"]["told"])
    done = run("run", bench, "--judge", judge, "--data", tmp_path, "--out", tmp_path / "few", "--limit", 2)
    assert "none is as small" in str(done.exception)


def test_a_sample_holds_both_items_of_a_prompt_of_ties(tmp_path: Path) -> None:
    one = {"chosen": ["r"], "rejected": ["s", "t"], "num_correct": 1}
    two = {"chosen": ["r", "b"], "rejected": ["s"], "num_correct": 2, "subset": "Ties"}
    rows: list[dict[str, Any]] = [{"id": f"m{i}", "prompt": f"{i}?", **one, "subset": "Math"} for i in range(20)]
    rows += [{"id": f"ref:{i}", "prompt": f"tie {i}?", **one, "subset": "Ties"} for i in range(10)]
    rows += [{"id": f"tied:{i}", "prompt": f"tie {i}?", **two} for i in range(10)]
    bench = own(tmp_path, rows, **listed("rewardbench-2"))
    found = judge_own(bench, "mock:constant", tmp_path / "out", "--limit", 20)
    ids = [json.loads(line)["id"] for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    ties = [each.partition(":") for each in ids if ":" in each]
    assert len(ids) == 20
    assert {n for kind, _, n in ties if kind == "ref"} == {n for kind, _, n in ties if kind == "tied"}
    assert figure(found)["value"] == pytest.approx((1 / 3 + 0) / 2)  # by Ties' own formula no gap is above 0


def talk(*said: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(said)]


def test_a_later_turn_is_judged_with_what_was_said_before_it(tmp_path: Path) -> None:
    """MT-Bench human judgments, whose rows hold whole conversations whichever turn was judged."""
    votes = [  # what people said, then the judge in both orders
        (1, "model_a", "a", "a"), (2, "model_a", "a", "b"), (2, "tie", "a", "b"), (2, "model_b", "b", "b"),
        (1, "model_b", "a", "a"), (1, "tie", "b", "b"),
    ]  # fmt: skip
    both = {
        "conversation_a": talk("Q1?", "one A", "Q2?", "two A"),
        "conversation_b": talk("Q1?", "one B", "Q2?", "two B"),
    }
    who = ["expert_7", "author_1", "expert_7", "expert_12", "author_1", "expert_7"]
    rows = [
        {"question_id": i, **both, "turn": turn, "winner": winner, "judge": judge}
        for i, ((turn, winner, *_), judge) in enumerate(zip(votes, who, strict=True))
    ]
    keys = {**listed("mt-bench-human"), "reader": "conversation pair"}
    bench, judge = own(tmp_path, rows, **keys), tmp_path / "r.jsonl"
    told = choices(judge, {str(i): (one, two) for i, (*_, one, two) in enumerate(votes)})
    found = judge_own(bench, told, tmp_path / "out", *OF_CHOICES)
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert (items[0]["instruction"], items[0]["responses"]) == ("Q1?", ["one A", "one B"])
    later = items[1]
    assert later["instruction"].endswith("### Question 1:\nQ1?\n\n### Question 2:\nQ2?")
    assert later["responses"][1] == "### User:\nQ1?\n\n### Assistant:\none B\n\n### User:\nQ2?\n\n### Assistant:\ntwo B"
    # joined verdicts: a, tie, tie, b, a, b; right in the first, the third and the fourth
    assert figure(found, "agreement with ties")["value"] == 3 / 6
    without = figure(found, "agreement without ties")
    assert (without["n"], without["value"]) == (3, pytest.approx(2 / 3))  # the first, the fourth and the fifth
    groups = next(each["groups"] for each in found["pooled"] if each["metric"] == "agreement with ties")
    experts = {turn: (groups[f"expert, turn {turn}"]["n"], groups[f"expert, turn {turn}"]["value"]) for turn in (1, 2)}
    assert experts == {1: (2, 1 / 2), 2: (2, 1)}  # the first and the last; the third and the fourth: theirs to print
    assert groups["author, turn 2"]["n"] == groups["author, turn 1"]["n"] == 1
    assert "experts alone" in " ".join(listed("mt-bench-human")["official"]["trap"].split())
    first, second = found["official"][:2]
    pooled = found["pooled"][0]
    assert len(found["official"]) == 4
    assert (
        run("report", tmp_path / "out", "--draws", 20, "-o", tmp_path / "c.csv", "-o", tmp_path / "c.html").exit_code
        == 0
    )
    with (tmp_path / "c.csv").open() as file:
        told_in_csv = {(each["figure"], each["group"]) for each in csv.DictReader(file)}
    assert ("pooled: agreement with ties", "") in told_in_csv
    assert ("official: agreement with ties", "") not in told_in_csv
    assert ("official: agreement with ties", "expert, turn 1") in told_in_csv
    page = (tmp_path / "c.html").read_text()
    assert "<b>Official agreement with ties: expert, turn 2</b>" in page
    assert "official: agreement with ties<" not in page
    assert [each["metric"] for each in (first, second, pooled)] == [
        "agreement with ties: expert, turn 1", "agreement with ties: expert, turn 2", "agreement with ties",
    ]  # fmt: skip
    assert [(each["value"]["n"], each["value"]["value"]) for each in (first, second)] == [(2, 1 / 2), (2, 1)]
    assert first["rule"].endswith("; its rows alike")
    assert pooled["rule"].endswith(
        "; all rows alike, which pools groups that the authors print apart: no figure of theirs"
    )
    assert "official figures are of some groups" in found["ours"]["ours: accuracy"]["rule"]
    floors = {name: each["value"] for name, each in found["ours"].items() if "says tie (agreement with ties:" in name}
    assert floors == {
        f"floor: a judge that always says tie (agreement with ties: expert, turn {turn})": 1 / 2 for turn in (1, 2)
    }  # the last, and the third
    alone = own(tmp_path, [rows[0]], **keys)
    lacking = judge_own(alone, told, tmp_path / "alone", *OF_CHOICES)["official"][1]
    assert lacking["metric"] == "agreement with ties: expert, turn 2"
    assert (lacking["value"]["n"], lacking["value"]["value"]) == (0, None)
    for change, message in (
        ({"turn": 3}, "answers 3 questions"), ({"turn": "x"}, "no turn of a conversation"),
        ({"conversation_b": talk("Other?", "b")}, "asks other questions"),
    ):  # fmt: skip
        (tmp_path / "rows.jsonl").write_text(json.dumps({**rows[0], **change}) + "\n")
        done = run("run", bench, "--judge", told, "--data", tmp_path, "--out", tmp_path / "bad")
        assert message in str(done.exception)
        assert "line 1" in str(done.exception) or ":1" in str(done.exception)


@pytest.mark.parametrize(
    ("failures", "points"), [("tie", (3 / 6, 0.0, 1)), ("wrong", (2 / 6, 0.0, 2)), ("skipped", (2 / 4, 0.0, 1))]
)
def test_a_verdict_in_one_order_alone_is_a_tie_of_the_joined_orders(
    failures: str, points: tuple[float, float, int], tmp_path: Path
) -> None:
    """Gold is tie, tie, tie, a, a, a; joined verdicts: tie, one order alone, none, one order alone, b, none.

    By FastChat's code two different games are an inconsistent pair, which is a tie, also where one of them is an error;
    two errors are one verdict, which is never right and no tie.
    """
    rows = [
        {"id": f"p{i}", "q": f"{i}?", "a": "x", "b": "y", "says": says}
        for i, says in enumerate(["tie"] * 3 + ["a"] * 3)
    ]
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "says"},
        "official": {"metric": ["agreement with ties", "agreement without ties"], "failures": failures},
    }  # fmt: skip
    told = [("tie", "tie"), ("a", ""), ("", ""), ("", "a"), ("b", "b"), ("", "")]
    judge = choices(tmp_path / "r.jsonl", {f"p{i}": both for i, both in enumerate(told)})
    found = judge_own(own(tmp_path, rows, **keys), judge, tmp_path / "out", *OF_CHOICES, code=3)
    rule = found["official"][0]["rule"]
    assert "a pair without a verdict in either order" in rule or failures == "skipped"
    assert "a verdict in one order alone, is a tie" in rule
    without = figure(found, "agreement without ties")
    assert figure(found, "agreement with ties")["n"] == (4 if failures == "skipped" else 6)
    assert (figure(found, "agreement with ties")["value"], without["value"], without["n"]) == points


@pytest.mark.parametrize("name", ["imagedc", "mmhal", "mmvet"])
def test_a_reply_without_a_score_counts_as_0_where_it_does_so_upstream(name: str, tmp_path: Path) -> None:
    """Scores 4, 4, 2, 2 and two replies without one: 12 / 6 by the authors' rule, 12 / 4 by Dikast's."""
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": "x", "g": "uv"[i % 2]} for i in range(6)]
    keys = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"}, "groups": {"g": "g"},
        "official": {**listed(name)["official"], "metric": ["mean score", "pearson"]},
    }  # fmt: skip
    replies = [f"Verdict: {score}" if score else "Hm." for score in (4, 4, 2, 2, 0, 0)]
    lines = [{"item": f"p{i}", "reply": reply} for i, reply in enumerate(replies)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{tmp_path / 'r.jsonl'}", tmp_path / "out", "--format", "score-only")
    found = judge_own(own(tmp_path, rows, **keys), *words, code=3)
    mean, ours = found["official"][0], found["ours"]["ours: mean score"]
    assert (mean["value"]["value"], mean["value"]["n"], mean["rule"]) == (
        2,
        6,
        "a missing verdict scores 0; all rows alike",
    )
    assert {group: each["value"] for group, each in mean["groups"].items()} == {"u": 2, "v": 2}
    assert (ours["value"], ours["n"], ours["dropped"]) == (3, 4, 2)
    assert "between 2.3333 and 3.6667 whatever the missing verdicts had been" in ours["rule"]  # both 1, both 5


@pytest.mark.parametrize(("name", "alike"), [("llmbar", True), ("evalbiasbench", False), ("auto-j", False)])
def test_two_missing_verdicts_are_the_same_in_llmbars_code_alone(name: str, alike: bool, tmp_path: Path) -> None:
    """Six pairs: the same, another choice, no verdict in one order, and none in either in three."""
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": "x", "b": "y"} for i in range(6)]
    official = {key: value for key, value in listed(name)["official"].items() if key in ("failures", "lost_alike")}
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "q", "default": "a"}, "official": {**official, "metric": "same in both orders"},
    }  # fmt: skip
    told = [("a", "a"), ("a", "b"), ("", "a"), *[("", "")] * 3]
    judge = choices(tmp_path / "r.jsonl", {f"p{i}": both for i, both in enumerate(told)})
    same = judge_own(own(tmp_path, rows, **keys), judge, tmp_path / "out", *OF_CHOICES, code=3)["official"][0]
    assert same["value"]["value"] == pytest.approx(4 / 6 if alike else 1 / 6)
    assert same["rule"].startswith("no verdict in both orders is the same" if alike else "a pair without a verdict")


def test_a_missing_verdict_scores_0_in_means_of_scores_alone(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"}}
    for official in ({"metric": "pearson", "failures": "zero"}, {"metric": "best of", "failures": "zero"}):
        kind = {"kind": "best of"} if official["metric"] == "best of" else {}
        with pytest.raises(DataError, match=r"scores 0 .* in a 'mean score' of the kind 'scores' alone"):
            load_bench(own(tmp_path, [], **{**keys, **kind, "official": official}))


def test_floors_are_what_a_judge_of_one_slot_earns_by_the_official_rule(tmp_path: Path) -> None:
    """Gold is always the first response; a verdict that is missing changes no floor."""
    rows = [{"q": f"{i}?", "a": "x", "b": "y", "id": f"p{i}"} for i in range(4)]
    metrics = ["accuracy", "accuracy as shown", "accuracy swapped", "right in both orders"]
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "q", "default": "a"}, "official": {"metric": metrics, "ties": "half"},
    }  # fmt: skip
    judge = choices(tmp_path / "r.jsonl", {"p0": ("a", ""), "p1": ("a", "a"), "p2": ("b", "a"), "p3": ("a", "b")})
    found = judge_own(own(tmp_path, rows, **keys), judge, tmp_path / "out", *OF_CHOICES, code=3)
    floors = {name: (each["value"], each["n"]) for name, each in found["ours"].items() if name.startswith("floor")}
    assert floors == {
        f"floor: a judge that always {name} ({metric})": (value, 4)
        for name, values in (
            ("chooses the first slot", (0.5, 1, 0, 0)),
            ("chooses the second slot", (0.5, 0, 1, 0)),
            ("says tie", (0.5, 0.5, 0.5, 0.5)),
        )
        for metric, value in zip(metrics, values, strict=True)
    }
    slot = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "slot")
    for each in slot["official"]:
        assert (
            each["value"]["value"] == floors[f"floor: a judge that always chooses the first slot ({each['metric']})"][0]
        )


def test_the_floor_of_the_best_of_four_is_a_quarter(tmp_path: Path) -> None:
    four = {"prompt": "Say it.", "chosen": ["yes"], "rejected": list("abc"), "num_correct": 1}
    rows = [{"id": f"q{i}", **four, "subset": "st"[i % 2]} for i in range(6)]
    found = judge_own(own(tmp_path, rows, **listed("rewardbench-2")), "mock:random", tmp_path / "out")
    assert found["ours"]["floor: a judge that scores all alike (best of)"]["value"] == 1 / 4


def test_a_run_that_its_budget_cut_short_has_no_official_figures(tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "a": "x", "b": "y", "id": f"p{i}"} for i in range(10)]
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "q", "default": "a"}, "official": {"metric": ["accuracy", "same in both orders"]},
    }  # fmt: skip
    bench, out = own(tmp_path, rows, **keys), tmp_path / "out"
    cut = judge_own(bench, "mock:first-slot", out, "--budget", "calls=6", code=3)
    told = "6 of 20 questions asked"
    assert [each["value"]["value"] for each in cut["official"]] == [None, None]
    assert "failed" not in cut["ours"]
    assert any(told in each for each in cut["told"])
    assert not any(each.startswith("all 10 rows") for each in cut["told"])
    files = [tmp_path / f"card{suffix}" for suffix in (".html", ".md", ".json", ".csv")]
    shown = run("report", out, "--draws", 20, *(word for file in files for word in ("-o", file)))
    assert told in " ".join(shown.stdout.split())
    assert all(told in file.read_text() for file in files)
    whole = judge_own(bench, "mock:first-slot", out)
    assert [each["value"]["value"] for each in whole["official"]] == [0.5, 0]
    assert whole["ours"]["failed"]["value"] == 0
    assert any(each.startswith("all 10 rows") for each in whole["told"])


def test_every_group_and_every_model_has_figures_on_every_surface(tmp_path: Path) -> None:
    """By category the judge is right throughout; model m's scores rise with gold, model n's fall."""
    gold = {"m": [1, 2, 3, 5], "n": [1, 2, 4, 5]}
    rows: list[dict[str, Any]] = [{"id": f"{m}{i}", "q": f"{i}?", "a": f"of {m}", "g": value,
                                   "category": "st"[i % 2], "who": m}
                                  for m, values in gold.items() for i, value in enumerate(values)]  # fmt: skip
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "gold": {"column": "g", "scale": "1-5"}, "groups": {"category": "category", "model": "who"},
        "official": {"metric": "pearson"},
    }  # fmt: skip
    lines = [
        {"item": row["id"], "reply": f"Verdict: {row['g'] if row['who'] == 'm' else 6 - row['g']}"} for row in rows
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "out"
    words: tuple[Any, ...] = (f"replay:{tmp_path / 'r.jsonl'}", out, "--format", "score-only")
    found = judge_own(own(tmp_path, rows, **keys), *words)
    groups = {name: each["value"] for name, each in found["official"][0]["groups"].items()}
    assert set(groups) == {"s", "t", "model m", "model n"}
    assert (groups["model m"], groups["model n"]) == (pytest.approx(1), pytest.approx(-1))
    files = [tmp_path / f"card{suffix}" for suffix in (".html", ".md", ".json", ".csv")]
    shown = run("report", out, "--draws", 20, *(word for file in files for word in ("-o", file)))
    assert "model n" in shown.stdout
    assert all("model n" in file.read_text() for file in files)

    questions = [{"id": f"{i}", "q": f"{i}?"} for i in range(4)]
    brought: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q"}, "responses": "to be brought",
        "official": {"metric": "mean score"},
    }  # fmt: skip
    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        "".join(json.dumps({"id": f"{i}", "response": f"r {m}", "model": m}) + "\n" for i in range(4) for m in "mn")
    )
    said = [{"item": f"{i}/{m}", "reply": f"Verdict: {1 + (m == 'm') * 3}"} for i in range(4) for m in "mn"]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    words = (words[0], tmp_path / "brought", *words[2:], "--responses", answers)
    pooled = judge_own(own(tmp_path, questions, **brought), *words)
    means = {name: each["value"] for name, each in pooled["official"][0]["groups"].items()}
    assert means == {"m": 4, "n": 1}
    assert any("pool the responses of 2 models" in told for told in pooled["told"])


def test_a_policy_that_answers_nothing_does_not_block_the_next(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q"}, "responses": "to be brought",
        "official": {"metric": "mean score"},
    }  # fmt: skip
    bench, out = own(tmp_path, [{"id": "1", "q": "Why?"}], **keys), tmp_path / "out"
    words = ("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", out, "-q")
    failed = run(*words, "--policy", "mock:failing,errors=1,unparsed=0")
    assert re.search(r"answered none of 1 prompt: \w.*mock", str(failed.exception))  # with the reason of the first
    assert not (out / "mine/responses.jsonl").exists()
    (out / "mine").mkdir(parents=True, exist_ok=True)
    (out / "mine/responses.jsonl").write_text("")  # as earlier versions left it
    done = run(*words, "--policy", tiny_models.build("qwen", tmp_path / "policy"), "--max-tokens", 8)
    assert done.exit_code == 0, (done.output, done.exception)


def test_a_bench_with_something_left_to_do_is_not_run(tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "official": {"metric": "mean score"}, "about": "TODO what it measures",
    }  # fmt: skip
    bench = own(tmp_path, [{"id": "1", "q": "Why?", "a": "So."}], **keys)
    done = run("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "out")
    assert "replace every TODO" in str(done.exception)
