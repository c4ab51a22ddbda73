"""The site of the documentation: it builds, every link leads somewhere, and reading it fetches nothing."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dikast
from browser import Browser

pytestmark = pytest.mark.slow  # building the site takes half a minute; `make docs` builds it as well
ROOT = Path(__file__).parents[1]
LINK = re.compile(r'<(a|img|link|script)\b[^>]*?\s(href|src)="?([^"\s>]+)')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    zensical = Path(sys.executable).with_name("zensical")
    if not zensical.exists():
        pytest.skip("pip install 'dikast[docs]'")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    (folder / "src").symlink_to(ROOT / "src")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = subprocess.run([zensical, "build", "--strict"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


def test_every_page_is_in_the_site(site: Path) -> None:
    built = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}
    assert {page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")} <= built


def test_links_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    texts = {page: page.read_text("utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    anchors = {page: set(re.findall(r'\bid="?([^"\s>]+)', text)) for page, text in texts.items()}
    broken, fetched, followed = [], [], 0
    for page, text in texts.items():
        for tag, _, target in LINK.findall(text):
            if re.match(r"(https?|mailto|data):", target):
                fetched += [(page.name, target)] if tag != "a" and "canonical" not in target else []
                continue
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve() if path else page
            followed += 1
            if not to.exists() or (anchor and to in anchors and anchor not in anchors[to]):
                broken.append((page.name, target))
    assert (broken, fetched) == ([], [])
    assert followed > 1000


def test_the_reference_holds_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text("utf-8")
    headings = set(re.findall(r"^\s+dikast\.(\w+)$", page, re.M))
    assert set(dikast.__all__) - headings == set()


def test_no_page_asks_the_network_or_is_wider_than_a_phone(site: Path, tab: Browser) -> None:
    asked, wide = set(), []
    for page in sorted(site.rglob("*.html")):
        tab.open(page, width=390, height=844)
        asked |= {address for address in tab.asked if not address.startswith(("file:", "data:"))}
        width = tab.run("document.documentElement.scrollWidth")
        cut = tab.run("[...document.querySelectorAll('.language-sh code')].some(each => each.scrollWidth > 391)")
        tables = "[...document.querySelectorAll('article table')].filter(each => each.rows[0].cells.length < 5)"
        scrolls = tab.run(f"{tables}.some(each => each.scrollWidth > 376)")  # of few columns: they fit
        wide += [(page.name, width, cut, scrolls)] if width > 390 or cut or scrolls else []
    assert (asked, wide) == (set(), [])


def test_the_colours_follow_the_system(site: Path, tab: Browser) -> None:
    for dark, scheme in ((True, "slate"), (False, "default")):
        tab.open(site / "index.html", dark=dark)
        assert tab.run("document.body.dataset.mdColorScheme") == scheme


def test_the_search_finds_a_word_from_a_disk(site: Path, tab: Browser) -> None:
    tab.open(site / "index.html")
    tab.run("document.querySelector('.md-search__button').click()")
    dialog = "[...document.querySelectorAll('*')].map(each => each.shadowRoot).find(each => each)"
    typed = f"{{const f = {dialog}?.querySelector('input'); if (f) {{f.value = 'kappa';"
    typed += " f.dispatchEvent(new Event('input', {bubbles: true}))}; 1}"
    deadline = time.monotonic() + 60
    found = f"{dialog}?.textContent ?? ''"
    while "dikast.cohen_kappa" not in (shown := tab.run(found)) and time.monotonic() < deadline:
        tab.run(typed)  # again until the index is loaded, which clears the field
        time.sleep(0.5)
    assert "dikast.cohen_kappa" in shown
