"""Pairs whose responses were graded separately, as the choices that an audit of pairs reads."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.audit.plan import AuditPlan, PairLabels
from dikast.audit.tables.row_scales import scale_of
from dikast.audit.tables.run_rows import about_columns, gold_by_item, gold_scale_of, has_gold, kept_metadata
from dikast.core.gold import gold_of_pair
from dikast.core.records import write_records
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, PREFERENCES
from dikast.core.runs.schema import PreferenceLine, derived_lines

ALONE = "each response was graded alone, so there is no order; equal scores are a tie"

_OF_RESPONSES = ("response", "system")  # columns of single responses, of which a pair has two


def plan_of_choices(plan: AuditPlan) -> AuditPlan:
    """What of the audit of a run's scores also holds for the choices that follow from them."""
    names = ("file", "gold", "gold_file", "key", "cluster", "draws", "level", "seed")
    kept = {name: getattr(plan, name) for name in names}
    if plan.cluster in _OF_RESPONSES:
        kept["cluster"] = ""
    return AuditPlan(**kept, gold_rule="first" if plan.gold_rule == "first" else "")  # choices have no mean


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
        write_records(file, choice_rows(plan))
        labels = PairLabels("a", "b", "tie")
        read = replace(plan, gold=plan.gold or ("gold",), gold_file=None)
        yield replace(read, file=file, score="choice", pairwise=True, joint=True, pair_labels=labels)


def _gold(plan: AuditPlan) -> Mapping[str, Mapping[str, Any]]:
    """Column -> item -> gold: the run's own, or the columns of a file."""
    if plan.gold_file is None:
        return gold_by_item(plan.file / GOLD, ["gold"]) if has_gold(plan.file) else {}
    return gold_by_item(plan.gold_file, plan.gold or ("gold",), plan.key[0] if len(plan.key) == 1 else "")


def choice_rows(plan: AuditPlan) -> Iterator[dict[str, Any]]:
    """A row for each pair of a run of graded pairs: its choice, its gold, and what is known of its item."""
    folder, gold = plan.file, _gold(plan)
    about = kept_metadata(folder)
    scale = gold_scale_of(folder) or scale_of(folder)
    for line, _ in derived_lines(folder, PREFERENCES, PreferenceLine):
        item, criterion, pair = line["item"], line["criterion"], line["pair"]
        said = {name: gold_of_pair(values.get(item), criterion, pair, scale) for name, values in gold.items()}
        kept = about.get(item, {})
        told = {**kept.get("meta", {}), **about_columns(kept, pair), "gold": None, **said}
        yield {
            **told, "id": item, "item": item, "criterion": criterion, "first": pair[0], "second": pair[1],
            "choice": line["choice"],
        }  # fmt: skip
