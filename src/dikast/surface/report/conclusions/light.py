"""A conclusion with its light, the bounds of the rules, and how figures are told in it."""

import math
from typing import Literal, NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.results import Accuracy, Agreement, Failures
from dikast.core.text import counted
from dikast.surface.report.collecting.run_page import RunPage

Light = Literal["green", "amber", "red", "grey"]
FEW = 30  # items with gold, below which nothing is concluded about the judge
TELLING = 5  # items by which gold differs from its mean, as if by each equally much, below which the same holds
LOST = 0.05  # share of questions without a verdict, above which nothing is green
CLOSE = 0.8  # the agreement with gold that is green where it is not known how far people agree
MARGIN = 0.1  # how far below people's agreement with each other a judge may lie and count as about as good
MOSTLY = 0.9  # share of one label from which it is named where a judge is no better than a constant
SLIGHT = 0.2  # agreement among people (of pairs beyond chance) up to which they agree slightly at best
_NAMED = 5


class Conclusion(NamedTuple):
    """What follows from a run, and the rule that says so."""

    light: Light
    text: str
    why: str
    few: bool = False  # there are too few items with gold to say anything of the judge, or of two systems


class ItemCount(NamedTuple):
    """What a figure is of: how many independent items, and its rows (or pairs) in words."""

    items: int
    told: str


def items_of(page: RunPage, found: Estimate) -> ItemCount:
    """Rows that are drawn together (of one item, or as `--cluster` says) are one item, and so are those that share a
    value of a column that seems to name the items, or the same texts.
    """
    rows = counted(found.n, "pair" if page.chosen else "row")
    if (audit := page.audit) is None:
        return ItemCount(found.n, rows)
    measured = audit.result(Accuracy) if page.chosen else audit.result(Agreement)
    split = f", without {measured.split:,} on which raters are split" if measured is not None and measured.split else ""
    if found.independent < found.n:
        return ItemCount(found.independent, f"{rows} of {counted(found.independent, 'item')}{split}")
    if audit.repeats is not None and found.groups is None and audit.plan.get("cluster") != "none":
        column, values = audit.repeats
        told = f"{rows} that share {counted(values, 'value')} of {column!r}{split}"
        return ItemCount(min(found.n, values), told)
    if 0 < page.texts < min(FEW, found.n) and audit.plan.get("cluster") != "none":
        return ItemCount(page.texts, f"{rows} with {counted(page.texts, 'different text')}{split}")
    return ItemCount(found.n, rows + split)


def no_ceiling_told(page: RunPage) -> str:
    """Why it is not known how well people agree with each other."""
    raters = len(page.audit.plan.get("gold") or ()) if page.audit is not None else 0
    if raters < 2:
        return "only one rater"
    who = "two" if page.chosen or raters == 2 else f"all {raters}"
    return f"no {'pair' if page.chosen else 'row'} was rated by {who} of the {raters} raters"


def lost_told(page: RunPage) -> str:
    """Why failures rule out green; "" if they do not."""
    failures = page.audit.result(Failures) if page.audit else None
    if failures is None or not failures.failed.value > LOST:
        return ""
    return f"{failures.failed.value:.0%} of the {page.unit} got no verdict, more than {LOST:.0%}"


def so_far(page: RunPage, found: Conclusion, name: str = "the run") -> Conclusion:
    """The conclusion as it is told of a run that is damaged, or has not asked all its questions: at most amber."""
    if page.damaged and page.audit is not None:
        why = "the folder of the run is damaged" if found.light == "green" else found.why
        light: Light = "amber" if found.light == "green" else found.light
        found = found._replace(light=light, text=f"{found.text}; {name} is damaged: {page.damaged}", why=why)
    if not page.unfinished:
        return found
    told = f"{found.text}; {name} is unfinished: {page.answered:,} of {page.planned:,} questions have an answer"
    if found.light == "green":
        return found._replace(light="amber", text=told, why="the questions that are open could say otherwise")
    return found._replace(text=told)


def all_told(names: list[str]) -> str:
    """Names in a sentence, the first few of many."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = names[:_NAMED]
    return ", ".join(shown) + more if more or len(shown) < 2 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def figure_told(found: Estimate) -> str:
    """A value with its interval, if it has one."""
    ends = "" if math.isnan(found.low) else f" [{found.low:z.2f}, {found.high:z.2f}]"
    return f"{found.value:z.2f}{ends}"


def ends_told(found: Estimate, spec: str) -> str:
    """The interval of a difference as that of its size; "" where there is none."""
    if math.isnan(found.low):
        return ""
    low, high = (found.low, found.high) if found.value >= 0 else (-found.high, -found.low)
    return f"[{low:{spec}}, {high:{spec}}]"


def percent_told(found: Estimate) -> str:
    """A share with its interval, if it has one, in per cent."""
    ends = "" if math.isnan(found.low) else f" [{found.low:.0%}, {found.high:.0%}]"
    return f"{found.value:.0%}{ends}"
