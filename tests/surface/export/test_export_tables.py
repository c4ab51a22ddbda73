"""Runs as tables, data frames and data sets, and back as gold."""

import csv
import random
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import orjson
import pytest

import dikast
from dikast.core.errors import MissingExtra, UserError
from dikast.core.records import read_records, write_records
from dikast.surface.export import hf_folder, verdict_parts
from runs import dikast_here, pairs, rows, write_jsonl

ODD = [
    {"id": "=1+1", "instruction": "-5 or 5?", "response": "@a; =cmd()", "gold": 2, "split": "train", "score": "old"},
    {"id": "b", "instruction": 'He said "no",\nthen left', "response": "-5", "gold": 5, "split": "test", "score": "7"},
]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def graded(folder: Path, items: Any, judge: Any = "mock:oracle", **options: Any) -> dikast.Run:
    return dikast.grade(items, judge, "helpfulness", out=folder, **options)


def test_a_row_has_the_item_and_the_verdict(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", write_jsonl(tmp_path / "items.jsonl", rows(6, category="math")))
    done = dikast_here("export", str(run.folder), str(tmp_path / "out.jsonl"))
    assert done.returncode == 0, done.stderr
    told = [orjson.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    verdicts = {verdict.question.item: verdict for verdict in run}
    assert [row["id"] for row in told] == [row["id"] for row in rows(6)]  # the order of the items
    for row, item in zip(told, rows(6), strict=True):
        verdict = verdicts[row["id"]]
        assert {**row, **item, "category": "math"} == row
        assert (row["score"], row["label"], row["status"]) == (verdict.score, verdict.label, "ok")
        assert (row["distribution"], row["feedback"]) == (verdict.distribution, verdict.feedback)


def test_failures_have_a_status_and_no_score(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", rows(60), "mock:oracle,refused=0.4")
    told = list(run.table())
    failed = [row for row in told if row["status"] == "refused"]
    assert 5 < len(failed) < 55
    assert all(row["score"] is None and row["reason"] for row in failed)
    assert sum(row["score"] is not None for row in told) == 60 - len(failed)


def test_formulas_are_escaped_reversibly_and_names_that_are_taken_are_told_apart(tmp_path: Path) -> None:
    from dikast.core.records import unescaped_formula

    run = graded(tmp_path / "run", write_jsonl(tmp_path / "items.jsonl", [{**row, "meta": {"score": row.pop("score")}}
                                                                          for row in map(dict, ODD)]))  # fmt: skip
    dikast.export(run, tmp_path / "out.csv")
    told = read_csv(tmp_path / "out.csv")
    assert [row["id"] for row in told] == ["'=1+1", "b"]
    assert [row["response"] for row in told] == ["'@a;' =cmd()", "-5"]  # a number is no formula
    assert [row["meta.score"] for row in told] == ["old", "7"]
    for row, item in zip(told, ODD, strict=True):
        for name in ("id", "instruction", "response"):
            assert unescaped_formula(row[name]) == item[name]
    dikast.export(run, tmp_path / "raw.tsv", raw=True)
    assert "'" not in (tmp_path / "raw.tsv").read_text()


def test_pairs_have_the_joint_verdict_and_both_orders(tmp_path: Path) -> None:
    run = dikast.compare(pairs(20), "mock:position-biased", "helpfulness", out=tmp_path / "run")
    for row, preference in zip(run.table(), run.preferences, strict=True):
        assert (row["id"], row["choice"]) == (preference.item, preference.outcome)
        by_order = {order.question.responses: order for order in preference.orders}
        assert row["label_shown"] == by_order[0, 1].label
        assert row["label_swapped"] == by_order[1, 0].label
        assert row["distribution_swapped"] == by_order[1, 0].distribution
        assert (row["response_a"], row["response_b"]) == (f"It is {row['id'][1:]}.", f"Look at {row['id'][-1]}.")
    one = dikast.compare(pairs(20), "mock:oracle", "helpfulness", out=tmp_path / "one", one_order=True)
    shown = {(v.question.item, "shown" if v.question.responses == (0, 1) else "swapped"): v.label for v in one}
    for row in one.table():
        assert {(row["id"], k): row[f"label_{k}"] for k in ("shown", "swapped") if row.get(f"label_{k}")}.items() <= (
            shown.items()
        )


def test_scores_of_pairs_samples_and_sheets(tmp_path: Path) -> None:
    by_scores = dikast.compare(pairs(8), "mock:oracle", "helpfulness", out=tmp_path / "scores", from_absolute=True)
    assert all((row["score_a"] > row["score_b"]) == (row["choice"] == "a") for row in by_scores.table())
    sampled = graded(tmp_path / "samples", rows(5), samples=3, temperature=1.0)
    joined = {verdict.question.item: verdict for verdict in sampled.combined}
    for row in sampled.table():
        assert row["score"] == joined[row["id"]].score
        assert sorted(row["samples"]) == sorted(str(v.label) for v in sampled if v.question.item == row["id"])
    voted = dikast.compare(pairs(4), "mock:oracle", "helpfulness", out=tmp_path / "v", samples=2, temperature=1.0)
    assert all(len(row["samples"]["shown"]) == len(row["samples"]["swapped"]) == 2 for row in voted.table())
    sheet = dikast.Sheet("both", (dikast.Rubric("polite", "Polite?", "1-3"), dikast.Rubric("right", "Right?", "1-3")))
    scored = dikast.grade(rows(3), "mock:constant", sheet, out=tmp_path / "sheet")
    told = list(scored.table())
    assert [row["criterion"] for row in told] == ["polite", "right"] * 3
    assert {row["total"] for row in told} == {0.5}


def test_a_panel_has_one_row_an_item(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", rows(10), ["mock:oracle", "mock:constant", "mock:oracle,refused=0.4"])
    told = list(run.table())
    assert [row["id"] for row in told] == [f"i{k}" for k in range(10)]
    for number, judge in enumerate(run.runs, 1):
        assert [row[f"score_{number}"] for row in told] == [v.score for v in sorted(judge, key=_by_number)]
    for row in told:
        given = [row[f"score_{k}"] for k in (1, 2, 3) if row[f"score_{k}"] is not None]
        assert row["mean"] == pytest.approx(sum(given) / len(given))
        assert row["spread"] == max(given) - min(given)
    paired = dikast.compare(pairs(5), ["mock:oracle", "mock:position-biased"], "helpfulness", out=tmp_path / "pairs")
    each = [[preference.outcome for preference in judge.preferences] for judge in paired.runs]
    assert [[row[f"choice_{k}"] for row in paired.table()] for k in (1, 2)] == each


def _by_number(verdict: dikast.Verdict) -> int:
    return int(verdict.question.item[1:])


def test_the_order_of_arrival_changes_nothing(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", write_jsonl(tmp_path / "items.jsonl", rows(50)))
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        dikast.export(run, tmp_path / name)
    verdicts = run.folder / "verdicts.jsonl"
    lines = verdicts.read_bytes().splitlines(keepends=True)
    random.Random(0).shuffle(lines)
    verdicts.write_bytes(b"".join(lines))
    for name in ("csv", "parquet", "jsonl"):
        dikast.export(dikast.Run(run.folder), tmp_path / f"b.{name}")
        assert (tmp_path / f"a.{name}").read_bytes() == (tmp_path / f"b.{name}").read_bytes()


def test_frames_have_types_and_say_what_they_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    pd = pytest.importorskip("pandas")

    run = graded(tmp_path / "run", [*rows(10), {**rows(11)[10], "gold": 3.5}], "mock:oracle,refused=0.2,seed=3")
    frame = run.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    scores = [row["score"] for row in run.table()]
    assert None in scores  # else the next line checks nothing
    assert frame.score.mean() == pytest.approx(
        sum(s for s in scores if s is not None) / sum(s is not None for s in scores)
    )
    assert str(frame.gold.dtype) == str(frame.score.dtype) == "float64"
    ok = frame[frame.status == "ok"].iloc[0]
    assert sum(ok.distribution.values()) == pytest.approx(1)
    dikast.export(run, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").equals(run.to_arrow())
    polars = pytest.importorskip("polars")
    assert run.to_polars().select(polars.col("score").mean()).item() == pytest.approx(frame.score.mean())
    import importlib

    real = importlib.import_module

    def without(name: str, package: str | None = None) -> Any:
        if name.split(".")[0] in ("pandas", "polars"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, package)

    monkeypatch.setattr("dikast.core.errors.importlib.import_module", without)
    for ask in (run.to_pandas, run.to_polars):
        with pytest.raises(MissingExtra, match=r"dikast\[frames\]"):
            ask()


def test_datasets_opens_the_parquet_file_and_the_folder(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    items = [{**row, "split": "test" if k % 3 else "train"} for k, row in enumerate(rows(12))]
    run = graded(tmp_path / "run", items)
    assert dikast.export(run, f"hf:{tmp_path / 'hub'}").rows == 12
    opened = datasets.load_dataset(str(tmp_path / "hub"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in opened.items()} == {"train": 4, "test": 8}
    assert opened["train"][0]["score"] == next(iter(run.table()))["score"]
    dikast.export(run, tmp_path / "out.parquet")
    flat = datasets.load_dataset("parquet", data_files=str(tmp_path / "out.parquet"), split="train",
                                 cache_dir=str(tmp_path / "cache"))  # fmt: skip
    assert flat["id"][:] == [f"i{k}" for k in range(12)]
    other = graded(tmp_path / "other", rows(3))
    dikast.export(other, f"hf:{tmp_path / 'hub'}")  # an earlier export is replaced, its splits too
    assert [each.name for each in (tmp_path / "hub/data").iterdir()] == ["verdicts-00000-of-00001.parquet"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(UserError, match="not empty"):
        dikast.export(run, f"hf:{tmp_path / 'mine'}")
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_large_split_has_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run = graded(tmp_path / "run", rows(12))
    assert dikast.export(run, f"hf:{tmp_path / 'whole'}").rows == 12
    monkeypatch.setattr(hf_folder, "_ROWS", 5)
    for _ in range(2):
        assert dikast.export(run, f"hf:{tmp_path / 'parts'}").rows == 12
    parts = sorted((tmp_path / "parts" / "data").iterdir())
    assert [part.name for part in parts] == [f"verdicts-0000{i}-of-00003.parquet" for i in range(3)]
    found = [row for part in parts for row in parquet.read_table(part).to_pylist()]
    assert found == parquet.read_table(tmp_path / "whole" / "data" / "verdicts-00000-of-00001.parquet").to_pylist()
    assert "path: data/verdicts-*.parquet" in (tmp_path / "parts" / "README.md").read_text()


def test_parts_are_written_while_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow.parquet as pq

    monkeypatch.setattr(verdict_parts, "_LINES", 8)
    run, folder = graded(tmp_path / "run", rows(20), "mock:oracle,refused=0.3").folder, tmp_path / "parts"
    whole, going = (run / "verdicts.jsonl").read_bytes(), shutil.copytree(run, tmp_path / "going")
    (going / "summary.json").unlink()
    lines = whole.splitlines(keepends=True)
    (going / "verdicts.jsonl").write_bytes(b"".join(lines[:12]) + lines[12][:50])  # the last is being written
    assert dikast.export(going, f"parts:{folder}").rows == 12
    names = [path.name for path in sorted(folder.iterdir())]
    assert names == ["verdicts-00000.parquet", "verdicts-00001.parquet"]
    first = (folder / names[0]).stat().st_ino
    (going / "verdicts.jsonl").write_bytes(whole)
    assert dikast.export(going, f"parts:{folder}").rows == 20
    assert (folder / names[0]).stat().st_ino == first  # a part whose lines are complete is not written again
    told = [row for path in sorted(folder.iterdir()) for row in pq.read_table(path).to_pylist()]
    for row, line in zip(told, map(orjson.loads, lines), strict=True):
        assert (row["key"], row["item"], row["status"], row["score"]) == (
            line["key"], line["question"]["item"], line["status"], line["score"],
        )  # fmt: skip
        assert (row["distribution"] and orjson.loads(row["distribution"])) == line["distribution"]
    (going / "verdicts.jsonl").write_bytes(b"".join(lines[:4]))
    assert dikast.export(going, f"parts:{folder}").rows == 4
    assert [path.name for path in folder.iterdir()] == names[:1]
    with pytest.raises(UserError, match="name the run folder of one judge"):
        dikast.export(tmp_path / "none", f"parts:{folder}")
    pq.write_table(pq.read_table(folder / names[0]).replace_schema_metadata(), folder / names[0])
    with pytest.raises(UserError, match="was not written by `dikast export`"):
        dikast.export(going, f"parts:{folder}")


def test_exported_edited_by_people_and_read_back_as_gold(tmp_path: Path) -> None:
    odd = [{**row, "meta": {"score": "x"}} for row in ODD]
    items = [{key: value for key, value in row.items() if key not in ("gold", "score")} for row in [*odd, *rows(30)]]
    run = graded(tmp_path / "run", write_jsonl(tmp_path / "items.jsonl", items), "mock:random")
    dikast.export(run, tmp_path / "out.csv")
    told = read_csv(tmp_path / "out.csv")
    for number, row in enumerate(told):
        row["human"] = (
            "" if number == 5 else f"{float(row['score']):g}"
        )  # people agree with the judge, but leave one out
    with (tmp_path / "back.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(told[0]), delimiter=",", lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(told)
    audit = dikast.audit(run, gold_file=tmp_path / "back.csv", gold=["human"])
    exact = audit["agreement"].estimate("exact")
    assert (exact.value, exact.n) == (1.0, 31)


def test_gold_of_several_criteria_and_responses_comes_back_row_by_row(tmp_path: Path) -> None:
    sheet = dikast.Sheet("both", (dikast.Rubric("polite", "Polite?", "1-3"), dikast.Rubric("right", "Right?", "1-3")))
    items = [{"id": f"m{k}", "instruction": "Q", "responses": ["one", "two"]} for k in range(10)]
    run = dikast.grade(items, "mock:random", sheet, out=tmp_path / "run")
    table = list(run.table())
    assert len(table) == 40
    write_jsonl(tmp_path / "gold.jsonl", [{**row, "human": row["score"]} for row in table])
    audit = dikast.audit(run, gold_file=tmp_path / "gold.jsonl", gold=["human"], scale="1-3")
    assert (audit["agreement"].estimate("exact").value, audit["agreement"].estimate("exact").n) == (1.0, 40)


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("verdicts.xlsx", "name it verdicts.csv"),
        ("verdicts", "says no format"),
        ("excel:x.csv", "unknown form"),
        ("hf:", "unknown"),
        ("argilla:a.jsonl", "dikast corpus convert ITEMS a.jsonl --to argilla"),
    ],
)
def test_unknown_forms_are_refused(tmp_path: Path, out: str, told: str) -> None:
    run = graded(tmp_path / "run", rows(2))
    with pytest.raises(UserError, match=told):
        dikast.export(run, out)
    with pytest.raises(UserError, match="lies in the run folder"):
        dikast.export(run, run.folder / "verdicts.csv")


def test_items_that_have_moved(tmp_path: Path) -> None:
    run = graded(tmp_path / "run", write_jsonl(tmp_path / "items.jsonl", rows(4)))
    shutil.move(tmp_path / "items.jsonl", tmp_path / "moved.jsonl")
    done = dikast_here("export", str(run.folder), str(tmp_path / "out.csv"))
    assert done.returncode == 0
    assert "--items" in done.stderr
    assert "instruction" not in read_csv(tmp_path / "out.csv")[0]
    dikast.export(run, tmp_path / "out.csv", items=tmp_path / "moved.jsonl")
    assert read_csv(tmp_path / "out.csv")[0]["instruction"] == "Is 0 even?"


@pytest.mark.slow  # thousands of verdicts: a reader holds a thousand at once
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    peaks = []
    for n in (1500, 6000):
        items = [{**row, "response": "x" * 2000} for row in rows(n)]
        run = graded(tmp_path / f"run{n}", write_jsonl(tmp_path / f"{n}.jsonl", items), read="never")
        dikast.export(run, tmp_path / "warm.csv")
        tracemalloc.start()
        dikast.export(run, tmp_path / "out.csv")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 4500 * 600  # ids and keys; of the texts, 2,000 bytes each, none is held


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_an_edit_of_the_column_that_gold_was_guessed_from_is_told(ending: str, tmp_path: Path) -> None:
    own = [{key: each for key, each in row.items() if key != "gold"} for row in rows(40)]
    own = [{**row, "human_score": k % 5 + 1} for k, row in enumerate(own)]
    file = tmp_path / f"verdicts.{ending}"
    dikast.export(dikast.grade(own, "mock:oracle,r=1", "helpfulness", out=tmp_path / "run"), file)
    done = dikast_here("audit", str(file), "--draws", "50")
    assert done.returncode == 0, done.stderr
    assert "differs" not in done.stderr
    edited = list(read_records(file))
    records = [each.value for each in edited]
    records[7]["human_score"] = records[9]["human_score"] = 1 if ending == "jsonl" else "1"
    write_records(file, records)
    done = dikast_here("audit", str(file), "--draws", "50")
    told = f"'human_score' differs from 'gold' (first in line {edited[7].line}), and gold is used: --gold human_score"
    assert told in done.stderr
    done = dikast_here("audit", str(file), "--draws", "50", "--gold", "human_score")
    assert (done.returncode, "differs" in done.stderr) == (0, False)


@pytest.mark.parametrize("spelt", ["models", "1,2", "first,second"])
def test_people_name_the_winner_of_an_exported_pair_as_they_like(spelt: str, tmp_path: Path) -> None:
    """Models stand on either side, so that no one spelling of the first response could be told for their names."""
    models = ("gpt", "claude")
    items: list[dict[str, Any]] = [
        {**row, "gold": "ab"[at % 3 == 0], "model_a": models[at > 3], "model_b": models[at <= 3]}
        for at, row in enumerate(pairs(9))
    ]
    run = dikast.compare(items, "mock:oracle", "helpfulness", out=tmp_path / "run")
    named = {each: f"model_{each}" for each in "ab"}
    people = [
        {**row, "winner": row[named[row["gold"]]] if spelt == "models" else spelt.split(",")["ab".index(row["gold"])]}
        for row in run.table()
    ]
    write_records(tmp_path / "people.csv", people)
    write_records(tmp_path / "labels.csv", [{"item": row["id"], "who": row["winner"]} for row in people])
    expected = accuracy(dikast.audit(run.folder))
    assert 0 < expected[0] < 1
    assert accuracy(dikast.audit(tmp_path / "people.csv", gold="winner")) == expected
    if spelt != "1,2":  # beside a run, 1 is the index of the second response
        labels: dict[str, Any] = {"gold_file": tmp_path / "labels.csv", "gold": "who"}
        assert accuracy(dikast.audit(run.folder, **labels)) == expected
        scores = dikast.compare(items, "mock:oracle", "helpfulness", out=tmp_path / "scores", from_absolute=True)
        assert accuracy(dikast.audit(scores.folder, **labels)) == accuracy(dikast.audit(scores.folder))


def accuracy(found: Any) -> tuple[float, int]:
    [told] = [row[2] for table in found.tables for row in table.rows if row[0] == "accuracy (all)"]
    return told.value, told.n


def _without_gold(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in item.items() if name != "gold"} for item in items]


def _asked(run: dikast.Run) -> dict[str, tuple[Any, ...]]:
    """What a run's verdicts were asked about: of each item the response and the hash of what the judge was shown."""
    return {each.question.item: (each.question.responses, each.hashes and each.hashes.item) for each in run}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "frame"])
@pytest.mark.parametrize("panel", [False, True])
def test_an_export_that_is_judged_again_gives_the_same_prompts(panel: bool, form: str, tmp_path: Path) -> None:
    """The verdicts of the first judge are metadata: its `expected` score is no reference, its label no gold."""
    said = [{"role": role, "content": role} for role in ("system", "user", "assistant", "user")]
    talk = {"id": "talk", "instruction": said, "response": "a", "context": "c"}
    items = write_jsonl(tmp_path / "items.jsonl", [*_without_gold(rows(4)), talk])
    judges = ["mock:random", "mock:random,seed=1"] if panel else "mock:random"
    first = dikast.grade(items, judges, "helpfulness", out=tmp_path / "first")
    table: Any = first.to_pandas()
    if form != "frame":
        table = tmp_path / f"out.{form}"
        assert dikast_here("export", str(first.folder), str(table)).returncode == 0
    again = dikast.grade(table, "mock:random", "helpfulness", out=tmp_path / "again")
    before = graded(tmp_path / "before", items, "mock:random")
    assert _asked(again) == _asked(before)
    assert not {"gold", "reference"} & {*again.to_pandas().columns}


def test_a_column_with_texts_and_conversations_holds_one_kind(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}]
    part = [{"type": "text", "text": "c"}, {"type": "text", "text": "d"}]
    given: list[dict[str, Any]] = [
        {"id": "x", "instruction": "q", "response": "a"}, {"id": "y", "instruction": talk, "response": part},
    ]  # fmt: skip
    run = graded(tmp_path / "run", write_jsonl(tmp_path / "items.jsonl", given), "mock:random")
    frame = run.to_pandas()
    assert [orjson.loads(each) for each in frame.instruction] == [[{"role": "user", "content": "q"}], talk]
    assert [orjson.loads(each) for each in frame.response] == [[{"type": "text", "text": "a"}], part]
    alone = graded(tmp_path / "alone", write_jsonl(tmp_path / "one.jsonl", given[:1]), "mock:random")
    assert [*alone.to_pandas().instruction] == ["q"]
    assert [row["instruction"] for row in run.table()] == ["q", talk]


def test_an_exported_comparison_that_is_judged_again_gives_the_same_prompts(tmp_path: Path) -> None:
    first = dikast.compare(_without_gold(pairs(4)), "mock:random", "helpfulness", out=tmp_path / "first")
    again = dikast.compare(first.to_pandas(), "mock:random", "helpfulness", out=tmp_path / "again")
    keys = [sorted(each.key for each in run) for run in (first, again)]
    assert keys[0] == keys[1]
