"""Every kind of page that is written to a file, in a real Chromium: everybody can read it, nothing sticks out, and the
first screen says what was judged, by whom, and what follows.
"""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import axe
from browser import Browser
from surface.report.page_kinds import KINDS

_CUT = """[...document.querySelectorAll("svg text")].filter(text => {
  const own = text.getBoundingClientRect(), all = text.ownerSVGElement.getBoundingClientRect();
  return own.left < all.left - 1 || own.right > all.right + 1;
}).map(text => text.textContent)"""  # words of a figure that stick out of it
SIZES = [(390, True), (390, False), (1440, False), (1440, True)]
CONCLUDING = sorted(set(KINDS) - {"lab", "world"})  # a world is not judged


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages that were made so far."""
    return {}


@pytest.fixture
def page(request: pytest.FixtureRequest, pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a kind, made once."""
    kind: str = request.param
    if kind not in pages:
        pages[kind] = KINDS[kind](tmp_path_factory.mktemp(kind))
    return pages[kind]


def _each(kind: str, size: tuple[int, bool]) -> Any:
    return pytest.param(kind, *size, marks=pytest.mark.xdist_group(f"page of {kind}"))  # one worker makes it


@pytest.mark.parametrize(
    ("page", "width", "dark"),
    [_each(kind, size) for kind in KINDS for size in SIZES],
    indirect=["page"],
)
def test_everybody_can_read_it(page: Path, width: int, dark: bool, tab: Browser) -> None:
    """WCAG 2.2 AA by axe-core, with everything opened; and it fits the screen."""
    if axe.SCRIPT is None:
        pytest.skip(axe.WHY)
    tab.open(page, width=width, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") <= width
    tab.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert axe.violations(tab) == []
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(_CUT) == []
    assert tab.said == []
    assert all(each == page.as_uri() or each.startswith("data:") for each in tab.asked)


@pytest.mark.parametrize(
    ("page", "width", "dark"),
    [_each(kind, (390, True)) for kind in KINDS],
    indirect=["page"],
)
def test_it_can_be_read_without_scripts(page: Path, width: int, dark: bool, tab: Browser) -> None:
    """Everything that is there with scripts, also what is folded; what only a script can do is not offered."""
    tab.open(page, width=width, dark=dark)
    words = "document.querySelector('main').textContent.replace(/\\s+/g, '').length"
    with_scripts = tab.run(words)
    with tab.without_scripts():
        tab.open(page, width=width, dark=dark)
        assert tab.run(words) > 0.97 * with_scripts  # buttons to copy, and how many rows are filtered, are missing
        shut = tab.run("document.querySelectorAll('details:not([open])').length")
        tab.run("document.querySelectorAll('details:not([open]) > summary').forEach(each => each.click())")
        assert tab.run("document.querySelectorAll('details:not([open])').length") == 0, shut
        shown = tab.run("[...document.querySelectorAll('.filters, .sortable button, .copy button')].filter("
                        "each => each.getClientRects().length).length")  # fmt: skip
        assert shown == 0
        assert tab.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("page", ["several", "bench"], indirect=True)
def test_a_phone_shows_values_first_and_that_a_table_goes_on(page: Path, tab: Browser, tmp_path: Path) -> None:
    """Figures stand beside their names, and a shadow lies where a table can be moved: none at its ends."""
    tab.open(page, width=390)
    wide = "[...document.querySelectorAll('.wide')].find(e => e.scrollWidth > e.clientWidth + 60)"
    tab.run(f"{wide}.scrollIntoView({{block: 'start'}})")
    place = tab.run(f"(({{left, right, top}}) => [left, right, top])({wide}.querySelector('thead').parentElement"
                    ".parentElement.getBoundingClientRect())")  # fmt: skip
    if "Scorecards" in tab.run("document.title"):
        ends = f"[...{wide}.querySelectorAll('tbody tr td:nth-child(3)')].map(e => e.getBoundingClientRect().right)"
        assert max(tab.run(ends)) <= 390

    def dark(scrolled: int) -> tuple[float, float]:
        """How much darker than the middle both ends of the top line are."""
        tab.run(f"{wide}.scrollLeft = {scrolled}")
        shot = Image.open(tab.screenshot(tmp_path / "shot.png")).convert("L")
        left, right, top = (round(each) for each in place)
        first, middle, last = (shot.getpixel((x, top + 1)) for x in (left + 1, (left + right) // 2, right - 2))
        assert isinstance(first, int)
        assert isinstance(middle, int)
        assert isinstance(last, int)
        return middle - first, middle - last

    assert dark(0)[0] < 3 < 20 < dark(0)[1]
    assert min(dark(30)) > 20
    assert dark(100_000)[1] < 3 < 20 < dark(100_000)[0]


@pytest.mark.parametrize("page", CONCLUDING, indirect=True)
def test_the_first_screen_concludes(page: Path, tab: Browser) -> None:
    """One conclusion with its light and its rule, and what was judged, on a desk and on a phone."""
    for width, height in ((1440, 900), (390, 844)):
        tab.open(page, width=width, height=height)
        bottom = tab.run("document.querySelector('.light').getBoundingClientRect().bottom")
        assert bottom < height
        assert tab.run("['Green', 'Amber', 'Red', 'Grey'].some(each => document.body.innerText.includes(each + ': '))")
        assert tab.run("document.querySelector('.about').getBoundingClientRect().height") > 0


@pytest.mark.parametrize("page", ["lab"], indirect=True)
def test_the_lab_opens_with_its_verdicts(page: Path, tab: Browser) -> None:
    """How many claims hold, then each with its light and the effect that decides."""
    for width, height in ((1440, 900), (390, 844)):
        tab.open(page, width=width, height=height)
        assert tab.run("document.querySelector('main h2').innerText") == "1 claim: 1 holds"
        assert tab.run("document.querySelector('.light.green').getBoundingClientRect().bottom") < height / 2
        assert "gain: 0." in tab.run("document.querySelector('.conclusions').innerText")
