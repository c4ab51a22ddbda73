"""Judges on benches whose rows lie on disk: floors, kinds without recordings, contamination, and new benches."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import dikast.benches
import tiny_models
from benches.own_bench import cards, figure, judge_own, own, run
from benches.published import lay_out
from dikast.benches.bench_rows import read_rows
from dikast.benches.definition import Bench, load_bench, names
from dikast.benches.row_values import gold_of_row
from dikast.core.errors import UserError
from dikast.core.records import write_records
from dikast.core.runs.run_files import write_checked
from dikast.engines.base import Engine
from dikast.engines.spec import open_engine
from dikast.surface.cli import app

PNG = b"\x89PNG, never opened: the folder is refused first"
JUDGES = ["mock:constant", "mock:random", "mock:prefers-long,r=0,per_doubling=3", "mock:first-slot", "scout"]


def test_the_best_of_four_earns_its_share_of_a_tie_and_its_gold_does_not_reach_the_judge(tmp_path: Path) -> None:
    four = {"prompt": "Say it.", "chosen": ["yes"], "rejected": list("abc"), "num_correct": 1, "subset": "s"}
    rows = [{"id": f"q{i}", **four} for i in range(6)]
    found = judge_own(own(tmp_path, rows, **_keys("rewardbench-2")), "mock:constant", tmp_path / "out")
    assert figure(found)["value"] == pytest.approx(1 / 4)  # all four have one score, so that each is a quarter right
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert all(item["gold"] == {"right": [1, 0, 0, 0]} and len(item["responses"]) == 4 for item in items)
    prompts = CliRunner().invoke(app, ["audit", str(tmp_path / "out/mine"), "--json"]).stdout
    assert '"right"' not in prompts


def test_figures_over_groups_keep_the_upper_end_of_groups_at_0_and_say_how_they_count(tmp_path: Path) -> None:
    rows = [{"pair_id": f"p{i}", "question": f"q{i}", "response_A": f"a {i}", "response_B": f"b {i}",
             "label": "A>B", "source": "uv"[i % 2], "response_model": "m"} for i in range(40)]  # fmt: skip
    metrics = ["right in both orders", "same in both orders", "net of two games"]
    keys = {**_keys("judgebench"), "official": {"metric": metrics, "failures": "wrong", "over": "groups",
                                                "group": "source"}}  # fmt: skip
    found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "out")
    both = figure(found, "right in both orders")
    high = 3.841 / (20 + 3.841)  # Wilson of 0 of 20; the mean of two such groups: each half of the interval by itself
    assert (both["value"], both["low"]) == (0, 0)
    assert both["high"] == pytest.approx(high / 2**0.5, rel=1e-3)
    rules = {each["metric"]: each["rule"] for each in found["official"]}
    assert rules["right in both orders"] == "a missing verdict is wrong; ties: wrong; groups alike"
    assert rules["same in both orders"].startswith("a pair without a verdict in one order or both is")
    assert "neither" in rules["net of two games"]
    assert "pairs" in found["ours"]["failed"]["rule"]


def test_responses_graded_alone_have_no_order(tmp_path: Path) -> None:
    row = {"chosen_instruction": "good", "rejected_instruction": "bad", "source": "other"}
    keys = {**_keys("hhh"), "fields": {"id": "id", "instruction": "q", "response_0": "good", "response_1": "bad"}}
    keys["gold"] = {"column": "source", "values": {"other": "a"}}
    rows = [{**row, "id": f"p{i}", "q": f"q{i}", "good": f"good {i}", "bad": f"bad {i}"} for i in range(4)]
    found = judge_own(own(tmp_path, rows, **keys), "mock:random", tmp_path / "out")
    assert found["ours"]["ours: accuracy"]["rule"].startswith("each graded")
    assert "one order" not in json.dumps(found["audit"]["tables"])


def test_gold_off_its_scale_is_told_with_what_a_bench_can_do(tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "a": f"a {i}", "l": 20 * i} for i in range(4)]
    keys = {
        "kind": "scores", "fields": {"instruction": "q", "response": "a"}, "gold": {"column": "l"},
        "official": {"metric": "exact"},
    }  # fmt: skip
    line = ("--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "out", "-q")
    told = str(run("run", own(tmp_path, rows, **keys), *line).exception)
    assert "4 of 4 values are off 1-5" in told
    assert "'values' under 'gold' in the bench's file" in told
    for flag in ("--scale", "--equate", "--map", "Judge("):
        assert flag not in told
    meant = {"0": 1, "20": 2, "40": 3, "60": 5}
    named = own(tmp_path, rows, **{**keys, "gold": {"column": "l", "values": meant}})
    assert run("run", named, *line).exit_code == 0


def test_pairs_may_be_graded_alone_where_equal_scores_are_ties(tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "a": f"a {i}", "b": f"b {i}", "l": "12t"[i % 3]} for i in range(9)]
    keys = {
        "kind": "pairs", "fields": {"instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"1": "a", "2": "b", "t": "tie"}},
        "official": {"metric": "accuracy", "ties": "right where gold is a tie"},
    }  # fmt: skip
    bench = own(tmp_path, rows, **keys)
    found = judge_own(bench, "mock:constant", tmp_path / "out", "--from-absolute")  # every score alike: ties
    assert figure(found)["value"] == pytest.approx(3 / 9)
    ours = found["ours"]
    assert ours["ours: accuracy"]["value"] == pytest.approx(3 / 9)
    assert (ours["ours: accuracy, without gold ties"]["value"], ours["ours: accuracy, ties half"]["value"]) == (0, 0.5)
    assert "each graded alone" in ours["ours: accuracy"]["rule"]
    several = {"column": ["l", "m"], "values": {"1": "a", "2": "b", "t": "tie"}, "rule": "majority"}
    rated = own(tmp_path, [{**row, "m": row["l"]} for row in rows], **{**keys, "gold": several})
    found = judge_own(rated, "mock:constant", tmp_path / "rated", "--from-absolute")
    assert figure(found)["value"] == pytest.approx(3 / 9)


def test_ties_of_rewardbench_2_have_a_score_of_their_own(tmp_path: Path) -> None:
    four = {"prompt": "Say it.", "chosen": ["yes"], "rejected": list("abc"), "num_correct": 1, "subset": "Math"}
    tied = {"prompt": "A colour?", "chosen": ["red", "blue"], "rejected": ["seven"], "num_correct": 2, "subset": "Ties"}
    alone = {"prompt": "Sky?", "chosen": ["blue"], "rejected": ["nine"], "num_correct": 1, "subset": "Ties"}
    rows = [{"id": "q", **four}]
    rows += [{"id": f"{kind}:{i}", **each} for i in range(3) for kind, each in (("tied", tied), ("ref", alone))]
    found = judge_own(own(tmp_path, rows, **_keys("rewardbench-2")), "mock:constant", tmp_path / "out")
    groups = {name: each["value"] for each in found["official"] for name, each in each["groups"].items()}
    assert groups == {"Math": 1 / 4, "Ties": 0}  # by their own formula no gap is above 0
    assert figure(found)["value"] == pytest.approx(1 / 8)


def test_orders_are_made_of_scores_and_letters_that_are_no_order_are_told(tmp_path: Path) -> None:
    row = {"instruction": "Q", "answers": [{"answer": text} for text in "abcd"], "original_dataset": "coco"}
    rows = [{"id": i, **row, "human_answer": letters} for i, letters in enumerate(("ABCD", "DCBA"))]
    keys = _keys("mllm-as-a-judge-batch")
    keys["fields"].pop("image")
    bench = own(tmp_path, rows, **keys)
    found = judge_own(bench, "mock:constant", tmp_path / "out")
    assert found["official"][0]["metric"] == "order distance"
    # four that score alike: of their 24 orders 1 is right, 12 are two edits away, 5 three and 6 four
    assert figure(found)["value"] == pytest.approx((12 * 2 + 5 * 3 + 6 * 4) / 24 / 4)
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert [item["gold"]["places"] for item in items] == [[1, 2, 3, 4], [4, 3, 2, 1]]
    (tmp_path / "rows.jsonl").write_text(json.dumps({**rows[0], "human_answer": "ABC"}))
    done = run("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "b")
    assert "'ABC' is no order of 4 responses" in str(done.exception)


def test_the_authors_protocol_and_what_is_left_out_are_told_and_keep_folders_apart(tmp_path: Path) -> None:
    row = {"q": "What is shown?", "a": "A cat.", "score": 4, "picture": "gone.png", "id": "LRV-7"}
    rows = [{**row, "id": f"{family}-{i}"} for i in range(3) for family in ("LRV", "mmmu_x")]
    keys = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a", "image": "picture"},
        "gold": {"column": "score", "scale": "1-5"}, "groups": {"family": "id/-_"},
        "protocol": {"samples": 3, "temperature": 1.0},
        "official": {"metric": "mean score", "over": "groups", "group": "family"},
    }  # fmt: skip
    bench = own(tmp_path, rows, **keys)
    words = ("run", bench, "--judge", "mock:oracle", "--data", tmp_path, "-q")
    assert "gone.png" in str(run(*words, "--out", tmp_path / "a").exception)
    out = tmp_path / "b"
    done = run(*words, "--out", out, "--without", "media", "--protocol", "authors")
    assert done.exit_code == 0, (done.output, done.exception)
    found = cards(out)["mine"]
    assert "samples of each question: 3 at temperature 1, joined" in found["told"]
    assert "asked without media" in found["told"]
    assert {name for each in found["official"] for name in each["groups"]} == {"LRV", "mmmu"}
    picture = tmp_path / "gone.png"
    picture.write_bytes(PNG)
    assert "without was ['media'], is []" in str(run(*words, "--out", out).exception)
    picture.unlink()
    both = run(*words, "--out", tmp_path / "c", "--without", "media", "--protocol", "authors", "-n", 2)
    assert "leave out --samples" in str(both.exception)
    done = run(*words, "--out", tmp_path / "d", "--without", "media")
    assert "samples of each question: 1; the authors take 3 at temperature 1" in " ".join(
        cards(tmp_path / "d")["mine"]["told"]
    )


def _listed(name: str) -> str:
    return (Path(dikast.benches.__file__).parent / "catalogue" / f"{name}.yaml").read_text()


def _keys(name: str) -> dict[str, Any]:
    found = yaml.safe_load(_listed(name))
    return {key: found[key] for key in ("kind", "fields", "gold", "groups", "official") if key in found}


def test_sections_weigh_as_upstream_has_them_and_ties_earn_a_half(tmp_path: Path) -> None:
    sections = yaml.safe_load(_listed("rewardbench"))["official"]["sections"]
    subsets = [name for inside in sections.values() for name in inside]
    pair = {"prompt": "?", "chosen": "yes", "rejected": "no"}
    rows = [{"id": f"{name}-{i}", **pair, "subset": name} for name in subsets for i in range(2)]
    found = judge_own(own(tmp_path, rows, **_keys("rewardbench")), "mock:constant", tmp_path / "out")
    assert figure(found)["value"] == pytest.approx(0.5)  # always a tie
    assert {"section Chat", "section Chat Hard", "section Safety", "section Reasoning"} <= figure_groups(found)
    assert found["ours"]["ours: accuracy"]["value"] == 0  # and never right


def test_a_sample_weighs_its_groups_as_the_whole_bench_does(tmp_path: Path) -> None:
    # math has 20 rows that count as the 40 of code, all right; code is all wrong. A sample of 15 has 5 of math: half
    # of the section is math's there too, where 40 fixed rows beside 10 would make .8 of it
    pair = {"prompt": "?", "chosen": "yes", "rejected": "no"}
    rows = [{"id": f"m{i}", **pair, "subset": "math", "better": "1"} for i in range(20)]
    rows += [{"id": f"c{i}", **pair, "subset": "code", "better": "2"} for i in range(40)]
    keys = {
        "kind": "pairs", "groups": {"subset": "subset"}, "gold": {"column": "better", "values": {"1": "a", "2": "b"}},
        "fields": {"id": "id", "instruction": "prompt", "response_0": "chosen", "response_1": "rejected"},
        "protocol": {"orders": "one"},
        "official": {"metric": "accuracy", "over": "sections", "group": "subset", "weights": {"math": 2},
                     "sections": {"reasoning": ["math", "code"]}},
    }  # fmt: skip
    for name, more in (("whole", ()), ("sample", ("--limit", 15))):
        found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / name, *more)
        assert figure(found)["value"] == pytest.approx(0.5), name


def test_upstream_weighs_math_as_much_as_code() -> None:
    official = yaml.safe_load(_listed("rewardbench"))["official"]
    assert official["weights"]["math-prm"] * 447 == pytest.approx(984, abs=1e-6)  # rows of math, and of the code


def figure_groups(card: dict[str, Any]) -> set[str]:
    return set(card["official"][0]["groups"])


def test_models_against_a_baseline_have_scores_win_rates_and_rewards(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "q": f"{i}?", "base": "as long as any"} for i in range(12)]
    official = {"metric": ["bradley-terry score", "win rate", "reward"], "failures": "tie", "ties": "half"}
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response": "base"}, "official": official,
        "responses": "to be brought", "baseline": "base",
    }  # fmt: skip
    answers, bench = tmp_path / "answers.jsonl", own(tmp_path, rows, **keys)
    given = [{"id": f"q{i}", "response": text, "model": model} for i in range(12)
             for model, text in (("long", "as long as any " * 40), ("short", "as"))]  # fmt: skip
    answers.write_text("".join(json.dumps(each) + "\n" for each in given))
    judged = judge_own(bench, "mock:prefers-long,r=0,per_doubling=1", tmp_path / "a", "--responses", answers)
    score, wins, rewards = judged["official"]
    assert set(score["groups"]) == set(wins["groups"]) == {"long", "short"}
    assert score["groups"]["long"]["value"] > 0.9 > 0.1 > score["groups"]["short"]["value"]
    assert "one for each of 2 models" in score["value"]["note"]
    assert wins["groups"]["long"]["value"] > 0.9
    assert rewards["groups"]["long"]["value"] == pytest.approx(wins["groups"]["long"]["value"] - 0.5)  # no strong ones
    slots = judge_own(bench, "mock:first-slot", tmp_path / "b", "--responses", answers)
    assert [each["groups"]["long"]["value"] for each in slots["official"]] == pytest.approx([0.5, 0.5, 0])
    assert "position controlled" in " ".join(slots["official"][0]["ours"])
    answers.write_text("".join(json.dumps({"id": f"q{i}", "response": "as " * 99}) + "\n" for i in range(12)))
    alone = judge_own(bench, "mock:prefers-long,r=0,per_doubling=1", tmp_path / "d", "--responses", answers)
    assert figure(alone, "bradley-terry score")["value"] > 0.9


def test_several_raters_are_the_ceiling_of_a_live_judge(tmp_path: Path) -> None:
    said = ["111", "112", "122", "222"]  # three raters of four pairs
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": "x", "b": "y", **dict(zip("uvw", votes, strict=True))}
            for i, votes in enumerate(said)]  # fmt: skip
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": ["u", "v", "w"], "values": {"1": "a", "2": "b"}, "rule": "majority"},
        "official": {"metric": "accuracy"},
    }  # fmt: skip
    found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "out", "--limit", 4)
    ceiling = found["ours"]["ceiling: one rater against another (ceiling) (accuracy)"]
    assert ceiling["value"] == pytest.approx((3 + 1 + 1 + 3) / 12)  # of three pairs of raters on each item
    assert figure(found)["value"] == pytest.approx(0.5)  # the majority, which the first slot is half of the time


@pytest.mark.parametrize("rule", ["majority", "mean", "first"])
def test_rows_of_a_single_rater_keep_their_gold_and_the_first_is_the_first_who_spoke(rule: str, tmp_path: Path) -> None:
    votes: list[tuple[int | None, ...]] = [(None, 2, 2), (1, 2, None), *[(4, 4, 2)] * 6, *[(3, None, None)] * 4]
    golds: dict[str, list[float | None]] = {
        "majority": [2, None, *[4] * 6, *[3] * 4], "mean": [2, 1.5, *[10 / 3] * 6, *[3] * 4],
        "first": [2, 1, *[4] * 6, *[3] * 4],
    }  # fmt: skip
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": "x", **dict(zip("uvw", said, strict=True))}
            for i, said in enumerate(votes)]  # fmt: skip
    keys = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
        "gold": {"column": ["u", "v", "w"], "scale": "1-5", "rule": rule}, "official": {"metric": ["mae", "exact"]},
    }  # fmt: skip
    found = judge_own(own(tmp_path, rows, **keys), "mock:constant", tmp_path / "out")
    kept = [each for each in golds[rule] if each is not None]
    verdict = json.loads((tmp_path / "out/mine/verdicts.jsonl").read_text().splitlines()[0])["score"]
    assert figure(found)["n"] == len(kept)
    assert figure(found)["value"] == pytest.approx(sum(abs(verdict - each) for each in kept) / len(kept))
    raters = tmp_path / "out/mine/raters.jsonl"
    before = raters.read_text().splitlines(keepends=True)
    write_checked(raters, "".join(line for line in before if line.count(":") > 2).encode())  # as earlier versions wrote
    assert figure(cards(tmp_path / "out")["mine"])["n"] == len(kept)


def test_mm_judgebias_counts_falls_where_evidence_is_gone_and_stays_where_nothing_is(tmp_path: Path) -> None:
    scores = {  # unbiased, biased, of a scale from 1 to 5
        ("text_dominance", 1): (4, 2), ("text_dominance", 2): (3, 5), ("text_dominance", 3): (1, 1),
        ("texture_insertion", 4): (4, 2), ("texture_insertion", 5): (5, 5),
    }  # fmt: skip
    rows = [{"id": i, "response": "r", "unbiased_instruction": f"whole {i}", "biased_instruction": f"cut {i}",
             "unbiased_image": None, "biased_image": None, "bias_type": bias, "bias_category": "c"}
            for bias, i in scores]  # fmt: skip
    keys = {**_keys("mm-judgebias"), "optional": ["image"]}
    keys |= {key: yaml.safe_load(_listed("mm-judgebias"))[key] for key in ("variants", "rubric")}
    replies = tmp_path / "replies.jsonl"
    said = [{"item": f"{i}/{name}", "reply": f"Verdict: {score}"} for (_, i), both in scores.items()
            for name, score in zip(("unbiased", "biased"), both, strict=True)]  # fmt: skip
    replies.write_text("".join(json.dumps(each) + "\n" for each in said))
    bench = own(tmp_path, rows, **keys)
    found = judge_own(bench, f"replay:{replies}", tmp_path / "out", "--format", "score-only")
    groups = found["official"][0]["groups"]
    assert groups["text_dominance"]["value"] == pytest.approx((2 / 3 + 0) / 2)  # nothing lies below 1: left out
    assert groups["text_dominance"]["dropped"] == 1
    assert groups["texture_insertion"]["value"] == pytest.approx(((1 - 2 / 3) + 1) / 2)
    assert figure(found)["value"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert {item["id"]: item["instruction"] for item in items}["1/biased"] == "cut 1"


@pytest.mark.parametrize("case", ["repeated", "lower is better", "two criteria"])
def test_the_bias_of_scores_is_of_each_row_in_the_direction_of_its_scale(case: str, tmp_path: Path) -> None:
    row = {"id": 7, "response": "r", "unbiased_instruction": "whole", "biased_instruction": "cut",
           "unbiased_image": None, "biased_image": None, "bias_type": "text_dominance",
           "bias_category": "c"}  # fmt: skip
    keys = {**_keys("mm-judgebias"), "optional": ["image"]}
    keys["variants"] = yaml.safe_load(_listed("mm-judgebias"))["variants"]
    bench, rubric = own(tmp_path, [row, row], **keys), tmp_path / "rubric.yaml"
    one = {"name": "x", "criterion": "Good?", "scale": "1-5", "lower_is_better": case == "lower is better"}
    rubric.write_text(yaml.safe_dump({"name": "s", "criteria": [one, {**one, "name": "y"}]} if "two" in case else one))
    scores = {"7/unbiased": 4, "7/biased": 2, "7/unbiased#2": 3, "7/biased#2": 5}
    said = [{"item": name, "reply": f"Verdict: {6 - score if 'lower' in case else score}"}
            for name, score in scores.items()]  # fmt: skip
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps(each) + "\n" for each in said))
    words = (f"replay:{replies}", tmp_path / "out", "--format", "score-only", "--rubric", rubric)
    if "two" in case:
        done = run("run", bench, "--judge", words[0], "--data", tmp_path, "--out", *words[1:], "-q")
        assert done.exit_code in (0, 3), done.output
        assert "one score of each item" in str(run("report", tmp_path / "out").exception)
        return
    found = figure(judge_own(bench, *words))
    assert (found["value"], found["n"]) == (pytest.approx((2 / 3 + 0) / 2), 2)


def test_gold_on_another_scale_than_that_of_the_rubric_is_moved_to_it(tmp_path: Path) -> None:
    # gold 1 to 5; replies on 0-10 that say as nearly the same as whole numbers can
    rows = [{"q": f"q{i}", "r": f"r{i}", "score": 1 + i % 5} for i in range(40)]
    keys = {"kind": "scores", "fields": {"instruction": "q", "response": "r"}, "rubric": "helpfulness",
            "gold": {"column": "score", "scale": "1-5"},
            "official": {"metric": ["mae", "pearson"], "failures": "skipped"}}  # fmt: skip
    bench, rubric, replies = own(tmp_path, rows, **keys), tmp_path / "rubric.yaml", tmp_path / "replies.jsonl"
    names = [item.id for item in read_rows(load_bench(str(bench)), tmp_path).items]
    said = [{"item": name, "reply": f"Verdict: {(0, 3, 5, 7, 10)[i % 5]}"} for i, name in enumerate(names)]
    replies.write_text("".join(json.dumps(each) + "\n" for each in said))
    asked = {"name": "x", "criterion": "Good?", "scale": "0-10"}
    rubric.write_text(yaml.safe_dump(asked))
    found = judge_own(bench, f"replay:{replies}", tmp_path / "out", "--format", "score-only", "--rubric", rubric)
    # of five rows two are off by .05 of goodness: .3 for 1/4, and .7 for 3/4
    assert figure(found, "mae")["value"] == pytest.approx(0.02)
    rubric.write_text(yaml.safe_dump({**asked, "lower_is_better": True}))
    done = run("run", bench, "--judge", f"replay:{replies}", "--data", tmp_path, "--out", tmp_path / "other",
               "--rubric", rubric)  # fmt: skip
    assert isinstance(done.exception, UserError)
    assert "of which the highest is the best" in str(done.exception)
    assert not (tmp_path / "other").exists()


def test_each_row_has_the_rubrics_of_its_skills_and_each_skill_a_figure(tmp_path: Path) -> None:
    levels = dict(zip("12345", "abcde", strict=True))
    skills = [{"Skill": name, "Criteria": f"{name}?", "Scoring": levels} for name in ("Brief", "True")]
    (tmp_path / "skills.json").write_text(json.dumps(skills))
    rows = [{"idx": i, "instruction": f"{i}?", "answer": "a", "skill": named, "difficulty": "d"}
            for i, named in enumerate((["Brief", "True"], ["True"]))]  # fmt: skip
    listed = yaml.safe_load(_listed("flask"))
    keys = {key: listed[key] for key in ("kind", "fields", "groups", "official", "responses")}
    keys["rubrics"] = {**listed["rubrics"], "file": "skills.json", "sha256": ""}
    keys["official"] = {**listed["official"], "printed": ["True", "Brief"]}
    bench = own(tmp_path, rows, **keys)
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"id": i, "response": "r"}) + "\n" for i in (0, 1)))
    found = judge_own(bench, "mock:constant", tmp_path / "out", "--responses", answers)
    assert {each["metric"]: each["value"]["n"] for each in found["official"]} == {
        "mean score: True": 2, "mean score: Brief": 1, "pearson": 0,
    }  # fmt: skip
    assert [each["metric"] for each in found["pooled"]] == ["mean score"]  # the authors print none over skills
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert "Brief?" in json.dumps(items[0]["rubric"])
    assert "Brief?" not in json.dumps(items[1]["rubric"])
    (tmp_path / "rows.jsonl").write_text(json.dumps({**rows[0], "skill": ["Breef"]}))
    wrong = run("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "b")
    assert "field 'skill': skills.json has no rubric 'Breef': did you mean 'Brief'?" in str(wrong.exception)


def test_criteria_of_one_response_are_no_independent_rows(tmp_path: Path) -> None:
    skills = [{"Skill": name, "Criteria": f"{name}?", "Scoring": dict.fromkeys("12345", name)} for name in "xyz"]
    (tmp_path / "skills.json").write_text(json.dumps(skills))
    rows = [{"idx": i, "instruction": f"{i}?", "answer": "a", "skill": ["x", "y", "z"], "difficulty": "d"}
            for i in range(8)]  # fmt: skip
    listed = yaml.safe_load(_listed("flask"))
    keys = {key: listed[key] for key in ("kind", "fields", "groups", "official", "responses")}
    keys["official"].pop("printed")
    bench = own(tmp_path, rows, **keys, rubrics={**listed["rubrics"], "file": "skills.json", "sha256": ""})
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"id": i, "response": f"{i}"}) + "\n" for i in range(8)))
    replies = tmp_path / "replies.jsonl"
    scores: dict[str, list[list[int]]] = {}
    for name, more in (("whole", ()), ("less", ("--without", "reference"))):
        scores[name] = [[1 + (i * (1 + (name == "less")) + k) % 5 for k in range(3)] for i in range(8)]
        said = [{"item": str(i), "criterion": each, "reply": f"Verdict: {score}"}
                for i, row in enumerate(scores[name]) for each, score in zip("xyz", row, strict=True)]  # fmt: skip
        replies.write_text("".join(json.dumps(each) + "\n" for each in said))
        words = ("--format", "score-only", "--responses", answers, *more)
        judge_own(bench, f"replay:{replies}", tmp_path / name, *words)
    told = json.loads(run("report", tmp_path / "whole", tmp_path / "less", "--draws", 20, "--json").stdout)[0]
    ours, whole, less = told["ours"], np.array(scores["whole"], float), np.array(scores["less"], float)
    for name, values, n in (
        ("ours: mean score", whole, 24), ("with less without reference: mean score", whole - less, 24),
    ):  # fmt: skip
        means = values.mean(1)  # one of each response
        half = 2.3646 * means.std(ddof=1) / 8**0.5  # Student's quantile, 7 degrees of freedom
        assert ours[name]["n"] == n
        assert ours[name]["value"] == pytest.approx(means.mean())
        assert ours[name]["high"] - ours[name]["value"] == pytest.approx(half, rel=1e-4), name
    official = figure(told)
    assert official["high"] - official["value"] == pytest.approx(2.3646 * whole.mean(1).std(ddof=1) / 8**0.5, rel=1e-4)


def test_a_column_that_looks_like_gold_is_a_guess_which_bench_flags_can_answer(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "q": f"{i}?"} for i in range(60)]
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q"}, "responses": "to be brought",
        "official": {"metric": "mean score"},
    }  # fmt: skip
    bench, answers = own(tmp_path, rows, **keys), tmp_path / "answers.jsonl"
    for place, (column, said) in enumerate({"human_score": range(10, 70), "winner": "ab" * 30}.items()):
        answers.write_text(
            "".join(json.dumps({"id": f"q{i}", "response": "x", column: each}) + "\n" for i, each in enumerate(said))
        )
        out = tmp_path / f"out{place}"
        judge_own(bench, "mock:random", out, "--responses", answers)
        notes = " ".join(json.loads((out / "mine/summary.json").read_text())["notes"])
        assert f"'{column}'" in notes
        assert "`dikast bench report RUN --gold COLUMN`" in notes
        assert "--map" not in notes
    people = json.loads(
        run("report", tmp_path / "out0", "--gold", "human_score", "--equate", "0-100", "--draws", 20, "--json").stdout
    )[0]
    assert people["ours"]["ours: pearson"]["n"] == 60
    assert "scores were put on gold's scale 0-100 by equal ranks" in people["told"]
    judged = tmp_path / "out0/mine"
    off = str(run("report", tmp_path / "out0", "--gold", "human_score").exception)
    assert "--equate 0-100 says that gold has a scale of its own" in off  # which this verb has
    assert off.endswith(f"(--scale, --failed: flags of `dikast audit {judged}`, which measures the same verdicts)")
    audited = CliRunner().invoke(app, ["audit", str(judged), "--gold", "human_score", "--scale", "none"])
    assert (audited.exit_code, "pearson" in audited.stdout) == (0, True)


def test_advice_on_a_file_of_verdicts_says_where_its_flags_go(tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "a": f"a {i}", "l": 1 + i % 5} for i in range(10)]
    keys: dict[str, Any] = {
        "kind": "scores", "fields": {"instruction": "q", "response": "a"}, "gold": {"column": "l"},
        "official": {"metric": "exact"},
    }  # fmt: skip
    bench, verdicts, columns = own(tmp_path, rows, **keys), tmp_path / "v.jsonl", tmp_path / "columns.yaml"
    verdicts.write_text(
        "".join(json.dumps({"s": 1 + i % 5, "l": -1 if i == 3 else 1 + i % 5}) + "\n" for i in range(9))
    )
    columns.write_text("{score: s, gold: l, scale: 1-5}")
    line = ("report", verdicts, "--bench", bench, "--columns", columns, "--draws", 20, "--json")
    told = str(run(*line).exception)
    assert told.endswith("(--scale, --equate, --failed: in the YAML file of --columns, without the dashes)"), told
    columns.write_text("{score: s, gold: l, scale: 1-5, failed: '-1'}")
    assert json.loads(run(*line).stdout)[0]["official"][0]["value"]["n"] == 8


def test_options_of_runs_are_refused_for_files_of_verdicts_and_the_other_way_round(tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text('{"s": 1, "l": 1}\n')
    for options in (("--gold", "l"), ("--equate", "1-5")):
        told = str(run("report", tmp_path / "v.jsonl", "--bench", "tifa", *options).exception)
        assert told.startswith(f"{options[0]}: only of a run folder"), told
    for options in (("--bench", "tifa"), ("--columns", str(tmp_path / "v.jsonl")), ("--judge", "x")):
        told = str(run("report", tmp_path, *options).exception)
        assert told.startswith(f"{options[0]}: only of a file of verdicts"), told


def test_brought_gold_of_a_reference_judge_ranks_the_models(tmp_path: Path) -> None:
    rows = [{"question_id": f"q{i}", "question": f"{i}?", "answer": "a"} for i in range(3)]
    keys = {key: yaml.safe_load(_listed("mmhal"))[key] for key in ("kind", "official", "responses")}
    keys["fields"] = {"id": "question_id", "instruction": "question", "reference": "answer"}
    bench = own(tmp_path, rows, **keys)
    answers = tmp_path / "answers.jsonl"
    given = [{"id": f"q{i}", "response": f"{model} {i}", "model": model, "gold": gold, "people": 6 - gold}
             for model, gold in zip("uvw", (1, 3, 5), strict=True) for i in range(3)]  # fmt: skip
    given[0] |= {"reference": "of its own", "rubric": "Is it short?"}
    answers.write_text("".join(json.dumps(each) + "\n" for each in given))
    found = judge_own(bench, "mock:oracle,r=1", tmp_path / "out", "--responses", answers)
    assert figure(found, "pearson")["value"] == pytest.approx(1)
    about = tmp_path / "out/mine/bench.json"
    hashes = load_bench(bench).hashes
    write_checked(about, about.read_bytes().replace(hashes[0].encode(), hashes[1].encode()))  # as of a version that hid
    # the other metrics
    again = run("run", bench, "--judge", "mock:oracle,r=1", "--data", tmp_path, "--out", tmp_path / "out", "-q",
                "--responses", answers, "--json")  # fmt: skip
    assert json.loads(again.stdout)["mine"]["asked"] == 0
    whole = about.read_bytes()
    about.write_bytes(whole.replace(b'"rows": ', b'"rows": 1'))
    refused = run("report", tmp_path / "out", "--draws", 20, "--json")
    assert "bench.json: the file has changed since it was written (checksum): remove it" in str(refused.exception)
    about.write_bytes(whole)
    assert figure(found, "kendall of models")["value"] == pytest.approx(1)
    assert "gold of 9 responses from answers.jsonl" in found["told"]
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert [item["id"] for item in items[:3]] == ["q0/u", "q0/v", "q0/w"]
    assert items[0]["reference"] == "of its own"
    assert "Is it short?" in json.dumps(items[0]["rubric"])
    assert items[1]["reference"] == "a"
    assert "rubric" not in items[1]
    people = json.loads(run("report", tmp_path / "out", "--gold", "people", "--draws", 20, "--json").stdout)[0]
    assert figure(people, "kendall of models")["value"] == pytest.approx(-1)
    answers.write_text("".join(json.dumps({**each, "model": "u"}) + "\n" for each in given))
    twice = run("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "b",
                "--responses", answers)  # fmt: skip
    assert "answers.jsonl:4: a second response of model 'u' to the prompt 'q0'" in str(twice.exception)
    answers.write_text(
        "".join(json.dumps({"id": each["id"], "response": "r", "model": [each["id"]]}) + "\n" for each in given[:3])
    )
    bare = judge_own(bench, "mock:constant", tmp_path / "c", "--responses", answers)
    assert figure(bare, "pearson")["note"].startswith("undefined")
    assert figure(bare, "kendall of models")["note"].startswith("undefined")


def test_a_run_without_part_of_the_question_is_compared_item_by_item(tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "a": f"answer {i}", "known": "k", "score": 1 + i % 5, "by": i % 2} for i in range(20)]
    keys = {
        "kind": "scores", "fields": {"instruction": "q", "response": "a", "reference": "known"},
        "gold": {"column": "score", "scale": "1-5"}, "official": {"metric": "pearson"}, "groups": {"model": "by"},
    }  # fmt: skip
    bench = own(tmp_path, rows, **keys)
    words = ("run", bench, "--judge", "mock:oracle,r=0.8", "--data", tmp_path, "-q")
    for more in (("--out", tmp_path / "whole"), ("--out", tmp_path / "less", "--without", "reference")):
        assert run(*words, *more).exit_code == 0
    told = json.loads(run("report", tmp_path / "whole", tmp_path / "less", "--draws", 50, "--json").stdout)
    whole, less = (card["ours"] for card in told)
    gap = whole["with less without reference: pearson"]
    assert gap["value"] == pytest.approx(whole["ours: pearson"]["value"] - less["ours: pearson"]["value"])
    assert gap["n"] == 20
    assert gap["low"] <= gap["value"] <= gap["high"]
    means = [json.loads((tmp_path / name / "mine/summary.json").read_text()) for name in ("whole", "less")]
    one, two = (next(iter(each["criteria"].values()))["mean_score"]["value"] for each in means)
    assert whole["with less without reference: mean score"]["value"] == pytest.approx(one - two)
    assert not any(name.startswith("with less") for name in less)
    assert "agreement" in told[0]["audit"]["tables"]
    assert "systems" not in told[0]["audit"]["tables"]  # the bench's group 'model' is no system that was brought
    assert run(*words, "--out", tmp_path / "form", "--without", "reference", "--format", "score-only").exit_code == 0
    assert run(*words, "--out", tmp_path / "bare", "--without", "rubric").exit_code == 0
    told = json.loads(
        run("report", *(tmp_path / name for name in ("whole", "form", "bare")), "--draws", 20, "--json").stdout
    )
    gaps = {name.partition(":")[0] for name in told[0]["ours"] if name.startswith("with less")}
    assert gaps == {"with less without rubric"}  # another format is not what --without changes


def test_figures_without_gold_and_with_failures_have_bounds_and_costs(tmp_path: Path) -> None:
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": "x" * (i + 1), "b": "y", "l": "1"} for i in range(30)]
    pairs = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"1": "a"}}, "official": {"metric": "accuracy"},
    }  # fmt: skip
    scores = {"kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
              "official": {"metric": "mean score", "failures": "skipped"}}  # fmt: skip
    oracle = "mock:oracle,r=0.5,failing=0.3"
    for name, keys, judge in (("pairs", pairs, oracle), ("scores", scores, "mock:failing")):
        found = judge_own(own(tmp_path, rows, **keys), judge, tmp_path / name, code=3)
        ours = found["ours"]["ours: accuracy" if name == "pairs" else "ours: mean score"]
        low, high = map(float, ours["rule"].partition("between ")[2].split(" whatever")[0].split(" and "))
        lost = (30 - ours["n"]) / 30
        if name == "scores":
            answered = ours["value"] * (1 - lost)
            assert (low, high) == pytest.approx((answered + lost * 1, answered + lost * 5), abs=1e-4)
        else:
            assert 0 <= low < ours["value"] < high <= 1
        out = tmp_path / f"{name}.csv"
        assert run("report", tmp_path / name, "--draws", 20, "-o", out).exit_code == 0
        with out.open() as file:
            told = {row["figure"]: row for row in csv.DictReader(file)}
        assert float(told["tokens in"]["value"]) > 0
        assert {"tokens out", "seconds of answering", "money"} <= told.keys()
        assert any(figure.startswith("length bias") for figure in told)
        assert any(figure.startswith("position bias: ") for figure in told) == (name == "pairs")
        assert told["ours: accuracy" if name == "pairs" else "ours: mean score"]["rule"] == ours["rule"]


def test_all_benches_are_known_before_any_row_is_fetched(tmp_path: Path) -> None:
    done = run("run", "llmbar", "judgbench", "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "o")
    assert "did you mean 'judgebench'" in str(done.exception)  # and not that the rows of llmbar are missing


def test_a_licence_is_told_once_and_a_judge_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []

    def open_one(spec: str) -> Engine:
        opened.append(spec)
        return open_engine(spec)

    monkeypatch.setattr("dikast.surface.judge_runs.open_engine", open_one)
    keys = {
        "kind": "scores", "fields": {"instruction": "q", "response": "a"}, "official": {"metric": "mean score"},
        "licence": "CC BY-NC 4.0", "forbids": "commercial use",
    }  # fmt: skip
    rows = [{"q": "1?", "a": "x"}]
    other = own(tmp_path, rows, **keys, name="other").rename(tmp_path / "other.yaml")
    bench = own(tmp_path, rows, **keys)
    words = ("run", other, bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "o")
    first, again = run(*words), run(*words)
    licence = "hf.co/datasets/org/mine @ no revision pinned, licence: CC BY-NC 4.0; it forbids commercial use"
    assert [f"{name}: {licence}" in first.stderr for name in ("other", "mine")] == [True, True], first.stderr
    assert "licence: " not in again.stderr
    assert opened == ["mock:constant"] * 2  # one for both benches, in each call
    quiet = run(*words[:-1], tmp_path / "q", "-q")
    assert f"mine: {licence}" in quiet.stderr  # what is forbidden is told with -q, too
    told = "licence of the rows: CC BY-NC 4.0; it forbids commercial use"
    assert told in run("report", tmp_path / "o").stdout
    assert told in cards(tmp_path / "o")["mine"]["told"]


def test_what_the_authors_draw_is_shown() -> None:
    told = run("show", "vicuna").stdout
    assert "3 samples at temperature 1, top-p 0.9" in told
    assert json.loads(run("show", "vicuna", "--json").stdout)["protocol"]["samples"] == 3
    assert "equal scores are drawn again, at most twice" in run("show", "hhh").stdout
    for name, told in (("mmrb2", "missing verdicts are skipped"), ("rewardbench", "a missing verdict earns .5")):
        assert told in run("show", name).stdout  # what the figure counts, and no other rule


def test_a_panel_has_a_scorecard_for_each_judge(tmp_path: Path) -> None:
    bench = own(
        tmp_path, [{"q": f"{i}?", "a": "x", "b": "y", "l": "1"} for i in range(8)], kind="pairs",
        fields={"instruction": "q", "response_0": "a", "response_1": "b"}, gold={"column": "l", "values": {"1": "a"}},
        official={"metric": "accuracy"},
    )  # fmt: skip
    done = run(
        "run",
        bench,
        "--judge",
        "mock:constant",
        "--judge",
        "mock:random",
        "--data",
        tmp_path,
        "--out",
        tmp_path / "o",
        "-q",
    )
    assert done.exit_code == 0, (done.output, done.exception)
    told = json.loads(run("report", tmp_path / "o", "--draws", 20, "--json").stdout)
    assert [card["judge"] for card in told] == ["mock:constant", "mock:random"]


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (("a", "b", "tie"), 1), (("A", " b ", "Tie"), 1), (("first", "second", "tie"), 1), (("A>B", "B>A", "A=B"), 1),
        (("[[A>>B]]", "[[B>>A]]", "[[A=B]]"), 1), (("A<B", "B>>A", "second"), 0),
    ],
)  # fmt: skip
def test_gold_of_pairs_is_spelt_as_the_audit_reads_it(words: tuple[str, ...], right: int, tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "a": "x " * 50, "b": "y", "won": word} for i, word in enumerate(words)]
    bench = own(
        tmp_path, rows, kind="pairs", fields={"instruction": "q", "response_0": "a", "response_1": "b"},
        gold={"column": "won"}, official={"metric": "accuracy"},
    )  # fmt: skip
    found = judge_own(bench, "mock:prefers-long,r=0,per_doubling=9", tmp_path / "out")  # the first
    assert (figure(found)["n"], figure(found)["value"]) == (3, pytest.approx(right / 3))


def test_gold_of_pairs_that_is_a_mean_of_numbers_may_be_text(tmp_path: Path) -> None:
    rows = [{"q": "?", "a": "x", "b": "y", "won": ["0.4", "1"]}]
    bench = own(
        tmp_path, rows, kind="pairs", fields={"instruction": "q", "response_0": "a", "response_1": "b"},
        gold={"column": "won", "rule": "mean"}, official={"metric": "accuracy"},
    )  # fmt: skip
    assert gold_of_row(load_bench(bench), rows[0]) == pytest.approx(0.7)


def test_the_mean_of_raters_does_not_depend_on_their_order(tmp_path: Path) -> None:
    votes = [(0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.2, 0.2)]
    rows = [{"q": "?", "a": "x", "w": list(said)} for said in votes]
    bench = own(
        tmp_path, rows, kind="scores", fields={"instruction": "q", "response": "a"},
        gold={"column": "w", "scale": "0-1", "rule": "mean"}, official={"metric": "spearman"},
    )  # fmt: skip
    assert [gold_of_row(load_bench(bench), row) for row in rows] == [0.2, 0.2, 0.2]


def test_a_bench_is_drafted_from_its_rows_and_checked(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"prompt": "?", "chosen": "x", "rejected": "y"}) + "\n")
    path = tmp_path / "fresh.yaml"
    assert isinstance(run("new", path, "--hub", "https://u:p@h/x", "--file", "rows.jsonl").exception, UserError)
    assert not path.exists()
    made = run("new", path, "--hub", "org/fresh", "--file", "rows.jsonl", "--data", tmp_path)
    assert made.exit_code == 0, (made.output, made.exception)
    text = path.read_text()
    assert 'response_0: "chosen"' in text
    assert "kind: pairs" in text
    assert text.count("\n") <= 40
    again = run("new", path, "--data", tmp_path)
    assert isinstance(again.exception, UserError)
    path.write_text(text.replace("TODO", "done"))
    sound = run("new", path, "--data", tmp_path)
    assert sound.exit_code == 0, (sound.output, sound.exception)
    assert "1 row read" in sound.stdout
    named = own(
        tmp_path, [{"q": "?", "a": "x", "b": "y", "won": word} for word in ("tie", "model_a")], kind="pairs",
        fields={"instruction": "q", "response_0": "a", "response_1": "b"}, gold={"column": "won"},
        official={"metric": "accuracy"},
    )  # fmt: skip
    told = "rows.jsonl:2: field 'won': 'model_a' is no choice between two responses: say under 'values' of 'gold'"
    assert told in str(run("new", named, "--data", tmp_path).exception)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"prompt": "?", "chosen": "x", "rejected": "y"}) + "\n")
    many = [word for i in range(40) for word in ("--file", f"part-{i}.jsonl")]
    assert "name files that are alike by one path" in str(
        run("new", tmp_path / "b.yaml", "--hub", "a/b", *many).exception
    )
    made = run("new", tmp_path / "b.yaml", "--hub", "a/b", "--file", "row*.jsonl", "--data", tmp_path)
    assert made.exit_code == 0, (made.output, made.exception)
    assert 'response_0: "chosen"' in (tmp_path / "b.yaml").read_text()
    path.write_text(path.read_text() + "# longer\n" * 40)
    assert "at most 40" in str(run("new", path).exception)


@pytest.mark.parametrize(
    ("row", "golds", "line"),
    [
        ({"prompt": "?", "chosen": "x", "rejected": "y"}, {}, 'gold: {column: "chosen", default: a}  # the first'),
        ({"question": "?", "answer_a": "x", "answer_b": "y"}, {"winner": ["model_a", "tie", "model_b"]},
         'gold: {column: "winner", values: {"model_a": a, "model_b": b, "tie": tie}}'),
        ({"instruction": "?", "response_a": "x", "response_b": "y"}, {"preference": ["B", "A"]},
         'gold: {column: "preference", values: {"A": a, "B": b}}'),
        ({"prompt": "?", "responses": ["x", "y"]}, {"winner": [1, 0]},
         'gold: {column: "winner", values: {"0": a, "1": b}}'),
        ({"question": "?", "answer": "x"}, {"human_score": [2, 8]},
         'gold: {column: "human_score", scale: 1-10}  # the scale is a guess'),
        ({"question": "?", "answer": "x"}, {"rating": [2, 5]}, 'gold: {column: "rating"}\n'),
        ({"instruction": "?", "output_1": "x", "output_2": "y", "kind": "k"}, {"label": [1, 2]},
         "# gold: {column: COLUMN}  # of the others: kind, label"),
        ({"prompt": "?", "reference": "r"}, {}, "leave 'response' out and write: responses: to be brought"),
    ],
)  # fmt: skip
def test_a_draft_says_what_its_gold_means(
    row: dict[str, Any], golds: dict[str, list[Any]], line: str, tmp_path: Path
) -> None:
    """The draft of rows with a chosen and a rejected response could not be read: the chosen text was gold."""
    many = [dict(zip(golds, each, strict=True)) for each in zip(*golds.values(), strict=True)] or [{}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({**row, **each}) + "\n" for each in many))
    path = tmp_path / "fresh.yaml"
    made = run("new", path, "--hub", "org/fresh", "--file", "rows.jsonl", "--data", tmp_path)
    assert made.exit_code == 0, (made.output, made.exception)
    text = path.read_text()
    assert line in text
    path.write_text(text.replace("TODO", "done").replace('response: "done"', 'response: "prompt"'))
    read = run("new", path, "--data", tmp_path)
    assert read.exit_code == 0, (read.output, read.exception)
    if line.startswith("gold"):
        judged = run("run", path, "--judge", "mock:oracle", "--data", tmp_path, "--out", tmp_path / "out", "-q")
        assert judged.exit_code == 0, (judged.output, judged.exception)  # an oracle needs gold that it can read


def _row(bench: Bench, said: str) -> dict[str, Any]:
    """A row of a bench by its own map, whose instruction (or else its responses) is `said`."""
    row: dict[str, Any] = {f"orig_score{i}_description": f"level {i}" for i in range(1, 6)} if bench.reader else {}
    row |= {f"orig_{name}": f"the {name} of {bench.name}" for name in ("criteria", "reference_answer", "response")}
    row |= {"orig_instruction": said, "orig_response_A": "one", "orig_response_B": "two"}
    mapped = [each for own in (bench.fields, *bench.variants.values()) for each in own.items()]
    spoken = "instruction" if any(name == "instruction" for name, _ in mapped) else "response"
    for name, paths in mapped:
        for path in paths if isinstance(paths, list) else [paths]:
            for column in re.findall(r"\{([^{}]+)\}", path) or [path]:
                row[column] = said if name == spoken else f"the {column} of {bench.name}"
    if (gold := bench.gold) is not None:
        first = str(next(iter(gold.values), gold.default))
        value = 3 if gold.scale else 1 if gold.count else "ABCD" if gold.order else first
        row |= dict.fromkeys(gold.column, json.loads(first) if first.startswith("[") else value)
    for column in bench.groups.values():
        row.setdefault(column.partition("/")[0], "g")
    if bench.rubrics is not None:
        row[bench.rubrics.column] = ["Brief"]
    if bench.reader == "conversation pair":
        talk = [{"role": "user", "content": said}, {"role": "assistant", "content": f"an answer of {bench.name}"}]
        row |= {"turn": 1, "judge": "expert_1"} | {
            str(bench.fields[name]): talk for name in ("response_0", "response_1")
        }
    return row


def _lay_out_one(bench: Bench, folder: Path, row: dict[str, Any]) -> None:
    """The row in each file of its source: JSON, JSON Lines or Parquet, where the bench looks for it."""
    for path in bench.source.files:
        file = folder / bench.name / path.replace("*", "0")
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".parquet":
            write_records(file, [row])
        else:
            file.write_text(
                json.dumps({"pairs": [row]} if bench.source.at == "pairs" else row if "l" in file.suffix else [row])
            )
    if bench.rubrics is not None:
        (folder / bench.name / bench.rubrics.file).parent.mkdir(parents=True)
        skill = {"Skill": "Brief", "Criteria": "Brief?", "Scoring": dict.fromkeys("12345", "x")}
        (folder / bench.name / bench.rubrics.file).write_text(json.dumps([skill]))


def test_a_draft_leaves_to_do_what_no_column_is_known_to_be(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "q": "?", "x": "one", "y": "two"}\n')
    mine = tmp_path / "mine.yaml"
    done = run("new", mine, "--hub", "org/mine", "--file", "rows.jsonl", "--data", tmp_path)
    assert done.exit_code == 0, done.exception
    assert 'id: "id"\n  instruction: "TODO"\n  response: "TODO"\n' in mine.read_text()


def test_two_benches_of_one_name_share_no_folder(tmp_path: Path) -> None:
    """The items of the second were written over those of the first, whose verdicts had no scorecard."""
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "official": {"metric": "accuracy"}, "gold": {"column": "l"},
    }  # fmt: skip
    bench = own(tmp_path, [{"id": "1", "q": "?", "a": "x", "b": "y", "l": "a"}], **keys)
    other = tmp_path / "other.yaml"
    other.write_text(bench.read_text().replace("title: Mine", "title: Other"))
    for both in ((bench, other), ("llmbar", "llmbar")):
        done = run("run", *both, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "out")
        assert "is the name of 2 of these benches, and of one folder" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_feedback_data_is_checked_against_every_bench(recorded: Path, tmp_path: Path) -> None:
    here = lay_out(recorded, tmp_path / "rows", most=9)
    others = {
        name: f"What would the authors of {name} ask in a sentence of theirs?" for name in names() if name not in here
    }
    for name, said in others.items():
        _lay_out_one(load_bench(name), tmp_path / "rows", _row(load_bench(name), said))
    questions = tmp_path / "rows/fastchat/llm_judge/data/mt_bench/question.jsonl"
    stolen = json.loads(questions.read_text().splitlines()[3])["turns"][0]
    data = tmp_path / "data.jsonl"
    rows = [{"id": "a", "instruction": stolen, "response": "x"}, {"id": "b", "instruction": "New.", "response": "y"}]
    rows += [{"id": name, "instruction": said, "response": said} for name, said in others.items()]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["corpus", "check", str(data), "--exact", "--json", "--bench-data", str(tmp_path / "rows")]
    benches = [f"bench:{name}" for name in names()]
    done = CliRunner().invoke(app, [*words, *(word for name in benches for word in ("--against", name))])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "bench:biggen: BiGGen-Bench/sample_responses.json is not the published file" in done.stderr
    found = json.loads(done.stdout)
    assert list(found["against"]) == benches
    assert all(found["against"].values())
    leaked = {name: each["found"] for name, each in found["findings"].items() if "leaked" in name}
    assert sum(leaked.values()) == 1 + len(others), found["findings"]
    wrong = CliRunner().invoke(app, [*words, "--against", "bench:mt-bnch"])
    assert "did you mean" in str(wrong.exception)


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
def test_every_bench_on_disk_gives_a_scorecard(judge: str, recorded: Path, tmp_path: Path) -> None:
    here = [load_bench(name) for name in lay_out(recorded, tmp_path / "rows")]
    text = [bench.name for bench in here if bench.responses == "in the rows"]
    brought = [bench for bench in here if bench.responses == "to be brought"]
    for bench in here:
        if bench.media != "none":
            _draw(bench.name, tmp_path / "rows")
    limit = 10 if judge == "scout" else 60
    common = (
        "--judge", judge, "--data", tmp_path / "rows", "--unverified-rows", "--skip-missing", "-q", "--limit", limit,
    )  # fmt: skip
    done = run("run", *text, "--out", tmp_path / "out", *common)
    assert done.exit_code in (0, 3), (done.output, done.exception)  # 3: PandaLM has empty responses
    for bench in brought:
        answers = tmp_path / f"{bench.name}.jsonl"
        ids = _ids(bench.name, tmp_path / "rows")
        answers.write_text("".join(json.dumps({"id": name, "response": "An answer."}) + "\n" for name in ids))
        done = run("run", bench.name, "--out", tmp_path / "out", "--responses", answers, *common)
        assert done.exit_code in (0, 3), (done.output, done.exception)
    found = cards(tmp_path / "out")
    assert set(found) == {*text, *(bench.name for bench in brought)}
    if judge == "mock:constant":
        for name in ("llmbar", "auto-j"):
            ours = found[name]["ours"]
            floors = [each["value"] for key, each in ours.items() if key.startswith("floor: a judge that always")]
            assert min(floors) <= ours["ours: accuracy"]["value"] <= max(floors)
    if judge == "mock:constant":
        for name in ("vicuna", "mt-bench"):
            ours = found[name]["ours"]
            assert ours["ours: pearson"]["value"] is None
            floor = next(each["value"] for key, each in ours.items() if "always says" in key and "(exact)" in key)
            assert ours["ours: exact"]["value"] <= floor  # the best constant is the floor
    if judge == "mock:first-slot":
        assert figure(found["llmbar"], "right in both orders")["value"] == 0
    if judge == "mock:random":
        each = figure(found["llmbar"], "accuracy as shown")
        assert each["low"] <= 0.5  # it says tie too, which is wrong here
    rows = tmp_path / "cards.csv"
    assert run("report", tmp_path / "out", "--draws", 20, "-o", rows).exit_code == 0
    with rows.open() as file:
        assert {row["bench"] for row in csv.DictReader(file)} == set(found)


def _ids(name: str, rows: Path) -> list[str]:
    return [item.id for item in read_rows(load_bench(name), rows, unverified=True, pictures="count").items]


def _draw(name: str, rows: Path) -> None:
    """Draw the pictures that the first rows of a bench name, which are not recorded."""
    from PIL import Image

    for item in read_rows(load_bench(name), rows, unverified=True, pictures="count").items[:40]:
        for number, each in enumerate(item.images):
            path = Path(each.root, each.source)
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (32, 32), (number * 80 % 255, 90, 200)).save(path, "PNG")


@pytest.mark.slow
def test_a_tiny_untrained_vision_model_is_told_as_what_it_is(recorded: Path, tmp_path: Path) -> None:
    """Rows of all benches on disk; the pictures that the first ones name are drawn here."""
    here = lay_out(recorded, tmp_path / "rows", most=45)
    for name in here:
        if load_bench(name).media != "none":
            _draw(name, tmp_path / "rows")
    model = tiny_models.build("qwen_vl", tmp_path / "model")
    common = ("--judge", model, "--data", tmp_path / "rows", "--unverified-rows", "--skip-missing", "-q", "--limit", 3,
              "--read", "only")  # fmt: skip
    inside = [name for name in here if load_bench(name).responses == "in the rows"]
    done = run("run", *inside, "--out", tmp_path / "out", *common)
    assert done.exit_code in (0, 3), (done.output, done.exception)
    for name in set(here) - set(inside):
        answers = tmp_path / f"{name}.jsonl"
        given = [{"id": each, "response": "An answer."} for each in _ids(name, tmp_path / "rows")]
        answers.write_text("".join(json.dumps(each) + "\n" for each in given))
        done = run("run", name, "--out", tmp_path / "out", "--responses", answers, *common)
        assert done.exit_code in (0, 3), (done.output, done.exception)
    found = cards(tmp_path / "out")
    assert set(found) == set(here)
    for name in ("tifa", "mmrb2"):
        assert any("left out: a picture is missing" in told for told in found[name]["told"])
        assert any("a sample of 3 of" in told for told in found[name]["told"])
    assert found["mmrb2"]["official"][0]["value"]["n"] <= 3


@pytest.mark.slow
def test_responses_are_sampled_once_and_kept(recorded: Path, tmp_path: Path) -> None:
    lay_out(recorded, tmp_path / "rows")
    policy = tiny_models.build("qwen", tmp_path / "policy")
    words = ("run", "vicuna-turn-1", "--judge", "mock:constant", "--policy", policy, "--data", tmp_path / "rows")
    more = ("--out", tmp_path / "out", "--limit", 5, "--max-tokens", 8, "-q")
    first = run(*words, *more)
    assert first.exit_code == 0, (first.output, first.exception)
    kept = tmp_path / "out/vicuna-turn-1/responses.jsonl"
    before = kept.read_bytes()
    assert before.count(b"\n") == 5
    again = run(*words, *more, "--json")
    assert json.loads(again.stdout)["vicuna-turn-1"]["asked"] == 0
    assert kept.read_bytes() == before
    told = cards(tmp_path / "out")["vicuna-turn-1"]["told"]
    assert any(each.startswith("responses sampled from") for each in told)
    other = tiny_models.build("llama", tmp_path / "other")
    refused = run(*words[:4], "--policy", other, *words[6:], *more)
    assert isinstance(refused.exception, UserError)
    assert "holds responses of" in str(refused.exception)
