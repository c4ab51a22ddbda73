"""Files with names of their own, judged by one command: what is recognised, told, kept and refused."""

import csv
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest

import dikast as package
from dikast.core.errors import UserError
from dikast.core.records import Arrangement
from dikast.core.records.items import scan_rows
from dikast.core.runs.judge_lock import NAMES_OF
from dikast.core.runs.run_files import write_checked
from runs import dikast as dikast_process
from runs import dikast_here as dikast
from runs import lines, rows, summary, write_jsonl

JUDGE = ("--judge", "mock:constant", "--rubric", "helpfulness")


def table(path: Path, *given: tuple[Any, ...], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(given)
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    made = [(f"q{i}", f"a{i}", i % 5 + 1, ("gpt", "llama")[i % 2], "easy" if i < 6 else "hard") for i in range(12)]
    return table(tmp_path / "own.csv", ("question", "answer", "human_score", "model", "category"), *made, delimiter=";")


def test_a_csv_with_its_own_names_is_judged_and_audited(own: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = dikast_process("grade", own, "--judge", "mock:oracle,r=1", "--rubric", "Is the answer polite?", "--out", run)
    assert done.returncode == 0
    told = "columns question -> instruction, answer -> response, human_score -> gold (guessed), model -> system"
    assert done.stderr.splitlines()[0].endswith(told)
    assert "is-the-answer-polite: mean" in done.stdout
    assert summary(run)["status"] == {"ok": 12}
    agreed = dikast("audit", run, "--by", "category", "--system", "model")
    assert agreed.returncode == 0
    assert all(word in agreed.stdout for word in ("easy", "hard", "intervals resample systems")), agreed.stdout
    assert dikast("audit", run, "--gold", "human_score").returncode == 0  # also by its own name


def test_gold_that_is_an_answer_is_read_as_the_reference(tmp_path: Path) -> None:
    made = [(f"q{i}", f"a{i}", f"The answer is number {i}.") for i in range(4)]
    file = table(tmp_path / "own.csv", ("question", "answer", "gold"), *made)
    done = dikast("grade", file, *JUDGE, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "--map reference=gold reads these texts as reference answers" in done.stderr
    assert dikast("grade", file, *JUDGE, "--map", "reference=gold", "--out", tmp_path / "run").returncode == 0


@pytest.mark.parametrize("verb", ["compare", "rank"])
def test_files_of_single_responses_are_not_compared(verb: str, tmp_path: Path) -> None:
    files = [write_jsonl(tmp_path / f"{name}.jsonl", rows(3)) for name in ("east", "west")]
    done = dikast(verb, *files, *JUDGE, "--out", tmp_path / "run")
    assert done.returncode == 2
    assert "give one file whose rows have both (columns response_a and response_b)" in done.stderr
    shown = " ".join(map(str, files))
    assert f"`dikast grade {shown}` scores each response, and says which file's are better" in done.stderr
    assert "--map" not in done.stderr


def test_an_inserted_row_costs_one_call(own: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dikast("grade", own, *JUDGE, "--out", run).returncode == 0
    head, *rest = own.read_text("utf-8").splitlines(keepends=True)
    own.write_text("".join([head, "new;row;3;gpt;easy\n", *rest]), "utf-8")
    assert dikast("grade", own, *JUDGE, "--out", run).returncode == 0
    assert (summary(run)["asked"], summary(run)["answered_before"]) == (1, 12)


def test_a_folder_begun_with_line_numbers_goes_on_with_them(tmp_path: Path) -> None:
    """As an earlier version left it: items named by their lines, and a lock that says nothing of ids."""
    bare = [{key: each for key, each in row.items() if key != "id"} | {"rating": 9, "answer": "x"} for row in rows(8)]
    named = [{**row, "id": str(line)} for line, row in enumerate(bare, 1)]
    run = tmp_path / "run"
    assert dikast("grade", write_jsonl(tmp_path / "old.jsonl", named), *JUDGE, "--out", run).returncode == 0
    lock = orjson.loads((run / "judge.lock.json").read_bytes())
    del lock["ids"]
    (run / "judge.lock.json").write_bytes(orjson.dumps(lock))
    (run / "checksums.json").unlink()
    # the same verdicts, had the reference not been recognised: the keys of the old version are those without one
    for name in ("verdicts.jsonl", "keys.txt"):
        (run / name).unlink()
    old = write_jsonl(tmp_path / "old.jsonl", [{k: v for k, v in row.items() if k != "answer"} for row in named])
    assert dikast("grade", old, *JUDGE, "--out", run).returncode == 0
    again = dikast("grade", write_jsonl(tmp_path / "old.jsonl", bare), *JUDGE, "--out", run)
    assert again.returncode == 0
    assert summary(run)["asked"] == 0
    assert {each["question"]["item"] for each in lines(run / "verdicts.jsonl")} == set(map(str, range(1, 9)))
    assert "ids" not in orjson.loads((run / "judge.lock.json").read_bytes())
    report = dikast("report", run, "--out", tmp_path / "page.html")
    assert report.returncode == 0
    assert "no longer in" not in (tmp_path / "page.html").read_text("utf-8")
    fresh = dikast("grade", tmp_path / "old.jsonl", *JUDGE, "--out", tmp_path / "new")
    assert fresh.returncode == 0
    assert lines(tmp_path / "new" / "verdicts.jsonl")[0]["question"]["item"].startswith("row-")


@pytest.mark.parametrize(
    ("verb", "head", "later"),
    [
        ("grade", "prompt,response,{},{}", ("system_prompt", "gold_answer")),
        ("grade", "prompt,response,{},{}", ("system_message", "human_label")),
        ("compare", "prompt,answer_a,answer_b,{},{}", ("answer", "gold_answer")),
    ],
)
def test_a_folder_begun_before_a_name_was_known_asks_nothing_twice(
    verb: str, head: str, later: tuple[str, str], tmp_path: Path
) -> None:
    """Under other names the columns are metadata, as they were; the lock of an earlier version has no `names`."""
    file, run = tmp_path / "own.csv", tmp_path / "run"
    cells = "".join(f"q{i},{'x,' * ('answer_b' in head)}y,Be brief {i}.,{i}\n" for i in range(4))
    file.write_text(f"{head.format('first_aside', 'second_aside')}\n{cells}")
    assert dikast(verb, file, *JUDGE, "--out", run).returncode == 0
    lock = orjson.loads((run / "judge.lock.json").read_bytes())
    assert lock.pop("names") == NAMES_OF
    write_checked(run / "judge.lock.json", orjson.dumps(lock))
    file.write_text(f"{head.format(*later)}\n{cells}")
    for _ in range(2):
        again = dikast(verb, file, *JUDGE, "--out", run)
        assert again.returncode == 0, again.stderr
        assert summary(run)["asked"] == 0
    assert "names" not in orjson.loads((run / "judge.lock.json").read_bytes())
    assert dikast(verb, file, *JUDGE, "--out", tmp_path / "new").returncode == 0
    earlier, now = ({each["key"] for each in lines(folder / "verdicts.jsonl")} for folder in (run, tmp_path / "new"))
    assert earlier.isdisjoint(now)  # with the meaning of the columns the questions are others


def test_a_folder_of_version_3_of_the_names_goes_on(tmp_path: Path) -> None:
    """Under `system` a name of five words was a system turn: what it asked under this lock is not asked again."""
    run = tmp_path / "run"
    file = table(tmp_path / "own.csv", ("prompt", "response", "system"), ("q", "a", "Llama 3 8B Instruct v2 final"))
    assert dikast("grade", file, *JUDGE, "--out", run).returncode == 0
    now = {each["key"] for each in lines(run / "verdicts.jsonl")}
    lock = orjson.loads((run / "judge.lock.json").read_bytes()) | {"names": 3}
    for each in run.iterdir():
        each.unlink()
    write_checked(run / "judge.lock.json", orjson.dumps(lock))
    for asked in (1, 0):
        again = dikast("grade", file, *JUDGE, "--out", run)
        assert again.returncode == 0, again.stderr
        assert summary(run)["asked"] == asked
    assert now.isdisjoint(each["key"] for each in lines(run / "verdicts.jsonl"))


def test_a_folder_of_version_5_of_the_names_goes_on(tmp_path: Path) -> None:
    """A list of texts was joined, and the `expected` score of an export was the reference: neither is asked again."""
    run, said = tmp_path / "run", ["one", "another"]
    verdict = {"criterion": "c", "status": "ok", "score": 3, "expected": "3.2"}
    file = write_jsonl(tmp_path / "own.jsonl", [{"prompt": "q", "response": said, **verdict}])
    parts = [{"type": "text", "text": each} for each in said]
    as_read = write_jsonl(tmp_path / "read.jsonl", [{"prompt": "q", "response": parts, "reference": "3.2"}])
    assert dikast("grade", file, *JUDGE, "--out", run).returncode == 2
    assert dikast("grade", as_read, *JUDGE, "--out", run).returncode == 0
    write_checked(
        run / "judge.lock.json", orjson.dumps(orjson.loads((run / "judge.lock.json").read_bytes()) | {"names": 5})
    )
    keys = [each["hashes"]["item"] for each in lines(run / "verdicts.jsonl")]
    assert dikast("grade", file, *JUDGE, "--out", run).returncode == 0
    assert {each["hashes"]["item"] for each in lines(run / "verdicts.jsonl")} == {*keys}


@pytest.mark.parametrize(
    ("verb", "head", "cells"),
    [
        ("grade", "prompt,response,{}", ("q{}", "a", "Be brief {}.")),
        ("compare", "{},chosen,rejected", ('[{{"role": "user", "content": "q{}"}}]', "a", "b")),
    ],
)
def test_a_folder_of_version_2_of_the_names_goes_on(
    verb: str, head: str, cells: tuple[str, ...], tmp_path: Path
) -> None:
    """`system` was metadata, and a prompt in JSON was text: what it asked under this lock is not asked again."""
    name, run = "system" if verb == "grade" else "prompt", tmp_path / "run"
    rows = [tuple(each.format(i) for each in cells) for i in range(4)]
    file = table(tmp_path / "own.csv", tuple(head.format(name).split(",")), *rows)
    assert dikast(verb, file, *JUDGE, "--out", run).returncode == 0
    now = {each["key"] for each in lines(run / "verdicts.jsonl")}
    lock = orjson.loads((run / "judge.lock.json").read_bytes()) | {"names": 2}
    for each in run.iterdir():
        each.unlink()
    write_checked(run / "judge.lock.json", orjson.dumps(lock))
    for asked in (8 if verb == "compare" else 4, 0):
        again = dikast(verb, file, *JUDGE, "--out", run)
        assert again.returncode == 0, again.stderr
        assert summary(run)["asked"] == asked
    assert orjson.loads((run / "judge.lock.json").read_bytes())["names"] == 2
    assert now.isdisjoint(each["key"] for each in lines(run / "verdicts.jsonl"))


@pytest.mark.slow
def test_pairs_of_two_models_are_ranked_by_their_columns(tmp_path: Path) -> None:
    made = [(f"q{i}", f"good {i}", "x", "gpt", "llama", ("model_a", "tie")[i % 2]) for i in range(6)]
    arena = table(tmp_path / "arena.csv", ("prompt", "answer_a", "answer_b", "model_a", "model_b", "winner"), *made)
    run = tmp_path / "run"
    assert (
        dikast("compare", arena, "--judge", "mock:oracle,r=1", "--rubric", "helpfulness", "--out", run).returncode == 0
    )
    for first, second in (("model_a", "model_b"), ("system_a", "system_b")):
        done = dikast("audit", run, "--first", first, "--second", second)
        assert done.returncode == 0, done.stderr
        assert "gpt" in done.stdout
    assert [each["gold"] for each in lines(run / "gold.jsonl")] == ["a", "tie"] * 3


@pytest.mark.parametrize(
    ("verb", "header", "told"),
    [
        (
            "grade",
            "question,foo,bar",
            "no column is recognised as the response; the columns are question, foo, bar: name it with "
            "--map response=foo",
        ),
        (
            "grade",
            "question,output,completion",
            "'output' and 'completion' could both be the response; the columns are question, output, completion: name "
            "the one that is with --map response=output",
        ),
        (
            "compare",
            "question,chosen,rejected,answer_a,answer_b",
            "('chosen', 'rejected') and ('answer_a', 'answer_b') could both be the responses; the columns are "
            "question, chosen, rejected, answer_a, answer_b: name those that are with --map response_0=chosen "
            "--map response_1=rejected",
        ),
        ("compare", "question,answer,x", "'answer' holds one response of each item: `dikast grade` scores those"),
        ("grade", "a,b,c", "no column is recognised as the response; the columns are a, b, c"),
    ],
)
def test_what_is_not_clear_stops_before_a_call(verb: str, header: str, told: str, tmp_path: Path) -> None:
    log, path = tmp_path / "log", tmp_path / "a.csv"
    row = ",".join(("one", "two", "three", "four", "five")[: header.count(",") + 1])
    path.write_text(header + "\n" + f"{row}\n" * 50, "utf-8")
    done = dikast(
        verb, path, "--judge", f"mock:constant,log={log}", "--rubric", "helpfulness", "--out", tmp_path / "run"
    )
    assert done.returncode == 2
    assert done.stderr.count(told) == 1, done.stderr
    assert not log.exists()
    assert done.stdout == ""
    if "--map response" in told:
        flags = told[told.index("--map") :].split()
        assert dikast(verb, path, *JUDGE, "--out", tmp_path / "run", *flags).returncode == 0


def test_the_line_tells_every_field_and_no_file_of_ours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs = table(tmp_path / "p.csv", ("question", "response_1", "response_2", "reference"), ("q", "a", "b", "c"))
    done = dikast_process("compare", pairs, *JUDGE, "--out", tmp_path / "pairs")
    told = "p.csv: columns question -> instruction; response_1, response_2, reference by their own names"
    assert told in done.stderr, done.stderr
    own, other = (table(tmp_path / f"{name}.csv", ("question", "answer"), ("q", name)) for name in ("gpt", "llama"))
    done = dikast_process("grade", own, other, *JUDGE, "--out", tmp_path / "run")
    assert "2 files: columns question -> instruction, answer -> response" in done.stderr
    assert "items.jsonl" not in done.stderr, done.stderr
    talk = {"conversations": [{"from": "human", "value": "hi"}], "chosen": "yes", "rejected": "no"}
    package.compare([talk], "mock:constant", "helpfulness")
    assert "conversations -> instruction" in caplog.text
    assert "instruction and response" not in caplog.text


def test_guessed_gold_off_the_scale_is_metadata_and_told(own: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = dikast("grade", own, *JUDGE, "--scale", "pass/fail", "--out", run)
    assert done.returncode == 0
    assert "'human_score' was guessed to be gold but does not lie on the scale" in done.stdout
    assert f"({own.name}:3) is not on pass/fail" in done.stdout
    assert (run / "gold.jsonl").read_bytes() == b""
    assert lines(run / "meta.jsonl")[0]["meta"]["human_score"] == "1"
    named = dikast("grade", own, *JUDGE, "--scale", "pass/fail", "--out", run, "--map", "gold=human_score")
    assert named.returncode == 2
    assert "gold does not lie on its scale" in named.stderr


def test_pictures_that_are_missing_are_told_before_a_call(tmp_path: Path) -> None:
    asked = [{"question": f"q{i}", "answer": "a", "image": f"gone/{i}.png"} for i in range(40)]
    file, log = write_jsonl(tmp_path / "a.jsonl", asked), tmp_path / "log"
    judge = ("--judge", f"mock:constant,log={log}", "--rubric", "helpfulness")
    for flags in (("--out", tmp_path / "run"), ("--dry-run",)):
        done = dikast("grade", file, *judge, *flags)
        assert done.returncode == 2
        told = (
            f"no picture or clip of the 40 items can be read; the first: {file}:1: image {tmp_path}/gone/0.png does not"
        )
        assert done.stderr.count(told) == done.stderr.count("does not exist") == 1, done.stderr
        assert f"relative paths start at {tmp_path}; fix the path or move the file" in done.stderr
    assert not (tmp_path / "run").exists()
    assert not log.exists()
    write_jsonl(file, [*asked, {"question": "q", "answer": "a"}])
    done = dikast_process("grade", file, *judge, "--out", tmp_path / "run")
    assert done.returncode == 3
    told = f"40 of 41 items have media that cannot be read, and get no verdict; the first: {file}:1: image"
    assert done.stderr.count(told) == done.stderr.count("does not exist") == 1, done.stderr
    assert summary(tmp_path / "run")["status"] == {"bad_item": 40, "ok": 1}


def test_files_that_are_something_else_say_what_to_give(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
        book.writestr("xl/workbook.xml", "<workbook/>")
    with zipfile.ZipFile(tmp_path / "a.csv", "w") as archive:
        archive.writestr("data.csv", "question,answer\n")
    (tmp_path / "page.jsonl").write_text("<!DOCTYPE html><html>login</html>", "utf-8")
    (tmp_path / "bare").mkdir()
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "script.py").write_text("raise SystemExit('was run')", "utf-8")
    for name, told in {
        "a.xlsx": "an Excel workbook: save the sheet as CSV UTF-8",
        "a.csv": "a ZIP archive: unpack it",
        "page.jsonl": "a web page (HTML or XML), not records",
        "bare": "no folder of items: it holds nothing",
        "script": "a data set with a script (script.py), and Dikast runs no foreign code",
    }.items():
        done = dikast("grade", tmp_path / name, *JUDGE, "--out", tmp_path / "run")
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
        assert "was run" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_frames_and_lists_are_read_by_the_same_table(caplog: pytest.LogCaptureFixture) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    data = {"question": ["q1", "q2"], "answer": ["a1", "a2"], "human_score": [4, 2], "model": ["gpt", "llama"]}
    listed = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
    kinds: list[Any] = [listed, pd.DataFrame(data), pa.table(data)]
    for name, made in {"datasets": "Dataset", "polars": "DataFrame"}.items():
        kind = getattr(pytest.importorskip(name), made)
        kinds.append(kind.from_dict(data) if name == "datasets" else kind(data))
    for kind in kinds:
        caplog.clear()
        run = package.grade(kind, "mock:oracle,r=1", "helpfulness")
        assert [verdict.label for verdict in run] == ["4", "2"], type(kind)
        assert "columns question -> instruction, answer -> response, human_score -> gold (guessed)" in caplog.text
    with pytest.raises(UserError, match="unknown keyword 'max_token': did you mean 'max_tokens'"):
        package.grade(listed, "mock:constant", "helpfulness", max_token=3)
    with pytest.raises(UserError, match="'output' and 'completion' could both be the response"):
        package.grade([{"question": "q", "output": "a", "completion": "b"}], "mock:constant", "helpfulness")
    good = {"question": "q", "answer": "a"}
    for given, told in (
        (
            [{"question": "q", "answr": "a"}],
            r"did you mean 'answer' by 'answr'\? Then rename it, or name it with map=",
        ),
        ([good, {"question": "r", "answr": "b"}], r"rows:1: .* unknown key 'answr': did you mean 'answer', as in"),
        ([{"question": "r", "answr": "b"}, good], r"rows:1: .* 'answer' is called 'answr' in the first record"),
        ([good, {"qestion": "r", "answer": "b"}], r"rows:1: .* unknown key 'qestion': did you mean 'question'"),
        (
            [good | {"human_score": 3}, good | {"human_scroe": 3}],
            r"rows:1: .*'human_scroe': did you mean 'human_score'",
        ),
    ):
        with pytest.raises(UserError, match=told):
            package.grade(given, "mock:constant", "helpfulness")
    lacks = package.grade([good, {"question": "r", "image_2": "b"}], "mock:constant", "helpfulness")
    assert [verdict.status.value for verdict in lacks] == ["ok", "bad_item"]
    assert [verdict.reason[:25] for verdict in lacks] == ["", "rows:1: field 'response':"]
    judge = package.Judge("mock:constant", "helpfulness")
    assert judge.grade({"question": "q", "answer": "a"}).label == "3"
    with pytest.raises(
        UserError, match=r"unknown keyword 'answer': did you mean 'response'\? \(metadata goes into meta="
    ):
        judge.grade(instruction="q", answer="a")


def test_a_run_without_a_prompt_says_so_and_which_column_may_be_it(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text("Ticket Text,answer,n\nThe printer is on fire.,Use water.,1\nIt is out of paper.,Buy some.,2\n")
    done = dikast_process("grade", path, *JUDGE, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert "answer -> response; no instruction, so the judge sees the response alone" in done.stderr
    assert "--map 'instruction=Ticket Text' if 'Ticket Text' is what was asked" in done.stderr
    done = dikast_process("grade", path, *JUDGE, "--map", "instruction=Ticket Text", "--out", tmp_path / "mapped")
    assert (done.returncode, "no instruction" in done.stderr) == (0, False)


def test_a_file_of_responses_alone_is_no_mistake() -> None:
    for cells in ({"answer": "Use water.", "n": "1"}, {"answer": "Use water.", "category": "fire"}):
        reading = Arrangement()
        list(scan_rows([cells], {}, reading))
        assert (reading.bare, reading.mapping_line()) == (True, "columns answer -> response")
    reading = Arrangement()
    list(scan_rows([{"answer": "A cat.", "image": "cat.png", "album": "Cats of the world"}], {}, reading))
    assert (reading.bare, reading.mapping_line()) == (
        False,
        "columns answer -> response; image by its own name",
    )


def test_the_flag_that_names_guessed_gold_can_be_copied_to_a_shell(tmp_path: Path) -> None:
    file = table(tmp_path / "own.csv", ("question", "answer", "Human Score"), ("q", "a", 7), ("r", "b", 10))
    assert "--map 'gold=Human Score' makes it gold" in dikast("grade", file, *JUDGE, "--out", tmp_path / "run").stdout


@pytest.mark.parametrize("name", ["response_a", "answer_1"])
def test_responses_by_keywords_of_their_own_are_told_the_list(name: str) -> None:
    given: dict[str, Any] = {"instruction": "q", name: "a"}
    with pytest.raises(UserError, match=r"give both in responses=\[\.\.\., \.\.\.\]"):
        package.Judge("mock:constant", "helpfulness").compare(**given)
