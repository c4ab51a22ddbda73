"""Audits of run folders: what `grade` and `compare` wrote is read without being told how."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.verdict import Question, Status, Verdict
from runs import dikast_here as dikast
from runs import lines, write_jsonl

Run = Callable[..., dict[str, Any]]
ORDERS = ((0, 1), (1, 0))


def verdict(key: str, question: Question, label: str | None, score: float | None = None, **more: Any) -> dict[str, Any]:
    status = more.pop("status", Status.OK if label is not None else Status.UNPARSED)
    return Verdict(key=f"{key:>032}", question=question, status=status, label=label, score=score, **more).to_dict()


def write(folder: Path, verdicts: list[dict[str, Any]], gold: dict[str, Any], keys: list[str] | None = None) -> Path:
    folder.mkdir()
    (folder / "verdicts.jsonl").write_text("".join(json.dumps(each) + "\n" for each in verdicts))
    if gold:
        lines = (json.dumps({"item": item, "gold": value}) + "\n" for item, value in gold.items())
        (folder / "gold.jsonl").write_text("".join(lines))
    listed = [each["key"] for each in verdicts] if keys is None else [f"{key:>032}" for key in keys]
    (folder / "keys.txt").write_text("\n".join(listed) + "\n")
    return folder


def scored(k: int, value: int | None, criterion: str = "c", sample: int = 0, **more: Any) -> dict[str, Any]:
    label = None if value is None else str(value)
    question = Question(f"i{k}", criterion, (0,), sample)
    return verdict(f"{k}{criterion}{sample}", question, label, None if value is None else float(value), **more)


def values(found: dict[str, Any], table: str, key: str = "statistic") -> dict[str, Any]:
    return {row[key]: row for row in found["tables"][table]["rows"]}


def test_a_run_whose_items_have_no_gold_is_audited_without(tmp_path: Path, run_audit: Run) -> None:
    run = write(tmp_path / "run", [scored(k, 1 + k % 5) for k in range(9)] + [scored(9, None)], {})
    (run / "gold.jsonl").touch()  # as a run leaves it
    found = run_audit(run)
    counts = {name: row["count"] for name, row in values(found, "failures", "status").items()}
    assert (counts["ok"], counts["failed"]) == (9, 1)
    assert "agreement" not in found["tables"]


def test_a_mistake_in_a_file_of_gold_is_told_where_it_stands(tmp_path: Path, run_audit: Run) -> None:
    """It was told as a line of the run's verdicts, of which nobody wrote one."""
    run = write(tmp_path / "run", [scored(k, 1 + k % 5) for k in range(20)], {})
    rows = [f"i{k},{1 + k % 5}" for k in range(20)]
    gold = tmp_path / "gold.csv"
    gold.write_text("\n".join(["id,people", *rows[:7], "i7,nine", *rows[8:]]))
    with pytest.raises(DataError, match=r"gold\.csv:9: field 'people': expected a number here, not 'nine'") as caught:
        run_audit(run, "--gold-file", gold, "--gold", "people")
    assert (Path(caught.value.path), caught.value.line, caught.value.field) == (gold, 9, "people")
    gold.write_text("\n".join(["id,people", *rows[:7], "i7,9", *rows[8:]]))
    with pytest.raises(UserError, match=r"gold\.csv:9: gold 'people' does not lie .* 1 of 20 .* first is 9"):
        run_audit(run, "--gold-file", gold, "--gold", "people", "--scale", "1-5")
    by_row = [f"i{k},c,0,{1 + k % 5}" for k in range(20)]  # as `dikast export` writes it
    gold.write_text("\n".join(["id,criterion,response_index,people", *by_row[:7], "i7,c,0,five", *by_row[8:]]))
    with pytest.raises(DataError, match=r"gold\.csv:9: field 'people'"):
        run_audit(run, "--gold-file", gold, "--gold", "people")
    table = tmp_path / "verdicts.csv"
    table.write_text("\n".join(["id,score", *(f"i{k},3" for k in range(20))]))
    gold.write_text("\n".join(["id,people", *reversed(rows[:18]), "i18,six"]))
    with pytest.raises(DataError, match=r"gold\.csv:20: field 'people': expected a number here, not 'six'"):
        run_audit(table, "--score", "score", "--gold-file", gold, "--gold", "people")
    gold.write_text("\n".join(["id,people", *reversed(rows[:18]), "i18,6"]))
    with pytest.raises(UserError, match=r"gold\.csv:20: gold 'people' does not lie"):
        run_audit(table, "--score", "score", "--gold-file", gold, "--gold", "people", "--scale", "1-5")


def test_choices_in_a_file_of_gold_that_are_none_are_told_where_they_stand(tmp_path: Path, run_audit: Run) -> None:
    asked = [(k, order) for k in range(12) for order in ORDERS]
    run = write(tmp_path / "run", [verdict(f"{k}{o[0]}", Question(f"i{k}", "c", o), "a") for k, o in asked], {})
    gold, rows = tmp_path / "gold.csv", [f"i{k},a" for k in range(12)]
    gold.write_text("\n".join(["id,people", *rows[:7], "i7,the left one", *rows[8:]]))
    found = run_audit(run, "--gold-file", gold, "--gold", "people")
    note = f"no choice in column 'people': 1 'the left one' (the first in {gold}:9)"
    assert any(note in each for each in found["notes"])
    gold.write_text("\n".join(["id,people", *rows[:3], *(f"i{k},neither good" for k in range(3, 12))]))
    with pytest.raises(UserError, match=r"gold\.csv:5: 9 of the 12 values in column 'people' are no choice"):
        run_audit(run, "--gold-file", gold, "--gold", "people")


def test_a_run_brings_its_gold_scale_and_failures(tmp_path: Path, run_audit: Run) -> None:
    verdicts = [scored(k, 1 + k % 5, marker="forced" if k % 4 == 0 else "own") for k in range(20)] + [scored(20, None)]
    run = write(tmp_path / "run", verdicts, {f"i{k}": 1 + k % 5 for k in range(30)})
    scale = {"labels": ["1", "2", "3", "4", "5"], "values": [1, 2, 3, 4, 5]}
    rubric = {
        "name": "c",
        "criterion": "Is it good?",
        "scale": scale,
        "lower_is_better": False,
        "levels": {},
        "weight": 1,
    }
    (run / "rubrics.jsonl").write_text(json.dumps({"hash": "h", "rubric": rubric}) + "\n")
    found = run_audit(run)
    assert found["plan"]["scale"] == "1-5"
    assert values(found, "agreement")["exact"]["value"]["value"] == 1
    counts = {name: row["count"] for name, row in values(found, "failures", "status").items()}
    assert counts == {"failed": 1, "ok": 20, "unparsed": 1, "forced marker": 5}
    assert "9 items with gold that were not judged" in found["notes"]


def test_verdicts_that_their_replies_contradict_are_counted(tmp_path: Path, run_audit: Run) -> None:
    # 4 of the 20 verdicts; the 21st question has none
    verdicts = [scored(k, 1 + k % 5, conflict=k < 4) for k in range(20)] + [scored(20, None)]
    found = run_audit(write(tmp_path / "run", verdicts, {f"i{k}": 1 + k % 5 for k in range(21)}))
    row = values(found, "failures", "status")["conflict in the reply"]
    assert (row["count"], row["share"]["value"], row["share"]["n"]) == (4, 0.2, 20)


def test_conflicts_of_pairs_are_told_by_order(tmp_path: Path, run_audit: Run) -> None:
    verdicts = [paired(k, order, "a", conflict=k < 3 and order == (1, 0)) for k in range(10) for order in ORDERS]
    found = run_audit(write(tmp_path / "run", verdicts, {f"i{k}": "a" for k in range(10)}))
    assert "conflict in the reply" not in values(found, "failures shown", "status")
    assert values(found, "failures swapped", "status")["conflict in the reply"]["count"] == 3
    assert values(found, "failures", "status")["conflict in the reply"]["count"] == 3  # of the pairs


def test_stale_and_retried_verdicts_do_not_count(tmp_path: Path, run_audit: Run) -> None:
    failed = scored(0, None, status=Status.ENGINE_ERROR)
    again = scored(0, 3)
    stale = verdict("old", Question("i1", "c"), "5", 5.0)
    run = write(tmp_path / "run", [failed, stale, again, scored(1, 2)], {"i0": 3, "i1": 2}, ["0c0", "1c0"])
    found = run_audit(run, "--scale", "1-5")
    assert "1 verdict of an earlier configuration left out" in found["notes"]
    counts = {name: row["count"] for name, row in values(found, "failures", "status").items()}
    assert (counts["ok"], counts["failed"]) == (2, 0)
    with (run / "verdicts.jsonl").open("a") as file:
        file.write('{"key": "torn by a cra')
    assert run_audit(run, "--scale", "1-5")["tables"] == found["tables"]
    with (run / "verdicts.jsonl").open("a") as file:
        file.write("sh\n")
    with pytest.raises(DataError, match=r"verdicts.jsonl:5: a damaged record"):
        run_audit(run, "--scale", "1-5")


def test_samples_are_the_retest_and_criteria_the_slices(tmp_path: Path, run_audit: Run) -> None:
    verdicts = [
        scored(k, 1 + (k + (sample and k % 4 == 0)) % 5, criterion, sample)
        for k in range(20) for criterion in ("c", "d") for sample in (0, 1)
    ]  # fmt: skip
    gold = {f"i{k}": {"c": 1 + k % 5, "d": 1 + (k + 1) % 5} for k in range(20)}
    found = run_audit(write(tmp_path / "run", verdicts, gold), "--scale", "1-5")
    assert any(note.startswith("each question was asked 2 times") for note in found["notes"])
    slices = values(found, "by criterion", "criterion")
    assert slices["c"]["exact"]["value"] == 1
    assert slices["d"]["exact"]["value"] == 0
    retest = values(found, "beside", "who")["the judge asked again (test-retest)"]
    assert retest["exact"]["value"] == 15 / 20
    assert retest["n"] == 40


def test_gold_from_the_items_and_a_second_run(tmp_path: Path, run_audit: Run) -> None:
    run = write(tmp_path / "run", [scored(k, 1 + k % 5) for k in range(20)], {})
    other = write(tmp_path / "other", [scored(k, 1 + (k + k % 2) % 5) for k in range(20)], {})
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps({"id": f"i{k}", "human": 1 + k % 5}) + "\n" for k in range(20)))
    arguments = ("--gold-file", items, "--gold", "human", "--scale", "1-5", "--rival", f"score@{other}")
    found = run_audit(run, *arguments)
    exact = values(found, "rival")["exact"]
    assert (exact["run"]["value"], exact["other"]["value"]) == (1, 0.5)  # runs without a summary: by their folders
    assert "no record has a value for 'humane'" in str(
        _refused(run_audit, run, "--gold-file", items, "--gold", "humane")
    )


def _refused(run: Run, *arguments: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        run(*arguments)
    return caught.value


@pytest.mark.parametrize("gold", [{"i0": "a", "i1": "b", "i2": "tie"}, {"i0": [5, 1], "i1": [1, 5], "i2": [3, 3]}])
def test_pairs_in_both_orders(gold: dict[str, Any], tmp_path: Path, run_audit: Run) -> None:
    def pair(k: int, order: tuple[int, int], label: str | None) -> dict[str, Any]:
        return verdict(f"{k}{order[0]}", Question(f"i{k}", "c", order), label)

    verdicts = [
        pair(0, (0, 1), "a"), pair(0, (1, 0), "a"), pair(1, (1, 0), "b"), pair(1, (0, 1), "a"),
        pair(2, (0, 1), "tie"), pair(2, (1, 0), None),
    ]  # fmt: skip
    found = run_audit(write(tmp_path / "run", verdicts, gold))
    accuracy = values(found, "accuracy")["accuracy (all)"]
    assert accuracy["as shown"]["value"] == 2 / 3
    assert accuracy["swapped"]["value"] == 1
    assert accuracy["swapped"]["n"] == 2
    assert values(found, "orders")["same verdict in both orders"]["value"]["value"] == 1 / 2


def test_a_folder_that_is_no_run(tmp_path: Path, run_audit: Run) -> None:
    assert "holds no verdicts.jsonl" in str(_refused(run_audit, tmp_path))
    write(tmp_path / "first", [scored(0, 3)], {})
    assert "runs lie in first: audit one of them" in str(_refused(run_audit, tmp_path))


def paired(k: int, order: tuple[int, int], label: str | None, sample: int = 0, **more: Any) -> dict[str, Any]:
    return verdict(f"{k}{sample}{order[0]}", Question(f"i{k}", "c", order, sample), label, **more)


def test_pairs_in_one_order(tmp_path: Path, run_audit: Run) -> None:
    run = write(
        tmp_path / "run", [paired(k, (0, 1), "ab"[k % 2]) for k in range(12)], {f"i{k}": "a" for k in range(12)}
    )
    found = run_audit(run)
    assert values(found, "accuracy")["accuracy (all)"]["as shown"]["value"] == 1 / 2
    assert "orders" not in found["tables"]


def test_failures_of_pairs_are_told_by_status_and_order(tmp_path: Path, run_audit: Run) -> None:
    verdicts = [paired(k, order, "a", marker="forced" if k < 3 else "own") for k in range(10) for order in ORDERS]
    verdicts += [paired(10, (0, 1), None, status=Status.ENGINE_ERROR), paired(10, (1, 0), None, status=Status.REFUSED)]
    found = run_audit(write(tmp_path / "run", verdicts, {f"i{k}": "a" for k in range(11)}))
    counts, swapped = (
        {name: row["count"] for name, row in values(found, table, "status").items()}
        for table in ("failures", "failures swapped")
    )
    assert counts == {"failed": 1, "ok": 10, "engine_error": 1, "forced marker": 3}
    assert swapped == {"failed": 1, "ok": 10, "refused": 1, "forced marker": 3}


def test_samples_of_pairs_are_no_more_pairs(tmp_path: Path, run_audit: Run) -> None:
    verdicts = [
        paired(k, order, "ab"[sample and k % 4 == 0], sample)
        for k in range(12)
        for sample in (0, 1, 2)
        for order in ORDERS
    ]
    found = run_audit(write(tmp_path / "run", verdicts, {f"i{k}": "a" for k in range(12)}))
    assert values(found, "accuracy")["accuracy (all)"]["both together"]["n"] == 12
    retest = values(found, "beside", "who")["the judge asked again (test-retest)"]["all"]
    assert (retest["value"], retest["n"]) == (9 / 12, 12)


def test_all_samples_of_pairs_vote(tmp_path: Path, run_audit: Run) -> None:
    def label(k: int, sample: int) -> str | None:
        if k == 11:
            return None
        return "b" if sample == k % 3 else "a"  # one of three samples is wrong, another one for each pair

    verdicts = [
        paired(k, order, label(k, sample), sample) for k in range(12) for sample in (0, 1, 2) for order in ORDERS
    ]
    found = run_audit(write(tmp_path / "run", verdicts, {f"i{k}": "a" for k in range(12)}))
    assert "the samples joined are the judge" in found["notes"][0]
    accuracy = values(found, "accuracy")["accuracy (all)"]
    assert (accuracy["as shown"]["value"], accuracy["both together"]["n"]) == (1, 11)
    assert values(found, "failures", "status")["unparsed"]["count"] == 1
    retest = values(found, "beside", "who")["the judge asked again (test-retest)"]["all"]
    assert (retest["value"], retest["n"]) == (3 / 11, 11)  # samples 0 and 1 agree where sample 2 is the odd one


def test_the_distributions_of_samples_of_pairs_are_averaged(tmp_path: Path, run_audit: Run) -> None:
    sure, unsure = {"a": 0.1, "b": 0.9}, {"a": 0.6, "b": 0.4}
    verdicts = [
        paired(k, (0, 1), "b" if sample == 0 else "a", sample, distribution=sure if sample == 0 else unsure)
        for k in range(10) for sample in (0, 1, 2)
    ]  # fmt: skip
    found = run_audit(write(tmp_path / "run", verdicts, {f"i{k}": "b" for k in range(10)}))
    assert values(found, "accuracy")["accuracy (all)"]["as shown"]["value"] == 1  # 1.7 for b against 1.3


def test_items_with_several_criteria_are_clusters(tmp_path: Path, run_audit: Run) -> None:
    verdicts = [scored(k, 1 + (k + k % 2) % 5, criterion) for k in range(30) for criterion in ("c", "d", "e", "f")]
    run = write(tmp_path / "run", verdicts, {f"i{k}": 1 + k % 5 for k in range(30)})
    found = run_audit(run, "--scale", "1-5")
    assert any(note.startswith("120 rows of 30 items: rows of an item are drawn together") for note in found["notes"])
    alone = run_audit(run, "--scale", "1-5", "--cluster", "none")
    assert not any("drawn together" in note for note in alone["notes"])
    one, two = (values(each, "agreement")["exact"]["value"] for each in (alone, found))
    assert two["high"] - two["low"] > 1.8 * (one["high"] - one["low"])


def test_a_second_run_is_matched_by_item_criterion_and_sample(tmp_path: Path, run_audit: Run) -> None:
    def run(name: str, shift: int, samples: int) -> Path:
        def answers(k: int, criterion: str) -> list[dict[str, Any]]:
            right = k + shift * (criterion == "d")
            return [scored(k, 1 + (right + sample) % 5, criterion, sample) for sample in range(samples)]

        asked = [answers(k, criterion) for k in range(20) for criterion in ("c", "d")]
        folder = write(
            tmp_path / name, [each for group in asked for each in group], {f"i{k}": 1 + k % 5 for k in range(20)}
        )
        if samples > 1:
            lines = [json.dumps(joint(group, 1 + (i // 2 + shift * (i % 2)) % 5)) for i, group in enumerate(asked)]
            (folder / "combined.jsonl").write_text("\n".join(lines) + "\n")
        return folder

    first, other = run("first", 0, 1), run("other", 1, 3)
    found = run_audit(first, "--scale", "1-5", "--rival", f"score@{other}")
    exact = values(found, "rival")["exact"]
    assert (exact["first"]["value"], exact["other"]["value"], exact["first"]["n"]) == (1, 0.5, 40)
    back = values(run_audit(other, "--scale", "1-5", "--rival", f"score@{first}"), "rival")["exact"]
    assert (back["other"]["value"], back["first"]["value"]) == (0.5, 1)


def joint(verdicts: list[dict[str, Any]], value: int) -> dict[str, Any]:
    return {**verdicts[0], "key": fingerprint([each["key"] for each in verdicts]), "label": str(value), "score": value}


def test_joined_samples_are_the_judge(tmp_path: Path, run_audit: Run) -> None:
    asked = [[scored(k, 1 + (k + (sample == 0)) % 5, sample=sample) for sample in (0, 1, 2)] for k in range(20)]
    run = write(tmp_path / "run", [each for group in asked for each in group], {f"i{k}": 1 + k % 5 for k in range(20)})
    lines = [json.dumps(joint(group, 1 + k % 5)) + "\n" for k, group in enumerate(asked)]
    (run / "combined.jsonl").write_text("".join(lines))
    found = run_audit(run, "--scale", "1-5")
    assert "the samples joined are the judge" in found["notes"][0]
    assert found["rows"] == 20
    exact = values(found, "agreement")["exact"]["value"]
    assert (exact["value"], exact["n"]) == (1, 20)  # the first answers alone are never right
    retest = values(found, "beside", "who")["the judge asked again (test-retest)"]
    assert (retest["exact"]["value"], retest["n"]) == (0, 20)  # the second sample against the first


def test_joint_verdicts_of_other_samples_do_not_count(tmp_path: Path, run_audit: Run) -> None:
    asked = [[scored(k, 1 + k % 5, sample=sample) for sample in (0, 1)] for k in range(20)]
    run = write(tmp_path / "run", [each for group in asked for each in group], {f"i{k}": 1 + k % 5 for k in range(20)})
    old = [scored(0, 4, "of an earlier run", sample) for sample in (0, 1)]
    lines = [json.dumps({**joint(old, 4), "question": asked[0][0]["question"]})]
    lines += [json.dumps(joint(group, 1 + k % 5)) for k, group in enumerate(asked) if k]
    (run / "combined.jsonl").write_text("\n".join(lines) + "\n")
    found = run_audit(run, "--scale", "1-5")
    assert "1 joint verdict of other samples left out: run again to join these" in found["notes"]
    assert any("the first answers count" in note for note in found["notes"])


def pair_rows(run: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run["tables"][name]["rows"]
    return rows


def test_a_judge_of_slots_has_no_accuracy_and_no_calibration(tmp_path: Path, run_audit: Run) -> None:
    # in each order .8 for the response shown first: the mean of both is .5/.5, which is nobody's win
    verdicts = [
        paired(k, order, "a" if order == (0, 1) else "b", distribution=first if order == (0, 1) else second)
        for k in range(60)
        for order in ORDERS
        for first, second in [({"a": 0.8, "b": 0.2}, {"a": 0.2, "b": 0.8})]
    ]
    run = write(tmp_path / "run", verdicts, {f"i{k}": "a" if k % 3 else "b" for k in range(60)})
    found = run_audit(run, "--draws", "100")
    for row in pair_rows(found, "calibration"):
        for name in ("accuracy", "confidence", "ECE"):
            assert (row[name]["value"], row[name]["n"]) == (None, 0)
        assert row["Brier"]["n"] == 60
    assert any("the orders disagree" in note for note in found["tables"]["calibration"]["notes"])
    assert not {"reliability", "abstaining"} & set(found["tables"])


def test_pairs_are_calibrated_by_their_joint_verdict(tmp_path: Path, run_audit: Run) -> None:
    # 30 pairs of which both orders say a (.9), 30 that disagree though the mean of their probabilities favours a
    same, apart = ({"a": 0.9, "b": 0.1}, {"a": 0.9, "b": 0.1}), ({"a": 0.9, "b": 0.1}, {"a": 0.4, "b": 0.6})
    verdicts = []
    for k in range(60):
        for order, read in zip(ORDERS, same if k < 30 else apart, strict=True):
            verdicts.append(paired(k, order, max(read, key=read.__getitem__), distribution=read))
    run = write(tmp_path / "run", verdicts, {f"i{k}": "a" for k in range(60)})
    found = run_audit(run, "--draws", "100")
    row = pair_rows(found, "calibration")[0]
    assert (row["accuracy"]["value"], row["accuracy"]["n"], row["accuracy"]["dropped"]) == (1, 30, 30)
    assert row["ECE"]["value"] == pytest.approx(0.1)
    assert [each["n"] for each in pair_rows(found, "abstaining")] == [30] * 5


@pytest.mark.parametrize("pairs", [False, True])
def test_metadata_never_stands_for_a_column_of_the_run(tmp_path: Path, run_audit: Run, pairs: bool) -> None:
    """Items may call anything "first" or "swapped": that makes no pairs, and no second order."""
    meta = {name: "x" for name in ("first", "second", "swapped", "shown", "choice", "line", "status")}
    shape = {"responses": ["One.", "Two."], "gold": "a"} if pairs else {"response": "One.", "gold": 3}
    rows = [{"id": f"i{k}", "instruction": "?", **shape, **meta} for k in range(12)]
    run = tmp_path / "run"
    more = ["--one-order"] if pairs else []
    done = dikast("compare" if pairs else "grade", write_jsonl(tmp_path / "x.jsonl", rows), "--judge",
                  "mock:oracle,r=0", "--rubric", "helpfulness", "--out", run, *more)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = run_audit(run, "--by", "meta.first", "--draws", "20")
    assert found["rows"] == 12
    assert [row["total"] for row in found["tables"]["by meta.first"]["rows"]] == [12]
    assert "orders" not in found["tables"]
    assert ("accuracy" in found["tables"]) == pairs


@pytest.mark.parametrize("golds", [["a", "b", "tie", "b"], [1, 0, 1, [5, 2]]], ids=["words", "numbers and a list"])
def test_choices_are_no_gold_of_single_responses(golds: list[Any], tmp_path: Path) -> None:
    # a run by scores: gold 1 says that the second response is better; as a score it would lie on the scale 1-5
    rows = [
        {"id": f"p{k}", "instruction": "Which?", "responses": [f"One {k}.", f"Two {k}."], "gold": gold}
        for k, gold in enumerate(golds * 3)
    ]
    run = tmp_path / "a run"
    line = ("compare", write_jsonl(tmp_path / "x.jsonl", rows), "--from-absolute", "--judge", "mock:random")
    done = dikast(*line, "--rubric", "helpfulness", "--out", run, "-q")
    assert done.returncode == 0, done.stderr
    assert "no audit" not in done.stderr
    told = dikast("audit", run)
    assert told.returncode == 0, told.stderr
    assert ("Agreement of 6 scores with gold" in told.stdout) == (golds[3] == [5, 2])  # of the three lists alone
    assert "the run has no gold" not in told.stdout
    found = json.loads(dikast("audit", run, "--json", "--draws", "20").stdout)
    meant = {"0": "a", "1": "b", "[5, 2]": "a"}
    gold = {str(row["id"]): meant.get(str(row["gold"]), row["gold"]) for row in rows}
    choices = {row["item"]: row["choice"] for row in lines(run / "preferences.jsonl")}
    right = sum(choices[item] == value for item, value in gold.items())
    accuracy = values(found, "accuracy")["accuracy (all)"]["both together"]
    assert (accuracy["value"], accuracy["n"]) == (right / 12, 12)
    assert values(found, "failures of pairs", "status")["ok"]["count"] == 12
    page = tmp_path / "page.json"
    assert dikast("report", run, "-o", page, "--draws", "20").returncode == 0
    (reported,) = json.loads(page.read_text())["runs"]
    assert "there is no gold" not in json.dumps(reported)
    assert f"accuracy with gold is {right / 12:.3f}" in reported["headline"]
