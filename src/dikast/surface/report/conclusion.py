"""One conclusion in plain words, and its light: green, amber, red or grey, by the rules that docs/report.md states."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.results import Baselines, Failures, HeadToHead, Leaderboard, Meeting, Orders, PlayerRanking
from dikast.core.text import counted
from dikast.surface.report.collect import RunPage
from dikast.surface.report.headline import main_figure, undefined_why
from dikast.surface.report.rankings import SURE, Rankings
from dikast.surface.report.standings import board_of_judges

Light = Literal["green", "amber", "red", "grey"]
FEW = 30  # rows with gold, below which nothing is concluded about the judge
LOST = 0.05  # share of questions without a verdict, above which nothing is green
MARGIN = 0.1  # how far below people's agreement with each other a judge may lie and count as about as good
CLOSE = 0.8  # the agreement with gold that is green where it is not known how far people agree
_DOUBTED = "gold on the same prompts does not support the difference"
_LONGER = "the interval of the length-controlled difference does not lie above 0"
_NAMED = 5


class Conclusion(NamedTuple):
    """What follows from a run, and the rule that says so."""

    light: Light
    text: str
    why: str
    few: bool = False  # there are too few rows with gold to say anything of the judge


def conclusion(page: RunPage) -> Conclusion:
    """Which system is best if systems are known, how good the orders are in a run of rankings, otherwise whether the
    judge can be used; red takes precedence, apart from rankings, whose gold says more than that of pairs.
    """
    judge = of_judge(page)
    if (order := _of_rankings(page, judge)) is not None:
        return order
    systems = of_systems(page)
    if systems is None or judge.light == "red":
        return judge
    if systems.light == "green" and (judge.light == "grey" or judge.few):
        return Conclusion("amber", systems.text + ", says the judge", judge.why)
    if systems.light == "green" and (lost := _lost(page)):
        return Conclusion("amber", systems.text, lost)
    return systems


def _of_rankings(page: RunPage, judge: Conclusion) -> Conclusion | None:
    """Whether the first response of each order is the best; None for a run of no rankings, or where few verdicts are
    there. A red judge comes first without gold, or with little.
    """
    found, first = page.ranked, page.ranked.first if page.ranked is not None else None
    if found is None or page.audit is None or _unanswered(page) is not None:
        return None
    if first is None:
        return None if judge.light == "red" or page.audit.plan.get("gold_file") else _of_unchecked(found)
    figure = f"The first response is the best by gold in {_percent(first)} of {counted(first.n, 'item')}"
    figure += f", one drawn at random in {found.chance:.0%}"
    if first.n < FEW or math.isnan(first.low):
        if judge.light == "red":
            return None
        told = f"Too few items to conclude anything. {figure}"
        return Conclusion("amber", told, f"fewer than {FEW} items whose responses gold tells apart", few=True)
    if not first.low > found.chance:
        told = f"Do not use: not shown to find the best response more often than chance. {figure}"
        return Conclusion("red", told, "the interval does not lie above what a random order reaches")
    lost = _lost(page)
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
    clear = f"one is clear in {_percent(found.clear)} of {counted(found.clear.n, 'item')}"
    why = f"clear: a probability of at least {SURE:.0%} by the noise of the judge's comparisons; name gold to find out"
    if not found.clear.n:
        clear, why = (
            "how clear it is, is unknown",
            "these comparisons do not show the judge's noise; name gold to find out",
        )
    return Conclusion("grey", f"Not known whether the best response comes first: there is no gold; {clear}", why)


def _unanswered(page: RunPage) -> Conclusion | None:
    failures = page.audit.result(Failures) if page.audit is not None else None
    if failures is None or not failures.failed.value > 0.5:
        return None
    told = f"Do not use: {_percent(failures.failed)} of the questions got no verdict"
    return Conclusion("red", told, "more than half of the questions got no verdict")


def of_judge(page: RunPage) -> Conclusion:
    """Whether the verdicts can be used."""
    audit = page.audit
    if audit is None and page.damaged:
        return Conclusion("red", f"Do not use: {page.damaged}", "a line of the verdicts cannot be read")
    if audit is None:
        return Conclusion("grey", "Nothing is known yet", "there are no verdicts that could be audited")
    if (unanswered := _unanswered(page)) is not None:
        return unanswered
    orders = audit.result(Orders)
    if orders is not None and _position_decides(orders):
        slot, share = _most_slot(orders)
        told = f"Do not use: position decides, {slot} in {_percent(share)} of {counted(share.n, 'pair')}"
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
    figure = f"{what} {_figure(found)} on {rows}"
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
    if lost := _lost(page):
        return Conclusion("amber", f"Better than a judge that ignores the input, with gaps. {figure}", lost)
    return _against_people(figure, found, beside.people("all" if page.chosen else name) if beside else None)


def _against_people(figure: str, found: Estimate, people: tuple[Estimate, Estimate] | None) -> Conclusion:
    """The judge against one rater beside one rater against another (`people`), or against gold where that is unknown.

    `found` is against gold, the mean or majority of the raters: it is higher than agreement with one of them.
    """
    if people is not None:
        judge, among = people
        beside = f"with one person {_figure(judge)}, people among themselves {_figure(among)}. {figure}"
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


def of_judges(pages: Sequence[RunPage]) -> Conclusion | None:
    """Which of several judges agrees best with gold, or that it cannot be told; None where that is not known of all.

    Two judges are compared by the difference on the same rows, more of them by the leaderboard's rank sets.
    """
    board = board_of_judges(pages)
    if board is None:
        return None
    best, other = board.rows[0], board.rows[1]
    what = "accuracy" if pages[0].chosen else "correlation"
    rival = pages[1].audit if len(pages) == 2 else None
    if rival is not None and "rival" in rival:
        less = rival["rival"].estimate("accuracy (all)" if pages[0].pairwise else "pearson", "difference")
        if math.isnan(less.low):
            return None
        lead = f"{abs(less.value):.2f} {_ends(less, '.2f')} on {counted(less.n, 'row')} of both"
        if less.low <= 0 <= less.high:
            told = (
                f"Cannot tell which of {best.name} and {other.name} agrees better with gold: {what} differs by {lead}"
            )
            return Conclusion("amber", told, "the interval of the difference on the same rows includes 0")
        worse, better = pages if less.value > 0 else reversed(pages)
        told = f"{better.name} agrees better with gold than {worse.name}: {what} higher by {lead}"
        return _of_best(better, told, "the interval of the difference on the same rows excludes 0")
    if math.isnan(best.main.low):
        return None
    figure = f"{best.name} has the highest {what}"
    if best.rank.text == "1":
        page = next(each for each in pages if each.name == best.name)
        told = f"{figure} with gold, {_figure(best.main)}"
        return _of_best(page, told, "its interval lies above those of all others")
    silent = [row.name for row in board.rows[1:] if math.isnan(row.main.low)]
    open_to = [row.name for row in board.rows[1:] if row.name not in silent and not row.main.high < best.main.low]
    without = f"; without an interval of their own: {_all(silent)}" if silent else ""
    if not open_to:
        told = f"{figure} with gold, {_figure(best.main)}, of the judges that have an interval{without}"
        return Conclusion("amber", told, "a judge whose agreement has no interval cannot be compared")
    told = f"Cannot tell which of {_all([best.name, *open_to])} agrees best with gold: {figure}, {_figure(best.main)}"
    told += without
    return Conclusion("amber", told, "their intervals overlap; differences on the same rows stand under side by side")


def _of_best(page: RunPage, told: str, why: str) -> Conclusion:
    """Green only if the best judge could be used by itself: the better of two bad judges is no good judge."""
    alone = of_judge(page)
    if alone.light == "red":
        return Conclusion("amber", f"{told}. By itself, {page.name}: {alone.text}", alone.why)
    if lost := _lost(page):
        return Conclusion("amber", told, lost)
    return Conclusion("amber" if alone.few else "green", told, alone.why if alone.few else why)


def of_systems(page: RunPage) -> Conclusion | None:
    """Who is best, or that it cannot be told; None where fewer than two systems are known."""
    audit = page.audit
    if audit is None:
        return None
    if (board := audit.result(Leaderboard)) is not None:
        return _by_scores(board)
    ranking = audit.result(PlayerRanking)
    if ranking is None or len(ranking.players) < 2:
        return None
    return _by_pairs(page, ranking, audit.result(HeadToHead))


def _by_scores(board: Leaderboard) -> Conclusion:
    names = list(board.systems)
    lead = board.lead
    if lead is None or math.isnan(lead.value):
        return Conclusion("amber", f"Cannot tell which of {_all(names)} is best", "they share no prompt")
    ends = f"{abs(lead.value):.2f} {_ends(lead, '.2f')} on {counted(lead.n, 'prompt')} of both"
    open_to = [name for name, each in board.systems.items() if each.rank is not None and each.rank.low <= 1]
    apart = not math.isnan(lead.low) and not lead.low <= 0 <= lead.high
    if open_to == names[:1] and apart:
        told = f"{names[0]} scores better than {names[1]}"
        told = f"{names[0]} scores better than all others: than {names[1]}, the next," if len(names) > 2 else f"{told}:"
        told = f"{told} by {ends}"
        if board.gold_lead is not None and (doubt := _doubt(lead, board.gold_lead, 0.0)):
            by_gold = f"{_signed(board.gold_lead, lead)} on {counted(board.gold_lead.n, 'prompt')}"
            return Conclusion("amber", f"{told}, says the judge; gold says {doubt}: {by_gold}", _DOUBTED)
        equal = board.equal_lead
        if equal is not None and not math.isnan(equal.low) and not min(equal.value, equal.low) > 0:
            told += f"; if responses were equally long it would be {_figure(equal)} on {counted(equal.n, 'prompt')}"
            return Conclusion("amber", told, _LONGER)
        return Conclusion("green", told, "its rank set is 1 alone, and the interval excludes no difference")
    if len(open_to) <= 2 and not apart:
        told = f"Cannot tell {names[0]} from {names[1]}: they differ by {ends}"
        why = f"there is no interval: {lead.note}" if math.isnan(lead.low) else "the interval includes no difference"
        return Conclusion("amber", told, why)
    return Conclusion("amber", f"Cannot tell which of {_all(open_to)} is best", "the rank of each may be 1")


def _by_pairs(page: RunPage, ranking: PlayerRanking, met: HeadToHead | None) -> Conclusion:
    names = list(ranking.players)
    first, second = names[:2]
    groups = {each.group for each in ranking.players.values()}
    if len(groups) > 1:
        return Conclusion("amber", f"Cannot tell which of {_all(names)} is best", "some never met, even through others")
    open_to = [name for name, each in ranking.players.items() if not each.rank.low > 1]
    meeting = met.of(first, second) if met is not None else None
    if page.one_order:
        return _in_one_order(page, names, meeting)
    if len(open_to) > 2:
        return Conclusion("amber", f"Cannot tell which of {_all(open_to)} is best", "the rank of each may be 1")
    if meeting is None:
        told = "no pair contains both, so their orders decide nothing"
        return Conclusion("amber", f"Cannot tell {first} from {second}: they never met", told)
    rate = f"{_percent(meeting.rate)} of {counted(meeting.rate.n, 'pair')}"
    even = f"Cannot tell {first} from {second}"
    if meeting.rate.low <= 0.5 <= meeting.rate.high:
        return Conclusion("amber", f"{even}: {first} wins {rate}", "the interval includes an even result")
    if not meeting.decided:
        before, after = meeting.orders
        told = f"{even}: {first} wins {before.value:.0%} where it is shown first and {after.value:.0%} where second"
        return Conclusion("amber", told, "the two orders name different winners, or one of them none")
    if open_to != [first]:
        return Conclusion("amber", f"{even}: {first} wins {rate}", "over all games the rank of each may be 1")
    if len(names) > 2:
        told = f"{first} is better than all others: against {second}, the next, it wins {rate}"
    else:
        told = f"{first} is better than {second}: it wins {rate}"
    if meeting.gold is not None and (doubt := _doubt(meeting.rate, meeting.gold, 0.5)):
        by_gold = f"{_percent(meeting.gold)} of {counted(meeting.gold.n, 'pair')}"
        return Conclusion("amber", f"{told}, says the judge; gold says {doubt}: {by_gold}", _DOUBTED)
    equal = ranking.equal_lead
    if equal is not None and not math.isnan(equal.low) and not min(equal.value, equal.low) > 0.5:
        told += f"; if responses were equally long it would win {_percent(equal)} against {second}, by the model of"
        told += f" {counted(equal.n, 'game')}"
        return Conclusion("amber", told, "the interval of the length-controlled win rate does not lie above 50 %")
    why = "its rank set is 1 alone, the interval excludes an even result, and both orders say so"
    return Conclusion("green", told, why)


def _in_one_order(page: RunPage, names: list[str], meeting: Meeting | None) -> Conclusion:
    """No system stands out where each pair was asked in one order, however many there are: the slot may decide."""
    won = ""
    if page.audit is not None and "preferences" in page.audit:
        share = page.audit["preferences"].estimate("first wins", "share")
        won = f"; the response shown first wins {_percent(share)} of {counted(share.n, 'pair')}"
    if len(names) == 2 and meeting is not None:
        rate = f"{names[0]} wins {_percent(meeting.rate)} of {counted(meeting.rate.n, 'pair')}"
        told = (
            f"Cannot tell {names[0]} from {names[1]} from the effect of position: {rate}, each pair judged in one order"
        )
    else:
        told = f"Cannot tell which of {_all(names)} is best: each pair was judged in one order, so position may decide"
    return Conclusion("amber", told + won, "one order only; judge both to know")


def _doubt(judge: Estimate, gold: Estimate, even: float) -> str:
    """How gold contradicts a lead of the judge: "otherwise" (no lead, or the other way), "less" (its whole interval
    lies nearer to `even`); "" where it does not. That gold says more does not speak against a winner.
    """
    side = math.copysign(1.0, judge.value - even)
    if not side * (gold.value - even) > 0:
        return "otherwise"
    far = gold.high if side > 0 else gold.low
    return "less" if side * far < side * judge.value else ""


def _signed(gold: Estimate, lead: Estimate) -> str:
    """The difference by gold as the judge's is read: above 0 where gold agrees on who is better."""
    turned = gold if lead.value >= 0 else replace(gold, value=-gold.value, low=-gold.high, high=-gold.low)
    return _figure(turned)


def _position_decides(orders: Orders) -> bool:
    return _most_slot(orders)[1].low > orders.same.high


def _most_slot(orders: Orders) -> tuple[str, Estimate]:
    slots = ("first slot both times", "second slot both times")
    return max(((name, orders.disagreements[name]) for name in slots), key=lambda each: each[1].value)


def _lost(page: RunPage) -> str:
    """Why failures rule out green; "" if they do not."""
    failures = page.audit.result(Failures) if page.audit else None
    if failures is None or not failures.failed.value > LOST:
        return ""
    return f"{failures.failed.value:.0%} of the questions got no verdict, more than {LOST:.0%}"


def _all(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    shown = names[:_NAMED]
    return ", ".join(shown) + more if more or len(shown) < 2 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _figure(found: Estimate) -> str:
    ends = "" if math.isnan(found.low) else f" [{found.low:z.2f}, {found.high:z.2f}]"
    return f"{found.value:z.2f}{ends}"


def _ends(found: Estimate, spec: str) -> str:
    if math.isnan(found.low):
        return ""
    low, high = (found.low, found.high) if found.value >= 0 else (-found.high, -found.low)
    return f"[{low:{spec}}, {high:{spec}}]"


def _percent(found: Estimate) -> str:
    ends = "" if math.isnan(found.low) else f" [{found.low:.0%}, {found.high:.0%}]"
    return f"{found.value:.0%}{ends}"
