"""Names of judges, systems and folders that try to run, restyle, redirect or turn text: shown, and never obeyed."""

import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree as Xml

import orjson
import pytest

import runs
from browser import Browser
from dikast.testing.hostile import CONTROLS, FORMULAS, HOSTILE, MARKDOWN, MARKUP, OWNED

_TURNS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
LONG = "".join(HOSTILE) * 8  # 10 kB
JUDGES = {
    "markup": " ".join(MARKUP),
    "controls": " ".join(CONTROLS),
    "formulas": " ".join(FORMULAS),
    "markdown": " ".join(MARKDOWN),
    "long": LONG,
}


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal obeys, or that turn the direction of what follows."""
    return {c for c in text if (unicodedata.category(c) == "Cc" and c not in "\n\t") or bidirectional(c) in _TURNS}


def bidirectional(c: str) -> str:
    return unicodedata.bidirectional(c)


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs, each in a folder and by a judge with a hostile name, as an archive of somebody else could hold them."""
    folder = tmp_path_factory.mktemp("named")
    items = runs.write_jsonl(folder / "items.jsonl", runs.rows(12))
    found = []
    for number, (kind, judge) in enumerate(JUDGES.items()):
        name = re.sub("[/\x00]", " ", judge).strip()
        out = folder / f"{number} {name[:60]}"
        done = runs.dikast_here(
            "grade", items, "--judge", f"mock:random,seed={number}", "--rubric", "helpfulness", "--out", out
        )
        assert done.returncode == 0, (kind, done.stderr)
        for name in ("summary.json", "judge.lock.json"):
            value = orjson.loads((out / name).read_bytes())
            (out / name).write_bytes(orjson.dumps({**value, "judge": judge}))
        (out / "checksums.json").unlink()
        found.append(out)
    return found


@pytest.fixture(scope="module")
def written(named: list[Path]) -> Path:
    out = named[0].parent
    names = [word for kind in ("html", "md", "xml", "json") for word in ("-o", out / f"r.{kind}")]
    done = runs.dikast_here("report", *named, *names, "--draws", 50)
    assert done.returncode == 0, done.stderr
    assert obeyed(done.stdout + done.stderr) == set()
    return out


def test_the_page_shows_them(written: Path, tab: Browser) -> None:
    page = written / "r.html"
    tab.open(page)
    tab.run("document.querySelectorAll('*').forEach(each => each.dispatchEvent(new Event('mouseover')))")
    assert tab.run("document.title") != OWNED
    assert tab.said == []
    assert tab.asked == [page.as_uri()]
    assert tab.run("document.querySelectorAll('script').length") == 1
    assert tab.run("document.querySelectorAll('iframe, link, meta[http-equiv=refresh]').length") == 0
    assert tab.run("[...document.querySelectorAll('a')].every(each => each.getAttribute('href').startsWith('#'))")
    shown = tab.run("document.body.innerText")
    assert all(text in shown for text in MARKUP)
    assert obeyed(shown.replace("\xa0", " ")) == set()
    assert "\\u202egnp.exe" in shown  # a person sees that the name was to be turned round
    tab.open(page, width=375)
    assert tab.run("document.documentElement.scrollWidth") <= 375


def test_the_other_forms_hold_them(written: Path, named: list[Path]) -> None:
    markdown = (written / "r.md").read_text("utf-8")
    assert obeyed(markdown) == set()
    assert not re.search(r"(?<!\\)<", markdown)
    assert not re.search(r"(?<!\\)\[", markdown)
    wide = 0
    for line in markdown.splitlines():
        assert len(line) < 15_000
        bars = len(re.findall(r"(?<!\\)\|", line))
        if line.startswith("|"):
            wide = wide or bars
            assert bars == wide, line[:200]
        else:
            wide = 0
    suites = Xml.fromstring((written / "r.xml").read_text("utf-8"))
    assert [obeyed(each.get("name", "")) for each in suites] == [set()] * len(suites)
    found = orjson.loads((written / "r.json").read_bytes())
    assert [each["judge"] for each in found["runs"]] == list(JUDGES.values())  # machines get them as they are


def test_a_terminal_obeys_none(named: list[Path], tmp_path: Path) -> None:
    systems = [*(each for each in HOSTILE if each.strip()), LONG]
    rows = [
        {"system": system, "score": k % 5 + 1, "gold": (k + n) % 5 + 1}
        for n, system in enumerate(systems)
        for k in range(6)
    ]
    table = runs.write_jsonl(tmp_path / "t.jsonl", rows)
    asked = ("audit", table, "--score", "score", "--gold", "gold", "--scale", "1-5", "--by", "system", "--draws", 20)
    told = runs.dikast_here(*asked)
    assert told.returncode == 0, told.stderr
    assert obeyed(told.stdout + told.stderr) == set()
    assert max(map(len, told.stdout.splitlines())) < 2000
    assert "\\u202egnp.exe\\u202c" in told.stdout
    for run in named:
        for verb in (("audit", run, "--draws", 20), ("doctor", run), ("replay", run), ("grade", run / "none.jsonl")):
            done = runs.dikast_here(*verb)
            assert obeyed(done.stdout + done.stderr) == set(), verb
    warned = runs.dikast("audit", named[1], "--draws", 20).stderr  # a process of its own, whose warnings are printed
    assert "checksums.json: the file is missing" in warned
    assert "\\u202egnp.exe" in warned
    assert obeyed(warned) == set()
    found = runs.dikast_here(*asked, "--json").stdout
    assert obeyed(found) == set()
    assert "\u202e" in orjson.dumps(orjson.loads(found)["tables"]).decode()  # the value is what it was
