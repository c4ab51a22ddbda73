"""The verb `demo`."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from dikast.surface.terminal import echo


def demo(
    out: Annotated[Path, typer.Option("--out", help="The output folder.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the items.")] = 7,
    n: Annotated[int, typer.Option("-n", help="How many items to grade.")] = 120,
    pairs: Annotated[int, typer.Option("--pairs", help="How many pairs to compare.")] = 60,
) -> None:
    """Grade new items with the bundled judge, compare pairs in both orders, and audit both against exact gold.

    Example: dikast demo --seed 11
    """
    from dikast.surface.commands.audit_command import show
    from dikast.surface.demo import demo as run

    done = run(out, seed=seed, n=n, pairs=pairs, tell=lambda line: echo(line, err=True))
    show(done.graded)
    echo("")
    show(done.compared)
    echo(f"\nEverything is in {done.folder}; open {done.folder / 'report.html'} in a browser. Try next:")
    program = _program()
    for command in done.next:
        echo(f"  {program}{command.removeprefix('dikast')}")
    echo("With a judge of your own: --judge hf:ORG/NAME, --judge ./FOLDER or --judge http://HOST/v1#MODEL")


def _program() -> str:
    """How this installation is called from here: `dikast` where the shell finds it, else with its path."""
    found, beside = shutil.which("dikast"), Path(sys.executable).with_name("dikast")
    if not beside.is_file():
        return "dikast" if found else shlex.join([sys.executable, "-m", "dikast"])
    if found and Path(found).resolve() == beside.resolve():
        return "dikast"
    return shlex.quote(os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside))
