"""One number on every surface: terminal, JSON, Markdown, page, JUnit, gates and the run's own summary."""

import html
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import runs
from dikast.surface.cli import app

NUMBER = re.compile(r"(?<![\w.\-/=#:])[+\-]?\d[\d,]*(?:\.\d+)?%?(?!\w|\.\d)")
NOT_FOUND = re.compile(r"\b(nan|NaN|inf|Infinity|None)\b")
FIXED = {"0.03", "10", "8", "4", "5", "80%", "60%", "40%", "20%"}  # words of titles, labels, thresholds
ITEMS = [
    {"id": f"i{k}", "instruction": f"Is {k} even?", "response": "word " * (1 + k % 9) + f"{k}.", "gold": k % 5 + 1}
    for k in range(40)
]
PAIRS = [
    {"id": f"p{k}", "instruction": f"Is {k} even?", "responses": [f"It is {k}.", f"Look at {k % 10}."],
     "gold": ["a", "b", "tie"][k % 3]}
    for k in range(40)
]  # fmt: skip
SHEET = {
    "name": "both",
    "criteria": [
        {"name": "good", "criterion": "Is it good?", "scale": "1-5"},
        {"name": "faults", "criterion": "Faults?", "scale": "1-10", "lower_is_better": True},
    ],
}
REVERSED = {"name": "faults", "criterion": "How many faults?", "scale": "1-5", "lower_is_better": True}
ORACLE = "mock:oracle,r=.7"
CASES: dict[str, tuple[str, str, list[dict[str, Any]], Any, tuple[str, ...]]] = {
    "all failed": ("grade", f"{ORACLE},errors=1", ITEMS, "helpfulness", ()),
    "some failed": ("grade", f"{ORACLE},failing=.3", ITEMS, "helpfulness", ()),
    "constant gold": ("grade", ORACLE, [{**each, "gold": 3} for each in ITEMS], "helpfulness", ()),
    "constant judge": ("grade", "mock:constant", ITEMS, "helpfulness", ()),
    "one row": ("grade", ORACLE, ITEMS[:1], "helpfulness", ()),
    "two rows": ("grade", ORACLE, ITEMS[:2], "helpfulness", ()),
    "no gold": ("grade", "mock:random", [{**each, "gold": None} for each in ITEMS], "helpfulness", ()),
    "reversed": ("grade", ORACLE, ITEMS, REVERSED, ()),
    "two scales": (
        "grade", f"{ORACLE},failing=.2", [{**e, "gold": {"good": k % 5 + 1, "faults": k % 10 + 1}}
                                          for k, e in enumerate(ITEMS)], SHEET, (),
    ),
    "samples": ("grade", f"{ORACLE},failing=.2", ITEMS, "helpfulness", ("--samples", "3", "--temperature", "1")),
    "first slot": ("compare", "mock:first-slot", PAIRS, "helpfulness", ()),
    "pairs failed": ("compare", "mock:oracle,nats=1,failing=.3", PAIRS, "helpfulness", ()),
    "one order": ("compare", "mock:oracle,nats=1", PAIRS, "helpfulness", ("--one-order",)),
    "one pair": ("compare", ORACLE, PAIRS[:1], "helpfulness", ()),
    "several pairs of an item": (
        "compare", "mock:oracle,r=.6,nats=1,failing=.2",
        [{**each, "responses": [*each["responses"], "Who knows?"], "gold": [1, 3, k % 5 + 1]}
         for k, each in enumerate(PAIRS)], "helpfulness", (),
    ),
}  # fmt: skip


def leaves(value: Any) -> Iterator[float]:
    """Every number of a JSON value, those in texts and half widths of intervals included."""
    if isinstance(value, dict):
        if value.get("low") is not None and value.get("high") is not None:
            yield (value["high"] - value["low"]) / 2
        yield float(len(value))
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        yield float(len(value))
        for each in value:
            yield from leaves(each)
    elif isinstance(value, str):
        yield from (float(found.replace(",", "")) for found in re.findall(r"-?\d[\d,]*(?:\.\d+)?", value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def unknown(text: str, known: set[float]) -> dict[str, str]:
    """The numbers of a text that none of the known ones rounds to, with what stands around them."""
    spelt: dict[tuple[int, bool], set[str]] = {}
    found = {}
    for each in NUMBER.finditer(text):
        token = each[0].replace(",", "").lstrip("+")
        share, token = token.endswith("%"), token.rstrip("%")
        way = (len(token.partition(".")[2]), share)
        if way not in spelt:
            spelt[way] = {format(value * (100 if share else 1), f"z.{way[0]}f") for value in known}
        if token not in spelt[way] and each[0] not in FIXED:
            found[each[0]] = text[max(0, each.start() - 60) : each.end() + 30]
    return found


def words(page: str) -> str:
    """The text of a page, without its figures, scripts, and the verdicts' own texts."""
    page = re.sub(r"<(script|style|svg).*?</\1>", "", page, flags=re.DOTALL)
    page = re.sub(r"<(pre|blockquote).*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def dikast(*line: object) -> str:
    done = CliRunner().invoke(app, [*map(str, line)])
    assert done.exit_code in (0, 3, 4), (line, done.output, done.exception)
    return done.output


def approx(found: dict[str, Any], other: dict[str, Any]) -> None:
    """Value, interval and n of a figure on two surfaces."""
    assert found["n"] == other["n"]
    for end in ("value", "low", "high"):
        one, two = (math.nan if each[end] is None else each[end] for each in (found, other))
        assert one == pytest.approx(two, rel=1e-9, abs=1e-12, nan_ok=True), (end, found, other)


@pytest.mark.parametrize("case", CASES)
def test_every_surface_gives_the_same_numbers(case: str, tmp_path: Path) -> None:
    verb, judge, items, rubric, more = CASES[case]
    if not isinstance(rubric, str):
        (tmp_path / "rubric.json").write_text(json.dumps(rubric))
        rubric = str(tmp_path / "rubric.json")
    file = runs.write_jsonl(tmp_path / "items.jsonl", items)
    run = tmp_path / "run"
    said = dikast(verb, file, "--judge", judge, "--rubric", rubric, "--out", run, "-q", *more)
    terminal = dikast("audit", run)
    audit = json.loads(dikast("audit", run, "--json"))
    gates = ("--fail-over", "failed=.1", "--fail-over", "failed.high=.1")
    files = {suffix: tmp_path / f"report.{suffix}" for suffix in ("html", "md", "json", "xml")}
    dikast("report", run, *(part for each in files.values() for part in ("-o", each)), *gates)
    text = {suffix: path.read_text() for suffix, path in files.items()}
    report = json.loads(text["json"])
    (page,) = report["runs"]

    # the audit, and what the report holds of it
    assert page["audit"]["tables"] == audit["tables"]
    known = {*leaves(report), *leaves(audit), *leaves(runs.summary(run))}
    junit = ElementTree.fromstring(text["xml"])
    surfaces = {
        "the end of the run": said, "audit": terminal, "Markdown": text["md"].replace("\\", ""),
        "page": words(text["html"]), "JUnit": "\n".join(junit.itertext()),
    }  # fmt: skip
    for name, shown in surfaces.items():
        assert unknown(shown, known) == {}, name
        assert NOT_FOUND.findall(shown) == [], name
    for name in ("md", "html", "xml"):
        assert page["headline"] in html.unescape(text[name].replace("\\", "")), name

    # the run's own summary
    failures = {row["status"]: row for row in audit["tables"]["failures"]["rows"]}
    failed, own = failures["failed"], runs.summary(run)
    own = own.get("combined", own.get("preferences", own))
    approx(own["failure_rate"], failed["share"])
    assert junit[1].get("tests") == str(page["rows"])
    assert junit[1].get("errors") == str(page["failed"])
    if "combined" not in runs.summary(run):  # else JUnit has each sample
        assert (page["rows"], page["failed"]) == (failed["share"]["n"], failed["count"])
    if page["labels"]:
        assert sum(each["judge"] for each in page["labels"].values()) == failed["share"]["n"] - failed["count"]
    if "orders" in audit["tables"]:
        orders = {row["statistic"]: row["value"] for row in audit["tables"]["orders"]["rows"]}
        approx(own["order_consistency"], orders["same verdict in both orders"])
        approx(own["flips_to_first_slot"], orders["disagree: first slot both times"])

    # gates
    value, high = report["gates"]
    approx({**value, "n": failed["share"]["n"]}, failed["share"])
    assert high["value"] == pytest.approx(failed["share"]["high"])
    assert value["met"] == (failed["share"]["value"] <= 0.1)
    assert [each.find("failure") is None for each in junit[0]] == [value["met"], high["met"]]


def test_a_gate_tells_n_and_enough_digits_to_see_why_it_is_not_met(tmp_path: Path) -> None:
    rows = [{"id": k, "score": 1 if k else 2, "gold": 1} for k in range(3001)]
    file = runs.write_jsonl(tmp_path / "x.jsonl", rows)
    line = ("report", file, "--score", "score", "--gold", "gold", "--scale", "1-5", "--draws", "20")
    said = " ".join(dikast(*line, "-o", tmp_path / "x.md", "--fail-under", "exact=.9997").split())
    assert "exact is 0.9996667777407531 [" in said
    assert "(n = 3,001), at least 0.9997" in said


def test_failures_beyond_the_queue_are_counted_in_junit(tmp_path: Path) -> None:
    file = runs.write_jsonl(tmp_path / "items.jsonl", ITEMS)
    dikast("grade", file, "--judge", f"{ORACLE},errors=1", "--rubric", "helpfulness", "--out", tmp_path / "run", "-q")
    dikast("report", tmp_path / "run", "--queue", "5", "-o", tmp_path / "x.xml", "--draws", "20")
    suite = ElementTree.parse(tmp_path / "x.xml").getroot()[1]
    assert suite.get("errors") == "40"
    listed = len(suite.findall("testcase"))
    assert 0 < listed <= 5
    assert f"{40 - listed} errors without a test case: --queue N shows more" in (suite.findtext("system-out") or "")


def test_a_file_is_read_by_a_report_as_by_an_audit(tmp_path: Path) -> None:
    """The same flags say the same: both orders joined, rows picked, two games counted, columns derived."""
    rows = [
        {"id": k, "shown": "ab"[k % 3 == 0], "scores": [k % 4, k % 3], "gold": "ab"[k % 2], "kind": "xyz"[k % 3],
         "one": "m1" if k % 2 else "m2", "two": "m2" if k % 2 else "m1"}
        for k in range(60)
    ]  # fmt: skip
    file, config = runs.write_jsonl(tmp_path / "x.jsonl", rows), tmp_path / "audit.yaml"
    config.write_text("columns:\n  other: {winner: [scores.0, scores.1]}\n")
    flags = ("--config", config, "--score", "shown", "--swapped", "other", "--gold", "gold", "--two-games", "net",
             "--first", "one", "--second", "two", "--where", "kind=x", "--draws", "20")  # fmt: skip
    audited = json.loads(dikast("audit", file, *flags, "--json"))
    dikast("report", file, *flags, "-o", tmp_path / "x.json")
    (told,) = json.loads((tmp_path / "x.json").read_text())["runs"]
    same = dict(audited["tables"])
    same.pop("rankings", None)
    assert told["audit"]["tables"] == same
    counted = {each["side"]: each["share"]["value"] for each in same["preferences"]["rows"]}
    labels = {name: each["judge"] / 20 for name, each in told["labels"].items()}
    assert labels["a"] == counted["first wins"]
    assert labels["disagree"] == counted["disagree"] > 0
    assert told["rows"] == 20
    assert sum(each["gold"] for each in told["labels"].values()) == 20


def test_a_file_of_a_judge_of_slots_names_no_winner(tmp_path: Path) -> None:
    rows = [{"shown": "a", "swapped": "b", "one": f"m{k % 3}", "two": f"m{(k + 1) % 3}"} for k in range(90)]
    file = runs.write_jsonl(tmp_path / "x.jsonl", rows)
    for flags in (
        ("--score", "shown", "--swapped", "swapped"),
        ("--score", "shown", "--swapped", "swapped", "--parse", "mt-bench"),
    ):
        if "--parse" in flags:
            rows = [{**each, "shown": "[[A]]", "swapped": "[[B]]"} for each in rows]
            runs.write_jsonl(file, rows)
        dikast("report", file, *flags, "--first", "one", "--second", "two", "-o", tmp_path / "x.json", "--draws", "20")
        (told,) = json.loads((tmp_path / "x.json").read_text())["runs"]
        assert told["labels"]["disagree"]["judge"] == 90 == sum(each["judge"] for each in told["labels"].values())
        assert "position decides" in told["headline"]
        for row in told["audit"]["tables"]["players"]["rows"]:
            assert row["win rate (half)"]["low"] <= 0.5 <= row["win rate (half)"]["high"]


def test_the_date_of_a_file_is_told_as_its_own(tmp_path: Path) -> None:
    """Nobody knows when its rows were judged; of a run the last verdict is."""
    file = runs.write_jsonl(tmp_path / "x.jsonl", [{"judge": k % 3 + 1, "human": k % 2 + 1} for k in range(40)])
    dikast("report", file, "--score", "judge", "--gold", "human", "-o", tmp_path / "x.html", "--draws", "20")
    assert "<b>x.jsonl</b>: 40 rows, file of " in (tmp_path / "x.html").read_text()
    items = runs.write_jsonl(tmp_path / "items.jsonl", ITEMS[:5])
    dikast("grade", items, "--judge", ORACLE, "--rubric", "helpfulness", "--out", tmp_path / "run", "-q")
    dikast("report", tmp_path / "run", "-o", tmp_path / "run.html", "--draws", "20")
    assert "file of " not in (tmp_path / "run.html").read_text()


def test_a_report_of_a_run_refuses_what_only_a_file_has(tmp_path: Path) -> None:
    file = runs.write_jsonl(tmp_path / "items.jsonl", ITEMS[:5])
    dikast("grade", file, "--judge", ORACLE, "--rubric", "helpfulness", "--out", tmp_path / "run", "-q")
    done = runs.dikast_here("report", tmp_path / "run", "--where", "item=i1", "-o", tmp_path / "x.md")
    assert done.returncode == 2
    assert "--where: only of a file of verdicts" in done.stderr
