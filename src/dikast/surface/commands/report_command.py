"""The verbs that show what runs say: `dikast report`, `dikast view`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dikast.core.checking import option
from dikast.core.errors import UserError
from dikast.core.text import in_shell
from dikast.judging.run_options import MediaOptions
from dikast.surface.commands.audit_command import CONFIG, mistakes_in_columns
from dikast.surface.report.report_options import ReportOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, verb

if TYPE_CHECKING:
    from dikast.audit.plan import Column
    from dikast.surface.report.report_file import Written


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """Which folder of runs is shown, and on which port."""

    folder: Path = option(Path("runs"), argument=True, help="The folder of runs; those in its folders are shown too.")
    port: int = option(8070, least=0, most=65535, help="The port on 127.0.0.1; 0 takes a free one.")


@partial(verb, config=CONFIG, sections={"columns": mistakes_in_columns})
def report(told: ReportOptions, media: MediaOptions, *, shown: JsonOptions, config: Any = None) -> None:
    """Write the results of runs, or of any file of verdicts, as one self-contained page, with gates for CI.

    Example: dikast report runs/mine -o report.html -o report.md --fail-under pearson.low=.7 --fail-over failed=.02
    """
    from dikast.audit.tables.column_file import read_columns

    written = written_report(told, read_columns(config)[0] if config else [])
    if shown.json:
        echo_json(written.numbers)
    else:
        for path in told.out:
            echo(f"{path} ({path.stat().st_size / 1e6:.2f} MB)")
    for gate in written.gates:
        echo(f"{'met' if gate.met else 'NOT MET'}: {gate}", err=True)
    if any(not gate.met for gate in written.gates):
        raise typer.Exit(4)


def written_report(told: ReportOptions, columns: "Sequence[Column]") -> "Written":
    """The report of what the paths hold: runs and files of verdicts, one alignment, or benches."""
    from dikast.surface.alignment_report.alignment_page import is_alignment, write_alignment_report
    from dikast.surface.benching.bench_report import cards_for, holds_benches, write_cards
    from dikast.surface.report.report_file import Written, check_report, write_report

    if any(map(is_alignment, told.runs)):
        if len(told.runs) > 1 or told.fail_under or told.fail_over:
            raise UserError("an alignment has a page of its own: give its folder alone, without gates")
        return Written(told.out, [], [], write_alignment_report(told.runs[0], told.out, told.title or ""))
    if any(map(holds_benches, told.runs)):
        cards = cards_for(told)
        write_cards(cards, told.out)
        return Written(told.out, [], [], [card.to_dict() for card in cards])
    for path in told.out:
        check_report(path)
    gates = {"fail_under": told.fail_under, "fail_over": told.fail_over}
    return write_report(told.runs, told.out, told.asked(columns), title=told.title, **gates)


@verb
def view(asked: ViewOptions, media: MediaOptions, shown: JsonOptions) -> None:
    """Browse many runs in a browser: lists, live progress, items, two runs side by side, notes.

    Example: dikast view runs
    """
    import asyncio

    from dikast.surface.viewer.run_index import RunIndex
    from dikast.surface.viewer.viewer_server import ViewerServer

    if asked.folder.is_file():
        cure = f"view shows a folder of runs, and `dikast report {in_shell(str(asked.folder))}` a table of verdicts"
        raise UserError(f"{asked.folder}: is a file: {cure}")
    if not asked.folder.is_dir():
        raise UserError(f"{asked.folder}: there is no such folder; name the one that your runs are in")
    index = RunIndex(asked.folder)

    def ready(port: int) -> None:
        address = f"http://127.0.0.1:{port}/"
        if shown.json:
            echo_json({"address": address})
        echo(f"viewing {asked.folder} on {address} (Ctrl+C stops)", err=True)

    try:
        asyncio.run(ViewerServer(index, asked.port).run(ready))
    finally:
        index.close()
