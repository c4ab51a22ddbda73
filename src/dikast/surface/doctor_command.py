"""The verb `doctor`."""

from typing import Annotated

import typer


def doctor(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Say which versions are here, what works, and how to mend what does not."""
    import orjson

    from dikast.surface.doctor import as_json, examine, render

    findings = examine()
    typer.echo(orjson.dumps(as_json(findings), option=orjson.OPT_INDENT_2).decode() if json else render(findings))
