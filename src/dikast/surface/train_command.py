"""The verbs `train sft` and `train merge`."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Teach a model to judge, and merge judges.")


@app.command("sft")
def sft(
    config: Annotated[Path, typer.Option("--config", help="The training configuration (YAML).")],
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Train a judge on items with gold; the same command goes on after an interruption."""
    import orjson

    from dikast.training.sft import sft as run

    done = run(config, watch=_tell)
    if json:
        typer.echo(orjson.dumps(done).decode())
    elif done["complete"]:
        typer.echo(f"{done['total']} steps on {done['examples']} examples: the model is in {done['model']}")
    else:
        typer.echo(f"{done['steps']} of {done['total']} steps: run the same command again to go on")


def _tell(line: dict[str, Any]) -> None:
    shown = []
    for key, value in line.items():
        if isinstance(value, dict):
            value = "undefined" if value["value"] is None else value["value"]
        shown.append(f"{key} {value:.4g}" if isinstance(value, int | float) else f"{key} {value}")
    typer.echo(", ".join(shown), err=True)
