"""The verbs `format list` and `format show`."""

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="The formats that ask a judge and read its answer.")


@app.command("list")
def list_(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the built-in formats."""
    import orjson

    from dikast.prompts.format import builtin_formats, load_format

    formats = [load_format(name) for name in builtin_formats()]
    if json:
        rows = [
            {"name": f.name, "kind": f.kind, "dialect": f.dialect, "hash": f.hash, "about": f.about} for f in formats
        ]
        typer.echo(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    for format in formats:
        typer.echo(f"{format.name:<20} {format.kind:<9} {format.about}")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A built-in format or a YAML file.")],
    rubric: Annotated[str, typer.Option("--rubric", help="The rubric to show it with.")] = "helpfulness",
) -> None:
    """Print the prompt a format makes of a small example item, and what can follow its marker."""
    from dikast.core.item import Item
    from dikast.core.rubric import Rubric, Sheet, load_rubric
    from dikast.prompts.format import load_format

    format, loaded = load_format(name), load_rubric(rubric)
    one = next(iter(loaded)) if isinstance(loaded, Sheet) else loaded
    assert isinstance(one, Rubric)
    item = Item.of("<the instruction>", responses=["<the response>", "<another response>"], reference="<a reference>")
    for message in format.ask(item, one, (0,) if format.kind == "absolute" else (0, 1)):
        typer.secho(f"[{message.role}]", bold=True)
        typer.echo(message.text)
    typer.secho("[the reply ends with]", bold=True)
    typer.echo(" | ".join(f"{format.marker}{label}" for label in format.labels(one).values()))
