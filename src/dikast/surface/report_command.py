"""The verb `dikast report`."""

from pathlib import Path
from typing import Annotated

import typer

from dikast.surface.media_options import MediaRoot, PrivateUrls

_KINDS = {".html": "a page", ".md": "Markdown for a pull request", ".json": "every number", ".xml": "JUnit for CI"}

Out = Annotated[list[Path], typer.Option("--out", "-o", help="Files to write: .html, .md, .json, .xml (JUnit).")]


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; others are compared with the first.")],
    out: Out = [Path("report.html")],  # noqa: B006 - typer reads it, nobody changes it
    title: Annotated[str, typer.Option("--title", help="The heading.")] = "",
    items: Annotated[str, typer.Option("--items", help="The items, when they are no longer where they were.")] = "",
    gold: Annotated[list[str], typer.Option("--gold", help="Columns of gold, as for `dikast audit`.")] = [],  # noqa: B006
    gold_file: Annotated[Path | None, typer.Option("--gold-file", help="Where they stand.")] = None,
    key: Annotated[str, typer.Option("--id", help="The column of --gold-file that names the item.")] = "",
    by: Annotated[list[str], typer.Option("--by", metavar="COLUMN[@FILE]", help="Slices.")] = [],  # noqa: B006
    score: Annotated[str, typer.Option("--score", help="score, or expected.")] = "",
    queue: Annotated[int, typer.Option("--queue", help="Verdicts shown in full, largest gaps first.")] = 200,
    redact: Annotated[bool, typer.Option("--redact", help="No texts and no pictures: numbers only.")] = False,
    fail_under: Annotated[
        list[str], typer.Option("--fail-under", metavar="METRIC=VALUE", help="Exit with 4 if it is lower.")
    ] = [],  # noqa: B006
    fail_over: Annotated[
        list[str], typer.Option("--fail-over", metavar="METRIC=VALUE", help="Exit with 4 if it is higher.")
    ] = [],  # noqa: B006
    media_root: MediaRoot = None,
    allow_private_urls: PrivateUrls = False,
    draws: Annotated[int, typer.Option("--draws", help="Bootstrap draws.")] = 2000,
    level: Annotated[float, typer.Option("--level", help="The level of intervals.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", help="Of the bootstrap.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print every number as JSON.")] = False,
) -> None:
    """What a run found, on one page that can be sent to anyone; with gates for CI.

    Example: dikast report runs/mine -o report.html -o report.md --fail-under pearson.low=.7 --fail-over failed=.02
    """
    from dikast.audit.intervals import Resampling
    from dikast.audit.plan import AuditPlan
    from dikast.core.errors import UserError
    from dikast.surface.report.collect import Asked
    from dikast.surface.report.write import write_report

    for path in out:
        if path.suffix not in _KINDS:
            known = ", ".join(f"{suffix} ({what})" for suffix, what in _KINDS.items())
            raise UserError(f"--out {path}: the suffix says what to write: {known}")
    if not 0 < level < 1 or draws < 1 or queue < 0:
        raise UserError("--level lies between 0 and 1 (.95), --draws is at least 1, --queue at least 0")
    plan = AuditPlan(
        file=runs[0],
        score=score,
        gold=tuple(gold),
        gold_file=gold_file,
        key=(key,) if key else (),
        by=tuple(by),
        resampling=Resampling(draws, level, seed),
    )
    written = write_report(
        runs, out, Asked(plan, items, queue, redact), title=title, fail_under=fail_under, fail_over=fail_over
    )
    if json:
        import orjson

        typer.echo(orjson.dumps(written.numbers, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        for path in out:
            typer.echo(f"{path} ({path.stat().st_size / 1e6:.2f} MB)")
    for gate in written.gates:
        typer.echo(f"{'met' if gate.met else 'NOT MET'}: {gate}", err=True)
    if any(not gate.met for gate in written.gates):
        raise typer.Exit(4)
