"""The verbs `corpus convert`, `corpus check`, `corpus card` and `corpus build`."""

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Feedback data for judges: convert, check, describe and build it.")
_From = Annotated[str, typer.Option("--from", help="The schema of the file; guessed from its columns if left out.")]


@app.command("convert")
def convert(
    source: Annotated[str, typer.Argument(help="The file to read.")],
    out: Annotated[str, typer.Argument(help="The file to write; `-` is JSONL on stdout.")],
    to: Annotated[str, typer.Option("--to", help="The schema to write; docs/corpus.md lists them.")],
    from_: _From = "",
    images: Annotated[list[str] | None, typer.Option("--images", help="OLD=NEW: change how image paths begin.")] = None,
    skip: Annotated[bool, typer.Option("--skip", help="Leave out rows that the schema cannot hold, counted.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Tell what was done as JSON, on stderr.")] = False,
) -> None:
    """Convert feedback data from one public schema to another; what a schema cannot say travels in `meta`."""
    import orjson

    from dikast.core.errors import UserError
    from dikast.corpus.convert import convert_file

    moves = {}
    for each in images or []:
        old, equals, new = each.partition("=")
        if not equals or not old:
            raise UserError(f"--images: write OLD=NEW, got {each!r}")
        moves[old] = new
    done = convert_file(source, out, to=to, from_=from_, images=moves, skip=skip)
    if json:
        typer.echo(orjson.dumps(done.to_dict()).decode(), err=True)
        return
    typer.echo(f"{done.rows:,} rows from {done.source} to {done.target}", err=True)
    for reason, n in done.skipped.most_common():
        typer.echo(f"  {n:,} left out: {reason}", err=True)
    if done.missing:
        shown = ", ".join(done.examples[:3])
        typer.echo(f"  {done.missing:,} of {done.images:,} images are not there: {shown}; see --images", err=True)
