"""The verb `doctor`."""

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    run: Annotated[Path | None, typer.Argument(help="A run folder to check, line by line.")] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Move damaged lines of the run to a file beside it; running again asks them."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say which versions are installed, what works, and how to fix what does not; or check a run folder.

    With a run folder, exits with 1 when something in it needs mending.
    """
    import orjson

    from dikast.core.errors import UserError
    from dikast.surface.doctor import as_json, examine, render

    if run is not None:
        _check_run(run, repair=repair, json=json)
    elif repair:
        raise UserError("--repair needs a run folder: dikast doctor RUN --repair")
    else:
        findings = examine()
        typer.echo(orjson.dumps(as_json(findings), option=orjson.OPT_INDENT_2).decode() if json else render(findings))


def _check_run(run: Path, *, repair: bool, json: bool) -> None:
    from dataclasses import asdict

    import orjson

    from dikast.core.runs.examine import DAMAGED, examine_run, repair_run

    moved = repair_run(run) if repair else 0
    health = examine_run(run)
    if json:
        typer.echo(orjson.dumps({**asdict(health), "moved": moved}, option=orjson.OPT_INDENT_2).decode())
    else:
        counts = f"{health.lines} verdicts: {health.verified} verified by their checksum"
        for n, what in (
            (health.rewritten, "written again by another program (checked by content)"),
            (health.unsealed, "without a checksum (checked by content)"),
            (health.stale, "of another configuration"),
            (health.repeated, "repeated"),
        ):
            counts += f", {n} {what}" if n else ""
        typer.echo("\n".join([counts, *map(str, health.problems)]))
        if moved:
            typer.echo(f"{moved} damaged lines moved to {run / DAMAGED}: run the same command again to ask them anew")
        elif health.sound:
            typer.echo("nothing to repair")
    if not health.sound:
        raise typer.Exit(1)
