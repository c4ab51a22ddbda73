"""The verb `dikast export`."""

from pathlib import Path
from typing import Annotated

import typer

from dikast.judging.run_options import MediaOptions
from dikast.surface.terminal import echo
from dikast.surface.verbs import verb


@verb
def export(
    run: Annotated[Path, typer.Argument(help="The run folder, of one judge or of a panel.")],
    out: Annotated[
        str,
        typer.Argument(
            help="FILE.csv, .tsv, .jsonl, .json or .parquet; hf:FOLDER, inspect:FOLDER, lm-eval:FOLDER,"
            " parts:FOLDER; - is JSONL on stdout."
        ),
    ],
    items: Annotated[str, typer.Option("--items", help="The items file, if it was moved.")] = "",
    raw: Annotated[
        bool, typer.Option("--raw", help="CSV and TSV: do not escape text that a spreadsheet would run as a formula.")
    ] = False,
    *,
    media: MediaOptions,
) -> None:
    """Write a run for other programs: the items' columns, scores, status, distribution, feedback.

    Example: dikast export runs/first verdicts.csv
    """
    from dikast.core.text import counted
    from dikast.surface.export.export_run import export as export_run

    done = export_run(run, out, items=items, raw=raw)
    echo(
        f"{out}: {counted(done.rows, 'sample' if ':' in out and not out.startswith(('hf:', 'parts:')) else 'row')}",
        err=True,
    )
    for note in done.notes:
        echo(f"note: {note}", err=True)
