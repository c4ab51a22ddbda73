"""The judge from Python: few lines, dicts, notebooks, and mistakes that are told before anything is asked."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import dikast
from dikast.core.errors import UserError
from dikast.engines.base import Request, Sampling
from runs import lines, pairs, rows, write_jsonl
from scripted import Scripted

ITEM: dict[str, Any] = {"instruction": "Name a prime.", "response": "7 is a prime.", "gold": 4}


def test_the_whole_path_in_under_ten_lines(tmp_path: Path) -> None:
    items = str(write_jsonl(tmp_path / "items.jsonl", rows(20)))
    # --- from here
    judge = dikast.Judge("mock:oracle", "helpfulness")
    verdict = judge.grade(instruction="Name a prime.", response="7 is a prime.", gold=4)
    preference = judge.compare({"instruction": "Name a prime.", "responses": ["9", "7"], "gold": [1, 5]})
    summary = dikast.grade_file(judge, dikast.Source(items), tmp_path / "run")
    again = dikast.replay(tmp_path / "run")
    # --- to here
    assert verdict.score in (1.0, 2.0, 3.0, 4.0, 5.0)
    assert verdict.expected is not None
    assert preference.choice in ("a", "b", "tie")
    assert summary["verdicts"] == 20
    assert again["replay"]["changed"] == 0


def test_inside_a_running_event_loop() -> None:
    async def notebook() -> tuple[float | None, str | None, int]:
        judge = dikast.Judge("mock:oracle,r=1", "helpfulness")
        many = list(judge.grade_many({**ITEM, "id": str(i)} for i in range(5)))
        compared = judge.compare({"instruction": "?", "responses": ["9", "7"], "gold": [1, 5]})
        return judge.grade(ITEM).score, compared.choice, len(many)

    assert asyncio.run(notebook()) == (4.0, "b", 5)


def test_an_item_given_as_a_dict_as_keywords_or_as_an_item() -> None:
    judge = dikast.Judge("mock:oracle,r=1", "helpfulness")
    assert judge.grade(ITEM).score == 4.0
    assert judge.grade(**ITEM).score == 4.0
    assert judge.grade(dikast.Item.of(**ITEM)).score == 4.0
    parts = [{"type": "text", "text": text} for text in ("7", "is one.")]
    assert judge.grade({"instruction": ["Name", "a prime."], "response": parts, "gold": 4}).score == 4.0
    with pytest.raises(dikast.DataError, match="'response' holds a list of texts"):
        judge.grade({"instruction": "Name a prime.", "response": ["7", "is one."]})
    several = list(judge.grade_many([{**ITEM, "id": "x"}, ITEM, dikast.Item.of(**ITEM)]))
    assert [verdict.question.item for verdict in several] == ["x", "1", "item"]


FRAME: dict[str, list[Any]] = {
    "question": ["Name a prime.", "Name another."],
    "answer": ["7 is one.", "9 is one."],
    "human_score": [5, 1],
}
PAIRED: dict[str, list[Any]] = {
    "question": ["Q?", "R?"],
    "answer_a": ["x", "y"],
    "answer_b": ["z", "w"],
    "winner": ["a", "b"],
}


def forms(table: dict[str, list[Any]], folder: Path) -> dict[str, Any]:
    """A table in all the forms that people have one in."""
    data = pytest.importorskip("datasets").Dataset.from_dict(table)
    frame = data.to_pandas()
    frame.to_csv(folder / "table.csv", index=False)
    lazy = data.to_polars().lazy()
    listed = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return {"columns": table, "pandas": frame, "polars": lazy.collect(), "lazy": lazy, "arrow": data.data.table,
            "datasets": data, "rows": listed, "path": str(folder / "table.csv")}  # fmt: skip


def test_rows_are_taken_in_every_form_that_the_functions_take(tmp_path: Path) -> None:
    judge = dikast.Judge("mock:oracle,r=1", "helpfulness")
    for name, data in forms(FRAME, tmp_path).items():
        assert [each.label for each in judge.grade_many(data)] == ["5", "1"], name
        assert [each.labels for each in dikast.Panel([judge, judge]).grade_many(data)] == [("5",) * 2, ("1",) * 2], name
        told = (
            "an item is an Item, .*not str"
            if name == "path"
            else "takes one item, and the .* several rows: use grade_m"
        )
        with pytest.raises(UserError, match=told):
            judge.grade(data)
    judge = dikast.Judge("mock:oracle,accuracy=1", "helpfulness")
    for name, data in forms(PAIRED, tmp_path).items():
        assert {each.choice for each in judge.compare_many(data)} == {"a", "b"}, name
    pair = judge.compare(forms(PAIRED, tmp_path)["pandas"].iloc[1])
    assert pair.choice == "b"
    judge, frame = dikast.Judge("mock:oracle,r=1", "helpfulness"), forms(FRAME, tmp_path)["pandas"]
    assert judge.grade(frame[1:]).label == "1"  # a table of one row, and a row alone, are one item
    assert judge.grade(frame.iloc[0]).label == "5"
    assert len(judge.rank(forms(PAIRED, tmp_path)["arrow"].slice(0, 1)).order) == 2
    with pytest.raises(UserError, match="the columns of a table have different lengths: question 2, answer 1"):
        list(judge.grade_many({"question": ["q", "r"], "answer": ["a"]}))
    for odd in (3, None):
        with pytest.raises(UserError, match="items are the path of a file, a list of dicts"):
            list(judge.grade_many(odd))  # type: ignore[arg-type]


def test_an_item_may_bring_the_rubric() -> None:
    judge = dikast.Judge("mock:constant")
    own = {"criterion": "Is it prime?", "scale": "pass/fail", "name": "prime"}
    verdict = judge.grade({**ITEM, "rubric": own, "gold": "fail"})
    assert (verdict.question.criterion, verdict.label) == ("prime", "fail")
    with pytest.raises(UserError, match="no rubric: give the judge one"):
        judge.grade(ITEM)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"samples": 0}, "samples must be at least 1"),
        ({"samples": 3}, "all the same: set a temperature"),
        ({"min_mass": 1.5}, "a probability from 0 to 1"),
        ({"read": "sometimes"}, "read 'sometimes': use auto, only or never"),
        ({"format": "pairwise"}, "format 'pairwise' is pairwise; a format of kind absolute is needed"),
        ({"compare_format": "absolute"}, "compare_format 'absolute' is absolute"),
        ({"format": "absolut"}, "did you mean 'absolute'"),
        ({"temprature": 1}, r"'temprature': did you mean 'temperature'\? Write sampling=Sampling\(temperature=...\)"),
        ({"top_p": 0.9}, r"unknown keyword 'top_p': write sampling=Sampling\(top_p=...\)"),
        ({"sampels": 2}, "unknown keyword 'sampels': did you mean 'samples'"),
        ({"rubric": "helpfullness"}, "no built-in rubric of that name"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        dikast.Judge("mock:constant", **{"rubric": "helpfulness", **settings})


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"top_p": 1.1}, {"max_tokens": 0}], ids=str)
def test_sampling_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"got .*{next(iter(wrong))}"):
        Sampling(**wrong)


def test_questions_that_cannot_be_meant() -> None:
    judge = dikast.Judge(
        "mock:constant", {"criteria": [{"name": "a", "criterion": "A?"}, {"name": "b", "criterion": "B?"}]}
    )
    with pytest.raises(UserError, match="use grade_sheet"):
        judge.grade(ITEM)
    one = dikast.Judge("mock:constant", "helpfulness")
    with pytest.raises(UserError, match="has 2 responses where one is needed"):
        one.grade({"responses": ["a", "b"]})
    with pytest.raises(UserError, match="has 2 responses where one is needed"):
        one.grade_sheet({"responses": ["a", "b"]})
    with pytest.raises(UserError, match="has 1 response where compare takes 2"):
        one.compare(ITEM)
    assert one.grade_sheet(ITEM).total == 0.5


def test_an_item_is_never_half_used() -> None:
    judge = dikast.Judge("mock:constant", "helpfulness")
    with pytest.raises(UserError, match="whole or by keywords, not both: put gold into the item"):
        judge.grade({"instruction": "x", "response": "y"}, gold=3)
    with pytest.raises(UserError, match="an item is an Item, a dict, or keywords"):
        judge.grade("What is it?")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="takes one item, and the list has no rows"):
        judge.compare_by_scores([])  # type: ignore[arg-type]


def test_an_item_without_a_response_is_bad_and_costs_nothing() -> None:
    engine = Scripted(lambda _: "Verdict: 5")
    judge = dikast.Judge(engine, "helpfulness")
    for item in ({"instruction": "?"}, {"instruction": "?", "response": "  \n"}):
        verdict = judge.grade(item)
        assert (verdict.status, verdict.score) == (dikast.Status.BAD_ITEM, None)
        assert "response" in verdict.reason
    assert engine.requests == []


def test_what_is_in_memory_is_what_is_on_disk(tmp_path: Path) -> None:
    """The same question has the same key and answer from Python and in a run."""
    items = write_jsonl(tmp_path / "items.jsonl", pairs(6))
    source, judge = dikast.Source(str(items)), dikast.Judge("mock:oracle", "helpfulness")
    dikast.compare_file(judge, source, tmp_path / "run")
    written = {
        each["item"]: (each["choice"], each["logit_a"]) for each in lines(tmp_path / "run" / "preferences.jsonl")
    }
    in_memory = {each.item: (each.choice, each.logit_a) for each in judge.compare_many(source.items())}
    assert in_memory == written


def test_draws_hang_on_the_seed_alone() -> None:
    def labels(seed: int, engine: str = "mock:random") -> list[str | None]:
        judge = dikast.Judge(engine, "helpfulness", sampling=Sampling(temperature=1.0, seed=seed))
        return [verdict.label for verdict in judge.grade_many(rows(30))]

    assert labels(1) == labels(1)
    assert labels(1) != labels(2)


def test_items_are_pulled_as_the_engine_asks() -> None:
    """A judge over endless items gives its first verdict."""

    def say(request: Request) -> str:
        return "Verdict: 3"

    endless = ({"id": str(i), "instruction": "?", "response": "!"} for i in count())
    verdicts = dikast.Judge(Scripted(say), "helpfulness").grade_many(endless)
    assert [next(verdicts).question.item for _ in range(3)] == ["0", "1", "2"]


def test_gold_off_the_scale_is_refused_before_a_call(tmp_path: Path) -> None:
    log = tmp_path / "log"
    judge = dikast.Judge(f"mock:constant,log={log}", "correctness")
    with pytest.raises(UserError, match=r"off pass/fail \(0 to 1\) of the rubric 'correctness', and gold goes from 4"):
        judge.grade(**ITEM)
    with pytest.raises(UserError, match="gold"):
        judge.compare({"instruction": "?", "responses": ["9", "7"], "gold": [1, 5]})
    with pytest.raises(UserError, match="gold"):
        judge.compare_by_scores({"instruction": "?", "responses": ["9", "7"], "gold": [1, 5]})
    assert not log.exists() or log.read_bytes() == b""
    named = dikast.Judge("mock:constant", "correctness", equate="1-5")
    assert named.grade(**ITEM).label == "fail"
    assert named.hash == dikast.Judge("mock:constant", "correctness").hash
    assert judge.compare_by_scores({"instruction": "?", "responses": ["9", "7"], "gold": "b"}).choice == "tie"


def test_paths_may_be_text_everywhere(tmp_path: Path) -> None:
    items, out = str(write_jsonl(tmp_path / "items.jsonl", rows(6))), str(tmp_path / "run")
    judge = dikast.Judge("mock:oracle", "helpfulness")
    assert dikast.grade_file(judge, items, out)["verdicts"] == 6
    assert dikast.grade_file(judge, Path(items), Path(out))["asked"] == 0
    assert dikast.replay(out, out=str(tmp_path / "again"))["replay"]["changed"] == 0
    assert dikast.audit_file(out).rows == 6
    compared = str(write_jsonl(tmp_path / "pairs.jsonl", pairs(3)))
    assert dikast.compare_file(judge, compared, str(tmp_path / "pairs"))["preferences"]["pairs"] == 3
    scores = dikast.compare_file_by_scores(judge, compared, str(tmp_path / "scores"))
    assert scores["preferences"]["pairs"] == 3


def test_a_judge_is_one_line() -> None:
    assert repr(dikast.Judge("mock:oracle", "helpfulness")) == "Judge('mock:oracle', 'helpfulness')"
    assert repr(dikast.Judge("mock:oracle")) == "Judge('mock:oracle')"
