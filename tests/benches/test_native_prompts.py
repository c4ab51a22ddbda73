"""Prompts of a bench's authors that come with the responses: sent as they are, or learnt."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import dikast.benches
from benches.own_bench import cards, figure, judge_own, own, run

SCORES = [0, 2, 6, 5, 3, 1, 4, 6]  # the reference judge's, on 0-6


def asked(i: int) -> str:
    return (
        f"Weigh the answer.\n\n### Question\nWhat is in picture {i}?\n\n### Answer\nA cup {i}.\n\nEnd with Rating: X."
    )


def mmhal(tmp_path: Path, *, prompts: int = len(SCORES), **native: str) -> tuple[Path, Path]:
    """The bench as it is listed, with rows of text alone, and a file of responses with the reference judge's scores."""
    listed = yaml.safe_load((Path(dikast.benches.__file__).parent / "catalogue/mmhal.yaml").read_text())
    keys = {key: listed[key] for key in ("kind", "fields", "official", "responses", "native")}
    keys["fields"] = {"id": "question_id", "instruction": "question", "reference": "answer"}
    keys["native"] |= native
    rows = [{"question_id": f"q{i}", "question": f"What is in picture {i}?", "answer": "A mug"} for i in range(8)]
    answers = tmp_path / "answers.jsonl"
    given: list[dict[str, Any]] = [
        {"id": f"q{i}", "response": f"A cup {i}.", "gold": score, **({"prompt": asked(i)} if i < prompts else {})}
        for i, score in enumerate(SCORES)
    ]
    answers.write_text("".join(json.dumps(each) + "\n" for each in given))
    return own(tmp_path, rows, **keys), answers


def replies(tmp_path: Path, shape: str = "It is fine.\nRating: {}") -> str:
    path = tmp_path / "replies.jsonl"
    said = [{"item": f"q{i}", "reply": shape.format(score)} for i, score in enumerate(SCORES)]
    path.write_text("".join(json.dumps(each) + "\n" for each in said))
    return f"replay:{path}"


@pytest.mark.parametrize("prompt", ["native", "learnt"])
def test_brought_prompts_are_asked_on_the_scale_of_their_authors(prompt: str, tmp_path: Path) -> None:
    bench, answers = mmhal(tmp_path)
    words = ("--responses", answers, "--prompt", prompt)
    found = judge_own(bench, replies(tmp_path), tmp_path / "out", *words)
    assert figure(found, "pearson")["value"] == pytest.approx(1)  # 0 and 6 are on the scale, of verdicts and of gold
    assert found["ours"]["ours: exact"]["value"] == 1
    assert figure(found, "mean score")["value"] == pytest.approx(sum(SCORES) / 8)
    told = cards(tmp_path / "out")["mine"]["told"]
    assert f"prompt: {prompt}" in told
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    said = [item["instruction"] for item in items]
    assert said == (
        [asked(i) for i in range(8)] if prompt == "native" else [f"What is in picture {i}?" for i in range(8)]
    )
    assert all(item["meta"]["length"] == 8 for item in items)


def test_the_second_of_two_scores_is_read_where_the_authors_grade_a_reference_first(tmp_path: Path) -> None:
    bench, answers = mmhal(tmp_path, dialect="second-score")
    words = ("--responses", answers, "--prompt", "native")
    found = judge_own(bench, replies(tmp_path, "6 {}\nThe cup is right."), tmp_path / "out", *words)
    assert figure(found, "pearson")["value"] == pytest.approx(1)


@pytest.mark.parametrize("name", ["llava-w", "l-wilder", "llava-bench-coco"])
def test_the_relative_score_is_of_the_sums_of_both_scores(name: str, tmp_path: Path) -> None:
    """References and responses 10 8, 9 6, 8 4, and a reply without scores, which is -1 twice in the authors' code."""
    listed = yaml.safe_load((Path(dikast.benches.__file__).parent / f"catalogue/{name}.yaml").read_text())
    keys = {key: listed[key] for key in ("kind", "official", "responses", "native")}
    fields = {"id": "id", "instruction": "q"}
    rows = [{"id": f"q{i}", "q": f"What is in picture {i}?", "c": "uv"[i % 2]} for i in range(4)]
    bench = own(tmp_path, rows, **keys, fields=fields, groups={"c": "c"})
    answers = [{"id": f"q{i}", "response": f"A cup {i}.", "prompt": asked(i)} for i in range(4)]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers))
    said = [{"item": f"q{i}", "reply": reply} for i, reply in enumerate(("10 8\nGood.", "9 6", "8, 4", "Fine."))]
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(each) + "\n" for each in said))
    judge, words = f"replay:{tmp_path / 'replies.jsonl'}", ("--responses", tmp_path / "answers.jsonl")
    found = judge_own(bench, judge, tmp_path / "out", *words, "--prompt", "native", code=3)
    first = found["official"][0]
    assert (first["metric"], first["value"]["n"]) == ("relative score", 4)
    assert first["value"]["value"] == pytest.approx(100 * (8 + 6 + 4 - 1) / (10 + 9 + 8 - 1))
    assert first["value"]["low"] < first["value"]["value"] < first["value"]["high"]
    groups = {group: each["value"] for group, each in first["groups"].items()}
    assert groups == {"u": pytest.approx(100 * 12 / 18), "v": pytest.approx(100 * 5 / 8)}
    assert first["rule"] == "a missing verdict counts as -1 in both sums; all rows alike"
    ours = found["ours"]["ours: relative score"]
    assert (ours["value"], ours["n"], ours["dropped"]) == (pytest.approx(100 * 18 / 27), 3, 1)
    plain = judge_own(bench, "mock:constant", tmp_path / "plain", *words)["official"][0]["value"]
    assert plain["value"] is None
    assert "--prompt native" in plain["note"]


def test_prompts_that_are_missing_or_hold_no_response_are_told_with_where_to_find_them(tmp_path: Path) -> None:
    bench, answers = mmhal(tmp_path, prompts=6)
    words = (
        "run",
        bench,
        "--judge",
        "mock:constant",
        "--data",
        tmp_path,
        "--out",
        tmp_path / "a",
        "--prompt",
        "native",
    )
    told = str(run(*words, "--responses", answers).exception)
    assert "render one for each response with their code (github.com/RLHF-V/RLAIF-V, eval/eval_gpt_mmhal.py)" in told
    assert "absent from 2 responses of 8, such as 'q6'" in told
    answers.write_text(
        answers.read_text().replace('"prompt": "Weigh', '"prompt": "Weigh it. Weigh').replace("A cup 3.\\n", "?")
    )
    answers.write_text("\n".join(answers.read_text().splitlines()[:6]))
    assert "the prompt of 'q3' does not contain its response" in str(run(*words, "--responses", answers).exception)
    shown = run("show", "mmhal").stdout
    assert "on the scale 0-6" in shown
    assert "column 'prompt' of --responses" in " ".join(shown.split())
    native, metric = {"scale": "1-5", "dialect": "critics", "published": "x"}, {"metric": "mean score"}
    listed = own(tmp_path, [], kind="scores", fields={"instruction": "q"}, official=metric, native=native)
    assert "did you mean 'critic'?" in str(run("show", listed).exception)
