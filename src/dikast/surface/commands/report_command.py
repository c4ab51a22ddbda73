"""The verb `dikast report`."""

from pathlib import Path
from typing import Annotated

import typer

from dikast.judging.run_options import MediaOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions

Out = Annotated[list[Path], typer.Option("--out", "-o", help="Files to write: .html, .md, .json, .xml (JUnit).")]


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; others are compared with the first.")],
    out: Out = [Path("report.html")],  # noqa: B006 - typer reads it, nobody changes it
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "",
    items: Annotated[str, typer.Option("--items", help="The items file, if it was moved.")] = "",
    gold: Annotated[list[str], typer.Option("--gold", help="Columns of gold, as for `dikast audit`.")] = [],  # noqa: B006
    gold_file: Annotated[
        Path | None, typer.Option("--gold-file", help="File with the --gold columns, matched by --id.")
    ] = None,
    key: Annotated[str, typer.Option("--id", help="The column of --gold-file that names the item.")] = "",
    by: Annotated[list[str], typer.Option("--by", metavar="COLUMN[@FILE]", help="Slices.")] = [],  # noqa: B006
    score: Annotated[str, typer.Option("--score", help="Which score to audit: score or expected.")] = "",
    queue: Annotated[
        int, typer.Option("--queue", help="How many verdicts to show in full, largest gap from gold first.")
    ] = 200,
    redact: Annotated[bool, typer.Option("--redact", help="Leave out all texts and images: numbers only.")] = False,
    fail_under: Annotated[
        list[str], typer.Option("--fail-under", metavar="METRIC=VALUE", help="Exit with 4 if it is lower.")
    ] = [],  # noqa: B006
    fail_over: Annotated[
        list[str], typer.Option("--fail-over", metavar="METRIC=VALUE", help="Exit with 4 if it is higher.")
    ] = [],  # noqa: B006
    *,
    media: MediaOptions,
    draws: Annotated[int, typer.Option("--draws", help="Bootstrap draws.")] = 2000,
    level: Annotated[float, typer.Option("--level", help="Confidence level of intervals.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the bootstrap.")] = 0,
    shown: JsonOptions,
) -> None:
    """Write the results of runs as one self-contained page, with gates for CI.

    Example: dikast report runs/mine -o report.html -o report.md --fail-under pearson.low=.7 --fail-over failed=.02
    """
    from dikast.audit.plan import AuditPlan
    from dikast.core.errors import UserError
    from dikast.surface.report.collect import Asked
    from dikast.surface.report.report_file import check_report, write_report

    for path in out:
        check_report(path)
    if not 0 < level < 1 or draws < 1 or queue < 0:
        raise UserError("--level lies between 0 and 1 (.95), --draws is at least 1, --queue at least 0")
    plan = AuditPlan(
        file=runs[0],
        score=score,
        gold=tuple(gold),
        gold_file=gold_file,
        key=(key,) if key else (),
        by=tuple(by),
        draws=draws,
        level=level,
        seed=seed,
    )
    written = write_report(
        runs, out, Asked(plan, items, queue, redact), title=title, fail_under=fail_under, fail_over=fail_over
    )
    if shown.json:
        echo_json(written.numbers)
    else:
        for path in out:
            echo(f"{path} ({path.stat().st_size / 1e6:.2f} MB)")
    for gate in written.gates:
        echo(f"{'met' if gate.met else 'NOT MET'}: {gate}", err=True)
    if any(not gate.met for gate in written.gates):
        raise typer.Exit(4)
