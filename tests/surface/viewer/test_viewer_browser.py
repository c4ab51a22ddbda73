"""The viewer in a real Chromium: nothing that a run says runs, and everybody can read the pages."""

import pytest

import axe
from browser import Browser
from dikast.testing.hostile import HOSTILE, MARKUP
from surface.viewer.viewing_here import Viewed, first_link


def pages(viewed: Viewed) -> dict[str, str]:
    """The address of one page of each kind."""
    viewed.page("/run", of="march/second")
    item = first_link(viewed.page("/run", of="march/first"), "/item")
    return {
        "list": "/", "run": "/run?of=march/first", "damaged": "/run?of=damaged", "half": "/run?of=half",
        "item": item, "two": f"{item}&beside=march/second", "compare": "/compare?run=march/first&run=march/second",
        "pair": first_link(viewed.page("/run", of="pairs"), "/item"), "none": "/run?of=none",
    }  # fmt: skip


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1440, False), (1440, True)])
def test_no_violation_of_wcag(viewed: Viewed, tab: Browser, width: int, dark: bool) -> None:
    if axe.SCRIPT is None:
        pytest.skip(axe.WHY)
    for name, path in pages(viewed).items():
        tab.visit(viewed.address.rstrip("/") + path, width=width, dark=dark)
        opened = tab.run("[...document.querySelectorAll('details')].map(each => each.open = true).length")
        assert opened or name in ("list", "damaged", "compare", "none"), name  # prompt, lineage, attempts, replies
        assert axe.violations(tab) == [], name
        assert tab.run("document.documentElement.scrollWidth") <= width, name
        refused = [each for each in tab.said if "Content Security Policy" in each]
        assert refused == [], name


def test_nothing_that_a_run_says_runs(viewed: Viewed, tab: Browser) -> None:
    listed = viewed.page("/run", of="hostile")
    assert f"{len(HOSTILE)} of {len(HOSTILE)} rows" in listed
    tab.visit(f"{viewed.address}run?of=hostile")
    shown = tab.run("document.body.innerText")
    address = viewed.address.rstrip("/") + first_link(listed, "/item")
    for _ in MARKUP:
        tab.visit(address)
        assert tab.said == []
        assert tab.run("document.title") != "owned"
        assert tab.run("document.querySelectorAll('script').length") == 1
        assert tab.run("document.querySelectorAll('iframe, link, meta[http-equiv=refresh]').length") == 0
        assert all(each.startswith(viewed.address) for each in tab.asked)
        shown += tab.run("document.body.innerText")
        address = tab.run("document.querySelector('a[rel=next]').href")
    for text in MARKUP:
        assert text in shown


def test_keys_lead_to_the_next_item(viewed: Viewed, tab: Browser) -> None:
    tab.visit(viewed.address.rstrip("/") + first_link(viewed.page("/run", of="march/first"), "/item"))
    there = tab.run("document.querySelector('a[rel=next]').href")
    tab.run("document.querySelector('a[rel=next]').addEventListener('click', e => { e.preventDefault(); went = 1 })")
    tab.press("j")
    assert tab.run("window.went") == 1
    assert "at=v-" in there


def test_everything_can_be_read_without_scripts(viewed: Viewed, tab: Browser) -> None:
    """The list is filtered, an item opened, two runs compared and a note written by links and plain forms."""
    root = viewed.address.rstrip("/")

    def sent(act: str) -> str:
        before = tab.run("performance.timeOrigin")
        tab.run(act)
        for _ in range(2000):
            if tab.run("performance.timeOrigin") != before and tab.run("document.readyState") == "complete":
                return str(tab.run("document.body.innerText"))
        raise AssertionError("no new page came")

    addresses = pages(viewed)
    with tab.without_scripts():
        for name, path in addresses.items():
            tab.visit(root + path, width=390)
            assert tab.run("document.documentElement.scrollWidth") <= 390, name
        tab.visit(root)
        tab.run("document.querySelector('input[name=q]').value = 'march/f'")
        assert "1 of " in sent("document.querySelector('form.filters button').click()")
        assert "march/first" in sent("document.querySelector('.runs th a').click()")
        assert "verdict" in sent("document.querySelector('tbody th a').click()")
        tab.run("document.querySelector('textarea[name=text]').value = 'By plain form.'")
        assert "By plain form." in sent(
            "document.querySelector('textarea[name=text]').form.querySelector('button').click()"
        )
        tab.visit(root)
        for k in range(2):
            tab.run(f"document.querySelectorAll('input[name=run][value^=march]')[{k}].checked = true")
        assert "questions are in both runs" in sent("document.querySelector('#live form button').click()")
