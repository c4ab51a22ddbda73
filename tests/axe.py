"""Checks a page in the browser with axe-core against WCAG 2.2 AA; the script comes from a package of the dev extra."""

import importlib.util
from pathlib import Path
from typing import Any

from browser import Browser

_FOUND = importlib.util.find_spec("axe_playwright_python")
SCRIPT = Path(_FOUND.origin).with_name("axe.min.js") if _FOUND is not None and _FOUND.origin else None
WHY = "no axe-core here: pip install --no-deps axe-playwright-python"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_TOLD = "v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' :: ' + n.failureSummary)"


def violations(tab: Browser) -> list[Any]:
    """What is wrong with the open page: the rule, and up to three places each."""
    assert SCRIPT is not None
    tab.call("Runtime.evaluate", expression=SCRIPT.read_text("utf-8"))
    found = tab.run(
        f"axe.run(document, {{runOnly: {_RULES}}}).then(r => [r.passes.length, r.violations.map(v => [v.id, {_TOLD}])])"
    )
    assert found[0] > 5  # rules were tried
    return list(found[1])
