"""What the viewer says of runs, items and differences, over HTTP."""

import os
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest

import dikast
import runs
from dikast.audit.tables.run_rows import RunRows
from dikast.core.canonical import fingerprint
from dikast.core.errors import RunError, UserError
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import write_checked
from dikast.surface.viewer import run_index
from dikast.surface.viewer.indexed_rows import indexed_rows
from dikast.surface.viewer.item_notes import take_back
from dikast.surface.viewer.run_folders import figure_of
from dikast.surface.viewer.run_index import RunIndex, index_version
from dikast.surface.viewer.viewer_pages import ViewerPages
from surface.viewer.conftest import grade
from surface.viewer.viewing_here import Viewed, first_link, words


def test_every_run_is_listed_as_it_is(viewed: Viewed) -> None:
    page = viewed.page("/")
    rows = [words(row) for row in re.findall(r"(?s)<tr>.*?</tr>", page)[1:]]
    assert len(rows) == 6
    told = {row.split()[0]: row for row in rows}
    assert "finished 30 mock:oracle,r=0.8,failing=0.2" in told["march/first"]
    assert "of 30 questions" in told["half"]
    assert " finished " not in told["half"]
    viewed.page("/run", of="damaged")
    assert "damaged" in viewed.get("/", q="damaged")


def test_the_list_is_filtered_and_ordered(viewed: Viewed) -> None:
    assert "1 of 6 runs" in viewed.get("/", q="PAIRS.jsonl helpfulness")
    assert "0 of 6 runs" in viewed.get("/", q="' or 1=1 --")
    assert "1 of 6 runs" in viewed.get("/", kind="pairwise")
    assert "4 of 6 runs" in viewed.get("/", data="items.jsonl")
    page = viewed.page("/", sort="name")
    listed = re.findall(r'href="/run\?of=([^"]*)"', page)
    assert listed == sorted(listed)


def test_a_run_shows_the_rows_that_count(viewed: Viewed, folder: Path) -> None:
    rows = [row for row, _ in RunRows(str(folder / "march" / "first"))]
    page = viewed.page("/run", of="march/first")
    assert "30 of 30 rows" in words(page)
    assert page.count('<tr><th scope="row">') == 30
    failed = sum(row["status"] != "ok" for row in rows)
    assert failed > 0
    assert f"{failed} of 30 rows" in viewed.get("/run", of="march/first", show="no verdict")
    assert "1 of 30 rows" in viewed.get("/run", of="march/first", q="i17")
    exact = dikast.audit(folder / "march/first")["agreement"].estimate("exact")  # a failure is no wrong verdict
    differing = round((1 - exact.value) * exact.n)
    assert f"{differing} of {exact.n} with a verdict and gold ({differing / exact.n:.1%})" in words(page)
    said = sum(row["label"] == "3" for row in rows)
    assert f"{said} of 30 rows" in viewed.get("/run", of="march/first", said="3")


def test_a_clock_that_is_wrong_does_not_make_a_run_live(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    run = grade(items, tmp_path / "runs" / "one", "mock:oracle")
    (run / "summary.json").unlink()
    for ahead, state in ((0, "being written"), (-3600, "unfinished"), (3600, "unfinished")):
        os.utime(run / "verdicts.jsonl", (at := time.time() + ahead, at))
        pages = fresh(tmp_path)
        assert f"one {state} " in words(pages.runs({}))
        assert "1 of 1 runs" in words(pages.runs({"state": state}))


def test_the_figure_of_a_run_says_what_it_is_of() -> None:
    choices = {"a": 5, "b": 3, "tie": 0, "disagree": 2}
    mean = {"mean_score": {"value": 3.25, "low": 3.0, "high": 3.5, "n": 40}}
    good = {"mean_goodness": {"value": 0.5, "low": None, "high": None, "n": 2}}
    for summary, told in (
        ({"preferences": {"choices": choices}}, "a 5, b 3, tie 0, disagree 2"),
        ({"preferences": {"choices": choices, "one_order": True}}, "in one order: a 5, b 3, tie 0"),
        ({"preferences": {"choices": {**choices, "disagree": 0}}, "kind": "from-absolute"}, "a 5, b 3, tie 0"),
        ({"preferences": {"choices": choices}, "ranking": {"ranked": 7, "items": 8}}, "7 of 8 items ranked"),
        ({"criteria": {"one": mean, "two": good}}, "one 3.25 [3.00, 3.50] (n = 40); two 0.50 of goodness (n = 2)"),
        ({"criteria": dict.fromkeys("abcde", good)}.copy(), "; 2 more"),
    ):
        assert figure_of(summary).endswith(told)


def test_a_damaged_run_says_where_and_what_to_do(viewed: Viewed) -> None:
    both = viewed.get("/compare", run=["march/first", "damaged"])
    assert both.index("verdicts.jsonl") < both.index("questions are in both")
    told = viewed.get("/run", of="damaged")
    assert "verdicts.jsonl:" in told
    assert "dikast doctor" in told
    assert told.index("verdicts.jsonl:") < told.index("of 30 questions")  # the damage first
    assert "0 of 0 rows" not in told
    assert "No rows are shown until the damage named above is repaired" in told


def test_a_half_written_run_shows_what_is_there(viewed: Viewed, folder: Path) -> None:
    there = (folder / "half" / "verdicts.jsonl").read_bytes().count(b"\n")
    told = viewed.get("/run", of="half")
    assert f"{there} of 30 questions" in told
    assert f"{there} of {there} rows" in told
    failed = sum(row["status"] != "ok" for row, _ in RunRows(str(folder / "half")))
    assert failed > 0
    assert f"No verdict {failed} of {there} ({failed / there:.1%})" in told


@pytest.mark.parametrize("summary", [None, b"[1, 2"])
def test_failures_are_counted_where_no_summary_does(summary: bytes | None, tmp_path: Path) -> None:
    """By the answers of both orders, and without those that were given again; unknown until they are read."""
    pairs, run = runs.write_jsonl(tmp_path / "pairs.jsonl", runs.pairs(12)), tmp_path / "runs" / "one"
    done = runs.dikast_here("compare", pairs, "--judge", "mock:oracle,failing=.3", "--rubric", "helpfulness", "--out",
                            run)  # fmt: skip
    assert done.returncode == 3, done.stderr
    status = orjson.loads((run / "summary.json").read_bytes())["status"]
    failed = sum(n for name, n in status.items() if name != "ok")
    lines = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join([*lines, *lines[:5]]))  # five questions were asked again
    if summary is None:
        (run / "summary.json").unlink()
    else:
        (run / "summary.json").write_bytes(summary)
    pages = fresh(tmp_path)
    pages.index.look()
    found = pages.index.run("one")
    assert found is not None
    assert found.failed is None
    assert f"No verdict {failed} of 24 ({failed / 24:.1%})" in words(pages.run({"of": "one"}))
    assert f"{failed / 24:.1%} of 24" in words(pages.runs({}))


def test_a_run_that_lost_verdicts_is_not_finished(tmp_path: Path) -> None:
    """Its summary counts what is no longer there; the command that made it resumes it."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(8))
    run = grade(items, tmp_path / "runs" / "one", "mock:oracle")
    pages = fresh(tmp_path)
    assert "finished 8 of 8 questions" in words(pages.run({"of": "one"}))
    lines = (run / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (run / "verdicts.jsonl").write_bytes(b"".join(lines[:3]))
    os.utime(run / "verdicts.jsonl", (1e9, 1e9))
    pages.index._looked = -1e9  # as after a while
    pages.index._took.clear()
    for each in (pages, fresh(tmp_path)):
        told = words(each.run({"of": "one"}))
        assert "unfinished 3 of 8 questions" in told
        assert "Result" not in told
    grade(items, run, "mock:oracle")
    assert "finished 8 of 8 questions" in words(fresh(tmp_path).run({"of": "one"}))


def test_a_panel_is_whole_and_compared_by_its_judges(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(6))
    grade(items, tmp_path / "runs" / "panel", "mock:oracle", "--judge", "mock:oracle,r=.5")
    grade(items, tmp_path / "runs" / "one", "mock:oracle")
    pages = fresh(tmp_path)
    told = pages.run({"of": "panel"})
    assert "still being written" not in words(told)
    assert "Judge mock:oracle; mock:oracle,r=.5 Data items.jsonl Rubric helpfulness Format absolute" in words(told)
    unanimous = Run(tmp_path / "runs" / "panel").summary["unanimous"]["value"]
    assert f"Result panel of 2: unanimous {unanimous:.1%} [" in words(told)
    assert "No verdict" not in words(told)  # of which judge?
    assert f"A report of this run: dikast report {tmp_path / 'runs'}/panel" in words(told)
    assert "items.jsonl helpfulness panel of 2" in words(pages.runs({}))
    assert "data-live" not in told.partition("<script>")[0]
    with pytest.raises(UserError, match="panel is a panel, without verdicts of its own"):
        pages.compare({}, ["panel", "one"])


def test_the_date_of_a_copied_run_is_that_of_its_last_verdict(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    run = grade(items, tmp_path / "runs" / "one", "mock:oracle")
    summary = orjson.loads((run / "summary.json").read_bytes())
    write_checked(run / "summary.json", orjson.dumps({**summary, "last_verdict": "2025-03-09T23:30:00+00:00"}))
    os.utime(run / "verdicts.jsonl", (1e9, 1e9))  # as a copy may have it
    told = words(fresh(tmp_path).run({"of": "one"}))
    assert "Last verdict 2025-03-09 23:30 UTC" in told
    write_checked(run / "summary.json", orjson.dumps({**summary, "last_verdict": "yesterday"}))
    assert "Last verdict file of 2001-09-09 01:46 UTC" in words(fresh(tmp_path).run({"of": "one"}))


def test_two_runs_that_say_the_same_have_no_other_answer(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(6))
    for name in ("one", "two"):
        grade(items, tmp_path / "runs" / name, "mock:oracle")
    told = words(fresh(tmp_path).compare({}, ["one", "two"]))
    assert "Nothing: judge, prompt, rubrics and items are the same." in told
    assert "What changed" not in told


def test_an_item_shows_texts_verdict_and_gold(viewed: Viewed) -> None:
    page = viewed.page("/run", of="march/second", q="i17")
    told = words(viewed.ask(first_link(page, "/item"))[1])
    assert "Is 17 even?" in told
    assert "17 ends in 7." in told
    assert "gold 3" in told
    assert "chosen" in told


def test_an_item_that_is_gone_or_changed_says_what_can_be_done_here(tmp_path: Path) -> None:
    """There is no --items to name a file with: the cure is one that a folder of runs has."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    grade(items, tmp_path / "runs" / "one", "mock:oracle")
    pages = fresh(tmp_path)
    (anchor,) = {at for at in re.findall(r"at=(v-\w+)", pages.run({"of": "one", "q": "i0"}))}
    items.write_text(items.read_text("utf-8").replace("Is 0 even?", "Is 0 odd?"), "utf-8")
    asked = {"run": "one", "at": anchor}
    cure = "put the file that was judged back, or into the folder of the run"
    assert f"1 item is no longer what was judged: the texts and pictures are left out; {cure}" in words(
        pages.item(asked)
    )
    items.rename(tmp_path / "other.jsonl")
    told = words(pages.item(asked))
    assert f"ids and verdicts are shown, no texts; {cure}" in told
    assert "--items" not in told


def test_a_pair_shows_both_orders(viewed: Viewed) -> None:
    told = words(viewed.ask(first_link(viewed.page("/run", of="pairs"), "/item"))[1])
    assert "A shown first" in told
    assert "B shown first" in told


def test_two_runs_are_compared_question_by_question(viewed: Viewed, folder: Path) -> None:
    first, second = ({row["item"]: row["label"] for row, _ in RunRows(str(folder / "march" / name))}
                     for name in ("first", "second"))  # fmt: skip
    changed = sum((first[item] or "") != (second[item] or "") for item in first)
    alone = sum((first[item] is None) != (second[item] is None) for item in first)
    assert changed > alone > 0
    viewed.page("/run", of="march/second")
    page = viewed.page("/compare", run=["march/first", "march/second"])
    told = f"30 questions are in both runs. Of {30 - alone} with a verdict in both, {changed - alone} ("
    assert told in words(page)
    assert (
        f"{alone} have a verdict in one run only. Of {30 - alone} with gold and a verdict in both, the first"
        in words(page)
    )
    assert f"{changed} questions." in words(page)
    assert "seed: 0" in words(page)  # of the judge: what differs is told line by line
    assert "seed: 5" in words(page)
    assert "prompt" not in words(page)
    told = words(viewed.ask(first_link(page, "/item"))[1])
    assert "What differs between the two: model." in told
    assert viewed.ask("/compare", run=["march/first"])[0] == 400


def test_a_rubric_that_changed_is_why(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(12))
    for name, criterion in (("mild", "Is it polite?"), ("strict", "Is it true?")):
        rubric = {"name": "tone", "criterion": criterion, "scale": "1-5"}
        (tmp_path / f"{name}.json").write_bytes(orjson.dumps(rubric))
        done = runs.dikast_here("grade", items, "--judge", "mock:random", "--rubric", tmp_path / f"{name}.json",
                                "--out", tmp_path / "runs" / name)  # fmt: skip
        assert done.returncode == 0, done.stderr
    pages = fresh(tmp_path)
    pages.run({"of": "mild"})
    pages.run({"of": "strict"})
    page = pages.compare({"show": "all"}, ["mild", "strict"])
    assert "- Is it polite?" in words(page)
    assert "+ Is it true?" in words(page)
    cells = re.findall(r"<td>([^<]*)</td></tr>", page)[-12:]
    assert set(cells) == {"rubric"}


def test_labels_of_different_scales_are_not_compared(tmp_path: Path) -> None:
    """Every answer is 4, and gold 2: half of the scale 1-5 apart in one run, two ninths of 1-10 in the other."""
    rows = [{**row, "gold": 2} for row in runs.rows(12)]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    for name, scale in (("five", "1-5"), ("ten", "1-10"), ("again", "1-5")):
        rubric = {"name": "tone", "criterion": "Is it polite?", "scale": scale}
        (tmp_path / f"{name}.json").write_bytes(orjson.dumps(rubric))
        line = ("grade", items, "--judge", "mock:constant,label=4", "--rubric", tmp_path / f"{name}.json")
        done = runs.dikast_here(*line, "--out", tmp_path / "runs" / name)
        assert done.returncode == 0, done.stderr
    pages = fresh(tmp_path)
    for name in ("five", "ten", "again"):
        pages.run({"of": name})
    page = pages.compare({"show": "all"}, ["five", "ten"])
    told = words(page)
    assert "12 questions are in both runs. 12 were judged on different scales (1-5 and 1-10), where labels are" in told
    assert "have another one" not in told
    assert "the first run is nearer to gold, as a share of the scale, in 0, the second in 12" in told
    assert "Verdicts of the first run by those of the second" not in told
    assert re.findall(r"<td>([^<]*)</td>", page)[-5:] == ["4 of 1-5", "4 of 1-10", "2", "second", "rubric, scale"]
    assert "0 questions." in words(pages.compare({"show": "changed"}, ["five", "ten"]))
    assert "0 questions." in words(pages.compare({"show": "same"}, ["five", "ten"]))
    assert "12 questions." in words(pages.compare({"show": "scales"}, ["five", "ten"]))
    alike = words(pages.compare({"show": "same"}, ["five", "again"]))
    assert "Of 12 with a verdict in both, 0 (0.0%) have another one" in alike
    assert "different scales (" not in alike


@pytest.mark.parametrize(
    ("judge", "more", "why"),
    [
        ("mock:random,seed=7", [], "model"),
        ("mock:random", ["--format", "score-first"], "prompt"),
        ("mock:random,seed=7", ["--format", "score-first"], "model, prompt"),
        ("mock:random,seed=7", ["--format", "score-first", "--rubric", "factuality"], "model, prompt, rubric"),
    ],
)
def test_each_question_says_why_its_verdict_may_differ(judge: str, more: list[str], why: str, tmp_path: Path) -> None:
    """In the list of questions, above it with the lines that differ, and on the page of one item."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(12))
    rubric = {"name": "tone", "criterion": "Is it polite?", "scale": "1-5"}
    other = {**rubric, "criterion": "Is it true?"}
    for name, told in (("tone", rubric), ("other", other)):
        (tmp_path / f"{name}.json").write_bytes(orjson.dumps(told))
    given = [str(tmp_path / "other.json") if word == "factuality" else word for word in more]
    own = given if "--rubric" in given else ["--rubric", str(tmp_path / "tone.json"), *given]
    for name, words_ in (
        ("one", ["--judge", "mock:random", "--rubric", str(tmp_path / "tone.json")]), ("two", ["--judge", judge, *own]),
    ):  # fmt: skip
        done = runs.dikast_here("grade", items, *words_, "--out", tmp_path / "runs" / name, "-q")
        assert done.returncode == 0, done.stderr
    pages = fresh(tmp_path)
    for name in ("one", "two"):
        pages.run({"of": name})
    page = pages.compare({"show": "all"}, ["one", "two"])
    rows = re.findall(r"<td>([^<]*)</td></tr>", page)
    assert rows[-12:] == [why] * 12
    names = re.findall(r"<summary>([^<]*)", page)
    assert ("prompt" in names) is ("prompt" in why)
    assert ("rubric tone" in names) is ("rubric" in why)
    assert ("model and settings" in names) is ("model" in why)
    assert ("- Is it polite?" in words(page)) is ("+ Is it true?" in words(page)) is ("rubric" in why)
    given_item = dict(each.split("=") for each in urlsplit(first_link(page, "/item")).query.split("&"))
    assert f"What differs between the two: {why}." in words(pages.item(given_item))


def test_a_note_is_kept_with_the_run_and_outlives_the_index(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    grade(items, tmp_path / "runs" / "one", "mock:oracle")
    viewed = Viewed(tmp_path / "runs")
    at = first_link(viewed.page("/run", of="one"), "/item")
    place = dict(each.split("=") for each in urlsplit(at).query.split("&"))
    status, page = viewed.ask("/note", form={**place, "text": "gold is wrong\n<b>here</b>"})
    assert (status, "gold is wrong <b>here</b>" in words(page)) == (200, True)
    assert viewed.ask("/note", form={**place, "text": "gold is wrong\r\n<b>here</b> "})[0] == 200  # sent twice: one
    assert viewed.ask("/note", form={**place, "text": "  "})[0] == 400
    assert viewed.ask("/note", form={**place, "at": "v-none", "text": "x"})[0] == 404
    viewed.stop()
    for path in (tmp_path / "runs").glob(".dikast-view.sqlite*"):
        path.unlink()
    (tmp_path / "runs" / "one").rename(tmp_path / "runs" / "moved")
    page = fresh(tmp_path).item({**place, "run": "moved"})
    assert "gold is wrong" in words(page)
    note = re.search(r'name="note" value="(\w+)"', page)
    assert note is not None
    take_back(tmp_path / "runs" / "moved", note[1])
    assert "gold is wrong" not in fresh(tmp_path).item({**place, "run": "moved"})
    lines = runs.lines(tmp_path / "runs" / "moved" / "item_notes.jsonl")
    assert [line["text"] for line in lines] == ["gold is wrong\n<b>here</b>", ""]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "example.org"}, 403),
        ({"Origin": "http://example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 404),
    ],
)
def test_other_sites_cannot_write_or_ask(viewed: Viewed, headers: dict[str, str], status: int) -> None:
    given = {"run": "march/first", "at": "v-0", "text": "x"}
    assert viewed.ask("/note", form=given, headers=headers)[0] == status
    assert viewed.ask("/", headers={"Host": "example.org"})[0] == 403


@pytest.mark.parametrize(
    "kind", ["multipart/form-data", "x; charset=none", "x; charset=utf-16", "x; charset=raw_unicode_escape"]
)
def test_a_body_that_is_no_form_is_told(viewed: Viewed, kind: str) -> None:
    kind = kind.replace("x;", "application/x-www-form-urlencoded;")
    given = {"run": "march/first", "at": "v-0", "text": "\\ud800"}
    assert viewed.ask("/note", form=given, headers={"Content-Type": kind})[0] == 400


@pytest.mark.parametrize("path", ["../march", "/etc", "..", "march/first/../../pairs", "\x00", "%2e%2e"])
def test_only_runs_of_the_folder_are_shown(viewed: Viewed, path: str) -> None:
    assert viewed.ask("/run", of=path)[0] == 404


def fresh(root: Path) -> ViewerPages:
    """The pages of `runs` as a viewer that is started now shows them."""
    return ViewerPages(RunIndex(root / "runs"))


def test_the_index_follows_the_runs(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(8))
    grade(items, tmp_path / "runs" / "one", "mock:oracle", "--limit", "4")
    index = tmp_path / "runs" / ".dikast-view.sqlite"
    assert "4 of 4 rows" in words(fresh(tmp_path).run({"of": "one"}))
    grade(items, tmp_path / "runs" / "one", "mock:oracle")
    assert index.exists()
    assert "8 of 8 rows" in words(fresh(tmp_path).run({"of": "one"}))  # it was stale
    index.write_bytes(b"no database")
    assert "8 of 8 rows" in words(fresh(tmp_path).run({"of": "one"}))
    with sqlite3.connect(index) as db:
        db.execute("pragma user_version=99")
        db.execute("delete from row")
    assert "8 of 8 rows" in words(fresh(tmp_path).run({"of": "one"}))  # of another version: made again
    with sqlite3.connect(index) as db:
        db.execute("create trigger theirs after delete on run begin delete from row; end")
    assert "8 of 8 rows" in words(fresh(tmp_path).run({"of": "one"}))  # not as this version makes it
    with sqlite3.connect(index) as db:
        assert not db.execute("select 1 from sqlite_master where type='trigger'").fetchall()
    shutil.rmtree(tmp_path / "runs" / "one")
    assert "0 of 0 runs" in words(fresh(tmp_path).runs({}))


def test_another_release_makes_the_index_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own = index_version()
    monkeypatch.setattr(run_index, "version", lambda name: "0.0.1")
    assert index_version() != own


def test_rows_that_change_ask_for_another_version_of_the_index(folder: Path) -> None:
    found = [each for run in ("pairs", "march/first") for each in indexed_rows(folder / run)]
    rows, asked = [each.searched for each in found], [each.kept[:2] for each in found]
    assert (run_index._VERSION, fingerprint([rows, asked])[:16]) == (8, "82d0e8e75730a430")


def test_a_large_folder_is_listed_before_its_runs_are_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(2))
    for k in range(3):
        run = grade(items, tmp_path / "runs" / f"run-{k}", "mock:oracle")
        os.utime(run / "verdicts.jsonl", (1_700_000_000 + k, 1_700_000_000 + k))
    monkeypatch.setattr(run_index, "_LOOK_SECONDS", 0.0)  # one run a look
    pages = fresh(tmp_path)
    first = words(pages.runs({}))
    assert "3 of 3 runs; 2 have not been looked into yet" in first
    assert [each.state for each in pages.index.runs(order="path")] == ["not read yet", "not read yet", "finished"]
    assert "2023-11-14 22:13 UTC" in first  # when they were written is known
    assert "2 of 2 rows" in words(pages.run({"of": "run-0"}))  # a run that is opened does not wait its turn
    assert [each.state for each in pages.index.runs(order="path")] == ["finished", "not read yet", "finished"]
    shutil.rmtree(tmp_path / "runs" / "run-1")  # before its turn
    assert not pages.index.look_on()
    assert "2 of 2 runs" in (told := words(pages.runs({})))
    assert "not been looked into" not in told


@pytest.mark.parametrize("end", ["", "-wal"])
def test_an_index_that_is_a_link_is_refused_and_what_it_leads_to_is_as_it_was(end: str, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "other").touch()
    index = tmp_path / "runs" / f".dikast-view.sqlite{end}"
    index.symlink_to(tmp_path / "other")
    with pytest.raises(UserError, match="remove it"):
        fresh(tmp_path)
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(UserError, match="remove it"):
        fresh(tmp_path)
    assert (tmp_path / "other").read_bytes() == b""


@pytest.mark.parametrize("at", ["9" * 200, "-9223372036854775808", "1e300"])
def test_a_note_of_no_time_is_shown(at: str, tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(2))
    run = grade(items, tmp_path / "runs" / "one", "mock:oracle")
    (run / "item_notes.jsonl").write_text(f'{{"id":"n","item":"i0","text":"is it so?","at":{at}}}\n')
    pages = fresh(tmp_path)
    row = (
        next(each for each in pages.index.rows(1) if each.item == "i0")
        if pages.runs({}) and pages.run({"of": "one"})
        else None
    )
    assert row is not None
    assert "is it so?" in words(pages.item({"run": "one", "at": row.anchor}))


def test_a_folder_that_cannot_be_written_is_shown_too(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    grade(items, tmp_path / "runs" / "one", "mock:oracle")
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    (tmp_path / "runs").chmod(0o555)
    try:
        assert "3 of 3 rows" in words(fresh(tmp_path).run({"of": "one"}))
    finally:
        (tmp_path / "runs").chmod(0o755)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = runs.dikast_here("view", tmp_path / "none")
    assert done.returncode == 2
    assert "there is no such folder" in done.stderr


def test_an_index_that_cannot_grow_is_told_and_kept(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "march", tmp_path / "march")
    index = RunIndex(tmp_path)
    index.look()
    (tmp_path / "march" / "again").mkdir()
    for name in ("judge.lock.json", "verdicts.jsonl"):
        shutil.copy(tmp_path / "march" / "first" / name, tmp_path / "march" / "again")
    index._looked = 0.0
    with runs.files_of_at_most(1), pytest.raises(RunError, match=r"cannot be read or written .*is kept"):
        index.look()
    with runs.files_of_at_most(1), pytest.raises(RunError, match="cannot be read or written"):
        RunIndex(tmp_path, tmp_path / "other.sqlite")
    assert len(RunIndex(tmp_path).runs()) == 2
    index.look()
    assert len(index.runs()) == 3


def test_verdicts_of_one_order_are_compared_with_joint_ones_as_such(tmp_path: Path) -> None:
    rows = [{"id": f"i{k}", "instruction": "?", "response_a": "x", "response_b": "yy", "gold": "a"} for k in range(4)]
    line = ("compare", runs.write_jsonl(tmp_path / "items.jsonl", rows), "--judge", "mock:first-slot", "-q")
    for name, how in (("both", ()), ("one", ("--one-order",))):
        done = runs.dikast_here(*line, "--rubric", "helpfulness", "--out", tmp_path / name, *how)
        assert done.returncode == 0, done.stderr
    pages = ViewerPages(RunIndex(tmp_path))
    assert "verdict (one order)" in pages.run({"of": "one"})
    assert "one order" not in pages.run({"of": "both"})
    page = words(pages.compare({"show": "all"}, ["both", "one"]))
    assert "one asked each pair in one order, and verdicts of the other run join both orders" in page
    assert "model, item" not in page  # the items are the same
    assert "the answer alone" in page


def test_the_pairs_that_a_ranking_asked_in_one_order_are_shown_as_such(tmp_path: Path) -> None:
    rows = [
        {"id": f"i{k}", "instruction": "Which?", "responses": [f"{k} {n}" for n in "abcde"], "gold": [1, 2, 3, 4, 5]}
        for k in range(6)
    ]
    items = runs.write_jsonl(tmp_path / "items.jsonl", rows)
    line = ("rank", items, "--judge", "mock:oracle,r=.7", "--rubric", "helpfulness", "--schedule", "top")
    done = runs.dikast_here(*line, "--out", tmp_path / "run", "-q")
    assert done.returncode == 0, done.stderr
    told = [each["question"] for each in runs.lines(tmp_path / "run/verdicts.jsonl")]
    asked = Counter((each["item"], *sorted(each["responses"])) for each in told)
    once = sum(count == 1 for count in asked.values())
    assert 0 < once < len(asked)
    index = RunIndex(tmp_path)
    index.look()
    assert index.read("run")
    (run,) = index.runs()
    shown = index.rows(run.id)
    assert len(shown) == len(asked)
    assert sum(row.said.endswith(" in one order") for row in shown) == once
    assert all((row.gap is None) == row.said.endswith(" in one order") for row in shown)
    assert run.compared == len(asked) - once  # figures are of joint verdicts alone


def _halved(index: Path) -> None:
    size = index.stat().st_size
    with index.open("r+b") as file:
        file.seek(size // 3)
        file.write(b"x" * (size // 3))


def test_an_index_that_is_damaged_while_it_is_shown_is_made_again(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(100))
    grade(items, tmp_path / "runs" / "one", "mock:oracle")
    index = tmp_path / "runs" / ".dikast-view.sqlite"
    damage: list[Callable[[], object]] = [
        lambda: index.write_bytes(b"no database"), lambda: index.write_bytes(b""), index.unlink,
        lambda: os.truncate(index, 5000), lambda: _halved(index),
    ]  # fmt: skip
    viewed = Viewed(tmp_path / "runs")
    try:
        for do in damage:
            assert "100 of 100 rows" in viewed.get("/run", of="one")
            do()
            assert "1 of 1 runs" in viewed.get("/")
            assert "100 of 100 rows" in viewed.get("/run", of="one")
        index.unlink()
        index.mkdir()
        status, page = viewed.ask("/run", of="one")
        assert status == 400
        assert f"{index}: not a file that the viewer wrote; remove it" in words(page)
        index.rmdir()
        assert "100 of 100 rows" in viewed.get("/run", of="one")
    finally:
        viewed.stop()


def test_a_search_of_thousands_of_words_is_told(tmp_path: Path) -> None:
    grade(runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(2)), tmp_path / "runs" / "one", "mock:oracle")
    pages = fresh(tmp_path)
    assert "2 of 2 rows" in words(pages.run({"of": "one", "q": "i " * 3_000}))
    many = " ".join(map(str, range(1_500)))
    for render, query in ((pages.runs, {"q": many}), (pages.run, {"of": "one", "q": many})):
        with pytest.raises(UserError, match="A search takes at most 100 different words: 1,500 were given"):
            render(query)


def test_verdicts_that_are_a_folder_have_a_cure(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    done = runs.dikast_here("grade", items, "--judge", "mock:random", "--rubric", "helpfulness", "--out",
                            tmp_path / "runs" / "one")  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdicts = tmp_path / "runs" / "one" / "verdicts.jsonl"
    verdicts.unlink()
    verdicts.mkdir()
    pages = fresh(tmp_path)
    for _ in range(2):  # also once its verdicts have been read in vain
        assert "verdicts.jsonl is not a file: remove it, and run the command that made it again" in words(
            pages.run({"of": "one"})
        )
