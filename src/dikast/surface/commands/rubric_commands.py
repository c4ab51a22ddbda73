"""The verbs `rubric list`, `show`, `new` and `lint`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dikast.core.errors import UserError
from dikast.core.text import in_shell
from dikast.surface.completion import rubrics
from dikast.surface.terminal import echo
from dikast.surface.verbs import Verbs

if TYPE_CHECKING:
    from dikast.core.rubric import Rubric, Sheet

app = Verbs(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the built-in rubrics with their scales and criteria."""
    from dikast.core.rubric import builtin_rubrics, load_rubric

    found = [load_rubric(name) for name in builtin_rubrics()]
    if json:
        _json([_as_json(each) for each in found])
        return
    for each in found:
        for one in _rubrics(each):
            echo(f"{one.name:<20} {one.scale!s:<10} {one.criterion}")


@app.command("show")
def show(
    rubric: Annotated[
        str, typer.Argument(help="A built-in rubric, a file, or a criterion in words.", autocompletion=rubrics)
    ],
    json: Json = False,
) -> None:
    """Print a rubric: its criterion, scale and level descriptions.

    Example: dikast rubric show helpfulness
    """
    from dikast.core.rubric import load_rubric

    found = load_rubric(rubric)
    if json:
        _json(_as_json(found))
        return
    for one in _rubrics(found):
        echo(one.name, bold=True)
        echo(f"  {one.criterion}")
        echo(f"  scale {one.scale}" + (", lower is better" if one.scale.lower_is_better else ""))
        for label, text in one.levels:
            echo(f"  {label:>4}  {text}")


@app.command("new")
def new(
    file: Annotated[Path, typer.Argument(help="The YAML file to write.")],
    criterion: Annotated[str, typer.Option("--criterion", help="The question that the score answers.")] = "",
    scale: Annotated[
        str, typer.Option("--scale", help="The scale: 1-5, 1-10, A-E, pass/fail, poor<fair<good.")
    ] = "1-5",
) -> None:
    """Write a rubric with comments, to be filled in.

    Example: dikast rubric new polite.yaml --criterion "Is the answer polite?"
    """
    from dikast.core.records import write_file
    from dikast.core.rubric import load_rubric
    from dikast.core.scale import Scale
    from dikast.surface.rubric_advice import template

    if file.exists():
        raise UserError(f"{file}: already exists: name another file, or remove this one")
    if file.suffix not in (".yaml", ".yml"):
        raise UserError(f"{file}: rubrics are YAML files: name it {file.with_suffix('.yaml').name}")
    write_file(file, template(file.stem, criterion, Scale.parse(scale)).encode())
    load_rubric(file)
    echo(f"wrote {file}: describe the levels, then `dikast rubric lint {in_shell(file)}`", err=True)


@app.command("lint")
def lint(
    files: Annotated[
        list[str], typer.Argument(help="Files, built-in rubrics, or criteria in words.", autocompletion=rubrics)
    ],
) -> None:
    """Check rubrics: errors with their line, and warnings about what makes judging unreliable.

    Example: dikast rubric lint polite.yaml
    """
    from dikast.core.checking import Mistakes
    from dikast.core.rubric import load_rubric
    from dikast.core.text import Located
    from dikast.surface.rubric_advice import advice

    mistakes = Mistakes(Located({}, "rubrics"))
    for each in files:
        found = mistakes.of(lambda each=each: load_rubric(each))  # type: ignore[misc]  # bound at once
        if found is None:
            continue
        notes = advice(found)
        for note in notes:
            echo(f"{each}: {note}")
        if not notes:
            echo(f"{each}: ok")
    mistakes.raise_all()


def _rubrics(found: "Rubric | Sheet") -> "tuple[Rubric, ...]":
    from dikast.core.rubric import Sheet

    return found.rubrics if isinstance(found, Sheet) else (found,)


def _as_json(found: "Rubric | Sheet") -> object:
    return found.to_dict() if not hasattr(found, "rubrics") else {
        "name": found.name, "criteria": [each.to_dict() for each in found.rubrics]
    }  # fmt: skip


def _json(value: object) -> None:
    import orjson

    echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
