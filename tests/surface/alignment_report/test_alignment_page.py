"""The page of an alignment: its sentence, its figures, replies to leaf through, hostile words."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import axe
import dikast
from browser import Browser
from dikast.core.errors import UserError
from dikast.surface.alignment_report.alignment_page import sentence, verdict, write_alignment_report
from dikast.surface.cli import app
from dikast.testing.hostile import HOSTILE, MARKUP, OWNED

EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"


def figure(value: float, change: float | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"value": value, "low": value - 0.1, "high": value + 0.1, "n": 24}
    if change is not None:
        found["change"] = {"value": change, "low": change - 0.05, "high": change + 0.05, "n": 24}
    return found


def held(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    rows = [{"id": f"p{i}", "instruction": f"What is {i}? {EVIL}", "response": f"{text} {i}"} for i in range(24)]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    measures = [{"item": f"p{i}", "gold": 0.25, "reward": 0.5, "second": None} for i in range(24)]
    (folder / "measures.jsonl").write_text("".join(json.dumps(row) + "\n" for row in measures))


@pytest.fixture
def alignment(tmp_path: Path) -> Path:
    folder = tmp_path / "up"
    held(folder / "start/held-out", f"before {EVIL}")
    held(folder / "round-1/held-out", "after")
    (folder / "align.json").write_text("{}")
    names = ("reward", "gold", "words", "kl")
    start = {"round": 0, "held_out": {name: figure(0.2) for name in names}, "judge_is_policy": True}
    first = {
        "round": 1, "held_out": {name: figure(0.4, 0.2) for name in names}, "judge_is_policy": True, "pairs": 80,
        "prompts": 100, "dropped": {"equal": 20}, "calls": 500, "stopped": "",
    }  # fmt: skip
    for name, report in (("start", start), ("round-1", first)):
        (folder / name / "report.json").write_text(json.dumps(report))
    whole = {"policy": EVIL, "judge": "scout", "model": "up/round-1/model", "stopped": "", "rounds": [start, first]}
    (folder / "report.json").write_text(json.dumps(whole))
    return folder


def test_a_report_in_python_takes_an_alignment(alignment: Path, tmp_path: Path) -> None:
    found = dikast.report(alignment, tmp_path / "page.html", title="Up")
    assert (found.numbers["judge"], found.gates, found.pages) == ("scout", [], [])
    assert "<title>Up" in (tmp_path / "page.html").read_text("utf-8")
    with pytest.raises(UserError, match="give its folder alone, without gates"):
        dikast.report(alignment, fail_under=("pearson=0.5",))


def told(gold: Mapping[str, Any], **report: Any) -> str:
    rounds = [{"round": 0, "held_out": {"gold": figure(0.2)}}, {"round": 1, "held_out": {"gold": gold}}]
    return sentence({"policy": "p", **report}, rounds)


def test_one_sentence_says_what_happened() -> None:
    assert told(figure(0.4, 0.2)) == (
        "In 1 round gold on 24 held-out prompts rose: from 0.200 to 0.400, by +0.200 [+0.150, +0.250] in pairs."
    )
    assert "did not clearly change" in told(figure(0.22, 0.02))
    assert "fell: from 0.200 to 0.100" in told(figure(0.1, -0.1))
    assert told(figure(0.1, -0.1), stopped="it grew").endswith("in pairs; it was stopped: it grew.")
    start = {"round": 0, "held_out": {"reward": figure(0.3)}}
    begun = "No round has been measured; the judge's own reward on 24 held-out prompts is 0.300"
    assert sentence({}, [start]) == f"{begun}; it is not finished."
    tied = {"round": 1, "held_out": {}, "stopped": "no prompt gave a pair"}
    assert sentence({"policy": "p"}, [start, tied]) == f"{begun}; it was stopped: no prompt gave a pair."


def test_the_light_is_that_of_the_model_that_is_kept() -> None:
    def lit(model: str, *changes: float) -> tuple[str, str]:
        rounds: list[dict[str, Any]] = [{"round": 0, "model": "start", "held_out": {"gold": figure(0.2)}}]
        rounds += [
            {"round": n, "model": f"round-{n}", "held_out": {"gold": figure(0.2 + each, each)}}
            for n, each in enumerate(changes, 1)
        ]
        found = verdict({"model": model, "stopped": "it fell" * (model != f"round-{len(changes)}")}, rounds)
        return found.light, found.text

    assert lit("round-2", 0.2, 0.3)[0] == "green"
    light, text = lit("round-1", 0.2, -0.1)  # the second round spoilt what the first had gained
    assert light == "green"
    assert text.endswith("it fell; the model of round 1 is kept, whose change is +0.200 [+0.150, +0.250]")
    assert lit("round-1", -0.2, -0.3)[0] == "red"
    assert lit("start", -0.2)[0] == "red"
    assert lit("start", 0.2) == ("amber", told(figure(0.4, 0.2), stopped="it fell").removesuffix("."))  # too far away


def test_the_verb_writes_the_page_of_an_alignment(alignment: Path, tmp_path: Path) -> None:
    page, table = tmp_path / "page.html", tmp_path / "page.md"
    done = CliRunner().invoke(app, ["report", str(alignment), "-o", str(page), "-o", str(table)])
    assert done.exit_code == 0, done.output
    text = page.read_text("utf-8")
    assert "<script" not in text
    assert "onerror=alert(1)>" not in text.replace("onerror=alert(1)&gt;", "")
    assert text.count('class="leaf"') == 10
    assert text.index("1 of 10: p0<") < text.index("2 of 10: p2<") < text.index("10 of 10: p21<")  # spread over 24
    assert "20 of 100 prompts gave no pair, equal" in text
    assert "The judge is the policy itself" in text
    assert text.count("<svg") == 4
    assert (
        "| Held-out gold (goodness, 0 to 1) | 0.200 [0.100, 0.300] | 0.400 [0.300, 0.500] | 24 |" in table.read_text()
    )
    with pytest.raises(UserError, match=r"page\.xml: the report of an alignment is a file NAME\.html"):
        write_alignment_report(alignment, [tmp_path / "page.xml"])
    (alignment / "report.json").unlink()  # while it goes on
    write_alignment_report(alignment, [page])
    assert "it is not finished" in page.read_text("utf-8")


def test_hostile_words_are_shown_as_text(alignment: Path, tmp_path: Path, tab: Browser) -> None:
    """The shared list, in the names of policy and judge, the reason to stop, and a third of the replies on the page."""
    page, words = tmp_path / "page.html", [each.replace("\x00", "") for each in HOSTILE]
    every = " ".join(words)
    report = json.loads((alignment / "report.json").read_bytes())
    report |= {"policy": every, "judge": every, "model": every, "stopped": every}
    (alignment / "report.json").write_text(json.dumps(report))
    for place in ("start", "round-1"):
        path = alignment / place / "held-out/samples.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for n, row in enumerate(rows):
            row |= {"instruction": every, "response": f"{n} {every}"}
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_alignment_report(alignment, [page, tmp_path / "page.md"])
    tab.open(page)
    assert tab.run("document.title") != OWNED
    assert tab.run("document.querySelectorAll('script, iframe, object, embed, base, [onerror], [onload]').length") == 0
    assert (
        tab.run("document.querySelectorAll('meta[http-equiv=refresh], link[href^=http], a[href^=javascript]').length")
        == 0
    )
    assert tab.run("document.body.innerText").count(MARKUP[0]) >= 16
    assert tab.said == []
    assert len(tab.asked) == 1
    assert "\x1b" not in page.read_text("utf-8") + (tmp_path / "page.md").read_text("utf-8")


def test_a_reader_can_leaf_through_the_replies(alignment: Path, tmp_path: Path, tab: Browser) -> None:
    page = tmp_path / "page.html"
    write_alignment_report(alignment, [page])
    for width in (1280, 390):
        tab.open(page, width=width)
        assert tab.run("document.documentElement.scrollWidth <= window.innerWidth")
        assert axe.SCRIPT is None or axe.violations(tab) == []
        tab.run("document.querySelector('#sample-1 nav a').click()")
        assert tab.run("location.hash") == "#sample-2"
        seen = (
            "new Promise(done => setTimeout(() => { const box = document.querySelector('#sample-2')"
            ".getBoundingClientRect(); done(box.left >= 0 && box.left < innerWidth / 2) }, 700))"
        )
        assert tab.run(seen)
    assert tab.said == []
    assert len(tab.asked) == 1


def test_long_replies_are_cut(alignment: Path, tmp_path: Path) -> None:
    samples = alignment / "round-1/held-out/samples.jsonl"
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    samples.write_text("".join(json.dumps({**row, "response": "字" * 500_000}) + "\n" for row in rows))
    write_alignment_report(alignment, [tmp_path / "page.html"])
    text = (tmp_path / "page.html").read_text("utf-8")
    assert len(text.encode()) < 1_000_000
    assert text.count("(494,000 characters left out)") == 10


def test_numbers_beside_a_curve_are_not_cut_off(alignment: Path, tmp_path: Path) -> None:
    told = json.loads((alignment / "start/report.json").read_bytes())
    told["held_out"]["gold"] |= {"low": 0.000191}
    told["held_out"]["words"] |= {"high": 1234.5}
    (alignment / "start/report.json").write_text(json.dumps(told))
    write_alignment_report(alignment, [tmp_path / "page.html"])
    beside = re.findall(r'text-anchor="end" class="small">([^<]*)<', (tmp_path / "page.html").read_text("utf-8"))
    assert {"0", "1234"} <= {*beside}
    assert all(len(each) <= 6 for each in beside)
