"""The first screen: what a sceptic asks first, in a handful of cards and a sentence."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from dikast.audit.estimate import Estimate
from dikast.audit.report import Audit, Table, shown
from dikast.surface.report.collect import RunPage
from dikast.surface.report.figures import Row, Ruler

_RULED = ("pearson", "spearman", "quadratic_kappa", "exact", "within_1")
_FORESTS = ("pearson", "exact", "all", "accuracy")  # the first of these that a table of slices has is drawn
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
    told = _failed_in_words(failed)
    main = main_figure(page)
    if main is None:
        return f"{told}; without gold nobody can say whether the others are right."
    name, found = main
    if math.isnan(found.value):
        return f"{told}; {name} with gold is undefined ({found.note or 'one column is constant'})."
    floor = _floor(audit, "all" if page.pairwise else name)
    beside = "" if floor is None else f"; the best judge that does not look reaches {floor[1]:.3f} ({floor[0]})"
    return f"{told}; {name} with gold is {found:.3f} on {found.n:,} rows{beside}."


def _failed_in_words(failed: Estimate | None) -> str:
    if failed is None:
        return "How many failed is unknown"
    if failed.value == 0:
        return f"All {failed.n:,} questions got a verdict"
    return f"{failed.value:.1%} of {failed.n:,} questions got no verdict"


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
            found.append(Ruler(_spelt(name), judge.value, judge.low, judge.high, floor[1] if floor else None, ceiling))
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
    notes = [f"{name}, n {found.n:,}", _plain_interval(found)]
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
        same = _cell(audit, "orders", "same verdict in both orders", "value") if audit else None
        slot = _cell(audit, "orders", "first slot, where they differ", "value") if audit else None
        if slot is not None:
            notes.append(f"first slot wins {slot.value:.0%} where the orders differ {_plain_interval(slot)}")
        nats = (page.summary.get("preferences") or {}).get("position_bias_nats") or {}
        if nats.get("n"):
            notes.append(f"first slot favoured by {nats['value']:.2f} nats")
        return Card("Same verdict in both orders", _percent(same), (_interval(same), *notes))
    bias = _cell(audit, "agreement", "bias", "value") if audit else None
    if page.length is not None:
        notes.append(f"{page.length.value:+.3f} per doubling of length {_plain_interval(page.length)}")
    index = _cell(audit, "beside", "judge", "discrimination") if audit else None
    if index is not None:
        notes.append(f"discrimination {index.value:.2f}")
    elif audit is not None and "beside" in audit:
        notes.append(f"discrimination {shown(audit['beside']['judge'].get('discrimination'), 2)}")
    value = "unknown" if bias is None else f"{bias.value:+.3f}"
    return Card("Bias: score less gold", value, (_plain_interval(bias), *notes), "unknown" if bias is None else "")


def _calibration(page: RunPage) -> Card:
    found = _cell(page.audit, "calibration", "as read", "ECE") if page.audit else None
    if found is None or page.audit is None:
        why = "no probabilities, or no gold" if page.audit else "no audit"
        return Card("Calibration error (ECE)", "unknown", (why,), "unknown")
    notes = [_plain_interval(found)]
    after = _cell(page.audit, "calibration", "temperature", "ECE")
    if after is not None:
        notes.append(f"{after.value:.3f} after temperature, cross-fitted")
    if "conformal" in page.audit:
        width = page.audit["conformal"]["all"].get("share of scale") if _row(page.audit, "conformal", "all") else None
        if width is not None:
            notes.append(f"90% intervals cover {_share(width)} of the scale")
    return Card("Calibration error (ECE)", _value(found), tuple(filter(None, notes)))


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


def _floor(audit: Audit, column: str) -> tuple[str, float] | None:
    """The best of the judges that do not look, and its name."""
    if "beside" not in audit or column not in audit["beside"].columns:
        return None
    best: tuple[str, float] | None = None
    for cells in audit["beside"].rows:
        row = dict(zip(audit["beside"].columns, cells, strict=True))
        cell = row[column]
        value = cell.value if isinstance(cell, Estimate) else cell
        if not str(cells[0]).startswith("a judge that") or not isinstance(value, float) or math.isnan(value):
            continue
        if best is None or value > best[1]:
            best = str(cells[0]).removeprefix("a judge that "), value
    return best


def _ceiling(table: Table, column: str) -> float | None:
    for cells in table.rows:
        if _CEILING in str(cells[0]):
            cell = dict(zip(table.columns, cells, strict=True))[column]
            value = cell.value if isinstance(cell, Estimate) else cell
            return value if isinstance(value, float) and not math.isnan(value) else None
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
    return "unknown" if found is None or math.isnan(found.value) else f"{found.value:.1%}"


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
