"""What the judges of an audit are called, for tables that hold two of them."""

from pathlib import Path
from typing import NamedTuple

import orjson

from dikast.audit.plan import AuditPlan
from dikast.audit.tables.refs import Ref
from dikast.core.runs.run_files import SUMMARY

_TAKEN = ("statistic", "difference")  # the other columns of such a table


class Judges(NamedTuple):
    """The names of the audited judge and of the second one; never the same."""

    own: str
    rival: str


def judge_names(plan: AuditPlan) -> Judges:
    """A run folder's judge by its name, and by its folder too where both are called alike; a column by its own."""
    ref = Ref.of(plan.rival)
    folders = plan.file, Path(ref.file) if ref.file else plan.file
    columns = plan.score, ref.name
    found = [_name(folder, column) for folder, column in zip(folders, columns, strict=True)]
    if found[0] == found[1]:
        places = [folder.name for folder in folders]
        if places[0] == places[1]:
            places = ["/".join(folder.resolve().parts[-2:]) for folder in folders]
        found = [f"{name} ({place})" for name, place in zip(found, places, strict=True)]
    if found[0] == found[1]:  # one column twice
        found[1] += ", second"
    return Judges(*(f"{name} (judge)" if name in _TAKEN else name for name in found))


def _name(folder: Path, column: str) -> str:
    """The judge of a run folder, with the column where it is not the verdict itself; the column of another file."""
    if not folder.is_dir():
        return column or "the judge"
    try:
        value = orjson.loads((folder / SUMMARY).read_bytes())
        judge = str(value["judge"])
    except (OSError, ValueError, KeyError, TypeError):
        judge = folder.resolve().name
    plain = column in ("", "score", "label", "choice", "shown")
    return judge if plain else f"{judge}, {column}"
