"""Pairs whose responses were graded separately, as the choices that an audit of pairs reads."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.audit.plan import AuditPlan, PairLabels
from dikast.audit.tables.row_scales import scale_of
from dikast.audit.tables.run_rows import gold_by_item, gold_scale_of, has_gold
from dikast.core.gold import gold_of_pair
from dikast.core.records import write_records
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, META, PREFERENCES
from dikast.core.runs.schema import MetaLine, PreferenceLine, derived_lines

ALONE = "each response was graded alone, so there is no order; equal scores are a tie"


@contextmanager
def of_choices(plan: AuditPlan) -> Iterator[AuditPlan]:
    """The plan to audit a run of graded pairs as choices, in a temporary file; other runs keep their plan.

    Gold is that of the run, or the columns that the plan names in its `gold_file`. A pair with a response without a
    score has no choice.
    """
    if Run(plan.file).kind != "from-absolute":
        yield plan
        return
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        file = Path(scratch, "pairs.jsonl")
        write_records(file, _rows(plan))
        labels = PairLabels("a", "b", "tie")
        read = replace(plan, gold=plan.gold or ("gold",), gold_file=None)
        yield replace(read, file=file, score="choice", pairwise=True, joint=True, pair_labels=labels)


def _gold(plan: AuditPlan) -> Mapping[str, Mapping[str, Any]]:
    """Column -> item -> gold: the run's own, or the columns of a file."""
    if plan.gold_file is None:
        return gold_by_item(plan.file / GOLD, ["gold"]) if has_gold(plan.file) else {}
    return gold_by_item(plan.gold_file, plan.gold or ("gold",), plan.key[0] if len(plan.key) == 1 else "")


def _rows(plan: AuditPlan) -> Iterator[dict[str, Any]]:
    """A row for each pair, with its item's metadata."""
    folder, gold = plan.file, _gold(plan)
    about = {line["item"]: line.get("meta", {}) for line, _ in derived_lines(folder, META, MetaLine)}
    scale = gold_scale_of(folder) or scale_of(folder)
    for line, _ in derived_lines(folder, PREFERENCES, PreferenceLine):
        item = line["item"]
        said = {
            name: gold_of_pair(values.get(item), line["criterion"], line["pair"], scale)
            for name, values in gold.items()
        }
        yield {**about.get(item, {}), "gold": None, **said, "id": item, "choice": line["choice"]}
