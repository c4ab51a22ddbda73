"""Whether the verdicts of a judge can be used."""

import math

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Audit
from dikast.audit.results import Accuracy, Agreement, Baselines, Failures, Orders, RaterAgreement, Slices
from dikast.audit.statistics.intervals import EVERY_DRAW_ALIKE, fisher
from dikast.core.confidence import ALIKE
from dikast.core.text import counted, one_line
from dikast.core.verdict import DISAGREE
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import (
    CLOSE,
    FEW,
    MARGIN,
    MOSTLY,
    SLIGHT,
    TELLING,
    Conclusion,
    ItemCount,
    all_told,
    figure_told,
    items_of,
    lost_told,
    no_ceiling_told,
    percent_told,
    so_far,
)
from dikast.surface.report.conclusions.score_levels import with_levels
from dikast.surface.report.headline import main_figure, undefined_why


def of_judge(page: RunPage) -> Conclusion:
    """Whether the verdicts can be used."""
    return so_far(page, _of_verdicts(page))


def _of_verdicts(page: RunPage) -> Conclusion:
    audit = page.audit
    if audit is None and page.damaged:
        return Conclusion("red", f"Do not use: {page.damaged}", "nothing could be audited")
    if audit is None:
        return Conclusion("grey", "Nothing is known yet", "there are no verdicts that could be audited")
    if (most := unanswered(page)) is not None:
        return most
    orders = audit.result(Orders)
    if orders is not None and _position_decides(orders):
        slot, share = _most_slot(orders)
        told = f"Do not use: position decides, {slot} in {percent_told(share)} of {counted(share.n, 'pair')}"
        if orders.turned:
            told += "; or the column of the other order names slots: then say --swapped-as slots"
        return Conclusion(
            "red", told, "one slot wins in more pairs than both orders agree in, interval against interval"
        )
    main = main_figure(page)
    if main is None:
        return Conclusion("grey", "Not known whether the judge is right: there is no gold", "name gold to find out")
    return _of_agreement(page, audit, *main)


def _of_agreement(page: RunPage, audit: Audit, name: str, found: Estimate) -> Conclusion:
    """What the main figure of agreement with gold says."""
    what = "Accuracy" if page.chosen else "Correlation with gold (Pearson)"
    counts = items_of(page, found)
    if math.isnan(found.value):
        return _of_undefined(page, found, counts)
    figure = f"{what} {figure_told(found)} on {counts.told}"
    if (few := _too_few(page, audit, figure, counts.items)) is not None:
        return few
    if not page.chosen and _inverted(found, counts.items):
        told = f"Do not use: it ranks the other way round than gold. {figure}"
        why = "it is -1 in every draw" if math.isnan(found.low) else "the whole interval lies below 0"
        return Conclusion("red", told, f"{why}, so the scale of one of them may be turned round")
    beside, column = audit.result(Baselines), "all" if page.chosen else name
    best = beside.best(column) if beside else None
    floor = best.statistics[column].value if best else 0.0
    chosen = audit.result(Accuracy) if page.chosen else None
    if chosen is not None and best is not None and chosen.only_gold is not None and found.high >= CLOSE:
        told = f"Not known whether the judge is right: gold never differs, so {best.label} is right too. {figure}"
        return Conclusion("grey", told, "gold that never differs cannot tell judges apart")
    if chosen is not None and chosen.only_choice is not None and chosen.only_gold is None:
        always = f"the judge always says {chosen.only_choice}"
        always = "its two orders always disagree" if chosen.only_choice == DISAGREE else always
        told = f"Do not use: {always}, on {counts.told}. {what} {figure_told(found)}"
        return Conclusion("red", told, "a constant verdict carries no information")
    if not (found.value if math.isnan(found.low) else found.low) > floor:
        than = best.label if best is not None and floor else "a constant"
        told = f"Do not use: not shown to be better than {than} ({floor:.2f}). {figure}{_mostly(page)}"
        why = f"it does not lie above the best judge that ignores the input; no interval: {_none_why(found)}"
        if not math.isnan(found.low):
            why = "the interval does not lie above the best judge that ignores the input"
        return Conclusion("red", told, why)
    if lost := lost_told(page):
        return Conclusion("amber", f"Better than a judge that ignores the input, with gaps. {figure}", lost)
    if math.isnan(found.low) and (page.chosen or not _is_sure(found)):
        told = f"How sure the agreement is cannot be told. {figure}"
        return Conclusion("amber", told, f"there is no interval: {_none_why(found)}")
    people = beside.people(column) if beside else None
    raters = audit.result(RaterAgreement, "raters") if page.chosen else None
    beyond = raters.statistics.get("alpha (nominal)") if raters is not None else None
    if people is None and beside is not None and beside.among_people(column) is not None:
        told = f"Better than a judge that ignores the input; how well people agree is not known. {figure}"
        return Conclusion("amber", told, "one rater's agreement with another is undefined")
    said = _against_people(figure, found, people, beyond, no_ceiling_told(page))
    if said.light != "green":
        return said
    if not page.chosen:
        said = with_levels(said, audit, figure, "gold" if people is None else "people")
    if (found.value if math.isnan(found.low) else found.low) <= (length := _length_alone(page, beside, column)):
        told = f"; the length of the response alone agrees as much: {length:.2f}"
        said = _less(said, told, "the interval does not lie above the agreement of length alone with gold")
    if told := _by_chance_in(page, floor):
        said = _less(
            said, told, f"in a slice of {FEW} items or more the interval does not lie above that of such a judge"
        )
    return said


def _too_few(page: RunPage, audit: Audit, figure: str, items: int) -> Conclusion | None:
    """The conclusion where few items have gold, or of scores gold differs on few of them; None where enough do."""
    if items < FEW:
        told = f"Too few items to conclude anything: {figure}"
        return Conclusion("amber", told, f"fewer than {FEW} items with gold; rows of one item count once", few=True)
    scores = None if page.chosen else audit.result(Agreement)
    if scores is None or not round(scores.telling, 6) < TELLING:
        return None
    told = f"Too few items on which gold differs to conclude anything: {figure}"
    why = f"gold differs as if {scores.telling:.1f} items alone did, fewer than {TELLING}"
    return Conclusion("amber", told, why, few=True)


def _less(said: Conclusion, told: str, why: str) -> Conclusion:
    """What is green otherwise, or amber by other rules too, with one more reason to be amber."""
    return Conclusion("amber", said.text + told, why if said.light == "green" else f"{said.why}, and {why}")


def _by_chance_in(page: RunPage, floor: float) -> str:
    """The slices in which the judge is not shown to be better than the best judge that ignores the input (`floor`, of
    all rows); "" where there are none.
    """
    poor, of = list[str](), set[str]()
    for sliced in (table.result for table in page.audit or () if isinstance(table.result, Slices)):
        views = ("both together", "as shown") if page.chosen else ("pearson",)
        found = next((sliced.statistics[name] for name in views if name in sliced.statistics), {})
        for name, each in found.items():
            low = each.value if math.isnan(each.low) else each.low
            if each.independent >= FEW and low <= floor:
                poor.append(f"{one_line(name, 40)} {figure_told(each)} (n {each.n:,})")
                of.add(sliced.by)
    if not poor:
        return ""
    by = all_told(sorted(of))
    return f"; by {by} it is not shown to be better than a judge that ignores the input in {all_told(poor)}"


def _length_alone(page: RunPage, beside: Baselines | None, column: str) -> float:
    """How well the length of the responses alone agrees with gold: as the audit has it, else as the page has measured;
    NaN where it is unknown.
    """
    rows = beside.rows if beside is not None else ()
    alone = [row.statistics.get(column) for row in rows if row.key in ("length", "log_length", "longer")]
    found = [abs(each.value) for each in alone if each is not None and not math.isnan(each.value)]
    return max(found, default=page.length_alone)


def _of_undefined(page: RunPage, found: Estimate, counts: ItemCount) -> Conclusion:
    """Agreement is undefined: the judge, or gold, says one thing only."""
    told = page.audit.result(Agreement) if page.audit is not None else None
    if told is not None and told.only_score is not None and told.only_gold is None and counts.items >= FEW:
        said = [label for label, (count, _) in page.labels.items() if count]
        label = said[0] if len(said) == 1 else f"{told.only_score:g}"
        always = f"Do not use: the judge always says {label}, on {counts.told}"
        return Conclusion("red", always, "a constant verdict carries no information")
    why = "the agreement with gold is undefined"
    if told is not None and told.only_gold is not None:
        why += f": every gold is {told.only_gold:g}"
    elif reason := undefined_why(found):
        why += f": {reason}"
    return Conclusion("grey", "Not known whether the judge is right", why)


def _inverted(found: Estimate, items: int) -> bool:
    """Whether a correlation is below 0, also by Fisher's interval: where no row has the rare value of both columns, no
    draw has one, and the bootstrap is certain of what chance alone does. One of -1 has no interval.
    """
    below = found.high < 0 and fisher(found.value, items, found.level).high < 0
    return below or (math.isnan(found.low) and found.value < -1 + ALIKE)


def _is_sure(found: Estimate) -> bool:
    """Whether an agreement has an interval, or is 1 in every draw."""
    return not math.isnan(found.low) or (found.value >= 1 - ALIKE and found.note in ("", EVERY_DRAW_ALIKE))


def _none_why(found: Estimate) -> str:
    return found.note or "too few rows, or every draw alike"


def unanswered(page: RunPage) -> Conclusion | None:
    """The conclusion where most of the questions got no verdict; None where they got one."""
    failures = page.audit.result(Failures) if page.audit is not None else None
    if failures is None or not failures.failed.value > 0.5:
        return None
    told = f"Do not use: {percent_told(failures.failed)} of the {page.unit} got no verdict"
    return Conclusion("red", told, f"more than half of the {page.unit} got no verdict")


def _mostly(page: RunPage) -> str:
    """Which label the judge nearly always gives; "" where there is none."""
    given = {name: said for name, (said, _) in page.labels.items()}
    label = max(given, key=lambda name: given[name], default="")
    share = given[label] / sum(given.values()) if label and given[label] else 0.0
    told = {"a": "first", "b": "second"}.get(label, label) if page.pairwise else label
    return f"; it says {told} in {share:.0%}" if share >= MOSTLY else ""


def _against_people(
    figure: str,
    found: Estimate,
    people: tuple[Estimate, Estimate] | None,
    beyond: Estimate | None = None,
    unknown: str = "",
) -> Conclusion:
    """The judge against one rater beside one rater against another (`people`), or against gold where that is unknown.

    `found` is against gold, the mean or majority of the raters: it is higher than agreement with one of them. It has an
    interval, or is 1 in every draw. `beyond`: of pairs, how far people agree beyond chance (Krippendorff's alpha),
    which a correlation says by itself; `unknown` says why `people` are.
    """
    if people is not None:
        judge, among = people
        beside = f"with one person {figure_told(judge)}, people among themselves {figure_told(among)}"
        items = f" of {counted(among.independent, 'item')}" if among.independent < among.n else ""
        beside += f" (n {among.n:,}{items}). {figure}"
        if among.independent < FEW:
            told = f"Better than chance; too few items that all raters rated to say how well people agree: {beside}"
            return Conclusion("amber", told, f"fewer than {FEW} items that all raters rated")
        if not _is_sure(judge):
            told = f"Better than chance; how sure the agreement with one person is cannot be told: {beside}"
            return Conclusion("amber", told, f"there is no interval: {_none_why(judge)}")
        agreed, of = (among, "one rater against another") if beyond is None else (beyond, "people's agreement")
        if not (agreed.value if math.isnan(agreed.low) else agreed.low) > SLIGHT:
            told = "Better than chance, but people are not shown to agree with each other more than slightly"
            told += f" (beyond chance {figure_told(agreed)}, Krippendorff's alpha)" if beyond is not None else ""
            return Conclusion("amber", f"{told}: {beside}", f"the interval of {of} does not lie above {SLIGHT:g}")
        if (judge.value if math.isnan(judge.low) else judge.low) >= among.value - MARGIN:
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
    if found.low >= CLOSE or math.isnan(found.low):
        why = "it is 1 in every draw" if math.isnan(found.low) else f"the whole interval lies at {CLOSE:g} or above"
        return Conclusion("green", f"Agrees closely with gold. {figure}", why)
    told = f"Better than a judge that ignores the input; whether it is good enough cannot be told. {figure}"
    why = f"the interval reaches below {CLOSE:g}, and how well people agree is not known: {unknown}"
    return Conclusion("amber", told, why)


def _position_decides(orders: Orders) -> bool:
    return _most_slot(orders)[1].low > orders.same.high


def _most_slot(orders: Orders) -> tuple[str, Estimate]:
    slots = ("first slot both times", "second slot both times")
    return max(((name, orders.disagreements[name]) for name in slots), key=lambda each: each[1].value)
