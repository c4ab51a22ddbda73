"""What readers ask of a report is answered on its first screen, or one click away; and everybody can read it."""

import re
from pathlib import Path

import pytest

import runs
from browser import Browser

SCREEN = 900


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems on 150 pairs, by a judge with a price, of which a few verdicts are missing."""
    folder = tmp_path_factory.mktemp("readers")
    items = runs.write_jsonl(folder / "march.jsonl", runs.of_systems(150, 1.5))
    judge = "mock:oracle,r=.9,failing=.02"
    done = runs.dikast_here(
        "compare",
        items,
        "--judge",
        judge,
        "--rubric",
        "helpfulness",
        "--out",
        folder / "run",
        "--json",
        "--price",
        "1,4",
    )
    assert done.returncode in (0, 3), done.stderr
    done = runs.dikast_here("report", folder / "run", "-o", folder / "r.html", "--draws", 100, "--queue", 5)
    assert done.returncode == 0, done.stderr
    return folder / "r.html"


QUESTIONS = {
    "which model is better?": r"alpha is better than beta: it wins \d+% \[\d+%, \d+%\] of \d+ pairs",
    "how sure is that?": r"Green: its rank set is 1 alone, the interval excludes an even result",
    "can I trust the judge?": r"The judge: .*Accuracy 0\.\d\d \[0\.\d\d, 0\.\d\d\] on 1\d\d pairs",
    "what was judged?": r"march\.jsonl: 150 pairs",
    "when?": r"\d{1,2} \w+ 20\d\d",
    "by which judge?": r"mock:oracle,r=0\.9,failing=0\.02",
    "by which rubric?": r"helpfulness: Does the response give the person what they asked for",
    "how does each rank?": r"rank set\s+system\s+win rate",
    "is it only longer?": r"length and position controlled",
}
CLICKS = {  # what is opened, what it then says
    "what exactly was the judge asked?": (".about dt:last-of-type + dd details", r"You compare|You judge|judge"),
    "what do the levels mean?": (".rubric", r"5\s"),
    "how do I cite the table?": (".copy", r"\\begin\{tabular\}"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_screen_answers(question: str, page: Path, tab: Browser) -> None:
    tab.open(page, width=1440, height=SCREEN)
    shown = tab.run(
        "[...document.querySelectorAll('main p, main dd, main tr, main h2, header')].filter(e => {"
        f"const r = e.getBoundingClientRect(); return r.height && r.bottom <= {SCREEN}}})"
        ".map(e => e.innerText).join('\\n')"
    )
    assert re.search(QUESTIONS[question], " ".join(shown.split()).replace(" , ", ", ")), shown


@pytest.mark.parametrize("question", CLICKS)
def test_one_click_answers(question: str, page: Path, tab: Browser) -> None:
    where, words = CLICKS[question]
    tab.open(page, width=1440, height=SCREEN)
    assert tab.run(f"document.querySelector({where!r}).open") is False
    tab.run(f"document.querySelector({where!r} + ' > summary').click()")
    assert re.search(words, tab.run(f"document.querySelector({where!r}).innerText"))


LINKS = {  # the link at the top of the page, the title that it leads to, and the answer in that part
    "what did it cost?": ("in short", "Cost", r"Cost 0\.\d+ [\d,]+ tokens in \(0 cached\), [\d,]+ out"),
    "how many got no verdict?": (
        "in short",
        "Without a verdict",
        r"Without a verdict \d\.\d% \[\d\.\d%, \d\.\d%\], n 150 refused: \d",
    ),
    "does position matter?": (
        "figures",
        "Position bias",
        r"verdicts in both orders .*same verdict in both orders [\d.]+ \[[\d.]+, [\d.]+\] 1\d\d first slot both",
    ),
    "which pairs?": ("figures", "Position bias by item", r"position bias by item shift pairs 0 1\d\d"),
    "does length matter?": (
        "figures",
        "How often the longer response wins",
        r"length judge gold n [\d.]+ to [\d.]+ times as long 0\.\d+ \[0\.\d+, 0\.\d+\] 0\.\d+ \[0\.\d+, 0\.\d+\] \d+",
    ),
    "is it calibrated?": (
        "in short",
        "Calibration error",
        r"Calibration error \(ECE\) 0\.\d+ \[0\.\d+, 0\.\d+\] n 1\d\d",
    ),
    "where is it over-confident?": (
        "figures",
        "Calibration",
        r"Numbers of the curve confidence accuracy n 0\.\d+ 0\.\d+ \[0\.\d+, 0\.\d+\] \d+",
    ),
    "what does it confuse?": (
        "figures",
        "Confusion matrix",
        r"gold first second tie disagree none first 4\d \d+ \d+ 0 \d second",
    ),
    "where does it fail?": (
        "where it fails",
        "Largest gaps first",
        r"gap 1\.00 said [ab] \([ab] / [ab]\), gold [ab] helpfulness Is \d+ even\? → (alpha|beta) \d+",
    ),
    "what are all the numbers?": (
        "all numbers",
        "Accuracy",
        r"Accuracy .*accuracy \(all\) 1\d\d 0\.\d+ \[0\.\d+, 0\.\d+\]",
    ),
}


@pytest.mark.parametrize("question", LINKS)
def test_one_link_at_the_top_leads_to_the_answer(question: str, page: Path, tab: Browser) -> None:
    """A title that people know, in the same part of the page, and the answer; the part is at the top of the screen."""
    link, title, answer = LINKS[question]
    tab.open(page, width=1440, height=SCREEN)
    tab.run(f"[...document.querySelectorAll('.top nav a')].find(each => each.innerText == {link!r}).click()")
    tab.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    part = "document.getElementById(location.hash.slice(1))"
    assert 30 < tab.run(f"{part}.getBoundingClientRect().top") < SCREEN / 2
    titles = tab.run(f"[...{part}.querySelectorAll('h3, h4, figcaption')].map(e => e.innerText)")
    assert any(title.lower() in each.lower() for each in titles), titles
    tab.run(f"{part}.querySelectorAll('details.data').forEach(each => each.open = true)")
    tab.run(f"{part}.tagName == 'DETAILS' && ({part}.open = true)")
    told = " ".join(tab.run(f"{part}.innerText").split()).replace(" , ", ", ")
    assert re.search(answer, told, re.IGNORECASE), told


def test_every_figure_has_its_numbers_as_a_table(page: Path, tab: Browser) -> None:
    tab.open(page)
    bare = tab.run(
        "[...document.querySelectorAll('figure')].filter(f => !f.querySelector('table')).map(f => f.innerText)"
    )
    assert bare == []


def test_the_leaderboard_sorts_by_keyboard(page: Path, tab: Browser) -> None:
    tab.open(page)
    names = "[...document.querySelectorAll('.sortable tbody th')].map(e => e.innerText)"
    assert tab.run(names) == ["alpha", "beta"]
    tab.run("[...document.querySelectorAll('.sortable button')].find(b => b.innerText == 'losses').focus()")
    tab.run("document.activeElement.click()")
    assert tab.run(names) == ["beta", "alpha"]
    assert tab.run("document.querySelector('[aria-sort]').innerText") == "losses"


def test_rows_of_the_queue_have_a_preview(page: Path, tab: Browser) -> None:
    tab.open(page, width=1440)
    shown = tab.run("[...document.querySelectorAll('.entry > summary')].map(e => e.innerText.replace(/\\s+/g, ' '))")
    assert shown
    assert all(re.search(r"Is \d+ even\? → (alpha|beta) \d+", each) for each in shown), shown


def test_words_of_the_leaderboard_are_not_broken_letter_by_letter(page: Path, tab: Browser) -> None:
    tab.open(page, width=390)
    assert tab.run("document.querySelector('.sortable th').offsetHeight") < 80


def test_it_can_be_printed(page: Path, tab: Browser) -> None:
    """On a page of A4, from a browser that shows dark pages: dark on white, and no table is cut off."""
    tab.open(page, width=718, dark=True)  # pixels between margins of 1 cm
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    tab.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    try:
        shown = "getComputedStyle(document.querySelector('.light')).color.match(/\\d+/g).map(Number)"
        assert max(tab.run(shown)) < 80
        cut = "[...document.querySelectorAll('.board .wide')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
        assert tab.run(cut) == 0
        assert tab.run("getComputedStyle(document.querySelector('.copy')).display") == "none"
    finally:
        tab.call("Emulation.setEmulatedMedia", media="", features=[dark])
