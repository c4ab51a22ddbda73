"""Pairs whose responses were graded separately, as the choices that an audit of pairs reads."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.audit.plan import AuditPlan, PairLabels
from dikast.core.records import write_records
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
        write_records(file, _rows(plan.file))
        labels = PairLabels("a", "b", "tie")
        gold = replace(plan, gold=("gold",), gold_file=None, gold_rule="")
        yield replace(gold, file=file, score="choice", pairwise=True, joint=True, pair_labels=labels)


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    gold = {line["item"]: line["gold"] for line, _ in derived_lines(folder, GOLD, GoldLine)}
    about = {line["item"]: line.get("meta", {}) for line, _ in derived_lines(folder, META, MetaLine)}
    for line, _ in derived_lines(folder, PREFERENCES, PreferenceLine):
        item = line["item"]
        yield {**about.get(item, {}), "id": item, "choice": line["choice"], "gold": gold.get(item)}
