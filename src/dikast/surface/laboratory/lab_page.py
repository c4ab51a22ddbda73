"""The findings of the lab as one HTML file: no script, no network, all text from files escaped."""

import math
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version

from markupsafe import Markup

from dikast.core.html.page_templates import asset, asset_hash, template_environment
from dikast.core.text import counted
from dikast.lab import lab_report
from dikast.lab.findings import UNDECIDED, Finding
from dikast.surface.report import figures
from dikast.surface.report.page import ROOM

_LIGHTS = {"holds": "green", "fails": "red", UNDECIDED: "amber", "not run": "grey"}


def lab_page(found: Sequence[Finding]) -> str:
    """The page of all experiments."""
    style = asset(ROOM, "page.css")
    return template_environment("dikast.surface.laboratory").get_template("lab.html.j2").render(
        found=found, headline=headline(found), lights=_LIGHTS, notice=lab_report.NOTICE, how=lab_report.HOW,
        rule=lab_report.rule, deciding=lab_report.deciding, seeds=lab_report.seeds_named,
        reversed=lab_report.reversals_told, cost=lab_report.cost_told, unasked=lab_report.unasked_told,
        drawn=drawn, style=Markup(style), style_hash=asset_hash(style), version=version("dikast"),
    )  # fmt: skip


def drawn(found: Finding) -> dict[str, Markup]:
    """Forest plots: what the arms reached, `FIGURE on SET` -> a plot, where two arms or more have a value."""
    rows: dict[str, list[figures.Row]] = {}
    for (arm, held, figure), each in found.figures.items():
        row = figures.Row(arm, each.value, each.low, each.high, each.n)
        rows.setdefault(f"{figure} on {held}", []).append(row)
    plots = {}
    for name, arms in rows.items():
        known = [arm.value for arm in arms if not math.isnan(arm.value)]
        if len(known) > 1:
            plots[name] = figures.forest(arms, math.nan, min(known), max(known), name=name)
    return plots


def headline(found: Sequence[Finding]) -> str:
    """How many claims hold, fail, are undecided: `4 claims: 3 hold, 1 cannot tell at this size`."""
    if not found:
        return "No experiment yet"
    told: Counter[str] = Counter(each.verdict for each in found)
    words = {"holds": "hold" if told["holds"] > 1 else "holds", "fails": "fail" if told["fails"] > 1 else "fails"}
    counts = ", ".join(f"{told[name]} {words.get(name, name)}" for name in _LIGHTS if told[name])
    return f"{counted(len(found), 'claim')}: {counts}"
