"""Rows that are not independent: responses to one prompt, groups and sections that share items, several raters."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benches.own_bench import cards, figure, judge_own, own, run
from dikast.benches.unit_means import joined_clusters
from dikast.core.runs.run_files import write_checked

STUDENT = {4: 3.1824, 5: 2.7764, 6: 2.5706, 8: 2.3646}  # two-sided, 95 %, by the number of clusters


def said(path: Path, scores: dict[str, int]) -> str:
    path.write_text("".join(json.dumps({"item": i, "reply": f"Verdict: {n}"}) + "\n" for i, n in scores.items()))
    return f"replay:{path}"


def test_responses_to_one_prompt_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"id": f"{q}{m}", "q": f"question {q}", "a": f"answer of {m}"} for q in range(8) for m in "uvw"]
    keys: dict[str, Any] = {"kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
                            "official": {"metric": "mean score"}}  # fmt: skip
    scores = np.array([[1 + (3 * q + (m == 2)) % 5 for m in range(3)] for q in range(8)], float)
    given = {f"{q}{m}": int(scores[q, place]) for q in range(8) for place, m in enumerate("uvw")}
    judge, bench = said(tmp_path / "r.jsonl", given), own(tmp_path, rows, **keys)
    found = figure(judge_own(bench, judge, tmp_path / "out", "--format", "score-only"))
    half = STUDENT[8] * scores.mean(1).std(ddof=1) / 8**0.5
    assert (found["n"], found["value"]) == (24, pytest.approx(scores.mean()))
    assert found["high"] - found["value"] == pytest.approx(half, rel=1e-4)
    meta = tmp_path / "out/mine/meta.jsonl"
    lines = [json.loads(line) for line in meta.read_text().splitlines()]
    for line in lines:  # as earlier versions wrote it
        del line["meta"]["prompt_id"]
    write_checked(meta, "".join(json.dumps(line) + "\n" for line in lines).encode())
    before = cards(tmp_path / "out")["mine"]
    assert any("which items share a prompt is not known" in told for told in before["told"])
    assert figure(before)["high"] - figure(before)["value"] < half
    again = judge_own(bench, judge, tmp_path / "out", "--format", "score-only")
    assert figure(again)["high"] - figure(again)["value"] == pytest.approx(half, rel=1e-4)
    assert not any("which items share a prompt" in told for told in again["told"])
    alone = own(tmp_path, [{**row, "q": f"{i}"} for i, row in enumerate(rows)], **keys)
    wide = figure(judge_own(alone, judge, tmp_path / "alone", "--format", "score-only"))
    assert wide["high"] - wide["value"] < half  # 24 prompts say more than 8


@pytest.mark.parametrize("over", ["groups", "sections"])
def test_groups_that_share_prompts_are_not_independent(over: str, tmp_path: Path) -> None:
    rows = [{"id": f"{q}{g}", "q": f"question {q}", "a": f"in {g}", "g": g} for q in range(8) for g in "xyz"]
    sections = {"one": ["x", "y"], "two": ["z"]} if over == "sections" else {}
    keys = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"}, "groups": {"g": "g"},
        "official": {"metric": "mean score", "over": over, "group": "g", "sections": sections},
    }  # fmt: skip
    scores = np.array([[1 + (3 * q + g) % 5 for g in range(3)] for q in range(8)], float)
    given = {f"{q}{g}": int(scores[q, place]) for q in range(8) for place, g in enumerate("xyz")}
    judge = said(tmp_path / "r.jsonl", given)
    found = judge_own(own(tmp_path, rows, **keys), judge, tmp_path / "out", "--format", "score-only")
    weights = np.array([1, 1, 1]) / 3 if over == "groups" else np.array([0.25, 0.25, 0.5])
    each = scores @ weights  # of a prompt, what it gives to the mean of means
    half = STUDENT[8] * each.std(ddof=1) / 8**0.5
    assert figure(found)["value"] == pytest.approx(each.mean())
    assert figure(found)["high"] - figure(found)["value"] == pytest.approx(half, rel=1e-4)
    assert "by cluster" in json.dumps(found["official"][0]["value"])


def test_groups_of_pairs_that_share_a_prompt_are_one_cluster(tmp_path: Path) -> None:
    """Each of 8 prompts has four groups of two pairs, all right or all wrong: as if there were 8 groups, not 32."""
    rows = [{"id": f"{q}{g}{k}", "q": f"question {q}", "a": f"{g}{k}", "b": "no", "g": f"{q}{g}", "l": "ab"[q // 4]}
            for q in range(8) for g in "stuv" for k in "12"]  # fmt: skip
    keys: dict[str, Any] = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"a": "a", "b": "b"}}, "groups": {"g": "g"}, "protocol": {"orders": "one"},
        "official": {"metric": "all of a group", "group": "g"},
    }  # fmt: skip
    apart = [{**row, "q": f"question {row['id']}"} for row in rows]
    wide, narrow = (
        figure(judge_own(own(tmp_path, each, **keys), "mock:first-slot", tmp_path / name))
        for name, each in (("shared", rows), ("apart", apart))
    )
    assert (wide["n"], wide["value"], narrow["value"]) == (32, 0.5, 0.5)
    assert wide["high"] - wide["low"] > 1.7 * (narrow["high"] - narrow["low"])
    # two groups that share no prompt with each other, but both with a third, are one cluster
    unit, cluster = np.array([0, 1, 2, 2, 3]), np.array([0, 1, 0, 1, 2])
    assert joined_clusters(unit, cluster).tolist() == [0, 0, 0, 1]


def test_a_majority_is_more_than_half_of_the_raters_in_rows_and_in_the_audit(tmp_path: Path) -> None:
    votes = ["aabt", "aaab", "abt-", "a---", "ab--"]  # a plurality, a majority, none, a single rater, a draw
    rows: list[dict[str, Any]] = [
        {"id": f"p{i}", "q": f"{i}?", "a": "x", "b": "y", **dict(zip("stuv", said, strict=True))}
        for i, said in enumerate(votes)
    ]
    rows = [{name: None if said == "-" else said for name, said in row.items()} for row in rows]
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": list("stuv"), "values": {"a": "a", "b": "b", "t": "tie"}, "rule": "majority"},
        "official": {"metric": "accuracy"},
    }  # fmt: skip
    found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "out")
    assert figure(found)["n"] == 2
    items = [json.loads(line) for line in (tmp_path / "out/mine/items.jsonl").read_text().splitlines()]
    assert [item.get("gold") for item in items] == [None, "a", None, "a", None]
    (tmp_path / "out/mine/raters.jsonl").unlink()  # by the gold of the items alone
    assert figure(cards(tmp_path / "out")["mine"])["n"] == 2


@pytest.mark.parametrize("kind", ["pairs", "graded pairs"])
def test_choices_are_measured_against_a_column_of_their_rows(kind: str, tmp_path: Path) -> None:
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": "long " * 90, "b": "b", "l": "a", "people": "b"} for i in range(8)]
    keys = {
        "kind": kind, "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"a": "a"}}, "groups": {"people": "people"},
        "official": {"metric": "accuracy"},
    }  # fmt: skip
    judge_own(own(tmp_path, rows, **keys), "mock:prefers-long,r=0,per_doubling=3", tmp_path / "out")
    of_rows, of_people = (figure(cards(tmp_path / "out", *more)["mine"]) for more in ((), ("--gold", "people")))
    assert of_rows["value"] > 0.8
    assert of_people["value"] < 0.2


def test_equal_scores_are_drawn_again_as_the_authors_have_it(tmp_path: Path) -> None:
    # scores of the better and the worse in up to three samples: the first that differ decide
    samples = [[(4, 2)], [(3, 3), (4, 2)], [(3, 3), (2, 2), (1, 5)], [(3, 3), (2, 2), (4, 4)]]
    rows = [{"id": f"p{i}", "q": f"{i}?", "a": f"better {i}", "b": f"worse {i}", "l": "a"} for i in range(4)]
    keys = {
        "kind": "graded pairs", "fields": {"id": "id", "instruction": "q", "response_0": "a", "response_1": "b"},
        "gold": {"column": "l", "values": {"a": "a"}}, "official": {"metric": "accuracy"},
        "protocol": {"temperature": 1.0, "equal": "resample"},
    }  # fmt: skip
    replies = tmp_path / "r.jsonl"
    lines = [
        {"item": f"p{i}", "responses": [place], "sample": n, "reply": f"Verdict: {score}"}
        for i, drawn in enumerate(samples)
        for n, both in enumerate(drawn)
        for place, score in enumerate(both)
    ]
    replies.write_text("".join(json.dumps(line) + "\n" for line in lines))
    words = (f"replay:{replies}", tmp_path / "out", "--format", "score-only", "--protocol", "authors")
    found = judge_own(own(tmp_path, rows, **keys), *words)
    assert figure(found)["value"] == 2 / 4
    drawn = "equal scores are drawn again, at most twice, and are a tie if still equal at temperature 1"
    assert drawn in found["told"]
    assert "each response was graded alone, so there is no order" in found["told"]  # and not: equal scores are a tie


def test_raters_of_a_row_stay_with_the_responses_of_several_models(tmp_path: Path) -> None:
    rows = [{"id": f"p{i}", "q": f"{i}?", "base": "x", **dict(zip("uvw", votes, strict=True))}
            for i, votes in enumerate(["111", "112", "122", "222"])]  # fmt: skip
    keys = {
        "kind": "pairs", "fields": {"id": "id", "instruction": "q", "response": "base"}, "responses": "to be brought",
        "gold": {"column": ["u", "v", "w"], "values": {"1": "a", "2": "b"}, "rule": "majority"},
        "official": {"metric": "accuracy"},
    }  # fmt: skip
    answers = tmp_path / "answers.jsonl"
    answers.write_text(
        "".join(json.dumps({"id": f"p{i}", "response": f"r {m}", "model": m}) + "\n" for i in range(4) for m in "mn")
    )
    found = judge_own(own(tmp_path, rows, **keys), "mock:first-slot", tmp_path / "out", "--responses", answers)
    ceiling = found["ours"]["ceiling: one rater against another (ceiling) (accuracy)"]
    assert ceiling["value"] == pytest.approx((3 + 1 + 1 + 3) / 12)
    assert figure(found)["n"] == 8


def test_a_pointer_of_git_lfs_is_told(tmp_path: Path) -> None:
    bench = own(
        tmp_path, [], kind="scores", fields={"instruction": "q", "response": "a"}, official={"metric": "mean score"}
    )
    (tmp_path / "rows.jsonl").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    told = run("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "o")
    assert "is a pointer of Git LFS and holds no rows" in str(told.exception)


def test_seen_and_unseen_rubrics_have_figures_of_their_own(tmp_path: Path) -> None:
    golds = {"seen": [1, 2, 3, 4, 5, 5], "unseen": [5, 4, 3, 2, 1, 1]}
    scores: dict[str, int] = {}
    for name, told in golds.items():
        rows = [{"id": f"{name}{i}", "q": f"{name} {i}", "a": "r", "score": gold} for i, gold in enumerate(told)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        scores |= {f"{name}{i}": golds["seen"][i] for i in range(6)}
    keys = {
        "kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"}, "groups": {"rubrics": "@file"},
        "gold": {"column": "score", "scale": "1-5"},
        "official": {"metric": ["pearson", "exact"], "group": "rubrics", "printed": ["seen", "unseen"]},
        "source": {"hub": "org/mine", "files": {"seen.jsonl": "", "unseen.jsonl": ""}},
    }  # fmt: skip
    found = judge_own(
        own(tmp_path, [], **keys), said(tmp_path / "r.json", scores), tmp_path / "out", "--format", "score-only"
    )
    assert [each["metric"] for each in found["official"]] == [
        "pearson: seen", "pearson: unseen", "exact: seen", "exact: unseen",
    ]  # fmt: skip
    of = {each["metric"]: each for each in (*found["official"], *found["pooled"])}
    assert of["pearson: unseen"]["value"]["value"] == pytest.approx(-1)
    groups = {name: each["value"] for name, each in of["pearson"]["groups"].items()}
    assert groups == {"seen": pytest.approx(1), "unseen": pytest.approx(-1)}
    assert {name: each["value"] for name, each in of["exact"]["groups"].items()} == {
        "seen": 1,
        "unseen": 1 / 6,
    }


def test_a_row_without_a_prompt_leaves_the_others_their_clusters(tmp_path: Path) -> None:
    # clusters: four prompts of two rows, scored 2, 2, 4, 4 throughout, and the row without a prompt, scored 3
    rows = [{"id": f"{q}{m}", "q": f"question {q}", "a": f"answer of {m}"} for q in range(4) for m in "uv"]
    keys: dict[str, Any] = {"kind": "scores", "fields": {"id": "id", "instruction": "q", "response": "a"},
                            "official": {"metric": "mean score"}}  # fmt: skip
    judge = said(tmp_path / "r.jsonl", {f"{q}{m}": 2 if q < 2 else 4 for q in range(4) for m in "uv"} | {"none": 3})
    bench = own(tmp_path, [*rows, {"id": "none", "q": "", "a": "answer"}], **keys)
    found = figure(judge_own(bench, judge, tmp_path / "out", "--format", "score-only"))
    assert (found["n"], found["value"]) == (9, 3)
    # errors summed over clusters: -2, -2, 2, 2 and 0; n = 9
    half = STUDENT[5] * (5 / 4 * 4 * 4) ** 0.5 / 9
    assert found["high"] - found["value"] == pytest.approx(half, rel=1e-3)


def test_items_of_one_prompt_are_one_cluster_of_their_best(tmp_path: Path) -> None:
    """Each of 8 prompts stands there three times, and its items are all right or all wrong: as if there were 8."""
    rows: list[dict[str, Any]] = [
        {"id": f"{q}{copy}", "q": f"question {q}", "good": f"yes {copy}", "bad": "no", "n": 1}
        for q in range(8)
        for copy in "uvw"
    ]
    keys: dict[str, Any] = {
        "kind": "best of", "fields": {"id": "id", "instruction": "q", "responses": ["good", "bad"]},
        "gold": {"column": "n", "count": True}, "official": {"metric": "best of", "failures": "wrong"},
    }  # fmt: skip
    lines = [
        {"item": row["id"], "responses": [place], "reply": f"Verdict: {5 if (place == 0) == (row['id'] < '3') else 1}"}
        for row in rows
        for place in (0, 1)
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    judge, bench = f"replay:{tmp_path / 'r.jsonl'}", own(tmp_path, rows, **keys)
    found = figure(judge_own(bench, judge, tmp_path / "out", "--format", "score-only"))
    assert (found["n"], found["value"]) == (24, 3 / 8)
    low, high = found["low"], found["high"]
    assert high - low > 2 * 1.96 * (3 / 8 * 5 / 8 / 12) ** 0.5  # of 24 items that are independent it is less
