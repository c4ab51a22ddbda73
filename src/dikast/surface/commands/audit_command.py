"""The verb `dikast audit`: a thin wrapper around `dikast.audit.audit.audit_file`."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dikast.audit.plan import AuditPlan, Column
from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.text import Located, counted, one_line
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, verb

if TYPE_CHECKING:
    from dikast.audit.rendering import Audit, Table

_READ = ("score", "swapped", "retest", "earlier")  # roles of columns that hold the judge's own verdicts
_ANYWAY = {
    "file",
    "draws",
    "level",
    "seed",
    "scale",
    "unscaled",
    "by",
    "replies",
}  # columns that are neither verdicts nor gold
CONFIG = "YAML file with flags and derived `columns:`; the command line takes precedence."
_MOST_INTERVALS = 3  # with more cells in a row, intervals are printed as ±half-width


def mistakes_in_columns(document: Located) -> list[str]:
    """What is wrong with the derived columns of a configuration."""
    from dikast.audit.tables.column_file import read_columns

    return read_columns(document)[1]


@partial(
    verb,
    config=CONFIG,
    sections={"columns": mistakes_in_columns},
)
def audit(
    plan: AuditPlan,
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            help="Such as 1-5, pass/fail or poor<fair<good; none for no scale. Scores off it are failures, gold off it "
            "is an error.",
        ),
    ] = "",
    parse: Annotated[
        str,
        typer.Option(
            "--parse",
            metavar="DIALECT",
            help="The verdict columns hold raw replies: parse them with this dialect (docs/prompts.md).",
        ),
    ] = "",
    *,
    shown: JsonOptions,
    config: Any = None,
) -> None:
    """Measure how far verdicts can be trusted: failures, agreement with gold and among raters, baselines, bias.

    Example: dikast audit verdicts.csv --score score --gold human_1 --gold human_2 --scale 1-5 --by rubric
    """
    from dikast.audit.panel_audit import audit_source
    from dikast.audit.tables.column_file import read_columns

    columns = read_columns(config)[0] if config else []
    plan, told = recognised(completed(plan, columns, scale, parse))
    if told:
        echo(f"{plan.file}: columns {told}", err=True)
    found = audit_source(plan)
    if shown.json:
        echo_json(found.to_dict())
    else:
        show(found)


def show(found: "Audit") -> None:
    """Print an audit on stdout."""
    echo(f"{found.source}: {counted(found.rows, 'row')}")
    for note in found.notes:
        echo(f"  ! {note}")
    for each in found:
        echo("")
        show_table(each)


def show_table(found: "Table") -> None:
    """Print one table on stdout. Tables are never cut; a narrow terminal wraps them."""
    from dikast.audit.estimate import Estimate
    from dikast.audit.rendering import shown

    many = bool(found.rows) and sum(isinstance(cell, Estimate) for cell in found.rows[0]) > _MOST_INTERVALS
    cells = [list(found.columns), *([shown(cell, compact=many) for cell in row] for row in found.rows)]
    cells = [[one_line(cell) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    echo(one_line(found.title, 1000), bold=True)
    for i, row in enumerate(cells):
        name, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        line = "  ".join([name.strip().ljust(widths[0]), *rest]).rstrip()
        echo(f"  {line}", dim=i == 0)
    for note in found.notes:
        echo(f"  * {note}")


def completed(plan: AuditPlan, columns: Sequence[Column], scale: str, parse: str) -> AuditPlan:
    """The plan with derived columns, the scale ("none" leaves it open), and replies read in the dialect `parse`."""
    plan = replace(
        plan,
        columns=tuple(columns),
        scale=Scale.parse(scale) if scale not in ("", "none") else None,
        unscaled=scale == "none",
        pairwise=plan.pairwise or bool(plan.soft or plan.pair_labels or plan.swapped or plan.first or plan.second),
    )
    return with_replies(plan, parse)


def recognised(plan: AuditPlan) -> tuple[AuditPlan, str]:
    """A plan without named columns, with the columns recognised in the file; and one line that says which.

    Of a plan that names one column of gold alone, the column of verdicts is recognised.
    """
    named = {each.name for each in fields(plan) if getattr(plan, each.name) != each.default} - _ANYWAY
    if not plan.file.is_file() or (
        named and not (named == {"gold"} and len(plan.gold) == 1 and "*" not in plan.gold[0])
    ):
        return plan, ""
    from dikast.audit.verdict_columns import with_columns

    return with_columns(plan)


def with_replies(plan: AuditPlan, dialect: str) -> AuditPlan:
    """The plan with readers of replies and, if `dialect` is given, with the judge's verdicts parsed from replies."""
    from dikast.prompts.recorded import reply_reader

    plan = replace(plan, replies=reply_reader)
    if not dialect:
        return plan
    if not plan.score:
        raise UserError("--parse: name the column of replies with --score")
    if plan.ranked:
        raise UserError("--parse: does not apply to rankings; leave it out")
    changes, columns = dict[str, Any](), list(plan.columns)
    for role in _READ:
        if column := getattr(plan, role):
            name, also = column.partition("@")[0], "" if role == "score" else f" ({role})"
            changes[role] = f"{name}{also} read as {dialect}"
            columns.append(Column(changes[role], "parse", (column,), dialect=dialect))
    return replace(plan, columns=tuple(columns), **changes)
