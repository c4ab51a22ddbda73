"""The first screen: what a sceptic asks first, in a handful of cards and a sentence."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.report import Audit, Table, shown
from dikast.surface.report.collect import RunPage
from dikast.surface.report.figures import Row, Ruler

_RULED = ("pearson", "spearman", "quadratic_kappa", "exact", "within_1")
# the first of these that a table of slices has is drawn
_FORESTS = ("pearson", "exact", "both together", "as shown", "mean score", "disagree", "first wins")
_CEILING = "(ceiling)"


class Card(NamedTuple):
    """A figure of the first screen: its title, its value, and what stands under it. `mood`: "", "bad" or "unknown"."""

    title: str
    value: str
    notes: tuple[str, ...]
    mood: str = ""


def cards(page: RunPage) -> list[Card]:
    """Failure and forced rate, agreement, bias, calibration, cost."""
    return [*_failures(page), _agreement(page), _bias(page), _calibration(page), _cost(page)]


def sentence(page: RunPage) -> str:
    """The whole verdict on the judge in one sentence."""
    audit = page.audit
    if audit is None:
        return "There is nothing to say about this judge yet."
    failed = _cell(audit, "failures", "failed", "share")
    told = "; ".join([_failed_in_words(failed, "pairs" if page.pairwise else "questions"), *_position_in_words(page)])
    main = main_figure(page)
    if main is None:
        return f"{told}; without gold nobody can say whether the others are right."
    name, found = main
    if math.isnan(found.value):
        why = "there is no verdict to compare" if found.n == 0 else found.note or "one column is constant"
        return f"{told}; {name} with gold is undefined ({why})."
    floor, of = _floor(audit, "all" if page.pairwise else name), ", of goodness," if page.goodness else ""
    beside = "" if floor is None else f"; the best judge that does not look reaches {floor[1]:.3f} ({floor[0]})"
    return f"{told}; {name} with gold{of} is {found:.3f} on {found.n:,} {'pairs' if page.pairwise else 'rows'}{beside}."


def _failed_in_words(failed: Estimate | None, what: str) -> str:
    if failed is None:
        return "How many failed is unknown"
    if failed.value == 0:
        return f"All {failed.n:,} {what} got a verdict"
    both = " in both orders" if what == "pairs" else ""
    return f"{failed.value:.1%} of {failed.n:,} {what} got no verdict{both}"


def _position_in_words(page: RunPage) -> Iterator[str]:
    """What the order of the responses does to the verdicts of pairs; that it decides, where it decides most of them."""
    if not page.pairwise or page.audit is None:
        return
    if "orders" not in page.audit:
        yield "each pair was asked in one order, so that a preference for a slot cannot be told from one for a response"
        return
    same = _cell(page.audit, "orders", "same verdict in both orders", "value")
    split = _cell(page.audit, "orders", "disagree", "value")
    slots = [(name, _cell(page.audit, "orders", f"disagree: {name}", "value")) for name in _SLOTS]
    slot, most = max(((name, each) for name, each in slots if each), key=lambda x: x[1].value, default=("", None))
    if same is None or split is None or most is None or math.isnan(split.value):
        return
    if most.low > same.high:
        yield (
            f"position decides: {slot} in {_percent(most)} {_percents(most)} of {most.n:,} pairs, "
            f"the same verdict in both orders in {_percent(same)} {_percents(same)}"
        )
    elif split.value:
        yield f"the orders disagree in {_percent(split)} {_percents(split)} of {split.n:,} pairs"


_SLOTS = ("first slot both times", "second slot both times")


def main_figure(page: RunPage) -> tuple[str, Estimate] | None:
    """The figure that stands for agreement: accuracy of pairs, Pearson's correlation of scores."""
    audit = page.audit
    if audit is None:
        return None
    if page.pairwise:
        column = "both together" if _has(audit, "accuracy", "both together") else "as shown"
        found = _cell(audit, "accuracy", "accuracy (all)", column)
        return ("accuracy", found) if found else None
    found = _cell(audit, "agreement", "pearson", "value")
    return ("pearson", found) if found else None


def ruled(page: RunPage) -> list[Ruler]:
    """Statistics between the best floor and the ceiling, for the figure."""
    audit = page.audit
    if audit is None or "beside" not in audit:
        return []
    table = audit["beside"]
    names = [name for name in (("all", "no_gold_ties") if page.pairwise else _RULED) if name in table.columns]
    found = []
    for name in names:
        judge = _estimate(table, "judge", name)
        if judge is not None:
            floor, ceiling = _floor(audit, name), _ceiling(table, name)
            ends = floor[1].value if floor else None, ceiling.value if ceiling else None
            found.append(Ruler(_spelt(name), judge.value, judge.low, judge.high, *ends))
    return found


def slices(page: RunPage) -> Iterator[tuple[Table, str, list[Row]]]:
    """Each table of slices with its first statistic as rows of a forest plot, worst first."""
    for table in page.audit or ():
        if not table.name.startswith("by ") or not table.rows:
            continue
        measured = [c for c, v in zip(table.columns, table.rows[0], strict=True) if isinstance(v, Estimate)]
        column = next((c for c in (*_FORESTS, *measured) if c in table.columns), None)
        if column is None:
            continue
        rows = []
        for cells in table.rows:
            cell = dict(zip(table.columns, cells, strict=True))[column]
            if isinstance(cell, Estimate):
                rows.append(Row(str(cells[0]), cell.value, cell.low, cell.high, cell.n))
        yield table, column, sorted(rows, key=lambda row: (math.isnan(row.value), row.value))


def _failures(page: RunPage) -> Iterator[Card]:
    audit = page.audit
    failed = _cell(audit, "failures", "failed", "share") if audit else None
    forced = _cell(audit, "failures", "forced marker", "share") if audit else None
    notes: list[str] = []
    if audit is not None and "agreement" in audit:
        row = audit["agreement"]["pearson"]
        worst, best = row.get("worst"), row.get("best")
        if isinstance(worst, int | float) and isinstance(best, int | float):
            notes.append(f"pearson between {worst:.3f} and {best:.3f}, whatever the unscored had been")
    if audit is not None and "failures" in audit:
        for cells in audit["failures"].rows:
            if cells[0] not in ("failed", "ok", "forced marker"):
                notes.append(f"{cells[0]}: {cells[1]}")
    mood = "" if failed and failed.value == 0 else "bad" if failed and failed.value > 0.05 else ""
    yield Card("Without a verdict", _percent(failed), (_interval(failed), *notes), mood)
    yield Card("Marker put there by us", _percent(forced), (_interval(forced), "of the verdicts (forced)"))


def _agreement(page: RunPage) -> Card:
    main = main_figure(page)
    if main is None or page.audit is None:
        return Card("Agreement with gold", "unknown", ("there is no gold",), "unknown")
    name, found = main
    what = f"{name} of goodness" if page.goodness else name
    notes = [f"{_plain_interval(found)} {what}, n {found.n:,}".strip(), found.note if math.isnan(found.value) else ""]
    if "beside" in page.audit:
        table = page.audit["beside"]
        column = "all" if page.pairwise else name
        floor, ceiling = _floor(page.audit, column), _ceiling(table, column)
        notes.append(
            f"floor {floor[1]:.3f} ({floor[0]})" if floor else "floor undefined: constant judges correlate with nothing"
        )
        notes.append(f"ceiling {ceiling:.3f} (people)" if ceiling is not None else "no human ceiling: one gold only")
    return Card("Agreement with gold", _value(found), tuple(filter(None, notes)))


def _bias(page: RunPage) -> Card:
    audit, notes = page.audit, []
    if page.pairwise:
        return _orders(page)
    bias = _cell(audit, "agreement", "bias", "value") if audit else None
    if page.length is not None:
        slope = "undefined" if math.isnan(page.length.value) else f"{page.length.value:+.3f}"
        why = page.length.note if math.isnan(page.length.value) else _plain_interval(page.length)
        notes.append(f"{slope}{' of goodness' if page.goodness else ''} per doubling of length {why}".rstrip())
    index = _cell(audit, "beside", "judge", "discrimination") if audit else None
    if index is not None:
        notes.append(f"discrimination {index:.2f}")
    elif audit is not None and "beside" in audit:
        notes.append(f"discrimination {shown(audit['beside']['judge'].get('discrimination'), 2)}")
    title = "Bias: score less gold" + (", as goodness (0 to 1)" if page.goodness else "")
    if bias is None:
        why = "there is no gold" if page.audit is None or "agreement" not in page.audit else "gold is on no known scale"
        return Card(title, "unknown", (why, *notes), "unknown")
    value = "undefined" if math.isnan(bias.value) else f"{bias.value:+.3f}"
    return Card(title, value, (_plain_interval(bias), *notes))


def _orders(page: RunPage) -> Card:
    """Whether both orders of a pair say the same, and in whose favour they differ."""
    audit, title, notes = page.audit, "Same verdict in both orders", list[str]()
    if audit is None or "orders" not in audit:
        why = "there is no audit" if audit is None else "each pair was asked in one order only"
        return Card(title, "unknown", (why,), "unknown")
    same = _cell(audit, "orders", "same verdict in both orders", "value")
    for name in (*_SLOTS, "a tie in one order"):
        share = _cell(audit, "orders", f"disagree: {name}", "value")
        if share is not None and share.value > 0:
            notes.append(f"disagree, {name}: {_percent(share)} {_percents(share)} of {share.n:,} pairs")
    nats = (page.summary.get("preferences") or {}).get("position_bias_nats") or {}
    if nats.get("n"):
        low, high = nats.get("low"), nats.get("high")
        ends = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
        notes.append(f"first slot favoured by {nats['value']:.2f}{ends} nats, n {nats['n']:,}")
    return Card(title, _percent(same), (_interval(same), *notes))


def _calibration(page: RunPage) -> Card:
    found = _cell(page.audit, "calibration", "as read", "ECE") if page.audit else None
    if found is None or page.audit is None:
        return Card("Calibration error (ECE)", "unknown", (_why_uncalibrated(page.audit),), "unknown")
    notes = [_plain_interval(found), f"n {found.n:,}"]
    after = _cell(page.audit, "calibration", "temperature", "ECE")
    if after is not None:
        notes.append(f"{after.value:.3f} after temperature, cross-fitted")
    if "conformal" in page.audit:
        width = page.audit["conformal"]["all"].get("share of scale") if _row(page.audit, "conformal", "all") else None
        if width is not None:
            notes.append(f"90% intervals cover {_share(width)} of the scale")
    return Card("Calibration error (ECE)", _value(found), tuple(filter(None, notes)))


def _why_uncalibrated(audit: Audit | None) -> str:
    if audit is None:
        return "there is no audit"
    if not audit.plan.get("gold"):
        return "there is no gold"
    if "calibration" in audit:  # it says itself why it is empty
        return audit["calibration"].notes[-1]
    return "no probabilities of the labels were read"


def _share(width: Any) -> str:
    value = width.value if isinstance(width, Estimate) else width
    return f"{value:.0%}" if isinstance(value, int | float) else str(value)


def _cost(page: RunPage) -> Card:
    usage = page.summary.get("usage")
    if not usage:
        return Card("Cost", "unknown", ("summary.json is missing",), "unknown")
    cost = usage.get("cost")
    n = max(1, page.summary.get("verdicts") or 1)
    notes = (
        f"{usage['tokens_in']:,} tokens in ({usage['tokens_cached']:,} cached), {usage['tokens_out']:,} out",
        f"{usage['seconds']:,.1f} s of answering, {usage['seconds'] / n:.3f} s each",
    )
    return Card("Cost", "no price given" if cost is None else f"{cost:,.4f}", notes, "unknown" if cost is None else "")


def _floor(audit: Audit, column: str) -> tuple[str, Estimate] | None:
    """The best of the judges that do not look, and its name."""
    if "beside" not in audit or column not in audit["beside"].columns:
        return None
    best: tuple[str, Estimate] | None = None
    for cells in audit["beside"].rows:
        row = dict(zip(audit["beside"].columns, cells, strict=True))
        cell = row[column]
        if not str(cells[0]).startswith("a judge that") or not isinstance(cell, Estimate) or math.isnan(cell.value):
            continue
        if best is None or cell.value > best[1].value:
            best = str(cells[0]).removeprefix("a judge that "), cell
    return best


def _ceiling(table: Table, column: str) -> Estimate | None:
    for cells in table.rows:
        if _CEILING in str(cells[0]):
            cell = dict(zip(table.columns, cells, strict=True))[column]
            return cell if isinstance(cell, Estimate) and not math.isnan(cell.value) else None
    return None


def _row(audit: Audit, table: str, row: str) -> bool:
    return table in audit and any(cells[0] == row for cells in audit[table].rows)


def _has(audit: Audit, table: str, column: str) -> bool:
    return table in audit and column in audit[table].columns


def _cell(audit: Audit | None, table: str, row: str, column: str) -> Estimate | None:
    if audit is None or not _row(audit, table, row) or not _has(audit, table, column):
        return None
    cell = audit[table][row][column]
    return cell if isinstance(cell, Estimate) else None


def _estimate(table: Table, row: str, column: str) -> Estimate | None:
    try:
        cell = table[row][column]
    except KeyError:
        return None
    return cell if isinstance(cell, Estimate) else None


def _spelt(name: str) -> str:
    return {"all": "accuracy", "no_gold_ties": "without gold ties"}.get(name, name)


def _percent(found: Estimate | None) -> str:
    if found is None:
        return "unknown"
    return "undefined" if math.isnan(found.value) else f"{found.value:.1%}"


def _percents(found: Estimate) -> str:
    return "" if math.isnan(found.low) else f"[{found.low:.1%}, {found.high:.1%}]"


def _value(found: Estimate) -> str:
    return "undefined" if math.isnan(found.value) else f"{found.value:.3f}"


def _interval(found: Estimate | None) -> str:
    if found is None or math.isnan(found.low):
        return ""
    return f"[{found.low:.1%}, {found.high:.1%}], n {found.n:,}"


def _plain_interval(found: Estimate | None) -> str:
    if found is None or math.isnan(found.low):
        return ""
    return f"[{found.low:.3f}, {found.high:.3f}]"
