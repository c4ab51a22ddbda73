"""What `dikast audit` reads from its configuration: flags, and columns derived from others; and `--parse`."""

import dataclasses
from typing import TYPE_CHECKING, Any

import typer

from dikast.core.errors import UserError
from dikast.surface.config import read_config

if TYPE_CHECKING:
    from dikast.audit.plan import AuditPlan

_SECTION = "columns"
_READ = ("score", "swapped", "retest", "earlier")  # what the judge itself said


def load_audit_config(context: typer.Context, path: str | None) -> tuple[Any, ...]:
    """The derived columns of a configuration, its flags as for every verb; all mistakes of both are told at once."""
    from dikast.audit.column_file import read_columns

    document = read_config(context, path, {_SECTION: lambda document: read_columns(document)[1]})
    return () if document is None else tuple(read_columns(document)[0])


def with_replies(plan: "AuditPlan", dialect: str) -> "AuditPlan":
    """The plan with what reads replies, and where `dialect` is given, with the judge's verdicts read from replies."""
    from dikast.audit.plan import Column
    from dikast.prompts.recorded import reply_reader

    plan = dataclasses.replace(plan, replies=reply_reader)
    if not dialect:
        return plan
    if not plan.score:
        raise UserError("--parse: name the column of replies with --score")
    if plan.ranked:
        raise UserError("--parse: has no meaning for rankings; leave it out")
    changes, columns = dict[str, Any](), list(plan.columns)
    for role in _READ:
        if column := getattr(plan, role):
            name, also = column.partition("@")[0], "" if role == "score" else f" ({role})"
            changes[role] = f"{name}{also} read as {dialect}"
            columns.append(Column(changes[role], "parse", (column,), dialect=dialect))
    return dataclasses.replace(plan, columns=tuple(columns), **changes)
