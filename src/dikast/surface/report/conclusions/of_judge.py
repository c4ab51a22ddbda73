"""Whether the verdicts of a judge can be used."""

import math

from dikast.audit.estimate import Estimate
from dikast.audit.results import Baselines, Failures, Orders
from dikast.core.text import counted
from dikast.surface.report.collect import RunPage
from dikast.surface.report.conclusions.light import CLOSE, FEW, Conclusion, figure_told, lost_told, percent_told, so_far
from dikast.surface.report.headline import main_figure, undefined_why

MARGIN = 0.1  # how far below people's agreement with each other a judge may lie and count as about as good


def of_judge(page: RunPage) -> Conclusion:
    """Whether the verdicts can be used."""
    return so_far(page, _of_verdicts(page))


def _of_verdicts(page: RunPage) -> Conclusion:
    audit = page.audit
    if audit is None and page.damaged:
        return Conclusion("red", f"Do not use: {page.damaged}", "a line of the verdicts cannot be read")
    if audit is None:
        return Conclusion("grey", "Nothing is known yet", "there are no verdicts that could be audited")
    if (most := unanswered(page)) is not None:
        return most
    orders = audit.result(Orders)
    if orders is not None and _position_decides(orders):
        slot, share = _most_slot(orders)
        told = f"Do not use: position decides, {slot} in {percent_told(share)} of {counted(share.n, 'pair')}"
        return Conclusion(
            "red", told, "one slot wins in more pairs than both orders agree in, interval against interval"
        )
    main = main_figure(page)
    if main is None:
        return Conclusion("grey", "Not known whether the judge is right: there is no gold", "name gold to find out")
    name, found = main
    what = "Accuracy" if page.chosen else "Correlation with gold (Pearson)"
    rows = counted(found.n, "pair" if page.chosen else "row")
    if math.isnan(found.value):
        said = [label for label, (count, _) in page.labels.items() if count]
        if len(said) == 1 and found.n >= FEW:
            return Conclusion(
                "red",
                f"Do not use: the judge always says {said[0]}, on {rows}",
                "a constant verdict carries no information",
            )
        why = "the agreement with gold is undefined" + (f": {reason}" if (reason := undefined_why(found)) else "")
        return Conclusion("grey", "Not known whether the judge is right", why)
    figure = f"{what} {figure_told(found)} on {rows}"
    if found.n < FEW or math.isnan(found.low):
        told = f"Too few rows to conclude anything: {figure}"
        return Conclusion("amber", told, f"fewer than {FEW} rows with gold", few=True)
    beside = audit.result(Baselines)
    best = beside.best("all" if page.chosen else name) if beside else None
    floor = best.statistics["all" if page.chosen else name].value if best else 0.0
    if not found.low > floor:
        than = best.label if best is not None and floor else "a constant"
        told = f"Do not use: not shown to be better than {than} ({floor:.2f}). {figure}"
        return Conclusion("red", told, "the interval does not lie above the best judge that ignores the input")
    if lost := lost_told(page):
        return Conclusion("amber", f"Better than a judge that ignores the input, with gaps. {figure}", lost)
    return _against_people(figure, found, beside.people("all" if page.chosen else name) if beside else None)


def unanswered(page: RunPage) -> Conclusion | None:
    """The conclusion where most of the questions got no verdict; None where they got one."""
    failures = page.audit.result(Failures) if page.audit is not None else None
    if failures is None or not failures.failed.value > 0.5:
        return None
    told = f"Do not use: {percent_told(failures.failed)} of the questions got no verdict"
    return Conclusion("red", told, "more than half of the questions got no verdict")


def _against_people(figure: str, found: Estimate, people: tuple[Estimate, Estimate] | None) -> Conclusion:
    """The judge against one rater beside one rater against another (`people`), or against gold where that is unknown.

    `found` is against gold, the mean or majority of the raters: it is higher than agreement with one of them.
    """
    if people is not None:
        judge, among = people
        beside = f"with one person {figure_told(judge)}, people among themselves {figure_told(among)}. {figure}"
        if judge.low >= among.value - MARGIN:
            told = f"Agrees with people about as well as they agree with each other: {beside}"
            why = f"the low end of the judge against one rater lies at most {MARGIN:g} below one rater against another"
            return Conclusion("green", told, why)
        told = "Better than chance, but people agree more with each other"
        if not judge.high < among.value:
            told = (
                "Better than chance; it is unknown whether it agrees with people as well as they agree with each other"
            )
        why = f"the low end of the judge against one rater lies more than {MARGIN:g} below one rater against another"
        return Conclusion("amber", f"{told}: {beside}", why)
    if found.low >= CLOSE:
        return Conclusion(
            "green", f"Agrees closely with gold. {figure}", f"the whole interval lies at {CLOSE:g} or above"
        )
    told = f"Better than a judge that ignores the input; whether it is good enough cannot be told. {figure}"
    why = f"the interval reaches below {CLOSE:g}, and one rater does not show how well people agree: add a second"
    return Conclusion("amber", told, why)


def _position_decides(orders: Orders) -> bool:
    return _most_slot(orders)[1].low > orders.same.high


def _most_slot(orders: Orders) -> tuple[str, Estimate]:
    slots = ("first slot both times", "second slot both times")
    return max(((name, orders.disagreements[name]) for name in slots), key=lambda each: each[1].value)
