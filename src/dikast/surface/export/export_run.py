"""`dikast export`: the rows of a run as a file or folder that other programs read."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dikast.core.errors import UserError
from dikast.core.output_folder import refuse_address, replacing
from dikast.core.records import write_records
from dikast.core.records.files import folder_of, kind_of
from dikast.core.runs.frames import write_parquet
from dikast.core.runs.run import Run
from dikast.core.runs.run_table import RunTable
from dikast.surface.export.hf_folder import write_hf_folder
from dikast.surface.export.inspect_log import write_inspect_log
from dikast.surface.export.lm_eval import write_lm_eval
from dikast.surface.export.verdict_parts import write_verdict_parts

FORMS = (
    "FILE.csv, .tsv, .jsonl, .json or .parquet; hf:FOLDER for the library `datasets`; inspect:FOLDER for Inspect;"
    " lm-eval:FOLDER for lm-evaluation-harness; parts:FOLDER for Parquet files of the verdicts of a run that goes on"
)
_PREFIXED: dict[str, Callable[[Run, RunTable, Path], int]] = {
    "hf": write_hf_folder, "inspect": write_inspect_log, "lm-eval": write_lm_eval,
}  # fmt: skip
_DATA_SETS = ("argilla", "label-studio")  # which `corpus convert` writes


class Exported(NamedTuple):
    """How many rows were written, and what is missing from them."""

    rows: int
    notes: list[str]


def export(run: Run | str | Path, out: str | Path, *, items: str | Path = "", raw: bool = False) -> Exported:
    """Write the rows of a run (`Run.table`) to `out`, whole or not at all; the same run gives the same bytes.

    out: a file whose suffix names the format (`-` is JSONL on stdout), or `hf:FOLDER`, `inspect:FOLDER` (also
    `inspect:FILE.json`), `lm-eval:FOLDER`, or `parts:FOLDER` (verdicts alone, in the order of their arrival, also of a
    run that has not ended). items: the file of items, where it has moved. In CSV and TSV, text that a spreadsheet would
    run as a formula gets an apostrophe in front, which gold files are read without, unless `raw` is set. Ids and
    keys alone are in memory. UserError for an unfinished run, an unknown form, or a folder that holds something else.
    """
    form, colon, rest = str(out).partition(":")
    refuse_address(out if rest.startswith("//") else rest)  # `hf:/data/x` is a folder
    if form == "parts" and rest:
        inside = Path(run.folder if isinstance(run, Run) else run)
        _refuse_inside(inside, rest)
        return Exported(write_verdict_parts(inside, Path(rest)), [])
    run = run if isinstance(run, Run) else Run(run)
    path = str(out)
    if colon and len(form) > 1 and os.sep not in form:
        if form in _DATA_SETS:
            raise UserError(
                f"{out}: an export is the rows of a run; {form} takes a data set of items: dikast corpus convert ITEMS"
                f" {rest or 'FILE.jsonl'} --to {form}"
            )
        if form not in _PREFIXED or not rest:
            raise UserError(f"{out}: unknown form; write to {FORMS}")
        path = rest
    elif path != "-" and not Path(path).suffix:
        raise UserError(f"{out}: the name says no format; write to {FORMS}")
    _refuse_inside(run.folder, path)
    if colon and form in _PREFIXED:
        named = form == "hf" or (form == "inspect" and not Path(path).suffix)
        folder = path if named else folder_of(path)
        table = run.table(items, folder)
        return Exported(_PREFIXED[form](run, table, Path(path)), table.notes)
    kind = kind_of(path)
    table = run.table(items, folder_of(path))
    if kind == "parquet":
        with replacing(path) as temporary:
            return Exported(sum(write_parquet(table.columns, table, lambda row: temporary).values()), table.notes)
    return Exported(write_records(path, table, escape_formulas=not raw), table.notes)


def _refuse_inside(folder: Path, path: str) -> None:
    """UserError for a place in the run folder itself."""
    inside = os.path.realpath(folder)
    if path != "-" and os.path.commonpath([inside, os.path.realpath(path)]) == inside:
        raise UserError(f"{path}: lies in the run folder itself, whose files are checked: choose another place")
