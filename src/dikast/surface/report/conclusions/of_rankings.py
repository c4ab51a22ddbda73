"""How good the orders of a run of rankings are."""

import math

from dikast.core.text import counted
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import CLOSE, FEW, LOST, Conclusion, lost_told, percent_told
from dikast.surface.report.conclusions.of_judge import unanswered
from dikast.surface.report.rankings import SURE, Rankings


def of_rankings(page: RunPage, judge: Conclusion) -> Conclusion | None:
    """Whether the first response of each order is the best; None for a run of no rankings, or where few verdicts are
    there. A red judge comes first without gold, or with little.
    """
    found, first = page.ranked, page.ranked.first if page.ranked is not None else None
    if found is None or page.audit is None or unanswered(page) is not None:
        return None
    if first is None:
        return None if judge.light == "red" or page.audit.plan.get("gold_file") else _of_unchecked(found)
    figure = f"The first response is the best by gold in {percent_told(first)} of {counted(first.n, 'item')}"
    figure += f", one drawn at random in {found.chance:.0%}"
    if first.n < FEW or math.isnan(first.low):
        if judge.light == "red":
            return None
        told = f"Too few items to conclude anything. {figure}"
        return Conclusion("amber", told, f"fewer than {FEW} items whose responses gold tells apart", few=True)
    if not first.low > found.chance:
        told = f"Do not use: not shown to find the best response more often than chance. {figure}"
        return Conclusion("red", told, "the interval does not lie above what a random order reaches")
    lost = lost_told(page)
    if not lost and found.unordered > LOST:
        lost = f"{found.unordered:.0%} of the items have no order, more than {LOST:.0%}"
    if lost:
        return Conclusion("amber", f"Finds the best response more often than chance, with gaps. {figure}", lost)
    if first.low >= CLOSE:
        told = f"Finds the best response. {figure}"
        return Conclusion("green", told, f"the whole interval lies at {CLOSE:.0%} or above")
    told = f"Finds the best response more often than chance; whether often enough cannot be told. {figure}"
    return Conclusion("amber", told, f"the interval reaches below {CLOSE:.0%}")


def _of_unchecked(found: Rankings) -> Conclusion:
    clear = f"one is clear in {percent_told(found.clear)} of {counted(found.clear.n, 'item')}"
    why = f"clear: a probability of at least {SURE:.0%} by the noise of the judge's comparisons; name gold to find out"
    if not found.clear.n:
        clear, why = (
            "how clear it is, is unknown",
            "these comparisons do not show the judge's noise; name gold to find out",
        )
    return Conclusion("grey", f"Not known whether the best response comes first: there is no gold; {clear}", why)
