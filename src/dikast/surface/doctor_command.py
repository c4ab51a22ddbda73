"""The verb `doctor`."""

from typing import Annotated

import typer


def doctor(json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Say which versions are here, what works, and how to mend what does not."""
    from dikast.surface.doctor import examine, render

    typer.echo(render(examine(), as_json=json))
