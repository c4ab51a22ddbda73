"""A page stays below 10 MB whatever its texts, says which rows it holds, and leaves the others beside it on request."""

import csv
import json
import random
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import runs
from browser import Browser
from dikast.audit.plan import AuditPlan
from dikast.audit.tables.run_rows import RunRows
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run_files import VERDICTS
from dikast.surface.report.collect import collect
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.contents import JudgedItems, Thumbs
from dikast.surface.report.queue import Queue, RowReader, kept_of
from dikast.surface.report.report_options import Asked
from dikast.surface.report.table_page import collect_table

MOST = 10_000_000
_ROW = re.compile(r'<details class="entry" id="(v-\w+-\d+)"')


def _report(*words: object) -> None:
    done = runs.dikast_here("report", *words, "--draws", 20)
    assert done.returncode == 0, done.stderr


def _rows_on(page: Path) -> list[str]:
    return _ROW.findall(page.read_text("utf-8"))


def _note(page: Path) -> str:
    found = re.search(r'<p class="note">([^<]* rows are here.*?)</p>', page.read_text("utf-8"))
    assert found is not None
    return unescape(re.sub(r"<[^>]+>", "", found[1]))


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on 205 pairs of long Chinese texts, each with a picture of its own; one verdict in ten is missing."""
    folder = tmp_path_factory.mktemp("long")
    draw, letters = random.Random(1), "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动"
    rows = []
    for k in range(205):
        Image.effect_noise((320, 240), 60 + k % 50).convert("RGB").save(folder / f"{k}.png")
        texts = ["".join(draw.choices(letters, k=9000)) for _ in range(4)]
        rows.append({"id": f"p{k}", "instruction": texts[0], "context": texts[1], "responses": texts[2:],
                     "gold": [k % 5 + 1, k % 3 + 2], "image": f"{k}.png"})  # fmt: skip
    items = runs.write_jsonl(folder / "pairs.jsonl", rows)
    for name, judge in (("first", "mock:oracle,r=.5,failing=.1"), ("second", "mock:oracle,r=.9,seed=2")):
        done = runs.dikast_here("compare", items, "--judge", judge, "--rubric", "helpfulness", "--out", folder / name,
                                "-q")  # fmt: skip
        assert done.returncode in (0, 3), done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("names", [("first",), ("first", "second")])
def test_205_pairs_of_long_chinese_texts_with_pictures_stay_below_10_mb(
    names: Sequence[str], long: Path, tmp_path: Path
) -> None:
    page = tmp_path / "r.html"
    _report(*(long / name for name in names), "-o", page, "--rest")
    size = page.stat().st_size
    assert 0.8 * MOST < size <= MOST
    note = _note(page)
    found = re.fullmatch(
        r"(\d+) of 205 rows are here: (\d+) with the largest gaps, (\d+) without a verdict, (\d+) drawn at random from"
        r" the others \(seed 0\); (\d+) more would not fit into the 10 MB of a page; \d+ differ from gold or have no"
        r" verdict\. The others stand beside this page\. Keys: .*",
        note,
    )
    assert found is not None, note
    n, gaps, failed, drawn, _ = map(int, found.groups())
    assert n == gaps + failed + drawn
    assert min(gaps, failed, drawn) >= 1
    assert sum(each.endswith("-1") for each in _rows_on(page)) == n
    assert "image/jpeg" in page.read_text("utf-8")
    beside = sorted((tmp_path / "r-rest").iterdir())
    assert all(each.stat().st_size <= MOST for each in beside)
    every = [each for path in (page, *beside) for each in _rows_on(path)]
    assert len(every) == len(set(every)) == 205 * len(names)  # each row once, on one of the pages


def test_the_sample_is_of_the_other_rows_and_follows_the_seed(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(120))
    runs.dikast_here("grade", items, "--judge", "mock:oracle,r=.8,failing=.1", "--rubric", "helpfulness", "--out",
                     tmp_path / "run", "-q")  # fmt: skip

    def read(seed: int) -> RunPage:
        asked = Asked(AuditPlan(tmp_path / "run", draws=20, seed=seed), queue=20, sample=15, rest=True)
        return collect(tmp_path / "run", asked)

    page, again, other = read(1), read(1), read(2)
    assert [each.item for each in page.sample] == [each.item for each in again.sample]
    assert {each.item for each in page.sample} != {each.item for each in other.sample}
    queued, drawn = {each.anchor for each in page.entries}, {each.anchor for each in page.sample}
    assert len(page.entries) == len(other.entries) == 20
    assert len(drawn) == 15
    assert not queued & drawn
    assert page.sample[0].instruction
    assert page.others is not None


def _offered(n: int, most: int, sample: int, seed: int) -> Queue:
    queue = Queue(most, has_gold=False, sample=sample, seed=seed, keep_rest=True)
    for k in range(n):
        row: dict[str, Any] = {"item": f"i{k}", "criterion": "c", "sample": 0, "response": 0, "status": "ok", "line": k}
        queue.offer(row | {"distribution": {"1": 1.0} if k % 3 else {"1": 0.5, "2": 0.5}}, None, None)
    return queue


def test_every_other_row_is_drawn_with_the_same_chance() -> None:
    """4 of the 16 that are not in the queue: in 4,000 draws each about 1,000 times (s.d. 27)."""
    times: dict[str, int] = {}
    for seed in range(4000):
        for row in _offered(20, 4, 4, seed).sample():
            times[row["item"]] = times.get(row["item"], 0) + 1
    assert len(times) == 16
    assert all(abs(each - 1000) < 135 for each in times.values()), times


def test_the_first_of_a_sample_are_drawn_with_the_same_chance_too() -> None:
    """Where the page has room for one of the four: each of the 16 is the one about 250 times (s.d. 15)."""
    first = [_offered(20, 4, 4, seed).sample()[0]["item"] for seed in range(4000)]
    assert all(abs(first.count(each) - 250) < 80 for each in set(first)), first
    assert len(set(first)) == 16


def test_the_first_of_a_files_sample_are_a_sample_too(tmp_path: Path) -> None:
    rows = "".join(f"i{k},{k % 5 + 1},3,Text {k}\n" for k in range(400))
    (tmp_path / "x.csv").write_text("id,score,gold,response\n" + rows)
    plan = AuditPlan(tmp_path / "x.csv", score="score", gold=("gold",), draws=20, seed=1)
    sample = collect_table(tmp_path / "x.csv", Asked(plan, queue=10, sample=40)).sample
    lines = [int(each.item.removeprefix("i")) for each in sample]
    assert len(set(lines)) == 40
    assert max(lines[:10]) > 200  # in the order of the file the first ten of forty would end near 100


def test_no_row_is_forgotten() -> None:
    queue = _offered(50, 7, 5, 3)
    rows = [*queue.rows(), *queue.sample(), *queue.rest()]
    assert sorted(row["line"] if "line" in row else row["lines"][0] for row in rows) == list(range(50))


def test_the_rest_is_read_once_in_the_order_of_the_items(tmp_path: Path) -> None:
    """Whatever the order of the verdicts and however many are held at a time; without an item a row comes last."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(40))
    runs.dikast_here("grade", items, "--judge", "mock:oracle", "--rubric", "helpfulness", "--out", tmp_path / "run",
                     "-q")  # fmt: skip
    verdicts = (tmp_path / "run" / VERDICTS).read_bytes().splitlines(keepends=True)
    random.Random(5).shuffle(verdicts)
    (tmp_path / "run" / VERDICTS).write_bytes(b"".join(verdicts))
    lock = read_lock(tmp_path / "run")
    assert lock is not None
    rows = [kept_of(row, None) for row, _ in RunRows(str(tmp_path / "run"))]
    names = [f"i{k}" for k in range(40)]
    assert [row["item"] for row in rows] != names
    reader = RowReader(tmp_path / "run", lock, load_rubrics(tmp_path / "run"), redact=False, at_once=7)
    every = JudgedItems.of(tmp_path / "run", lock, cure="")
    there = (item for item in every if item.id != "i11")  # can be read once only
    found = list(reader.streamed(rows, there, Thumbs()))
    assert [each.item for each in found] == [*(name for name in names if name != "i11"), "i11"]
    assert [bool(each.responses) for each in found] == [True] * 39 + [False]


def test_a_page_says_what_it_holds_and_who_asks_gets_the_rest(tmp_path: Path) -> None:
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(90))
    runs.dikast_here("grade", items, "--judge", "mock:oracle,r=.8,failing=.1", "--rubric", "helpfulness", "--out",
                     tmp_path / "run", "-q")  # fmt: skip
    page = tmp_path / "my report.html"
    _report(tmp_path / "run", "-o", page, "--queue", 20, "--sample", 10, "--seed", 3)
    assert "30 of 90 rows are here: 15 with the largest gaps, 5 without a verdict, 10 drawn at random" in _note(page)
    assert "(seed 3)" in _note(page)
    assert "--rest writes the others beside the page" in _note(page)
    assert "A random sample of the others" in page.read_text("utf-8")
    assert not (tmp_path / "my report-rest").exists()
    (tmp_path / "my report-rest").mkdir()
    for stale in ("1-7.html", "notes.txt"):
        (tmp_path / "my report-rest" / stale).write_text("old")
    _report(tmp_path / "run", "-o", page, "--queue", 20, "--sample", 10, "--seed", 3, "--rest")
    assert sorted(each.name for each in (tmp_path / "my report-rest").iterdir()) == ["1-1.html", "notes.txt"]
    rest = tmp_path / "my report-rest" / "1-1.html"
    assert 'href="my%20report-rest/1-1.html"' in page.read_text("utf-8")
    assert len({*_rows_on(page), *_rows_on(rest)}) == 90
    assert len(_rows_on(rest)) == 60
    _report(tmp_path / "run", "-o", page, "--rest", "--redact")
    assert not rest.exists()  # all rows are on the page
    done = runs.dikast_here("report", tmp_path / "run", "-o", tmp_path / "r.md", "--rest")
    assert done.returncode == 2
    assert "--out NAME.html" in done.stderr


def test_the_rows_of_somebodys_file_are_sampled_and_written_too(tmp_path: Path) -> None:
    with (tmp_path / "old.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["question", "answer", "judge_score", "human"])
        for k in range(80):
            table.writerow([f"q{k}", f"answer {k}", k % 5 + 1, (k // 2) % 5 + 1])
    page = tmp_path / "r.html"
    _report(tmp_path / "old.csv", "-o", page, "--queue", 20, "--sample", 10, "--rest")
    assert "30 of 80 rows are here: 20 with the largest gaps, 10 drawn at random" in _note(page)
    rest = tmp_path / "r-rest" / "1-1.html"
    assert len({*_rows_on(page), *_rows_on(rest)}) == 80
    assert "answer 7" in rest.read_text("utf-8") + page.read_text("utf-8")


def test_the_rest_can_be_read_in_a_browser(tmp_path: Path, tab: Browser) -> None:
    """Every page of it leads to its neighbours and back; by keyboard; and WCAG 2.2 AA holds."""
    import axe

    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(1300))
    runs.dikast_here("grade", items, "--judge", "mock:oracle,r=.8", "--rubric", "helpfulness", "--out",
                     tmp_path / "run", "-q")  # fmt: skip
    _report(tmp_path / "run", "-o", tmp_path / "r.html", "--queue", 20, "--sample", 10, "--rest")
    tab.open(tmp_path / "r.html")
    links = "[...document.querySelectorAll('a')].filter(each => each.innerText.includes({!r})).map(each => each.href)"
    (first,) = tab.run(links.format("beside this page"))
    seen = 0
    tab.visit(first, width=390)
    for number in (1, 2):
        assert tab.run("document.title").endswith(f"page {number}")
        seen += tab.run("document.querySelectorAll('.entry').length")
        tab.press("j")
        tab.press("o")
        assert tab.run("document.querySelector('.entry').open") is True
        assert tab.run("document.documentElement.scrollWidth") <= 390
        if axe.SCRIPT is not None and number == 2:
            for width, dark in ((390, True), (1440, False), (1440, True), (390, False)):
                tab.visit(tab.run("location.href"), width=width, dark=dark)
                assert axe.violations(tab) == []
        after = tab.run(links.format("next page"))
        assert len(after) == (1 if number == 1 else 0)
        if after:
            tab.visit(after[0], width=390)
    assert seen == 1270
    (back,) = tab.run(links.format("report"))
    tab.visit(back)
    assert tab.run("document.querySelectorAll('.light').length") >= 1


def test_long_rubrics_leave_room_for_the_rows(tmp_path: Path) -> None:
    """Levels of 200,000 characters, which each row and the first screen show: cut, as all texts are."""
    levels = {label: f"level {label}: " + "word " * 40_000 for label in "12345"}
    rubric = {"name": "long", "criterion": "Is it good? " * 20_000, "scale": "1-5", "levels": levels}
    (tmp_path / "long.json").write_text(json.dumps(rubric))
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(12))
    done = runs.dikast_here("grade", items, "--judge", "mock:oracle", "--rubric", tmp_path / "long.json", "--out",
                            tmp_path / "run", "-q")  # fmt: skip
    assert done.returncode == 0, done.stderr
    _report(tmp_path / "run", "-o", tmp_path / "r.html")
    assert "12 of 12 rows are here" in _note(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 1_500_000
    assert "characters left out" in (tmp_path / "r.html").read_text("utf-8")
