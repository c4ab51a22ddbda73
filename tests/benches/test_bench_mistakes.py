"""What a user of benches gets wrong on the command line: damaged files, odd rows, options that change nothing."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from benches.own_bench import cards, own, run
from dikast.core.errors import UserError
from dikast.core.records.sources import forget
from dikast.surface.cli import app
from hub_server import Hub, served, use_hub

ROWS = [{"q": "2 + 2?"}, {"q": "3 + 3?"}]
BROUGHT: dict[str, Any] = {
    "kind": "scores", "fields": {"instruction": "q"}, "responses": "to be brought", "official": {"metric": "pearson"},
}  # fmt: skip
PAIRS: dict[str, Any] = {
    "kind": "pairs", "fields": {"instruction": "q", "response_0": "a", "response_1": "b"},
    "official": {"metric": "accuracy"},
}  # fmt: skip


def told(bench: Path, *more: object) -> str:
    """What a run of a bench that cannot be run says."""
    words = ("run", bench, "--judge", "mock:constant", "--out", bench.parent / "out", "-q", *more)
    done = run(*words, *(() if "--data" in more else ("--data", bench.parent)))
    assert isinstance(done.exception, UserError), (done.output, done.exception)
    assert not (bench.parent / "out" / "mine" / "verdicts.jsonl").exists()
    return str(done.exception)


def lines(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


@pytest.mark.parametrize("at", ["", "*"])
@pytest.mark.parametrize(("damage", "said"), [("cut", "cut short"), ("none", "not a sound gzip file")])
def test_a_damaged_gzip_file_is_told_in_runs_drafts_and_checks(damage: str, said: str, at: str, tmp_path: Path) -> None:
    keys = {**BROUGHT, "source": {"hub": "o/n", "files": {"rows.jsonl": ""}, "at": at}}
    bench, data = own(tmp_path, ROWS, **keys), tmp_path / "data"
    packed = gzip.compress((tmp_path / "rows.jsonl").read_bytes())
    data.mkdir()
    (data / "rows.jsonl.gz").write_bytes(packed[: len(packed) // 2] if damage == "cut" else b"no gzip at all")
    path = re.escape(str(data / "rows.jsonl.gz"))
    assert re.search(f"{path}: .*{said}", told(bench, "--data", data))
    assert re.search(f"{path}: .*{said}", str(run("new", tmp_path / "n.yaml", "--data", data).exception))
    assert not (tmp_path / "n.yaml").exists()
    words = ["corpus", "check", str(tmp_path / "rows.jsonl"), "--against", f"bench:{bench}", "--bench-data", str(data)]
    assert re.search(f"{path}: .*{said}", str(CliRunner().invoke(app, words).exception))


@pytest.mark.parametrize("value", ["5", "null", "true", '"text"', "1.5"])
@pytest.mark.parametrize("at", ["*", "rows.*", "rows"])
def test_a_value_where_rows_should_be_is_told(value: str, at: str, tmp_path: Path) -> None:
    bench = own(tmp_path, [], **BROUGHT, source={"hub": "o/n", "files": {"rows.json": ""}, "at": at})
    (tmp_path / "rows.json").write_text(value if at == "*" else f'{{"rows": {value}}}')
    assert re.search(r"rows.json(:1)?: (has no an object or a list|a row is an object, got)", told(bench))


def test_gold_off_its_scale_is_told_with_the_file_and_line_that_brought_it(tmp_path: Path) -> None:
    bench = own(tmp_path, ROWS, **BROUGHT)
    brought = lines(
        tmp_path / "r.jsonl", {"id": "1", "response": "4", "gold": 3}, {"id": "2", "response": "5", "gold": 9}
    )
    said = told(bench, "--responses", brought)
    assert f"{brought}:2: field 'gold'" in said
    assert "items.jsonl" not in said
    lines(tmp_path / "rows.jsonl", *({**row, "a": "x", "score": 9} for row in ROWS))
    keys = {"kind": "scores", "fields": {"instruction": "q", "response": "a"}, "gold": {"column": "score"}}
    rows = [{**row, "a": "x", "score": i + 5} for i, row in enumerate(ROWS)]
    said = told(own(tmp_path, rows, **keys, official={"metric": "pearson"}))
    assert "rows.jsonl:2: field 'gold'" in said
    assert "items.jsonl" not in said


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"response": "4"}, ":1: a response without an id: give each the id of its prompt, as 'id'"),
        ({"id": "1", "responses": []}, ":1: 0 responses where one is needed: name its column 'response'"),
        ({"id": "1", "text": "4"}, ":1: 0 responses where one is needed: name its column 'response'"),
        ({"id": "1", "responses": ["4", "5"]}, ":1: 2 responses where one is needed: give each a record of its own"),
    ],
)
def test_what_responses_lack_is_told_without_flags_that_the_verb_does_not_have(
    record: dict[str, Any], said: str, tmp_path: Path
) -> None:
    found = told(own(tmp_path, ROWS, **BROUGHT), "--responses", lines(tmp_path / "r.jsonl", record))
    assert found == f"{tmp_path / 'r.jsonl'}{said}"


@pytest.mark.parametrize(
    ("several", "keys", "said"),
    [
        ([], PAIRS, "0 responses where two are compared"),
        (["x"], PAIRS, "1 response where two are compared"),
        (["x", "y", "z"], PAIRS, "3 responses where two are compared"),
        ([], {"kind": "scores", "official": {"metric": "mean score"}}, "no response, where each is graded"),
    ],
)
def test_rows_with_too_few_or_too_many_responses_are_told(
    several: list[str], keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    rows = [{"q": "?", "said": ["x", "y"] if keys is PAIRS else ["x"]}, {"q": "?", "said": several}]
    bench = own(tmp_path, rows, **{**keys, "fields": {"instruction": "q", "responses": "said"}})
    assert f"rows.jsonl:2: field 'responses': {said}" in told(bench)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (5, "says that 5 of 4 responses are right"),
        (0, "says that 0 of 4 responses are right"),
        (1.5, "1.5 is no count"),
    ],
)
def test_a_count_of_right_responses_fits_the_responses(right: float, said: str, tmp_path: Path) -> None:
    rows = [{"q": "?", "good": ["a"], "bad": ["b", "c", "d"], "n": n} for n in (1, right)]
    bench = own(
        tmp_path, rows, kind="best of", fields={"instruction": "q", "responses": ["good", "bad"]},
        gold={"column": "n", "count": True}, official={"metric": "best of"},
    )  # fmt: skip
    found = told(bench)
    assert "rows.jsonl:2: " in found
    assert said in found


@pytest.mark.parametrize("value", [2, -1, 0.5, True, "2", {"x": 1}])
def test_gold_of_a_pair_names_one_of_two_responses(value: Any, tmp_path: Path) -> None:
    rows = [{"q": "?", "a": "x", "b": "y", "won": each} for each in (0, "1", value)]
    said = told(own(tmp_path, rows, **PAIRS, gold={"column": "won"}))
    assert f"rows.jsonl:3: field 'won': {value!r} is no choice between two responses: say under 'values' of 'go" in said
    assert len(said.splitlines()) == 2


@pytest.mark.parametrize("part", ["reference", "media"])
def test_leaving_out_what_no_item_has_is_refused(part: str, tmp_path: Path) -> None:
    bench = own(tmp_path, ROWS, **BROUGHT)
    brought = lines(tmp_path / "r.jsonl", {"id": "1", "response": "4"}, {"id": "2", "response": "5"})
    assert told(bench, "--responses", brought, "--without", part).startswith(f"--without {part}: no item of mine has")
    lines(brought, {"id": "1", "response": "4", "reference": "four"}, {"id": "2", "response": "5"})
    words = ("run", bench, "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "o", "-q")
    done = run(*words, "--responses", brought, "--without", "reference")
    assert done.exit_code == 0, (done.output, done.exception)


def test_a_misspelt_metric_is_told_with_its_near_match(tmp_path: Path) -> None:
    bench = own(tmp_path, ROWS, **{**BROUGHT, "official": {"metric": "pearsn"}})
    assert "field 'official.metric': expected" in (said := told(bench))
    assert said.endswith("got 'pearsn': did you mean 'pearson'?")


@pytest.mark.parametrize(("field", "kind"), [("image", "picture"), ("video", "clip")])
def test_a_picture_that_is_missing_is_told_with_the_place_where_it_is_looked_for(
    field: str, kind: str, tmp_path: Path
) -> None:
    rows = [{"q": "?", "shown": "../mmmu/1.png"}]
    keys = {**BROUGHT, "media": field, "fields": {"instruction": "q", field: "shown"}}
    data = tmp_path / "data"
    data.mkdir()
    bench = own(tmp_path, rows, **keys)
    (tmp_path / "rows.jsonl").rename(data / "rows.jsonl")
    said = told(bench, "--data", data)
    assert f"the {kind} '../mmmu/1.png' is not there: put it at {tmp_path / 'mmmu/1.png'}, or leave" in said
    shown = run("show", bench, "--data", data, "--skip-missing")
    assert "no row is left: a picture is missing in 1 row" in str(shown.exception)


def test_a_missing_folder_or_file_is_told_with_the_verbs_own_flag(tmp_path: Path) -> None:
    words = ["corpus", "check", str(lines(tmp_path / "x.jsonl", {"instruction": "?", "response": "x"}))]
    words += ["--against", "bench:llmbar", "--bench-data"]
    assert str(CliRunner().invoke(app, [*words, "nowhere"]).exception) == "--bench-data nowhere: is not a folder"
    assert str(CliRunner().invoke(app, [*words, str(tmp_path)]).exception).endswith("or leave out --bench-data")
    for flags in ((), ("--bench", "llmbar")):
        told = str(run("report", tmp_path / "no", *flags).exception)
        assert told == f"{tmp_path / 'no'}: there is no such folder or file"
    draft = tmp_path / "n.yaml"
    made = run("new", draft, "--hub", "org/n", "--file", "nofile.jsonl", "--data", tmp_path)
    assert str(made.exception) == f"--file nofile.jsonl: {tmp_path} has no such file"
    assert not draft.exists()


def test_a_bench_of_a_folder_is_drafted_run_and_reported_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, home = tmp_path / "rows", tmp_path / "benches"
    rows.mkdir()
    home.mkdir()
    lines(rows / "pairs.jsonl", *({"prompt": f"{i}?", "chosen": "x" * i, "rejected": "y"} for i in range(1, 7)))
    monkeypatch.chdir(tmp_path)
    made = run("new", "benches/mine.yaml", "--data", "rows")
    assert made.exit_code == 0, (made.output, made.exception)
    text = (home / "mine.yaml").read_text()
    assert 'folder: "../rows"' in text
    (home / "polite.yaml").write_text("name: polite\ncriterion: Is the response polite?\nscale: 1-7\n")
    (home / "mine.yaml").write_text(text.replace("TODO", "done").replace("rubric: helpfulness", "rubric: polite.yaml"))
    checked = run("new", "benches/mine.yaml")
    assert "a valid bench of pairs, 6 rows read" in checked.stdout, (checked.output, checked.exception)
    done = run("run", "benches/mine.yaml", "--judge", "mock:oracle", "--out", "out", "-q")
    assert done.exit_code == 0, (done.output, done.exception)
    monkeypatch.chdir(home)
    card = cards(tmp_path / "out")["mine"]
    assert card["official"][0]["value"]["n"] == 6
    again = run("run", "mine.yaml", "--judge", "mock:oracle", "--out", tmp_path / "out", "-q")  # resumed from elsewhere
    assert again.exit_code == 0, (again.output, again.exception)
    lock = json.loads((tmp_path / "out/mine/judge.lock.json").read_text())
    assert lock["rubric"]["name"] == "polite"
    shown = run("show", "mine.yaml", "--read", "--json")
    assert json.loads(shown.stdout)["rows_read"] == 6
    lines(rows / "pairs.jsonl", {"prompt": "?", "chosen": "x", "rejected": "y"})
    words = ("run", "mine.yaml", "--judge", "mock:oracle", "--out", "o", "-q")
    assert "pairs.jsonl: the file's SHA-256 is" in str(run(*words).exception)
    rows.rename(tmp_path / "gone")
    assert "mine: 'folder' of its source: ../rows: is not a folder" in str(run(*words).exception)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"folder": ".", "hub": "o/n"}, "a source is one of 'hub' (ORG/NAME), 'github' (ORG/NAME) and 'folder'"),
        ({}, "a source is one of 'hub' (ORG/NAME), 'github' (ORG/NAME) and 'folder'"),
        ({"folder": ".", "revision": "v1"}, "a folder has no revision"),
    ],
)
def test_a_source_is_one_place(source: dict[str, str], said: str, tmp_path: Path) -> None:
    assert said in told(own(tmp_path, ROWS, **{**BROUGHT, "source": {**source, "files": {"rows.jsonl": ""}}}))


def test_a_run_without_a_pinned_revision_notes_its_commit_and_goes_on_with_the_same_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Moving(Hub):
        files: ClassVar = {"org/mine": {"rows.jsonl": [{"q": "2 + 2?", "a": "4"}, {"q": "3 + 3?", "a": "6"}]}}

    keys = {"kind": "scores", "fields": {"instruction": "q", "response": "a"}, "official": {"metric": "mean score"}}
    bench, out = own(tmp_path, ROWS, **keys), tmp_path / "out"
    words = ("run", bench, "--judge", "mock:constant", "--out", out, "-q")
    with served(Moving) as address:
        use_hub(monkeypatch, address, tmp_path / "hub")
        for _ in range(2):
            done = run(*words)
            assert done.exit_code == 0, (done.output, done.exception)
        about = json.loads((out / "mine/bench.json").read_text())
        assert about["revision"] == Moving.commit
        assert f"no revision is pinned: the rows are those of org/mine at {Moving.commit[:12]}" in about["notes"]
        Moving.files["org/mine"]["rows.jsonl"][1]["a"] = "7"
        monkeypatch.setattr(Moving, "commit", "decade" + "0" * 34)
        forget()
        moved = str(run(*words).exception)
        digest = about["files"]["rows.jsonl"]
        assert f"holds a run of other rows (the SHA-256 of rows.jsonl was {digest[:16]}..., is " in moved


def test_a_pipe_in_the_place_of_the_rubric_of_a_bench_is_refused(tmp_path: Path) -> None:
    """Reading it would never end."""
    os.mkfifo(tmp_path / "pipe.yaml")
    bench = own(tmp_path, ROWS, **BROUGHT, rubric=str(tmp_path / "pipe.yaml"))
    assert re.search(r"mine\.yaml:\d+: field 'rubric': .*a pipe or a device in the place of a rubric", told(bench))
