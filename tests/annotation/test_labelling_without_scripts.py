"""Annotation in a Chromium with JavaScript switched off, and one link in two tabs."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import runs
from annotation.labelling_here import Served, settle, table
from browser import Browser, browser


@pytest.fixture(autouse=True)
def without_scripts(tab: Browser) -> Iterator[None]:
    """No page runs a script."""
    with tab.without_scripts():
        yield


def _sent(tab: Browser, act: str) -> None:
    """Do what sends a form, and wait for the page after it."""
    before = tab.run("performance.timeOrigin")
    tab.run(act)
    for _ in range(2000):
        if tab.run("performance.timeOrigin") != before and tab.run("document.readyState") == "complete":
            return
    raise AssertionError("no new page came")


def _click(value: str) -> str:
    return f"""document.querySelector('button[value="{value}"]').click()"""


@pytest.mark.parametrize(
    ("words", "act", "kept"),
    [
        ((), _click("4"), "4"),
        (("--pairs",), _click("tie"), "tie"),
        (("--ask", "claims"), _click("wrong"), "wrong"),
        (("--ask", "spans"), "document.querySelector('[data-words] input').click();" + _click("marked"), "[[0,2]]"),
        (("--ask", "boxes"), "document.querySelector('textarea').value = '1 10 20 30 40';" + _click("marked"),
         "[[0,0.1,0.2,0.3,0.4]]"),
    ],
)  # fmt: skip
def test_every_kind_is_answered_by_plain_forms(
    words: tuple[str, ...], act: str, kept: str, tab: Browser, tmp_path: Path
) -> None:
    Image.effect_noise((40, 30), 40).convert("RGB").save(tmp_path / "noise.png")
    row: dict[str, Any] = {"id": "one", "instruction": "Is it?", "image": "noise.png"}
    texts = {"responses": ["It is.", "Not."]} if "--pairs" in words else {"response": "It is."}
    items = runs.write_jsonl(tmp_path / "i.jsonl", [{**row, **texts}])
    served = Served(items, tmp_path / "labels", "--rubric", "helpfulness", *words).start()
    tab.visit(served.links["1"], width=390)
    assert "JavaScript is off: answer with the buttons" in tab.run("document.body.innerText")
    assert tab.run("[...document.querySelectorAll('kbd')].every(each => each.getClientRects().length === 0)")
    _sent(tab, act)
    assert tab.run("document.title") == "All done"
    _sent(tab, "document.querySelector('form[action$=undo] button').click()")
    _sent(tab, act)
    tab.visit(served.links["progress"])
    assert "1 of 1 labels" in tab.run("document.querySelector('h1').innerText")
    assert "reload the page for new figures" in tab.run("document.body.innerText")
    assert served.stop() == 0
    assert [row["value"] for row in table(tmp_path / "labels" / "trail.csv")] == [kept] * 3  # label, undo, label


def test_a_click_as_soon_as_a_question_appears_answers_nothing(tab: Browser, tmp_path: Path) -> None:
    """The second click of a double click. The page's animations stand still until it was made."""
    served = Served(runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(2)), tmp_path / "labels").start()
    tab.call("Animation.enable")
    tab.call("Animation.setPlaybackRate", playbackRate=0)
    tab.visit(served.links["1"])
    button = "document.querySelector('button[value=\"4\"]')"
    box = tab.run(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({button}.getBoundingClientRect())")

    def click() -> None:
        for kind in ("mousePressed", "mouseReleased"):
            tab.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    click()
    tab.call("Animation.setPlaybackRate", playbackRate=1)
    while tab.run(f"getComputedStyle({button}).pointerEvents") == "none":
        time.sleep(0.05)
    assert tab.run("document.title") == "1 of 2"
    click()
    while tab.run("document.title") != "2 of 2":
        time.sleep(0.05)
    assert served.stop() == 0
    assert len(table(tmp_path / "labels" / "trail.csv")) == 1


def test_a_link_in_two_browsers_is_one_rater_who_is_told(tab: Browser, tmp_path: Path) -> None:
    """Another answer to the same question is not saved, and its sender learns so; the same one twice is one label."""
    served = Served(runs.write_jsonl(tmp_path / "i.jsonl", runs.rows(2)), tmp_path / "labels").start()
    with browser() as other:
        for each in (tab, other):
            each.visit(served.links["1"])
            assert each.run("document.title") == "1 of 2"
        settle(tab)
        _sent(tab, _click("4"))
        settle(other)
        _sent(other, _click("2"))
        assert other.run("document.title") == "2 of 2"
        assert "Your answer was not saved" in other.run("document.body.innerText")
        settle(other)
        _sent(other, _click("5"))
        settle(tab)
        _sent(tab, _click("5"))
        assert "not saved" not in tab.run("document.body.innerText")
        other.visit(served.links["1"])
        assert other.run("document.title") == "All done"
    assert served.stop() == 0
    assert [(row["what"], row["value"]) for row in table(tmp_path / "labels" / "trail.csv")] == [
        ("label", "4"), ("label", "5"),
    ]  # fmt: skip
