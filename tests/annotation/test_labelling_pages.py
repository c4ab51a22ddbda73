"""The pages in a real Chromium: keys, undo, skip, hostile items, and that everybody can read them."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from PIL import Image

import axe
import runs
from annotation.labelling_here import Served, arrived, label, press, read, table
from browser import Browser
from dikast.testing.hostile import HOSTILE, MARKUP


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Grades of hostile items, one with a picture, by two raters."""
    folder = tmp_path_factory.mktemp("pages")
    Image.effect_noise((200, 150), 40).convert("RGB").save(folder / "noise.png")
    rows = [
        {"id": f"{k} {text}", "instruction": text, "response": text, "context": text, "image": "noise.png"}
        for k, text in enumerate(each.replace("\x00", "") for each in HOSTILE)
    ]
    items = runs.write_jsonl(folder / "items.jsonl", rows)
    found = Served(items, folder / "labels", "--rubric", "helpfulness", "--raters", 2).start()
    yield found
    assert found.stop() == 0


def place(tab: Browser) -> str:
    return str(tab.run("document.title"))


def test_a_rater_works_by_keyboard(served: Served, tab: Browser) -> None:
    n = len(HOSTILE)
    tab.visit(served.links["1"])
    assert place(tab) == f"1 of {n}"
    press(tab, "4")
    assert place(tab) == f"2 of {n}"
    press(tab, "2")
    press(tab, "u")
    assert place(tab) == f"2 of {n}"
    press(tab, "5")
    tab.press("s")
    assert tab.run("document.activeElement.name") == "reason"
    for letter in "no u":  # letters in a field are letters
        tab.press(letter)
    assert place(tab) == f"3 of {n}"
    press(tab, "Enter")
    assert place(tab) == f"4 of {n}"
    for _ in range(n - 3):
        press(tab, "3")
    assert place(tab) == "All done"
    tab.visit(served.links["2"])
    assert place(tab) == f"1 of {n}"
    served.stop()
    served.start()
    trail = table(Path(served.words[3]) / "trail.csv")
    assert [(row["what"], row["value"], row["reason"]) for row in trail[:5]] == [
        ("label", "4", ""), ("label", "2", ""), ("undo", "2", ""), ("label", "5", ""), ("skip", "", "no u"),
    ]  # fmt: skip


def test_nothing_that_an_item_says_runs(served: Served, tab: Browser) -> None:
    shown = ""
    tab.visit(served.links["2"])
    for k in range(len(HOSTILE)):
        assert tab.said == []
        assert tab.run("document.querySelectorAll('script').length") == 1
        assert tab.run("document.querySelectorAll('iframe, link, meta[http-equiv=refresh]').length") == 0
        assert all(tab.pictures())
        assert place(tab) == f"{k + 1} of {len(HOSTILE)}"
        assert all(each.startswith(served.links["2"].split("/r/")[0]) for each in tab.asked)
        shown += tab.run("document.body.innerText")
        press(tab, "1")
    for text in MARKUP:
        assert text in shown


_AGAIN = """addEventListener("DOMContentLoaded", () => setTimeout(() => {
  if (performance.now() - performance.getEntriesByType("navigation")[0].domInteractive > 350) return;  // a slow machine
  const button = document.querySelector("[data-key='4']"), undo = document.querySelector("[data-key=u]");
  const count = Number(sessionStorage.again || 0);
  sessionStorage.again = count + 1;
  if (count % 3 === 0) document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "4", bubbles: true}));
  else if (count % 3 === 1) button?.click();
  else undo?.click();
}, 100))"""  # what a finger does that presses twice: a key, a button, or undo, .1 s after a question appears


def test_what_is_pressed_twice_answers_one_question(tmp_path: Path, tab: Browser) -> None:
    """The second press comes when the next question is there already, before anybody has read it."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(30))
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness").start()
    script = tab.call("Page.addScriptToEvaluateOnNewDocument", source=_AGAIN)["identifier"]
    try:
        tab.visit(served.links["1"])
        for k in range(1, 21):
            tab.run("new Promise(done => setTimeout(done, 250))")
            assert place(tab) == f"{k} of 30"
            press(tab, "2")
        tab.run("new Promise(done => setTimeout(done, 250))")
        assert place(tab) == "21 of 30"
        press(tab, "u")
        tab.run("new Promise(done => setTimeout(done, 250))")
        assert place(tab) == "20 of 30"
        assert int(tab.run("sessionStorage.again")) > 5
    finally:
        tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        assert served.stop() == 0
    trail = table(tmp_path / "labels" / "trail.csv")
    assert [(row["what"], row["value"]) for row in trail] == [("label", "2")] * 20 + [("undo", "2")]


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1440, False), (1440, True)])
def test_no_violation_of_wcag(served: Served, tab: Browser, width: int, dark: bool) -> None:
    if axe.SCRIPT is None:
        pytest.skip(axe.WHY)
    tab.visit(served.links["2"], width=width, dark=dark)
    if place(tab) == "All done":
        press(tab, "u")
    assert axe.violations(tab) == []
    assert tab.run("document.documentElement.scrollWidth") <= width
    tab.visit(served.links["progress"], width=width, dark=dark)
    assert axe.violations(tab) == []
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert re.search(
        r"^Labelling items.jsonl: [\d,]+ of [\d,]+ labels(, [\d,]+ skipped)?$",
        tab.run("document.querySelector('h1').innerText"),
    )


def _fits_and_is_accessible(tab: Browser, width: int, page: str) -> None:
    assert axe.violations(tab) == [], page
    assert tab.run("document.documentElement.scrollWidth") <= width, page


def _send(tab: Browser, address: str, **fields: str) -> None:
    """Send a form as a page does."""
    tab.run("window.old = 1")
    inputs = "".join(f"<input name='{name}' value='{value}'>" for name, value in fields.items())
    tab.run(f"{{const f = document.createElement('form'); f.method = 'post'; f.action = {address!r};"
            f" f.innerHTML = {inputs!r}; document.body.append(f); f.submit(); 1}}")  # fmt: skip
    arrived(tab)


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1440, False), (1440, True)])
def test_practice_refusals_and_the_end_can_be_read_by_everybody(
    width: int, dark: bool, tmp_path: Path, tab: Browser
) -> None:
    if axe.SCRIPT is None:
        pytest.skip(axe.WHY)
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(3))
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", "--training", 2).start()
    try:
        link = served.links["1"]
        tab.visit(link, width=width, dark=dark)
        assert "for practice" in tab.run("document.body.innerText")
        _fits_and_is_accessible(tab, width, "practice")
        task = tab.run("document.querySelector('[name=task]').value")
        press(tab, "3")
        assert "For practice: the answer to the last question was" in tab.run("document.body.innerText")
        _fits_and_is_accessible(tab, width, "after practice")
        _send(tab, f"{link}/label", task=task, value="1")
        assert "Your answer was not saved" in tab.run("document.body.innerText")
        _fits_and_is_accessible(tab, width, "answered twice")
        refusals = {
            "another question": ({"task": "99", "value": "1"}, "no such question of yours"),
            "no label": ({"task": task, "value": "best"}, "this is not a label of the question"),
            "no reason": ({"task": task, "value": ""}, "say why you skip"),
        }
        for name, (fields, words) in refusals.items():
            tab.visit(link, width=width, dark=dark)
            _send(tab, f"{link}/label", **fields)
            told = tab.run("document.body.innerText")
            assert words in told
            _fits_and_is_accessible(tab, width, name)
            assert tab.run("document.querySelector('a').href") == link
        tab.visit(link[:-1] + "_-"[link.endswith("_")], width=width, dark=dark)
        assert "check that the link is complete" in tab.run("document.body.innerText")
        _fits_and_is_accessible(tab, width, "unknown link")
        tab.visit(link, width=width, dark=dark)
        for _ in range(2):
            press(tab, "3")
        assert place(tab) == "All done"
        _fits_and_is_accessible(tab, width, "done")
    finally:
        assert served.stop() == 0


def test_the_page_of_the_owner_is_live(tmp_path: Path, tab: Browser) -> None:
    """Labels, figures and the stop rule change on the open page, which is not loaded again."""
    items = runs.write_jsonl(tmp_path / "items.jsonl", runs.rows(40))
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", "--aim", ".12").start()

    async def rate(many: int) -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(many):
                async with session.get(served.links["1"]) as answer:
                    page = await answer.text()
                task = str(read(page)["task"])
                await label(session, served.links["1"], "15"[int(task) % 2], task)

    try:
        tab.visit(served.links["progress"])
        tab.run("window.old = 1")
        assert "Too few labels" in tab.run("document.querySelector('.said').innerText")
        asyncio.run(rate(30))
        tab.run("new Promise(done => setTimeout(done, 6500))")
        assert tab.run("window.old") == 1
        assert "30 of 40 labels" in tab.run("document.querySelector('h1').innerText")
        rule = tab.run("document.querySelector('.said').innerText")
        assert re.search(
            r"±0\.12 would take labels on \d+ more questions, and 10 are left: the interval is ±0\.1", rule
        )
    finally:
        assert served.stop() == 0
