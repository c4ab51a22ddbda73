"""The first screen: the main results as a few cards and one sentence."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Audit
from dikast.audit.results import (
    Accuracy,
    Agreement,
    Baselines,
    Calibration,
    Failures,
    Leaderboard,
    Orders,
    Players,
    ScoreIntervals,
)
from dikast.audit.sections.leaderboard import weighted_told
from dikast.core.text import counted, one_line
from dikast.core.verdict import Usage
from dikast.judging.label_scores import bounded_told
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.conclusions.light import items_of, no_ceiling_told
from dikast.surface.report.figures import Ruler

_WIN_RATE = "win rate (half)"
_MOST_PLAYERS = 10
_RULED = ("pearson", "spearman", "quadratic_kappa", "exact", "within_1")


class Card(NamedTuple):
    """A figure of the first screen: its title, its value, and the notes under it. `mood`: "", "bad" or "unknown"."""

    title: str
    value: str
    notes: tuple[str, ...]
    mood: str = ""


_EACH = "see each judge"  # of a panel: its joint verdict has no such figure


def cards(page: RunPage) -> list[Card]:
    """Failure and forced rate, agreement, bias, calibration, cost."""
    return [*_failures(page), _agreement(page), _bias(page), _calibration(page), _cost(page)]


def sentence(page: RunPage) -> str:
    """The whole verdict on the judge in one sentence."""
    audit = page.audit
    if audit is None:
        return f"There are no results: {page.damaged}." if page.damaged else "There are no results for this judge yet."
    failures = audit.result(Failures)
    failed = failures.failed if failures else None
    what = page.unit
    if page.unfinished:
        what += f" asked so far ({page.answered:,} of {page.planned:,} planned questions)"
    by_order = page.pairwise and not page.one_order and not page.panel
    told = "; ".join([_failed_in_words(failed, what, by_order=by_order), *_position_in_words(page)])
    main = main_figure(page)
    if main is None:
        return f"{told}; there is no gold, so how often the verdicts are right is unknown."
    name, found = "Pearson correlation" if main[0] == "pearson" else main[0], main[1]
    if math.isnan(found.value):
        why = "there is no verdict to compare" if found.n == 0 else undefined_why(found) or "one column is constant"
        return f"{told}; {name} with gold is undefined ({why})."
    best, of = _best_baseline(page, "all" if page.chosen else main[0]), ", of goodness," if page.goodness else ""
    beside = "" if best is None else f"; best baseline that ignores the input: {best[1]:.3f} ({best[0]})"
    rows = items_of(page, found).told
    alone = f" ({_no_interval(found).replace(' (', ': ').removesuffix(')')})" if math.isnan(found.low) else ""
    return f"{told}; {name} with gold{of} is {found:.3f}{alone} on {rows}{beside}."


def opening(page: RunPage) -> str:
    """What a report begins with: of rankings how many there are, the sentence, and of pairs who won."""
    won, ranked = winners(page), f"{page.ranked.told} " if page.ranked is not None else ""
    return f"{ranked}{sentence(page)} {won[0].upper()}{won[1:]}." if won else ranked + sentence(page)


def winners(page: RunPage) -> str:
    """Who won the pairs of a run, with its win rate and interval, or where no systems are named which response did."""
    if page.audit is None or "players" not in page.audit:
        return "" if page.ranked is not None else _sides(page.audit, one_order=page.one_order)
    played = page.audit["players"]
    rates = {str(row[0]): played.estimate(str(row[0]), _WIN_RATE) for row in played.rows}
    ordered = sorted(rates.items(), key=lambda each: (math.isnan(each[1].value), -each[1].value))
    told = ", ".join(f"{name} {rate:.3f} (n = {rate.n:,})" for name, rate in ordered[:_MOST_PLAYERS])
    more = f" and {len(ordered) - _MOST_PLAYERS:,} more" if len(ordered) > _MOST_PLAYERS else ""
    undecided = "; the intervals include an even result" if len(ordered) == 2 and not ordered[0][1].low > 0.5 else ""
    records = page.audit.result(Players)
    split = records is not None and any(each.outcomes.get("disagree") for each in records.players.values())
    orders = ", each pair in one order only" if page.one_order else ", as are orders that disagree" if split else ""
    return f"win rates (a tie is half a win{orders}): {told}{more}{undecided}"


def _sides(audit: Audit | None, *, one_order: bool) -> str:
    if audit is None or "preferences" not in audit:
        return ""
    shares = {str(side): share for side, share in audit["preferences"].rows if isinstance(share, Estimate)}
    first, second = shares["first wins"], shares["second wins"]
    if math.isnan(first.value):
        return ""
    orders = ", each in one order only" if one_order else ""
    return f"the first response won {first:.3f} of {counted(first.n, 'pair')}{orders}, the second {second:.3f}"


def leaders(page: RunPage) -> list[str]:
    """The systems of a run by their mean score, as lines of a table; none where fewer than two are known."""
    found = page.audit.result(Leaderboard) if page.audit else None
    if found is None:
        return []
    shown = list(found.systems.items())[:_MOST_PLAYERS]
    cells = [["system", "mean score", "win rate", "n"]]
    for name, each in shown:
        rate = "" if each.win_rate is None else f"{each.win_rate:.3f}"
        cells.append([one_line(name, 60), f"{each.mean:.3f}", rate, f"{each.mean.n:,}"])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    if more := len(found.systems) - len(shown):
        told.append(f"and {more:,} more")
    return [*told, *filter(None, (lead_told(found), weighted_told(found.weights)))]


def lead_told(found: Leaderboard) -> str:
    """The difference of the first two systems, and whether it may be chance; "" if they share no prompts."""
    first, second = list(found.systems)[:2]
    lead = found.lead
    if lead is None or math.isnan(lead.value):
        return ""
    on = f"on the same {counted(lead.n, 'prompt')}"
    if lead.value == 0 and math.isnan(lead.low):
        return f"{first} and {second} score alike {on}"
    chance = ", which includes no difference" if lead.low <= 0 <= lead.high else ""
    return f"{first} minus {second}, {on}: {lead:+.3f}{chance}"


def labels_told(page: RunPage) -> str:
    """What the counts of labels are of."""
    if not page.pairwise:
        return "How often each label was given"
    return "Verdicts in one order of each pair" if page.one_order else "Joint verdicts of both orders"


def _failed_in_words(failed: Estimate | None, what: str, *, by_order: bool) -> str:
    if failed is None:
        return "The failure rate is unknown"
    if failed.value == 0:
        if failed.n == 1:
            return f"The only {what.removesuffix('s')} got a verdict"
        return f"All {failed.n:,} {what} got a verdict"
    lost = "had no verdict in one order or both" if by_order else "got no verdict"
    if failed.n == 1:
        return f"The only {what.removesuffix('s')} {lost}"
    return f"{failed.value:.1%} {_percents(failed)} of {failed.n:,} {what} {lost}"


def _position_in_words(page: RunPage) -> Iterator[str]:
    """How the order of the responses affects the verdicts of pairs; says so if it decides most of them."""
    if not page.pairwise or page.audit is None:
        return
    orders = page.audit.result(Orders)
    if orders is None and page.panel and not page.one_order:
        return  # the orders are those of each judge
    if orders is None:
        yield "each pair was asked in one order, so position bias cannot be separated from a preference for a response"
        return
    same, split = orders.same, orders.disagree
    slot, most = max(((name, orders.disagreements[name]) for name in _SLOTS), key=lambda x: x[1].value)
    if math.isnan(split.value):
        return
    if most.low > same.high:
        yield (
            f"position decides: {slot} in {_percent(most)} {_percents(most)} of {counted(most.n, 'pair')}, "
            f"the same verdict in both orders in {_percent(same)} {_percents(same)}"
        )
    elif split.value:
        yield f"the orders disagree in {_percent(split)} {_percents(split)} of {counted(split.n, 'pair')}"


_SLOTS = ("first slot both times", "second slot both times")


def main_figure(page: RunPage) -> tuple[str, Estimate] | None:
    """The main figure of agreement: accuracy of pairs, Pearson's correlation of scores."""
    audit = page.audit
    if audit is None:
        return None
    if page.chosen:
        choices = audit.result(Accuracy)
        return ("accuracy in one order" if page.one_order else "accuracy", choices.rules["all"]) if choices else None
    scores = audit.result(Agreement)
    return ("pearson", scores.statistics["pearson"].value) if scores else None


def ruled(page: RunPage) -> list[Ruler]:
    """Statistics beside the best baseline, and with one rater beside the ceiling, for the figure."""
    beside = page.audit.result(Baselines) if page.audit else None
    found = []
    for name in ("all", "no_gold_ties") if page.chosen else _RULED:
        judge = beside.judge.get(name) if beside else None
        if beside is not None and judge is not None:
            best = _best_baseline(page, name)
            told = _spelt(name) + (" (one order)" if page.one_order else "")
            found.append(Ruler(told, judge.value, judge.low, judge.high, best[1].value if best else None, None))
            if (people := beside.people(name)) is not None:
                one, among = people
                found.append(Ruler(f"{told}, one rater", one.value, one.low, one.high, None, among.value))
    return found


def _failures(page: RunPage) -> Iterator[Card]:
    audit, what = page.audit, "pair" if page.pairwise else "verdict"
    found = audit.result(Failures) if audit else None
    failed, forced = (found.failed, found.forced) if found else (None, None)
    notes: list[str] = []
    agreement = audit.result(Agreement) if audit else None
    r = agreement.statistics["pearson"] if agreement else None
    if r is not None and r.worst is not None and r.best is not None:
        notes.append(f"pearson between {r.worst:z.3f} and {r.best:z.3f} for any scores of the unscored rows")
    if found is not None:
        notes += [f"{name}: {count}" for name, count in found.statuses.items()]
        if found.conflicts is not None:
            notes.append(f"conflict in the reply: {round(found.conflicts.value * found.conflicts.n)}")
    mood = "" if failed and failed.value == 0 else "bad" if failed and failed.value > 0.05 else ""
    yield Card("Without a verdict", _percent(failed), (_interval(failed), *notes), mood)
    if page.panel:
        yield Card("Marker added by Dikast", "unknown", (_EACH,), "unknown")
    elif forced is None and audit is not None:  # no reply was read, or none by a marker
        said = "there is no verdict" if failed is not None and failed.value == 1 else "no verdict was read at a marker"
        if page.lock:
            yield Card("Marker added by Dikast", "undefined", (said,))
    else:
        yield Card(
            "Marker added by Dikast",
            _percent(forced),
            (_interval(forced), f"of the {what}s read at a marker (forced verdicts)"),
        )


def _agreement(page: RunPage) -> Card:
    main = main_figure(page)
    if main is None or page.audit is None:
        return Card("Agreement with gold", "unknown", ("there is no gold",), "unknown")
    name, found = main
    what = f"{name} of goodness" if page.goodness else name
    why = undefined_why(found) if math.isnan(found.value) else ""
    notes = [f"{_plain_interval(found)} {what}, n {found.n:,}".strip(), why]
    if (beside := page.audit.result(Baselines)) is not None:
        column = "all" if page.chosen else name
        best, people = _best_baseline(page, column), beside.people(column)
        notes.append(
            f"best baseline {best[1]:.3f} ({best[0]})"
            if best
            else "baseline undefined: constant scores have no correlation"
        )
        if people is not None:
            notes.append(f"with one rater {people[0]:.3f}; ceiling, one rater with another, {people[1]:.3f}")
        elif not any(row.role == "ceiling" for row in beside.rows):
            notes.append(f"no human ceiling: {no_ceiling_told(page)}")
    return Card("Agreement with gold", _value(found), tuple(filter(None, notes)))


def _bias(page: RunPage) -> Card:
    audit, notes = page.audit, []
    if page.pairwise:
        return _orders(page)
    agreement = audit.result(Agreement) if audit else None
    bias = agreement.statistics["bias"].value if agreement and "bias" in agreement.statistics else None
    if page.length is not None:
        slope = "undefined" if math.isnan(page.length.value) else f"{page.length.value:+z.3f}"
        why = f"({page.length.note})" if math.isnan(page.length.value) else _plain_interval(page.length)
        notes.append(f"{slope}{' of goodness' if page.goodness else ''} per doubling of length {why}".rstrip())
    beside = audit.result(Baselines) if audit else None
    index = beside.judge.get("discrimination") if beside else None
    if index is not None:
        alone = f" {_no_interval(index) or f'({undefined_why(index)})'}" if math.isnan(index.low) else ""
        notes.append(f"discrimination {index:.2f}{alone}".rstrip())
    title = "Mean error (bias): score minus gold" + (", as goodness (0 to 1)" if page.goodness else "")
    if bias is None:
        why = "there is no gold" if agreement is None else "gold is on no known scale"
        why = "gold says which of two responses is better" if page.chosen else why
        return Card(title, "unknown", (why, *notes), "unknown")
    value = "undefined" if math.isnan(bias.value) else f"{bias.value:+z.3f}"
    return Card(title, value, (_plain_interval(bias), *notes))


def _orders(page: RunPage) -> Card:
    """Whether both orders of a pair say the same, and in whose favour they differ."""
    audit, title, notes = page.audit, "Same verdict in both orders", list[str]()
    orders = audit.result(Orders) if audit else None
    if orders is None:
        why = "there is no audit" if audit is None else "each pair was asked in one order only"
        why = _EACH if page.panel and not page.one_order else why
        return Card(title, "unknown", (why,), "unknown")
    for name, share in orders.disagreements.items():
        if share.value > 0:
            notes.append(f"disagree, {name}: {_percent(share)} {_percents(share)} of {counted(share.n, 'pair')}")
    preferences = page.summary.get("preferences") or {}
    nats = preferences.get("position_bias_nats") or {}
    if nats.get("n"):
        low, high = nats.get("low"), nats.get("high")
        alone = "one pair" if nats["n"] == 1 else "every pair alike"
        ends = f"no interval ({alone})" if low is None or high is None else f"[{low:z.2f}, {high:z.2f}]"
        notes.append(f"first slot favoured by {nats['value']:z.2f} nats {ends}, n {nats['n']:,}")
        notes.append(bounded_told(preferences))
    return Card(title, _percent(orders.same), (_interval(orders.same), *filter(None, notes)))


def _calibration(page: RunPage) -> Card:
    calibration = page.audit.result(Calibration) if page.audit else None
    found = calibration.errors.get("as read") if calibration else None
    if found is None or calibration is None or page.audit is None:
        return Card("Calibration error (ECE)", "unknown", (_why_uncalibrated(page, calibration),), "unknown")
    notes = [_plain_interval(found), f"n {found.n:,}", undefined_why(found) if math.isnan(found.value) else ""]
    after = calibration.errors.get("temperature")
    if after is not None and not math.isnan(after.value):
        notes.append(f"{after:.3f} after temperature scaling, cross-fitted")
    intervals = page.audit.result(ScoreIntervals)
    if intervals is not None and intervals.share_of_scale is not None:
        notes.append(f"{intervals.aim:.0%} intervals cover {intervals.share_of_scale.value:.0%} of the scale")
    return Card("Calibration error (ECE)", _value(found), tuple(filter(None, notes)))


def _why_uncalibrated(page: RunPage, calibration: Calibration | None) -> str:
    if page.audit is None:
        return "there is no audit"
    if page.panel:
        return _EACH
    if not page.audit.plan.get("gold"):
        return "there is no gold"
    return calibration.told if calibration else "no probabilities of the labels were read"


def _cost(page: RunPage) -> Card:
    usage = page.summary.get("usage")
    if not usage:
        why = "the file does not say what was spent" if page.folder.is_file() else "summary.json is missing"
        why = _EACH if page.panel else why  # one of them is unfinished
        return Card("Cost", "unknown", (why,), "unknown")
    usage = asdict(Usage()) | usage  # what an edited summary leaves out counts as nothing
    cost = usage["cost"]
    n = max(1, page.summary.get("verdicts") or 1)
    notes = (
        f"{usage['tokens_in']:,} tokens in ({usage['tokens_cached']:,} cached), {usage['tokens_out']:,} out",
        f"{usage['seconds']:,.1f} s of answering, {usage['seconds'] / n:.3f} s each",
    )
    return Card("Cost", "no price given" if cost is None else f"{cost:,.4f}", notes, "unknown" if cost is None else "")


def _best_baseline(page: RunPage, statistic: str) -> tuple[str, Estimate] | None:
    """The best baseline that ignores the input: what it does, and its value."""
    beside = page.audit.result(Baselines) if page.audit else None
    best = beside.best(statistic) if beside else None
    return None if best is None else (best.label.removeprefix("a judge that "), best.statistics[statistic])


def _spelt(name: str) -> str:
    return {"all": "accuracy", "no_gold_ties": "without gold ties"}.get(name, name)


def _percent(found: Estimate | None) -> str:
    if found is None:
        return "unknown"
    return "undefined" if math.isnan(found.value) else f"{found.value:.1%}"


def _percents(found: Estimate) -> str:
    return "" if math.isnan(found.low) else f"[{found.low:.1%}, {found.high:.1%}]"


def undefined_why(found: Estimate) -> str:
    """Why a figure is undefined; "" where its note does not say."""
    return found.note.removeprefix("undefined: ")


def _value(found: Estimate) -> str:
    return "undefined" if math.isnan(found.value) else f"{found.value:z.3f}"


def _interval(found: Estimate | None) -> str:
    if found is None or math.isnan(found.low):
        return _no_interval(found)
    return f"[{found.low:.1%}, {found.high:.1%}], n {found.n:,}"


def _plain_interval(found: Estimate | None) -> str:
    if found is None or math.isnan(found.low):
        return _no_interval(found)
    return f"[{found.low:z.3f}, {found.high:z.3f}]"


def _no_interval(found: Estimate | None) -> str:
    """Why a known value has no interval."""
    if found is None or math.isnan(found.value):
        return ""
    return f"no interval ({found.note or 'too few rows, or every draw alike'})"
