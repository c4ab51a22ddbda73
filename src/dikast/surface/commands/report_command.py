"""The verb `dikast report`."""

import typer

from dikast.judging.run_options import MediaOptions
from dikast.surface.report.report_options import ReportOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions


def report(told: ReportOptions, media: MediaOptions, shown: JsonOptions) -> None:
    """Write the results of runs, or of anybody's file of verdicts, as one self-contained page, with gates for CI.

    Example: dikast report runs/mine -o report.html -o report.md --fail-under pearson.low=.7 --fail-over failed=.02
    """
    from dikast.surface.alignment_report.alignment_page import is_alignment
    from dikast.surface.report.report_file import check_report, write_report

    if any(map(is_alignment, told.runs)):
        _alignment(told, shown)
        return
    for path in told.out:
        check_report(path)
    written = write_report(
        told.runs, told.out, told.asked, title=told.title, fail_under=told.fail_under, fail_over=told.fail_over
    )
    if shown.json:
        echo_json(written.numbers)
    else:
        for path in told.out:
            echo(f"{path} ({path.stat().st_size / 1e6:.2f} MB)")
    for gate in written.gates:
        echo(f"{'met' if gate.met else 'NOT MET'}: {gate}", err=True)
    if any(not gate.met for gate in written.gates):
        raise typer.Exit(4)


def _alignment(told: ReportOptions, shown: JsonOptions) -> None:
    """The page of one alignment, which has no verdicts of its own to gate or to compare."""
    from dikast.core.errors import UserError
    from dikast.surface.alignment_report.alignment_page import write_alignment_report

    if len(told.runs) > 1 or told.fail_under or told.fail_over:
        raise UserError("an alignment has a page of its own: give its folder alone, without gates")
    numbers = write_alignment_report(told.runs[0], told.out, told.title or "")
    if shown.json:
        echo_json(numbers)
    for path in () if shown.json else told.out:
        echo(f"{path} ({path.stat().st_size / 1e6:.2f} MB)")
