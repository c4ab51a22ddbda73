"""What the report shows of somebody's file of verdicts: its audit, its labels, and the rows most worth reading."""

import dataclasses
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from dikast.audit.audit import audit_rows, judged_scores
from dikast.audit.plan import AuditPlan
from dikast.audit.tables import choices
from dikast.audit.tables.choices import FIRST, SECOND, TIE
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import paired
from dikast.audit.tables.record_rows import Rows
from dikast.audit.tables.run_rows import LABELS
from dikast.audit.tables.statuses import OK
from dikast.audit.verdict_columns import with_columns
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records.arranging import Arranger
from dikast.core.records.files import folder_of
from dikast.core.records.reading import Record
from dikast.core.records.shapes.arrangement import Arrangement
from dikast.core.scale import Scale
from dikast.core.text import number_in
from dikast.core.verdict import DISAGREE
from dikast.surface.judge_runs import tell_columns
from dikast.surface.report.by_length import of_lengths
from dikast.surface.report.collecting.row_counts import MOST_LABELS, MOST_LENGTHS
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.contents import Thumbs, as_judged
from dikast.surface.report.queue import FAILED_SHARE, Entry, Said, add_texts
from dikast.surface.report.report_options import Asked

_CHOICES = {FIRST: "a", SECOND: "b", TIE: "tie", choices.DISAGREE: DISAGREE}
_WORTH = {"a": 1.0, "b": 0.0, "tie": 0.5}


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """A row as the audit has it. `gap` is in the values of the column, NaN without gold or without a verdict."""

    line: int
    said: str
    gold: str
    status: str
    gap: float
    right: float = math.nan  # gold as a number; of pairs, what the first response earns by it


def collect_table(path: Path, asked: Asked) -> RunPage:
    """One page of a file of verdicts; columns that nobody named are recognised (`audit.verdict_columns`).

    Raises UserError or DataError where the file cannot be read, and where columns are not clear.
    """
    plan, told = dataclasses.replace(asked.plan, file=path), ""
    if not (plan.long or (plan.logprobs and not plan.score)):
        plan, told = with_columns(plan)
        tell_columns(str(path), told and f"columns {told}")
    page = RunPage(path, path.stem, "pairwise" if plan.pairwise else "absolute")
    page.summary = {"judge": f"column {plan.score}" if plan.score else "probabilities"}
    page.missing += [f"columns: {told}"] if told else []
    page.gaps = bool(plan.gold) and (plan.pairwise or plan.scale is not None)
    if not plan.gold:
        page.missing.append("no gold: agreement and gaps are unknown; name people's column with --gold")
    if plan.scale is None and not plan.pairwise and not plan.unscaled:
        page.missing.append("no scale is known: only correlations and order are reported; name it with --scale")
    if plan.gold and not page.gaps:
        page.missing.append("no gaps: scores and gold are not known to lie on one scale, so none is told")
    page.audit, data = audit_rows(plan)
    rows = sorted(_pairs(page, data) if plan.pairwise else _scores(data), key=lambda row: row.line)
    page.rows, page.failed = len(rows), sum(row.status != OK for row in rows)
    page.differing = page.failed + sum(row.gap > 0 for row in rows)
    _measure_texts(page, rows, plan)
    said, true = Counter(row.said for row in rows if row.status == OK), Counter(row.gold for row in rows if row.gold)
    outcomes = {*LABELS, DISAGREE} if plan.pairwise and not page.one_order else set()
    names = sorted({*outcomes, *said, *true}, key=lambda name: _place(name, plan.scale))
    page.labels = {name: (said[name], true[name]) for name in names} if len(names) <= MOST_LABELS else {}
    lost = [row for row in rows if row.status != OK][: asked.queue]
    judged = sorted((row for row in rows if row.status == OK), key=_furthest)
    lost = lost[: max(asked.queue - len(judged), asked.queue // FAILED_SHARE)]
    queued = [*judged[: asked.queue - len(lost)], *lost]
    others = _without(rows, queued)
    sample = random.Random(plan.seed).sample(others, min(asked.sample, len(others)))
    thumbs, read = Thumbs(asked.pictures), partial(_entries, plan=plan, span=_span(plan), redact=asked.redact)
    shown = list(read([*queued, *sample], thumbs))
    page.entries, page.sample, page.seed = shown[: len(queued)], shown[len(queued) :], plan.seed
    if asked.rest and (rest := _without(others, sample)):
        page.others = partial(read, rest)
    return page


def _measure_texts(page: RunPage, rows: Sequence[_Row], plan: AuditPlan) -> None:
    """How well the length of the responses alone agrees with gold, and how many texts are different ones, of the rows
    with a verdict and gold among the first of the file.
    """
    due = {row.line: row.right for row in rows[:MOST_LENGTHS] if row.status == OK and not math.isnan(row.right)}
    if len({row.line for row in rows}) < len(rows):  # of records on one line nobody can tell which one a row is
        return
    named, arrange = {plan.score, plan.swapped, *plan.gold}, Arranger({}, Arrangement())
    sizes, gold, texts, last = list[list[int]](), list[float](), set[int](), max(due, default=0)
    for record, line in itertools.takewhile(lambda each: each[1] <= last, Rows(str(plan.file))):
        item = _item(record, line, arrange, named, str(plan.file)) if line in due else None
        if item is not None and len(item.responses) == 1 + page.pairwise:
            sizes.append([len(text_of(each)) for each in item.responses])
            gold.append(due[line])
            texts.add(as_judged(item, range(len(item.responses))))
    page.length_alone = of_lengths(sizes, gold)
    page.texts = len(texts) if len(sizes) == len(due) else 0


def _furthest(row: _Row) -> float:
    return 1.0 if math.isnan(row.gap) else -row.gap


def _pairs(page: RunPage, data: Data) -> Iterator[_Row]:
    """Joint verdicts of both orders, or those of the only one; orders that disagree lie half a win from any gold."""
    given = paired(data)
    page.one_order = given.one_order
    if given.final is None or given.status is None:
        return
    for i, (code, right) in enumerate(zip(given.final.tolist(), given.gold.tolist(), strict=True)):
        status, said, gold = given.status.at(i), _CHOICES.get(code, ""), _CHOICES.get(right, "")
        gap = math.nan
        if status == OK and said and gold:
            gap = 0.5 if said == DISAGREE else abs(_WORTH[said] - _WORTH[gold])
        yield _Row(int(data.frame.lines[i]), said, gold, status, gap, _WORTH.get(gold, math.nan))


def _scores(data: Data) -> Iterator[_Row]:
    given, _ = judged_scores(data)
    if given is None:
        return
    for i, (score, gold) in enumerate(zip(given.score.tolist(), given.gold.tolist(), strict=True)):
        said, right = _label(score, data.plan.scale), _label(gold, data.plan.scale)
        gap = abs(score - gold) if data.plan.scale is not None else math.nan
        yield _Row(int(data.frame.lines[i]), said, right, given.status.at(i), gap, gold)


def _label(value: float, scale: Scale | None) -> str:
    if math.isnan(value):
        return ""
    return (scale.label(value) if scale is not None else None) or f"{value:g}"


def _place(name: str, scale: Scale | None) -> tuple[float, str]:
    """Where a label stands among others: by its value, words by themselves after these."""
    if scale is not None and (label := scale.match(name)) is not None:
        return scale.value(label), ""
    number = number_in(name)
    return (math.inf, name) if isinstance(number, str) else (float(number), "")


def _span(plan: AuditPlan) -> float:
    """What the largest possible gap is."""
    return plan.scale.high - plan.scale.low if plan.scale is not None and not plan.pairwise else 1.0


def _without(rows: Sequence[_Row], shown: Sequence[_Row]) -> list[_Row]:
    """The rows that are not shown."""
    taken = set(map(id, shown))
    return [row for row in rows if id(row) not in taken]


def _entries(rows: Sequence[_Row], thumbs: Thumbs, *, plan: AuditPlan, span: float, redact: bool) -> Iterator[Entry]:
    """Rows with what their records say, in their order."""
    named = {plan.score, plan.swapped, *plan.gold}
    arrange, wanted = Arranger({}, Arrangement()), {row.line for row in rows}
    records: dict[int, dict[str, Any]] = {}
    for record, line in Rows(str(plan.file)):
        if line in wanted:  # of a JSON file on one line nobody can tell which record a row is
            records[line] = record if line not in records else {}
    for row in rows:
        record = records.get(row.line, {})
        item = None if redact else _item(record, row.line, arrange, named, str(plan.file))
        name = next(
            (str(record[key]) for key in ("id", "uid") if record.get(key) not in (None, "")), f"line {row.line}"
        )
        raw = record.get(plan.score)
        verdict = row.said or ("" if raw is None else str(raw).strip()) or "none"
        entry = Entry(
            anchor="v-" + fingerprint([str(plan.file), row.line])[:12],
            item=name,
            criterion=plan.score,
            sample=0,
            response=None,
            gap=row.gap / span,
            status=row.status,
            verdict=verdict,
            gold=row.gold,
            said=[_said(row.status, verdict, record, redact=redact)],
        )
        if item is not None:
            responses = [0, 1] if plan.pairwise else [0]
            add_texts(entry, item, responses, thumbs)
        yield entry


def _item(record: dict[str, Any], line: int, arrange: Arranger, named: set[str], path: str) -> Item | None:
    """The texts of a row; None where its columns do not tell them."""
    kept = {key: each for key, each in record.items() if key not in named}
    try:
        return arrange.item(Record(kept, line), path=path, root=folder_of(path))
    except (DataError, UserError):
        return None


def _said(status: str, verdict: str, record: Mapping[str, Any], *, redact: bool) -> Said:
    why: Mapping[str, str] = {key.casefold(): str(each) for key, each in record.items() if isinstance(each, str)}
    told = next(
        (why[name] for name in ("feedback", "rationale", "explanation", "reason", "critique") if name in why), ""
    )
    return Said("", status, verdict, "", "" if redact else told, "", {}, None, None, "", 1)
