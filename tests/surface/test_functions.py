"""The verbs as functions: over files and rows, with the keywords of the command line, from loops and threads."""

import asyncio
import importlib
import inspect
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest

import dikast
from dikast.core.errors import DataError, UserError
from dikast.ranking.rank_options import RankOptions
from runs import dikast_here, pairs, rows, write_jsonl


def labels(run: dikast.Run) -> list[str | None]:
    return [verdict.label for verdict in run]


def test_the_function_does_what_the_command_does(tmp_path: Path) -> None:
    items = write_jsonl(tmp_path / "items.jsonl", rows(12))
    options = ("--scale", "1-10", "--equate", "1-5", "--limit", "9", "--read", "never")
    done = dikast_here("grade", str(items), "--judge", "mock:oracle", "--rubric", "helpfulness", *options,
                       "--out", str(tmp_path / "typed"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = dikast.grade(items, "mock:oracle", "helpfulness", out=tmp_path / "called", scale="1-10", equate="1-5",
                       limit=9, read="never")  # fmt: skip
    typed = (tmp_path / "typed" / "verdicts.jsonl").read_bytes().splitlines()
    assert len(run) == 9
    assert [orjson.loads(line)["key"] for line in typed] == [verdict.key for verdict in run]
    again = dikast.grade(items, "mock:oracle", "helpfulness", out=str(tmp_path / "typed"), scale="1-10", equate="1-5",
                         limit=9, read="never")  # fmt: skip
    assert again.summary["asked"] == 0  # a folder begun by the command goes on from Python


def test_rows_in_memory_are_kept_in_the_run_folder(tmp_path: Path) -> None:
    from PIL import Image

    data = [*rows(3), {"instruction": "What is shown?", "response": "red", "image": Image.new("RGB", (32, 32), "red")}]
    run = dikast.grade(data, "mock:constant", "helpfulness", out=tmp_path / "run")
    kept = list(dikast.read_items(tmp_path / "run" / "items.jsonl"))
    assert [item.id for item in kept] == ["i0", "i1", "i2", kept[3].id]
    assert kept[3].id.startswith("row-")
    assert kept[3].images
    assert labels(run) == ["3"] * 4, [verdict.reason for verdict in run]
    assert dikast.grade(data, "mock:constant", "helpfulness", out=tmp_path / "run").summary["asked"] == 0
    assert dikast_here("report", str(tmp_path / "run"), "--out", str(tmp_path / "page.html")).returncode == 0


def test_a_frame_and_no_folder() -> None:
    import pandas as pd  # type: ignore[import-untyped]

    run = dikast.grade(pd.DataFrame(rows(5)), "mock:oracle,r=1", "helpfulness")
    folder = run.folder
    assert labels(run) == ["1", "2", "3", "4", "5"]
    assert folder.exists()
    del run
    assert not folder.exists()


def test_a_run_without_a_folder_lives_as_long_as_what_is_read_from_it() -> None:
    assert [verdict.label for verdict in dikast.grade(rows(5), "mock:oracle,r=1", "helpfulness")] == list("12345")
    assert next(iter(dikast.grade(rows(5), "mock:oracle,r=1", "helpfulness"))).label == "1"
    assert len(list(dikast.grade(rows(3), "mock:random", "helpfulness", samples=2, temperature=1).combined)) == 3
    assert len(list(dikast.compare(pairs(3), "mock:random", "helpfulness"))) == 6
    assert len(list(dikast.compare(pairs(3), "mock:random", "helpfulness").preferences)) == 3
    assert len(list(dikast.grade(rows(3), "mock:random", "helpfulness").table())) == 3
    assert len(dikast.grade(rows(3), "mock:random", "helpfulness").to_pandas()) == 3
    judges = dikast.grade(rows(3), ["mock:oracle,r=1", "mock:random"], "helpfulness").runs
    assert [len(list(judge)) for judge in judges] == [3, 3]
    assert [verdict.label for verdict in judges.pop(0)] == ["1", "2", "3"]
    assert dikast.audit(dikast.grade(rows(40), "mock:oracle,r=1", "helpfulness"), draws=50)["agreement"]
    run = dikast.grade(rows(3), "mock:random", "helpfulness")
    folder, verdicts = run.folder, iter(run)
    del run
    assert next(verdicts).status == "ok"
    del verdicts
    assert not folder.exists()  # and no longer


def test_pairs_and_panels(tmp_path: Path) -> None:
    compared = dikast.compare(pairs(4), "mock:oracle", "helpfulness")
    assert {len(each.orders) for each in compared.preferences} == {2}
    assert compared.summary["both_orders"] is True
    one = dikast.compare(pairs(4), "mock:oracle", "helpfulness", one_order=True)
    assert {len(each.orders) for each in one.preferences} == {1}
    scores = dikast.compare(pairs(4), "mock:oracle", "helpfulness", from_absolute=True)
    assert scores.kind == "from-absolute"
    own = dikast.open_engine("mock:constant,label=2")
    panel = dikast.grade(rows(3), ["mock:oracle", own], "helpfulness", out=tmp_path / "panel")
    assert panel.kind == "panel"
    assert labels(panel.runs[1]) == ["2", "2", "2"]


def test_rank_over_rows_is_rank_over_a_file(tmp_path: Path) -> None:
    several = [{"id": f"i{n}", "instruction": "q", "responses": ["a", "b", "c"], "gold": [1, 5, 3]} for n in range(3)]
    run = dikast.rank(several, "mock:oracle", "helpfulness", out=tmp_path / "run", schedule="full")
    assert run.summary["ranking"]["ranked"] == 3
    lines = [json.loads(line) for line in (tmp_path / "run" / "rankings.jsonl").read_text().splitlines()]
    file = write_jsonl(tmp_path / "items.jsonl", several)
    judge, how = dikast.Judge("mock:oracle", "helpfulness"), RankOptions(schedule="full")
    alone = dikast.rank_file(judge, str(file), tmp_path / "file", how)
    assert lines == [json.loads(line) for line in (tmp_path / "file" / "rankings.jsonl").read_text().splitlines()]
    assert run.summary["ranking"] == alone["ranking"]
    with pytest.raises(UserError, match="unknown keyword 'equal'"):
        dikast.rank(several, "mock:oracle", "helpfulness", equal="tie")
    assert "schedule" in inspect.signature(dikast.rank).parameters


def test_own_columns_and_own_rubric() -> None:
    data = [{"question": "Name a prime.", "answer": "7", "who": "x"}]
    rubric = dikast.Rubric("prime", "Is it prime?", "pass/fail")
    run = dikast.grade(data, "mock:constant,label=fail", rubric, map={"instruction": "question", "response": "answer"})
    assert labels(run) == ["fail"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temprature": 1.0}, "unknown keyword 'temprature': did you mean 'temperature'?"),
        ({"rubrik": "helpfulness"}, "unknown keyword 'rubrik': did you mean 'rubric'?"),
        ({"samples": 0}, "samples: expected a whole number of at least 1"),
        ({"samples": 3}, "several samples at temperature 0"),
        ({"read": "maybe"}, "read: expected 'auto', 'only' or 'never', got 'maybe'"),
        ({"scale": "5-1"}, "runs backwards"),
        ({"budget": "cents=3"}, "write calls=N"),
        ({"budget": 5}, r"budget='5': write calls=N, tokens=N or money=N \(money=5 for an amount\)"),
        ({"max_failures": 3}, r'max_failures is an option of the command line alone: run.summary\["status"\]'),
        ({"report": "page.html"}, r"dikast.report\(run, FILE\) writes a report"),
        ({"one_order": True}, "unknown keyword 'one_order'"),
        ({"map": ["response"]}, "write FIELD=COLUMN"),
        ({"model": "gpt-4o"}, "unknown keyword 'model': the judge is the second argument"),
        ({"criteria": "Is it polite?"}, "rubric= takes words"),
        ({"concurrency": 3}, "it belongs to the judge, as in 'openai:MODEL,concurrency=8'"),
        ({"progress": True}, "watch=FUNCTION is called with the progress"),
    ],
)
def test_keywords_that_cannot_be_meant(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        dikast.grade(rows(2), "mock:constant", "helpfulness", **options)


def test_an_argument_under_another_name_is_the_one_that_is_missing() -> None:
    grade: Any = dikast.grade
    with pytest.raises(UserError, match=r"'model': did you mean 'judge', which is missing.*\n.*did you mean 'samples'"):
        grade(rows(2), model="mock:constant", smaples=2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'judge'"):
        grade(rows(2))


def test_limits_may_be_given_as_values() -> None:
    items, price = rows(4), (1, 2)
    run = dikast.grade(items, "mock:constant", "helpfulness", budget={"calls": 2}, price=price)
    assert run.summary["status"] == {"ok": 2, "engine_error": 2}
    assert run.summary["usage"]["cost"] == pytest.approx(
        (run.summary["usage"]["tokens_in"] + 2 * run.summary["usage"]["tokens_out"]) / 1e6
    )


def test_all_mistakes_at_once() -> None:
    with pytest.raises(UserError) as mistakes:
        dikast.compare(pairs(2), "mock:nobody", "helpfulnes", equal="heads", budget="x")
    for told in ("heads", "helpfulness", "budget=", "nobody"):
        assert told in str(mistakes.value)
    with pytest.raises(UserError) as mistakes:
        dikast.grade(
            [{"response": {}}, {"instruction": "?", "response": "x"}, {"respons": "x"}], "mock:constant", "honesty"
        )
    assert "rows:0: field 'response'" in str(mistakes.value)
    assert "rows:2: field 'respons'" in str(mistakes.value)
    with pytest.raises(UserError, match="rows:1: field 'id': the id 'i0' is the id of row 0 already"):
        dikast.grade([rows(1)[0]] * 2, "mock:constant", "honesty")
    with pytest.raises(UserError, match="there are no rows"):
        dikast.grade([], "mock:constant", "honesty")


def test_errors_name_the_row_and_not_a_file_that_nobody_knows(tmp_path: Path) -> None:
    high = [*rows(3), {"id": "x", "instruction": "?", "response": "x", "gold": 99}]
    calls: list[tuple[str, Callable[[], object]]] = [
        ("rows:3: field 'gold': item 'x'", lambda: dikast.grade(high, "mock:oracle", "helpfulness")),
        (
            "rows:3: field 'gold': item 'x'",
            lambda: dikast.grade(high, "mock:oracle", "helpfulness", out=tmp_path / "r"),
        ),
        ("rows:0: no rubric", lambda: dikast.grade([{"instruction": "?", "response": "x"}], "mock:constant")),
        (
            "rows: 'response' holds one response of each item",
            lambda: dikast.compare(rows(3), "mock:oracle", "helpfulness"),
        ),
        (
            "the columns are q, a: name it with map={'instruction': 'q', 'response': 'a'}",
            lambda: dikast.grade([{"q": "Why?", "a": "Because."}], "mock:oracle", "helpfulness"),
        ),
        ("rows: there is no column 'nope'", lambda: dikast.audit([{"a": 1, "b": 2}], score="nope", gold=["b"])),
        ("rows:1: field 'b'", lambda: dikast.audit([{"a": 1, "b": 1}, {"a": 1, "b": "x"}], score="a", gold=["b"])),
    ]
    for told, call in calls:
        with pytest.raises(UserError) as error:
            call()
        assert told in str(error.value)
        assert ".jsonl" not in str(error.value)


def test_inside_a_running_loop_and_from_threads() -> None:
    def one(k: int) -> list[str | None]:
        return labels(dikast.grade(rows(5), f"mock:constant,label={k}", "helpfulness"))

    async def notebook() -> list[str | None]:
        return one(4)

    assert asyncio.run(notebook()) == ["4"] * 5
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, (1, 2, 3, 4, 5))) == [[str(k)] * 5 for k in (1, 2, 3, 4, 5)]


def test_media_are_confined_as_on_the_command_line(tmp_path: Path) -> None:
    data = [{"instruction": "?", "response": "x", "image": "/etc/hostname"}]
    run = dikast.grade(data, "mock:constant", "helpfulness", media_root=tmp_path)
    (verdict,) = run
    assert verdict.status is dikast.Status.BAD_ITEM


def test_watch_hears_each_verdict_and_help_names_the_flags() -> None:
    heard: list[int] = []
    dikast.grade(rows(4), "mock:constant", "helpfulness", watch=lambda progress: heard.append(progress.done))
    assert heard == [0, 1, 2, 3, 4]
    known = inspect.signature(dikast.compare).parameters
    assert {"temperature", "max_tokens", "one_order", "equate", "media_root"} <= set(known)
    assert "one_order" not in inspect.signature(dikast.grade).parameters
    assert "dry_run" not in known


def test_an_audit_of_a_run_a_folder_a_file_and_rows(tmp_path: Path) -> None:
    run = dikast.grade(rows(40), "mock:oracle,r=.8", "helpfulness", out=tmp_path / "run")
    assert dikast.audit(run).to_dict()["tables"] == dikast.audit(str(tmp_path / "run")).to_dict()["tables"]
    table = [{"id": v.question.item, "score": v.score, "human": k % 5 + 1} for k, v in enumerate(run)]
    file = write_jsonl(tmp_path / "table.jsonl", table)
    of_file = dikast.audit(file, score="score", gold="human", key="id", scale="1-5", draws=200)
    of_rows = dikast.audit(table, score="score", gold=["human"], key=["id"], scale=dikast.Scale.parse("1-5"), draws=200)
    assert of_rows.to_dict()["tables"] == of_file.to_dict()["tables"]
    assert of_rows["agreement"].estimate("pearson").n == 40
    twice = dikast.audit(table, score="double", gold="human", columns={"double": {"total": ["score", "score"]}})
    assert twice["agreement"].estimate("pearson").value == pytest.approx(of_rows["agreement"].estimate("pearson").value)
    assert "<table>" in of_rows._repr_html_()
    assert repr(of_rows["agreement"]).startswith("<Table 'agreement': ")


def test_the_label_of_a_verdict_is_not_gold_for_its_score(tmp_path: Path) -> None:
    """A judge would agree with itself: of records of verdicts, in memory or in a run's own file."""
    run = dikast.grade(rows(20), "mock:oracle,r=.8", "helpfulness", out=tmp_path / "run")
    records = [verdict.record() for verdict in run]
    for source in (records, run.folder / "verdicts.jsonl"):
        audit = dikast.audit(source, draws=20)
        assert "failures" in audit
        assert "agreement" not in audit
    compared = dikast.compare(pairs(4), "mock:oracle", "helpfulness", out=tmp_path / "pairs")
    for source in ([verdict.record() for verdict in compared], compared.folder / "verdicts.jsonl"):
        with pytest.raises(UserError, match=r"without scores, as those of pairs: give the run's folder"):
            dikast.audit(source)
    named = [record | {"human": record["score"]} for record in records]
    assert dikast.audit(named, draws=20)["agreement"].estimate("exact").value == 1


def test_a_judge_is_no_engine() -> None:
    judge = dikast.Judge("mock:oracle", "helpfulness")
    with pytest.raises(UserError, match=r"give its engine \(judge.engine\)"):
        dikast.grade(rows(3), judge)  # type: ignore[arg-type]
    assert len(dikast.grade(rows(3), judge.engine, "helpfulness")) == 3


def test_mistakes_in_the_keywords_of_an_audit_are_told_at_once() -> None:
    with pytest.raises(UserError) as mistakes:
        dikast.audit([{"score": 1}], scor="score", level=2.0, columns={"x": {"meen": ["score"]}})
    for told in ("unknown keyword 'scor': did you mean 'score'?", "level: expected a number", "meen"):
        assert told in str(mistakes.value)
    with pytest.raises(UserError, match="there are no rows"):
        dikast.audit([], score="score")
    with pytest.raises(UserError, match="an audit needs verdicts"):
        dikast.audit([dikast.Item.of("?", "x")], score="score")


def test_the_room_and_the_function_share_a_name() -> None:
    room = importlib.import_module("dikast.audit")
    assert importlib.import_module("dikast.audit.plan").AuditPlan is dikast.AuditPlan
    assert vars(dikast)["audit"] is room


def test_a_report_of_runs_of_rows_and_of_anybodys_file(tmp_path: Path) -> None:
    run = dikast.grade(rows(40), "mock:oracle,r=.8", "helpfulness", out=tmp_path / "run")
    other = dikast.grade(rows(40), "mock:constant", "helpfulness", out=tmp_path / "other")
    page = tmp_path / "page.html"
    found = dikast.report([run, tmp_path / "other"], [page, tmp_path / "page.json"], title="Two",
                          fail_under="pearson=.99", fail_over=["failed=.5"], draws=200)  # fmt: skip
    assert "<title>Two</title>" in page.read_text("utf-8")
    done = dikast_here("report", run.folder, other.folder, "-o", tmp_path / "typed.json", "--fail-under", "pearson=.99",
                       "--fail-over", "failed=.5", "--draws", "200")  # fmt: skip
    assert done.returncode == 4
    assert (tmp_path / "typed.json").read_bytes() == (tmp_path / "page.json").read_bytes()
    assert [gate.met for gate in found.gates] == [False, True, False, True]
    assert repr(found).endswith("page.json: run, other; 2 of 4 gates met>")
    table = [{"judge_score": v.score, "human_score": k % 5 + 1} for k, v in enumerate(run)]
    of_rows = dikast.report(table)
    assert repr(of_rows) == "<Report in memory: rows>"
    assert of_rows.numbers["runs"][0]["audit"]["tables"]["agreement"]["rows"]
    of_file = dikast.audit(write_jsonl(tmp_path / "old.jsonl", table))  # columns are recognised as by the command
    assert of_file["agreement"].estimate("pearson").n == 40
    with pytest.raises(UserError, match=r"unknown keyword 'titel': did you mean 'title'"):
        dikast.report(run, page, titel="x")
    with pytest.raises(UserError, match="no such run folder"):
        dikast.report(tmp_path / "nowhere")


def test_a_judge_is_proved_as_by_the_command(tmp_path: Path) -> None:
    proof = dikast.prove("mock:oracle,r=1", calls=200, out=tmp_path / "called")
    assert repr(proof).startswith("<Proof of mock:oracle,r=1.0 (")
    assert "<table>" in proof._repr_html_()
    done = dikast_here("prove", "--judge", "mock:oracle,r=1", "--calls", "200", "--out", tmp_path / "typed", "--json")
    assert done.returncode == 0, done.stderr
    assert (
        json.loads(done.stdout)["abilities"] == json.loads((tmp_path / "called/prove.json").read_bytes())["abilities"]
    )
    again = dikast.prove(dikast.open_engine("mock:oracle,r=1"), calls=200, out=str(tmp_path / "called"))
    assert again.to_dict() == proof.to_dict()
    assert set(inspect.signature(dikast.prove).parameters) >= {"judge", "out", "watch", "calls", "seed", "budget"}


def test_errors_name_keywords_and_not_flags(tmp_path: Path) -> None:
    """A cure that names a flag cannot be copied into Python."""
    rows = {"question": "q", "notes": "x y", "model_says": "This is what it says."}
    two = {"question": "q", "answer": "Paris", "gpt4_response": "It is Paris."}
    off = [{"prompt": "q", "answer": "a", "gold": 9}]
    twice = [{"id": 1, "prompt": "q", "answer": "a"}] * 2
    verdicts = [{"judge_score": 3, "human_score": 4}] * 3

    def graded(rows: list[dict[str, Any]], **options: Any) -> dikast.Run:
        return dikast.grade(rows, "mock:constant", "helpfulness", **options)

    mistakes: list[tuple[Callable[[], Any], str]] = [
        (lambda: graded([rows]), "name it with map={'response': 'model_says'}"),
        (
            lambda: dikast.compare([two], "mock:constant", "helpfulness"),
            "name both with map={'response_0': 'answer', 'response_1': 'gpt4_response'}",
        ),
        (
            lambda: graded(off),
            "scale='1-10' puts the rubric on it; equate='1-10' says that gold has a scale of its own;",
        ),
        (lambda: graded(off), "map={'gold': 'COLUMN'} takes another column"),
        (lambda: graded(twice), "map={'id': ''}"),
        (lambda: graded([{"prompt": "q", "answer": "a"}], samples=3), "set temperature=, such as 1.0"),
        (lambda: dikast.audit(verdicts, scale="1-2"), "mark values that stand for a failure with failed=VALUE"),
        (lambda: dikast.audit(verdicts, scale="1-2"), "go on with allow_unread=True, which"),
        (lambda: dikast.report([{"question": "a", "verdict_1": 3, "verdict_2": 4}]), "score='verdict_1'"),
    ]
    for call, told in mistakes:
        with pytest.raises(UserError) as caught:
            call()
        assert told in str(caught.value), str(caught.value)
        assert not re.search(r"--(map|scale|equate|failed|score|gold|temperature|allow)", str(caught.value))
    with pytest.raises(DataError) as located:
        graded(twice)
    assert (located.value.path, located.value.line, located.value.field) == ("rows", 1, "id")
