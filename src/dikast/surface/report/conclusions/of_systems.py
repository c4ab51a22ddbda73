"""Which of several systems is best, or that it cannot be told."""

import math
from dataclasses import replace

from dikast.audit.estimate import Estimate
from dikast.audit.results import HeadToHead, Leaderboard, Meeting, PlayerRanking
from dikast.core.text import counted
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import FEW, Conclusion, all_told, ends_told, figure_told, percent_told

_DOUBTED = "gold on the same prompts does not support the difference"
_LOST = "with the missing verdicts against it, the interval does not lie above"
_NOT_BY_GOLD = "nor does that of gold where gold covers them"
_LONGER = "the interval of the length-controlled difference does not lie above 0"


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
        return Conclusion("amber", f"Cannot tell which of {all_told(names)} is best", "they share no prompt")
    ends = f"{abs(lead.value):.2f} {ends_told(lead, '.2f')} on {counted(lead.n, 'prompt')} of both"
    open_to = [name for name, each in board.systems.items() if each.rank is not None and each.rank.low <= 1]
    apart = not math.isnan(lead.low) and not lead.low <= 0 <= lead.high
    if open_to == names[:1] and apart:
        told = f"{names[0]} scores better than {names[1]}"
        told = f"{names[0]} scores better than all others: than {names[1]}, the next," if len(names) > 2 else f"{told}:"
        told = f"{told} by {ends}"
        gold, least = (each and _of_leader(each, lead) for each in (board.gold_lead, board.least_lead))
        if gold is not None and (doubt := _doubt(_of_leader(lead, lead), gold, 0.0)):
            by_gold = f"{figure_told(gold)} on {counted(gold.n, 'prompt')}"
            return Conclusion("amber", f"{told}, says the judge; gold says {doubt}: {by_gold}", _DOUBTED)
        equal = board.equal_lead
        if equal is not None and not math.isnan(equal.low) and not min(equal.value, equal.low) > 0:
            told += f"; if responses were equally long it would be {figure_told(equal)} on {counted(equal.n, 'prompt')}"
            return Conclusion("amber", told, _LONGER)
        if least is not None and not _stands(least, gold, 0.0):
            told += f"; if every score that is missing spoke against {names[0]} it would be {figure_told(least)}"
            return Conclusion("amber", f"{told} on {counted(least.n, 'prompt')}", f"{_LOST} 0, {_NOT_BY_GOLD}")
        if lead.n < FEW:
            return Conclusion("amber", told, f"fewer than {FEW} prompts of both", few=True)
        return Conclusion("green", told, "its rank set is 1 alone, and the interval excludes no difference")
    if len(open_to) <= 2 and not apart:
        told = f"Cannot tell {names[0]} from {names[1]}: they differ by {ends}"
        why = f"there is no interval: {lead.note}" if math.isnan(lead.low) else "the interval includes no difference"
        return Conclusion("amber", told, why)
    return Conclusion("amber", f"Cannot tell which of {all_told(open_to)} is best", "the rank of each may be 1")


def _by_pairs(page: RunPage, ranking: PlayerRanking, met: HeadToHead | None) -> Conclusion:
    names = list(ranking.players)
    first, second = names[:2]
    groups = {each.group for each in ranking.players.values()}
    if len(groups) > 1:
        return Conclusion(
            "amber", f"Cannot tell which of {all_told(names)} is best", "some never met, even through others"
        )
    open_to = [name for name, each in ranking.players.items() if not each.rank.low > 1]
    meeting = met.of(first, second) if met is not None else None
    if page.one_order:
        return _in_one_order(page, names, meeting)
    if len(open_to) > 2:
        return Conclusion("amber", f"Cannot tell which of {all_told(open_to)} is best", "the rank of each may be 1")
    if meeting is None:
        told = "no pair contains both, so their orders decide nothing"
        return Conclusion("amber", f"Cannot tell {first} from {second}: they never met", told)
    rate = f"{percent_told(meeting.rate)} of {counted(meeting.rate.n, 'pair')}"
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
        by_gold = f"{percent_told(meeting.gold)} of {counted(meeting.gold.n, 'pair')}"
        return Conclusion("amber", f"{told}, says the judge; gold says {doubt}: {by_gold}", _DOUBTED)
    equal = ranking.equal_lead
    if equal is not None and not math.isnan(equal.low) and not min(equal.value, equal.low) > 0.5:
        told += f"; if responses were equally long it would win {percent_told(equal)} against {second}, by the model of"
        told += f" {counted(equal.n, 'game')}"
        return Conclusion("amber", told, "the interval of the length-controlled win rate does not lie above 50 %")
    if meeting.lost and not _stands(meeting.lost[0], meeting.gold, 0.5):
        least = meeting.lost[0]
        told += f"; if it had lost every pair without a verdict it would win {percent_told(least)}"
        return Conclusion("amber", f"{told} of {counted(least.n, 'pair')}", f"{_LOST} 50 %, {_NOT_BY_GOLD}")
    if (items := meeting.rate.independent) < FEW:
        told += f" ({counted(items, 'item')})" if items < meeting.rate.n else ""
        return Conclusion("amber", told, f"fewer than {FEW} pairs of both, or items that they are of", few=True)
    why = "its rank set is 1 alone, the interval excludes an even result, and both orders say so"
    return Conclusion("green", told, why)


def _in_one_order(page: RunPage, names: list[str], meeting: Meeting | None) -> Conclusion:
    """No system stands out where each pair was asked in one order, however many there are: the slot may decide."""
    won = ""
    if page.audit is not None and "preferences" in page.audit:
        share = page.audit["preferences"].estimate("first wins", "share")
        won = f"; the response shown first wins {percent_told(share)} of {counted(share.n, 'pair')}"
    if len(names) == 2 and meeting is not None:
        rate = f"{names[0]} wins {percent_told(meeting.rate)} of {counted(meeting.rate.n, 'pair')}"
        told = (
            f"Cannot tell {names[0]} from {names[1]} from the effect of position: {rate}, each pair judged in one order"
        )
    else:
        told = (
            f"Cannot tell which of {all_told(names)} is best: each pair was judged in one order, so position may decide"
        )
    return Conclusion("amber", told + won, "one order only; judge both to know")


def _stands(least: Estimate, gold: Estimate | None, even: float) -> bool:
    """Whether a lead stands although verdicts are missing: if all of them spoke against it (`least`), or by gold, where
    it has as many. Both are read as the leader's; what has no interval is as certain as its value.
    """
    known = [least, *([gold] if gold is not None and gold.n >= least.n else [])]
    return any((each.value if math.isnan(each.low) else each.low) > even for each in known)


def _doubt(judge: Estimate, gold: Estimate, even: float) -> str:
    """How gold contradicts a lead of the judge: "otherwise" (no lead, or the other way), "less" (its whole interval
    lies nearer to `even`); "" where it does not. That gold says more does not speak against a winner.
    """
    side = math.copysign(1.0, judge.value - even)
    if not side * (gold.value - even) > 0:
        return "otherwise"
    far = gold.high if side > 0 else gold.low
    return "less" if side * far < side * judge.value else ""


def _of_leader(found: Estimate, lead: Estimate) -> Estimate:
    """A difference of the same two as the judge's is read: above 0 where it agrees on who is better."""
    return found if lead.value >= 0 else replace(found, value=-found.value, low=-found.high, high=-found.low)
