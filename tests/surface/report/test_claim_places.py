"""Claims are marked in the response, which stays the text that it was."""

import random
from pathlib import Path

import pytest

import axe
import runs
from browser import Browser
from dikast.surface.report.claim_places import kind_of, stretches
from dikast.testing.hostile import HOSTILE


def test_claims_are_found_at_their_first_free_place() -> None:
    said = [("it is RED", "right"), ("It is red", "wrong"), ("a cat", "unclear"), ("not there", "wrong"), ("", "wrong")]
    claims = [{"text": text, "verdict": verdict} for text, verdict in said]
    found = stretches("It is  red. It is red, a cat.", claims)
    assert [part.text for part in found] == ["It is  red", ". ", "It is red", ", ", "a cat", "."]
    assert [part.kind for part in found] == ["holds", "", "fails", "", "unsure", ""]
    assert [part.sign for part in found] == ["✓", "", "✗", "", "?", ""]
    assert stretches("", claims) == []
    assert kind_of("Supported") == "holds"


def test_the_text_stays_whole() -> None:
    draw = random.Random(3)
    for text in HOSTILE:
        cuts = sorted(draw.choices(range(len(text) + 1), k=4))
        claims = [
            {"text": text[cuts[0] : cuts[1]], "verdict": "wrong"},
            {"text": text[cuts[2] : cuts[3]], "verdict": "x"},
        ]
        assert "".join(part.text for part in stretches(text, claims)) == text


def test_everybody_can_read_claims_and_pictures(tmp_path: Path, tab: Browser) -> None:
    """A judge that says claims, of drawings: opened, enlarged, light and dark, on a phone and a desk."""
    if axe.SCRIPT is None:
        pytest.skip(axe.WHY)
    made = runs.dikast_here("world", "make", "-n", 4, "--out", tmp_path / "world")
    assert made.returncode == 0, made.stderr
    items = tmp_path / "world" / "items-00000.jsonl"
    done = runs.dikast_here("grade", items, "--judge", "scout", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    done = runs.dikast_here("report", tmp_path / "run", "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    for width, dark in [(390, False), (390, True), (1440, False), (1440, True)]:
        tab.open(tmp_path / "page.html", width=width, dark=dark)
        small = tab.run("document.querySelector('.zoom img').getBoundingClientRect().width")
        assert tab.run("[...document.querySelectorAll('.entry, .zoom')].map(each => each.open = true).length") > 4
        assert tab.run("document.querySelectorAll('mark sup').length") > 4
        assert tab.run("document.querySelector('.zoom img').getBoundingClientRect().width") > small
        assert axe.violations(tab) == []
        assert tab.run("document.documentElement.scrollWidth") <= width
