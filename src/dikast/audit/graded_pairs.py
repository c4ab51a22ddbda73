"""Pairs whose responses were graded separately, as the choices that an audit of pairs reads."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dikast.audit.plan import AuditPlan, PairLabels
from dikast.audit.tables.columns import MISSING
from dikast.audit.tables.record_rows import Rows, gold_by_item
from dikast.audit.tables.refs import Ref, beside
from dikast.audit.tables.row_scales import scale_of
from dikast.audit.tables.run_rows import about_columns, gold_scale_of, has_gold, kept_metadata
from dikast.core.errors import UserError
from dikast.core.gold import gold_of_pair, named_side
from dikast.core.records import write_records
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import GOLD, PREFERENCES
from dikast.core.runs.schema import PreferenceLine, derived_lines
from dikast.core.text import number_in

ALONE = "each response was graded alone, so there is no order; equal scores are a tie"

MOST_CRITERIA = 30  # with more, slices by criterion are made only for --by

_OF_RESPONSES = ("response", "system")  # columns of single responses, of which a pair has two


def plan_of_choices(plan: AuditPlan) -> AuditPlan:
    """What of the audit of a run's scores also holds for the choices that follow from them."""
    names = ("file", "gold", "gold_file", "key", "by", "cluster", "draws", "level", "seed")
    kept = {name: getattr(plan, name) for name in names}
    if plan.cluster in _OF_RESPONSES:
        kept["cluster"] = ""
    return AuditPlan(**kept, gold_rule="first" if plan.gold_rule == "first" else "")  # choices have no mean


@contextmanager
def of_choices(plan: AuditPlan) -> Iterator[AuditPlan]:
    """The plan to audit a run of graded pairs as choices, in a temporary file; other runs keep their plan.

    Gold is that of the run, or the columns that the plan names in its `gold_file`. A pair with a response without a
    score has no choice. There are no slices by columns that pairs do not have, such as that of the system of a
    response; without any asked for, several criteria are slices.
    """
    if Run(plan.file).kind != "from-absolute":
        yield plan
        return
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        file, names, criteria = Path(scratch, "pairs.jsonl"), set[str](), set[str]()

        def noted() -> Iterator[dict[str, Any]]:
            for row in choice_rows(plan):
                names.update(row)
                criteria.add(row["criterion"])
                yield row

        write_records(file, noted())
        refs = [Ref.of(name) for name in plan.by]
        by = tuple(ref.name + (f"@{beside(ref.file, plan.file)}" if ref.file else "") for ref in refs)
        if not all(ref.file or ref.name.partition(".")[0] in names for ref in refs):
            by = ()
        elif not by and 1 < len(criteria) <= MOST_CRITERIA:
            by = ("criterion",)
        labels = PairLabels("a|first", "b|second", "tie")
        read = replace(plan, gold=plan.gold or ("gold",), gold_file=None, by=by)
        yield replace(read, file=file, score="choice", pairwise=True, joint=True, pair_labels=labels)


def not_sliced(plan: AuditPlan, pairs: AuditPlan) -> list[str]:
    """What to say where choices have no slices by the columns of `plan.by`."""
    if not plan.by or pairs.by:
        return []
    return [f"choices are not sliced by {', '.join(plan.by)}: pairs of responses have no such column"]


def with_gold_beside(plan: AuditPlan, run: Path) -> AuditPlan:
    """`--gold COLUMN@FILE` of a run of graded pairs as `--gold COLUMN --gold-file FILE`, where it says which is better.

    Columns of numbers stay as they are: they rate single responses. `run` is a judge's folder. UserError for choices
    from several files.
    """
    refs = [Ref.of(name) for name in plan.gold]
    files = list(dict.fromkeys(ref.file for ref in refs))
    if plan.gold_file is not None or not any(files):
        return plan
    if ((read_lock(run) or {}).get("way") or {}).get("kind") != "from-absolute":
        return plan
    paths = {file: beside(file, plan.file) for file in files if file}
    if any(_rates(paths[ref.file], ref.name) for ref in refs if ref.file):
        return plan
    if len(files) > 1:
        raise UserError(
            f"--gold {' --gold '.join(plan.gold)}: which response is better is read from one file: put these columns "
            "into one, and name it with --gold-file"
        )
    return replace(plan, gold=tuple(ref.name for ref in refs), gold_file=Path(paths[files[0]]))


def _rates(path: str, column: str) -> bool:
    """Whether the first value of a column is a number, or a list of them: a rating and no choice."""
    for record, _ in Rows(path):
        value = record.get(column)
        if isinstance(value, str):
            value = None if value.strip() in MISSING else number_in(value.strip())
        if value is not None:
            return not isinstance(value, str)
    return False


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
        columns = about_columns(kept, pair)
        systems = columns.get("system_a"), columns.get("system_b")
        said = {name: named_side(value, systems) for name, value in said.items()}
        told = {**kept.get("meta", {}), **columns, "gold": None, **said}
        yield {
            **told, "id": item, "item": item, "criterion": criterion, "first": pair[0], "second": pair[1],
            "choice": line["choice"],
        }  # fmt: skip
