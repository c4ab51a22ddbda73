"""One run on every surface: the headline figures agree to the printed digit."""

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import runs
from dikast.surface.viewer.run_index import RunIndex
from dikast.surface.viewer.viewer_pages import ViewerPages

PAIRS = runs.of_systems(60, 1.0, names=("alpha", "beta", "gamma"))
SHEET = {
    "name": "both",
    "criteria": [
        {"name": "good", "criterion": "Is it good?", "scale": "1-5", "weight": 3},
        {"name": "faults", "criterion": "Faults?", "scale": "1-10", "lower_is_better": True},
    ],
}
GRADES = [
    {"id": f"{model}{k}", "instruction": f"Q {k}", "response": f"{model} {k}", "model": model,
     "gold": {"good": (k + m) % 5 + 1, "faults": (k * m) % 10 + 1}}
    for m, model in enumerate(("alpha", "beta", "gamma")) for k in range(20)
]  # fmt: skip
CASES: dict[str, tuple[str, str, list[dict[str, Any]], Any]] = {
    "pairs and failures": ("compare", "mock:oracle,r=.7,nats=1,failing=.15", PAIRS, None),
    "a judge of the first slot": ("compare", "mock:first-slot", PAIRS, None),
    "two scales, by weight": ("grade", "mock:oracle,r=.6,failing=.1", GRADES, SHEET),
}


def cells(page: str) -> list[list[str]]:
    """The rows of all tables of a page, as people read them."""
    rows = [re.findall(r"(?s)<t[hd].*?</t[hd]>", row) for row in re.findall(r"(?s)<tr.*?</tr>", page)]
    return [[" ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split()) for cell in row] for row in rows]


def markdown_cells(text: str) -> list[list[str]]:
    plain = text.replace("\\", "")
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in plain.splitlines() if line[:1] == "|"]


def shown(found: dict[str, Any], digits: int) -> str:
    """A figure as a leaderboard spells it."""
    ends = "" if found["low"] is None else f" [{found['low']:z.{digits}f}, {found['high']:z.{digits}f}]"
    return f"{found['value']:z.{digits}f}{ends}"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_headline_figures_agree_to_the_printed_digit(case: str, tmp_path: Path) -> None:
    verb, judge, items, rubric = CASES[case]
    (tmp_path / "sheet.json").write_text(json.dumps(rubric))
    run, file = tmp_path / "run", runs.write_jsonl(tmp_path / "items.jsonl", items)
    given = str(tmp_path / "sheet.json") if rubric else "helpfulness"
    done = runs.dikast_here(verb, file, "--judge", judge, "--rubric", given, "--out", run, "-q")
    assert done.returncode in (0, 3), done.stderr
    played = ("--first", "system_a", "--second", "system_b") if verb == "compare" else ()
    audit = json.loads(runs.dikast_here("audit", run, "--json", "--draws", "50", *played).stdout)
    text = runs.dikast_here("audit", run, "--draws", "50", *played).stdout
    files = {suffix: tmp_path / f"report.{suffix}" for suffix in ("html", "md", "json", "xml")}
    runs.dikast_here("report", run, "--draws", "50", *(part for each in files.values() for part in ("-o", each)))
    report = {suffix: path.read_text() for suffix, path in files.items()}
    (page,) = json.loads(report["json"])["runs"]
    tables = {"page": cells(report["html"]), "Markdown": markdown_cells(report["md"])}
    index = RunIndex(tmp_path)
    viewer = " ".join(word for row in cells(ViewerPages(index).runs({})) for word in row)
    of_run = html.unescape(re.sub(r"<[^>]*>", " ", ViewerPages(index).run({"of": "run"})))

    # the conclusion, its reason and the sentence under it
    for name in ("html", "md", "xml"):
        plain = " ".join(html.unescape(re.sub(r"<[^>]*>", "", report[name])).replace("\\", "").split())
        assert page["conclusion"]["text"] in plain, name
        assert page["headline"] in plain, name

    # each test case of JUnit has a name of its own, also where a gate is on several runs
    shutil.copytree(run, tmp_path / "again")
    gated = runs.dikast_here(
        "report", run, tmp_path / "again", "--draws", "5", "-o", files["xml"], "--fail-over", "failed=1"
    )
    assert gated.returncode == 0, gated.stderr
    gates = [each.get("name") for each in ElementTree.parse(files["xml"]).getroot()[0].findall("testcase")]
    assert len(set(gates)) == 2
    assert all(str(name).endswith(": failed=1") for name in gates)

    # failures
    (failed,) = (row for row in audit["tables"]["failures"]["rows"] if row["status"] == "failed")
    assert f"{failed['count']}  {shown(failed['share'], 4)}" in text
    suite = ElementTree.fromstring(report["xml"])[1]
    assert (suite.get("errors"), suite.get("tests")) == (str(failed["count"]), str(failed["share"]["n"]))
    spelt = f"{failed['share']['value']:.1%}"
    assert any(row[:2] == ["Without a verdict", spelt] for row in tables["Markdown"])
    assert spelt in html.unescape(report["html"])
    rows = RunIndex(tmp_path).runs()[0].rows
    assert f"{rows} of {failed['share']['n']} rows" in " ".join(of_run.split())

    # systems: audit, leaderboard of the page and of Markdown
    if verb == "compare":
        board = {name: each["win_rates"]["half"] for name, each in audit["results"]["players"]["players"].items()}
        said = {name: each["judge"] for name, each in page["labels"].items()}
        assert sum(said.values()) == failed["share"]["n"] - failed["count"]
        told = ", ".join(f"{name} {said[name]:,}" for name in ("a", "b", "tie", "disagree"))
        assert told in viewer  # as people see the run in the list
        if case == "a judge of the first slot":
            assert said == {"a": 0, "b": 0, "tie": 0, "disagree": 60}
            assert {each["value"] for each in board.values()} == {0.5}
    else:
        board = {name: each["mean"] for name, each in audit["results"]["leaderboard"]["systems"].items()}
        totals = {name: list[float]() for name in board}
        for each in runs.lines(run / "totals.jsonl"):
            if each["total"] is not None:
                totals[each["item"].rstrip("0123456789")].append(each["total"])
        for name, of_system in totals.items():
            mean = pytest.approx(sum(of_system) / len(of_system))
            assert (board[name]["n"], board[name]["value"]) == (len(of_system), mean)
    for name, found in board.items():
        printed = [line for line in text.splitlines() if line.split()[:1] == [name]]
        assert any(f" {found['value']:z.4f} " in line for line in printed), name
        for where, table in tables.items():
            mine = [row for row in table if name in row and row[row.index(name) + 1 :]]
            spellings = (shown(found, 3), shown(found, 4))
            said_so = where == "Markdown" and f"{name} {spellings[0]}" in page["headline"]
            assert said_so or any(each in cell for row in mine for cell in row for each in spellings), (where, name)
