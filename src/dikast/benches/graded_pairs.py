"""Pairs whose responses were graded separately, as the choices that an audit of pairs reads."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.audit.plan import AuditPlan, PairLabels
from dikast.core.records import read_records, write_records
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, META, PREFERENCES
from dikast.core.runs.schema import GoldLine, MetaLine, PreferenceLine, derived_lines

ALONE = "each response was graded alone, so there is no order; equal scores are a tie"


@contextmanager
def of_choices(plan: AuditPlan) -> Iterator[AuditPlan]:
    """The plan to audit a run of graded pairs as choices, in a temporary file; other runs keep their plan.

    A pair with a response without a score has no choice.
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


def _rows(plan: AuditPlan) -> Iterator[dict[str, Any]]:
    """A row for each pair, with its item's metadata, and gold as the plan says: the run's, columns, or a file's."""
    folder = plan.file
    gold = {line["item"]: line["gold"] for line, _ in derived_lines(folder, GOLD, GoldLine)}
    about = {line["item"]: line.get("meta", {}) for line, _ in derived_lines(folder, META, MetaLine)}
    said = {} if plan.gold_file is None else {each.value["item"]: each.value for each in read_records(plan.gold_file)}
    for line, _ in derived_lines(folder, PREFERENCES, PreferenceLine):
        item = line["item"]
        raters = {name: said.get(item, {}).get(name) for name in plan.gold} if said else {}
        yield {**about.get(item, {}), "gold": gold.get(item), **raters, "id": item, "choice": line["choice"]}
