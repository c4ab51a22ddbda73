"""What the report shows of somebody's file of verdicts: its audit, its labels, and the rows most worth reading."""

import dataclasses
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dikast.audit.audit import audit_file
from dikast.audit.plan import AuditPlan
from dikast.audit.tables.columns import MISSING
from dikast.audit.tables.record_rows import Rows
from dikast.audit.verdict_columns import with_columns
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.records.arranging import Arrangement, Arranger, number_in
from dikast.core.records.files import folder_of
from dikast.core.records.reading import Record
from dikast.core.scale import Scale
from dikast.surface.report.collect import MOST_LABELS, RunPage
from dikast.surface.report.contents import Thumbs
from dikast.surface.report.queue import FAILED_SHARE, Entry, Said, add_texts
from dikast.surface.report.report_options import Asked

_CHOICES = ("a", "b", "tie")


@dataclasses.dataclass(slots=True)
class _Row:
    """A row that the queue may show. `gap` is in the values of the column, NaN without gold or without a verdict."""

    record: dict[str, Any]
    line: int
    said: str
    gold: str
    status: str
    gap: float


def collect_table(path: Path, asked: Asked) -> RunPage:
    """One page of a file of verdicts; columns that nobody named are recognised (`audit.verdict_columns`).

    Raises UserError or DataError where the file cannot be read, and where columns are not clear.
    """
    plan, told = with_columns(dataclasses.replace(asked.plan, file=path))
    page = RunPage(path, path.stem, "pairwise" if plan.pairwise else "absolute")
    page.summary = {"judge": f"column {plan.score}"}
    page.missing += [f"columns: {told}"] if told else []
    if not plan.gold:
        page.missing.append("no gold: agreement and gaps are unknown; name people's column with --gold")
    if plan.scale is None and not plan.pairwise and not plan.unscaled:
        page.missing.append("no scale is known: only correlations and order are told; name it with --scale")
    page.audit = audit_file(plan)
    page.one_order = page.pairwise and not plan.swapped
    _read(page, plan, asked)
    return page


def _read(page: RunPage, plan: AuditPlan, asked: Asked) -> None:
    """One pass over the rows, for labels and queue."""
    said, true, ends = Counter[str](), Counter[str](), [math.inf, -math.inf]
    gaps: list[tuple[float, int, _Row]] = []
    failed: list[_Row] = []
    count = itertools.count()
    for record, line in Rows(str(plan.file)):
        row = _row(record, line, plan, ends)
        page.rows += 1
        page.differing += row.status != "ok" or row.gap > 0
        page.failed += row.status != "ok"
        said.update([row.said] if row.status == "ok" else [])
        true.update([row.gold] if row.gold else [])
        if row.status != "ok":
            failed += [row] if len(failed) < asked.queue else []
            continue
        entry = (-1.0 if math.isnan(row.gap) else row.gap, -next(count), row)
        if len(gaps) < asked.queue:
            heapq.heappush(gaps, entry)
        elif gaps and entry[:2] > gaps[0][:2]:
            heapq.heapreplace(gaps, entry)
    names = sorted({*said, *true}, key=lambda name: (isinstance(number_in(name), str), str(number_in(name)).zfill(12)))
    page.labels = {name: (said[name], true[name]) for name in names} if len(names) <= MOST_LABELS else {}
    lost = failed[: max(asked.queue - len(gaps), asked.queue // FAILED_SHARE)]
    chosen = [row for *_, row in sorted(gaps, key=lambda each: each[:2], reverse=True)][: asked.queue - len(lost)]
    span = 1.0 if plan.pairwise else plan.scale.high - plan.scale.low if plan.scale else max(ends[1] - ends[0], 1e-9)
    page.entries = _entries([*chosen, *lost], plan, span, redact=asked.redact)


def _row(record: dict[str, Any], line: int, plan: AuditPlan, ends: list[float]) -> _Row:
    shown = _text(record.get(plan.score))
    golds = [_text(record.get(name)) for name in plan.gold]
    if plan.pairwise:
        score, values = _choice(shown, plan), [_choice(each, plan) for each in golds]
        off = score is None
    else:
        score, values = _number(shown, plan.scale), [_number(each, plan.scale) for each in golds]
        off = score is not None and plan.scale is not None and score not in plan.scale.values
        ends[0], ends[1] = min(ends[0], *_known([score, *values])), max(ends[1], *_known([score, *values]))
    status = "missing" if not shown else "off_scale" if off or score is None else "ok"
    rated = _known(values)
    gold = sum(rated) / len(rated) if rated else math.nan
    gap = abs(score - gold) if status == "ok" and score is not None else math.nan
    told = golds[0] if len(golds) == 1 else "" if math.isnan(gold) else f"{gold:g}"
    return _Row(
        record, line, _label(shown, score, plan), _label(told, values[0] if values else None, plan), status, gap
    )


def _known(values: Sequence[float | None]) -> list[float]:
    return [each for each in values if each is not None and not math.isnan(each)]


def _text(value: Any) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value).strip()
    return "" if text in MISSING else text


def _number(text: str, scale: Scale | None) -> float | None:
    label = scale.match(text) if scale is not None and text else None
    if scale is not None and label is not None:
        return scale.value(label)
    found = number_in(text)
    return None if isinstance(found, str) else float(found)


def _choice(text: str, plan: AuditPlan) -> float | None:
    """What the first response earns."""
    if plan.pair_labels is None:
        return {"a": 1.0, "first": 1.0, "b": 0.0, "second": 0.0, "tie": 0.5}.get(text.casefold())
    code = plan.pair_labels.codes().get(text.casefold())
    return None if code is None else (1.0, 0.0, 0.5)[code]


def _label(text: str, value: float | None, plan: AuditPlan) -> str:
    """A label as it is counted: of pairs a, b or tie, whatever the file calls them."""
    return text if not plan.pairwise or value is None else _CHOICES[(1.0, 0.0, 0.5).index(value)] if value in (
        1.0, 0.0, 0.5,
    ) else text  # fmt: skip


def _entries(rows: Sequence[_Row], plan: AuditPlan, span: float, *, redact: bool) -> list[Entry]:
    found, thumbs = [], Thumbs()
    named = {plan.score, *plan.gold}
    arrange = Arranger({}, Arrangement())
    for row in rows:
        item = None if redact else _item(row, arrange, named, str(plan.file))
        name = next((str(row.record[key]) for key in ("id", "uid") if row.record.get(key)), f"line {row.line}")
        entry = Entry(
            anchor="v-" + fingerprint([str(plan.file), row.line])[:12],
            item=name,
            criterion=plan.score,
            sample=0,
            response=None,
            gap=row.gap / span,
            status=row.status,
            verdict=row.said or "none",
            gold=row.gold,
            said=[_said(row, redact=redact)],
        )
        if item is not None:
            responses = [0, 1] if plan.pairwise else [0]
            add_texts(entry, item, responses, thumbs)
        found.append(entry)
    return found


def _item(row: _Row, arrange: Arranger, named: set[str], path: str) -> Item | None:
    """The texts of a row; None where its columns do not tell them."""
    record = {key: each for key, each in row.record.items() if key not in named}
    try:
        return arrange.item(Record(record, row.line), path=path, root=folder_of(path))
    except (DataError, UserError):
        return None


def _said(row: _Row, *, redact: bool) -> Said:
    why: Mapping[str, str] = {key.casefold(): str(each) for key, each in row.record.items() if isinstance(each, str)}
    told = next(
        (why[name] for name in ("feedback", "rationale", "explanation", "reason", "critique") if name in why), ""
    )
    return Said("", row.status, row.said, "", "" if redact else told, "", {}, None, None, "", 1)
