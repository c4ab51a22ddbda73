"""The page in a real Chromium: nothing a model said runs, nothing is fetched, and filters and keys work."""

from pathlib import Path

import pytest

import runs
from browser import Browser
from dikast.testing.hostile import HOSTILE, MARKUP


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run whose ids, texts, criteria and replies all try to run or to restyle something."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [
        {
            "id": f"{k} {text}",
            "instruction": text,
            "response": text,
            "reference": text,
            "context": text,
            "gold": k % 5 + 1,
            "rubric": {"name": f"n{k} {text}", "criterion": text, "scale": "1-5", "levels": {"1": text, "5": "fine"}},
        }
        for k, text in enumerate(each.replace("\x00", "") for each in HOSTILE)
    ]
    items = runs.write_jsonl(folder / "items.jsonl", rows)
    done = runs.dikast_here("grade", items, "--judge", "mock:constant", "--out", folder / "run")
    assert done.returncode == 0, done.stderr
    verdicts = runs.lines(folder / "run" / "verdicts.jsonl")  # what a real judge might have said
    for verdict, text in zip(verdicts, HOSTILE, strict=True):
        verdict["feedback"] = verdict["raw"] = verdict["reason"] = text
        verdict["claims"] = [{"text": text, "verdict": text, "note": text}]
        del verdict["crc"]  # the line is another one now
    runs.write_jsonl(folder / "run" / "verdicts.jsonl", verdicts)
    done = runs.dikast_here("report", folder / "run", "-o", folder / "r.html", "--title", HOSTILE[0], "--draws", 100)
    assert done.returncode == 0, done.stderr
    return folder / "r.html"


def test_nothing_said_runs(hostile: Path, tab: Browser) -> None:
    tab.open(hostile)
    tab.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    tab.run("document.querySelectorAll('*').forEach(each => each.dispatchEvent(new Event('mouseover')))")
    assert tab.run("document.title") == HOSTILE[0]
    assert tab.said == []
    assert tab.asked == [hostile.as_uri()]
    assert tab.run("document.querySelectorAll('script').length") == 1
    assert tab.run("document.querySelectorAll('iframe, link, meta[http-equiv=refresh]').length") == 0
    assert tab.run("getComputedStyle(document.querySelector('.card')).display") != "none"
    assert tab.run("[...document.querySelectorAll('a')].every(each => each.getAttribute('href').startsWith('#'))")
    shown = tab.run("document.body.innerText")
    for text in MARKUP:
        assert text in shown  # escaped, not dropped
    assert tab.run("location.href") == hostile.as_uri()


def test_nothing_said_runs_on_the_pages_beside_it(hostile: Path, tmp_path: Path, tab: Browser) -> None:
    page = tmp_path / "a 'b' & \"c\" #d.html"
    more = ("--title", HOSTILE[0], "--draws", 20, "--queue", 0, "--sample", 0, "--rest")
    done = runs.dikast_here("report", hostile.parent / "run", "-o", page, *more)
    assert done.returncode == 0, done.stderr
    tab.open(page)
    assert f"0 of {len(HOSTILE)} rows are here" in tab.run("document.body.innerText")
    rest = "[...document.querySelectorAll('a')].find(each => each.innerText.includes('beside this page')).href"
    tab.visit(tab.run(rest))
    address = tab.run("location.href")
    tab.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    tab.run("document.querySelectorAll('*').forEach(each => each.dispatchEvent(new Event('mouseover')))")
    assert tab.run("document.title").startswith(HOSTILE[0])
    assert tab.said == []
    assert tab.asked == [address]
    assert tab.run("document.querySelectorAll('.entry').length") == len(HOSTILE)
    assert tab.run("document.querySelectorAll('script').length") == 1
    assert tab.run("document.querySelectorAll('iframe, link, meta[http-equiv=refresh]').length") == 0
    shown = tab.run("document.body.innerText")
    for text in MARKUP:
        assert text in shown
    tab.visit(tab.run("document.querySelector('nav a').href"))
    assert f"0 of {len(HOSTILE)} rows are here" in tab.run("document.body.innerText")


def test_the_policy_stops_a_script_that_got_in_anyway(hostile: Path, tab: Browser) -> None:
    tab.open(hostile)
    tab.run("{const s = document.createElement('script'); s.text = 'document.title = 1'; document.body.append(s); 1}")
    assert tab.run("document.title") == HOSTILE[0]


@pytest.fixture(scope="session")
def page(graded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "r.html"
    done = runs.dikast_here("report", graded, "-o", out, "--draws", 100)
    assert done.returncode == 0, done.stderr
    return out


def visible(tab: Browser) -> int:
    return int(tab.run("[...document.querySelectorAll('.entry')].filter(each => each.offsetHeight).length"))


def type_into(tab: Browser, field: str, value: str) -> None:
    tab.run(
        f"{{const f = document.querySelector('.filters [name={field}]'); f.value = {value!r};"
        " f.dispatchEvent(new Event('input', {bubbles: true})); 1}"
    )


def test_filters_and_search(page: Path, tab: Browser) -> None:
    tab.open(page)
    every = visible(tab)
    assert every == 60
    type_into(tab, "text", "is 41 even?")
    assert visible(tab) == 1
    type_into(tab, "text", "")
    type_into(tab, "gap", "0.25")
    wide = visible(tab)
    assert 0 < wide < every
    assert tab.run("document.querySelector('.filters output').textContent") == f"{wide} shown"
    type_into(tab, "gap", "0")
    status = tab.run(
        "[...document.querySelectorAll('.filters [name=status] option')].find(o => o.value != 'ok' && o.value).value"
    )
    type_into(tab, "status", status)
    assert 0 < visible(tab) == tab.run(f"document.querySelectorAll('.entry[data-status={status}]').length") < every


def test_deep_links_and_keys(page: Path, tab: Browser) -> None:
    tab.open(page)
    anchor = tab.run("document.querySelectorAll('.entry')[7].id")
    tab.open(page, fragment=f"#{anchor}")
    assert tab.run(f"document.getElementById('{anchor}').open") is True
    for key in "jjjk":
        tab.press(key)
    assert tab.run("[...document.querySelectorAll('.entry')].findIndex(e => e.classList.contains('at'))") == 1
    tab.press("o")
    assert tab.run("document.querySelectorAll('.entry')[1].open") is True
    tab.press("/")
    assert tab.run("document.activeElement.name") == "text"


@pytest.mark.parametrize(("width", "dark"), [(375, False), (375, True), (1280, False), (1280, True)])
def test_it_fits_and_can_be_read(page: Path, tab: Browser, width: int, dark: bool) -> None:
    tab.open(page, width=width, dark=dark)
    tab.run("document.querySelectorAll('.entry').forEach(each => each.open = true)")
    assert tab.run("document.documentElement.scrollWidth") <= width  # nothing sticks out sideways
    light = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(18, 20, 24)") is dark
    assert all(tab.pictures())
    assert tab.asked[0] == page.as_uri()
    assert all(each.startswith("data:") for each in tab.asked[1:])


def test_labels_of_figures_can_be_read_on_a_phone_and_none_is_cut_off(page: Path, tab: Browser) -> None:
    tab.open(page, width=390)
    texts = tab.run(
        "[...document.querySelectorAll('.grid svg text')].map(t => {const a = t.getBoundingClientRect(),"
        " b = t.ownerSVGElement.getBoundingClientRect(), scale = b.width / t.ownerSVGElement.viewBox.baseVal.width;"
        " return [parseFloat(getComputedStyle(t).fontSize) * scale, a.left - b.left, b.right - a.right]})"
    )
    assert len(texts) > 20
    assert min(size for size, _, _ in texts) > 7.5
    assert min(min(left, right) for _, left, right in texts) > -1
