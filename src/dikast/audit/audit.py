"""The audit of a file: load what the plan names, measure what can be measured, say what was left out."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from dikast.audit.absolute import (
    agreement_table,
    beside_table,
    class_table,
    confusion_table,
    group_codes,
    rival_table,
    systems_table,
)
from dikast.audit.failures import failure_table
from dikast.audit.human import rater_pairs_table, raters_table
from dikast.audit.load import Data, Ref, load
from dikast.audit.plan import AuditPlan
from dikast.audit.report import Audit, Cell, Table, table
from dikast.audit.rows import VERDICTS
from dikast.audit.scored import Scored, scored
from dikast.audit.slices import slice_table
from dikast.core.errors import UserError
from dikast.core.records import read_records


def audit_file(plan: AuditPlan) -> Audit:
    """Everything the columns of `plan` allow to say about the verdicts in its file.

    Scores, pairs (`plan.pairwise`) or rankings (`plan.ranked`); a run folder says by itself which it holds. Raises
    UserError or DataError for input that cannot be used.
    """
    plan = _completed(plan)
    data = load(plan)
    if plan.ranked:
        raise NotImplementedError
    tables = _pairs(data) if plan.pairwise else _scores(data)
    if plan.means:
        tables.append(_means_table(data))
    if not tables:
        raise UserError(f"{plan.file}: name a column of verdicts with --score, of gold with --gold, or both")
    return Audit(str(plan.file), len(data), tuple(tables), tuple(data.notes), plan.to_dict())


def _completed(plan: AuditPlan) -> AuditPlan:
    """Fill in what a run folder says by itself."""
    if not plan.file.is_dir():
        return plan
    first = next(iter(read_records(_verdicts(plan.file)))).value
    changes: dict[str, Any] = {}
    if len(first["question"].get("responses") or [0]) == 2:
        changes = {"pairwise": True, "score": plan.score or "choice", "swapped": plan.swapped or "swapped"}
    elif not plan.score:
        changes = {"score": "score"}
    if not plan.gold and (plan.gold_file is not None or (plan.file / "gold.jsonl").exists()):
        changes["gold"] = ("gold",)
    return dataclasses.replace(plan, **changes)


def _verdicts(folder: Path) -> Path:
    if not (folder / VERDICTS).exists():
        raise UserError(f"{folder}: not a run folder: it holds no {VERDICTS}")
    return folder / VERDICTS


def _scores(data: Data) -> list[Table]:
    plan, how = data.plan, data.plan.resampling
    if "score" not in data.numbers:
        if not plan.gold:
            return []
        return _raters(data, scored(data, np.full(len(data), np.nan)))
    given = scored(data, data.numbers["score"])
    tables = [failure_table(given.statuses, how.level, data.words.get("marker"))]
    if plan.gold:
        tables.append(agreement_table(given, how))
        tables.append(beside_table(data, given, how))
        if given.scale is not None and given.paired.any():
            if len(given.scale.labels) <= 20:
                tables.append(confusion_table(given))
            if np.isin(given.gold[given.paired], np.asarray(given.scale.values)).all():
                tables.append(class_table(given))
        if "rival" in data.numbers:
            tables.append(rival_table(Ref.of(plan.rival).name, data.numbers["rival"], given, how))
        for words, name in _slices(data):
            codes, names = words
            tables.append(slice_table(codes, names, given, how, name))
        if "system" in data.words:
            tables.append(systems_table(data.words["system"], given, how))
    tables.extend(_raters(data, given))
    return tables


def _slices(data: Data) -> list[tuple[tuple[np.ndarray, list[str]], str]]:
    words = [data.words[f"by {i}"] for i in range(len(data.plan.by))]
    return [(group_codes(words), " x ".join(Ref.of(name).name for name in data.plan.by))] if words else []


def _raters(data: Data, given: Scored) -> list[Table]:
    if len(given.raters) < 2:
        return []
    plan, how = data.plan, data.plan.resampling
    shared = True
    return [
        raters_table(given.raters, how, nominal=plan.pairwise, cluster=given.cluster),
        rater_pairs_table(given.raters, plan.gold, how, nominal=plan.pairwise, shared=shared),
    ]


def _pairs(data: Data) -> list[Table]:
    raise NotImplementedError


def _means_table(data: Data) -> Table:
    """Means of any numeric columns, per slice where there are slices."""
    from dikast.audit.measures import Estimate
    from dikast.audit.intervals import bootstrap, weighted_mean

    how = data.plan.resampling
    groups = _slices(data)
    codes, names = groups[0][0] if groups else (np.zeros(len(data), np.int64), ["all"])
    rows: list[list[Cell]] = []
    for (i, column), (code, name) in itertools.product(enumerate(data.plan.means), enumerate(names)):
        values = data.numbers[f"mean {i}"][codes == code]
        known = values[~np.isnan(values)]
        draws = bootstrap(weighted_mean(known), len(known), how) if len(known) > 1 else np.array([np.nan])
        value = float(known.mean()) if len(known) else float("nan")
        found = Estimate(value, len(known), *how.interval(draws), how.level, "bootstrap", len(values) - len(known))
        rows.append([f"{name}: {column}" if groups else column, len(known), found])
    return table("means", "Means", ("column", "n", "mean"), rows)
