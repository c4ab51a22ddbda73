"""The verbs `format list`, `format show` and `format learn`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dikast.core.errors import UserError
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, Verbs, verb

if TYPE_CHECKING:
    from dikast.prompts.learn.learn import Learnt

app = Verbs(no_args_is_help=True)


@app.command("list")
@verb
def list_(
    released: Annotated[
        bool, typer.Option("--released", help="List released judges that have their own format.")
    ] = False,
    dialects: Annotated[
        bool, typer.Option("--dialects", help="List the parsers of replies and what each reads.")
    ] = False,
    *,
    shown: JsonOptions,
) -> None:
    """List the built-in formats, the released judges whose formats are learnt on first use, or the dialects."""
    from dikast.prompts.dialects import DIALECTS
    from dikast.prompts.format import builtin_formats, load_format

    if released:
        _list_released(as_json=shown.json)
        return
    if dialects:
        read = [{"name": each.name, "version": each.version, "about": each.about} for each in DIALECTS.values()]
        lines = [f"{each.name:<10} {each.about}" for each in DIALECTS.values()]
        if shown.json:
            echo_json(read)
        else:
            echo("\n".join(lines))
        return

    formats = [load_format(name) for name in builtin_formats()]
    if shown.json:
        rows = [
            {"name": f.name, "kind": f.kind, "dialect": f.dialect, "hash": f.hash, "about": f.about} for f in formats
        ]
        echo_json(rows)
        return
    for format in formats:
        echo(f"{format.name:<20} {format.kind:<9} {format.about}")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A built-in format or a YAML file.")],
    rubric: Annotated[str, typer.Option("--rubric", help="The rubric to show it with.")] = "helpfulness",
) -> None:
    """Print a format's prompt for a small example item, what can follow its marker, and how replies are parsed."""
    from dikast.core.item import Item
    from dikast.core.rubric import Rubric, Sheet, load_rubric
    from dikast.prompts.format import load_format
    from dikast.prompts.parse import get_dialect

    format, loaded = load_format(name), load_rubric(rubric)
    one = next(iter(loaded)) if isinstance(loaded, Sheet) else loaded
    assert isinstance(one, Rubric)
    item = Item.of("<the instruction>", responses=["<the response>", "<another response>"], reference="<a reference>")
    for message in format.ask(item, one, (0,) if format.kind == "absolute" else (0, 1)):
        echo(f"[{message.role}]", bold=True)
        echo(message.text)
    echo("[how the reply is read]", bold=True)
    echo(f"dialect {format.dialect}: {get_dialect(format.dialect).about}")
    echo("[the reply ends with]", bold=True)
    echo(" | ".join(f"{format.marker}{label}" for label in format.labels(one).values()))


@app.command("learn")
@verb
def learn(
    rows: Annotated[str, typer.Argument(help="Rows with rendered prompts: JSONL(.gz), JSON, CSV, TSV or Parquet.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="The YAML file to write; its report is written next to it.")
    ] = None,
    prompt: Annotated[
        list[str] | None, typer.Option("--prompt", help="Column with the rendered prompt. Repeat for several.")
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", help="SLOT=COLUMN, such as response=answer or levels=score*_description."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="NUMBER=SLOT: name a slot, if the rows have no fields.")
    ] = None,
    accept_names: Annotated[
        bool, typer.Option("--accept-names", help="Accept the slot names that the words before each slot suggest.")
    ] = False,
    edge: Annotated[
        list[str] | None,
        typer.Option(
            "--edge",
            help="SLOT[.begin|.end|.inside]=prompt|field: assign text that all rows share at the edge of a slot.",
        ),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", help="How to learn: auto, fields (columns give the slots) or rows (prompts alone).")
    ] = "auto",
    headings: Annotated[
        str, typer.Option("--headings", help="A pattern for the lines that divide the prompts, where none are found.")
    ] = "",
    where: Annotated[list[str] | None, typer.Option("--where", help="COLUMN=VALUE: only these rows.")] = None,
    count: Annotated[int, typer.Option("--rows", min=1, help="Rows to learn from; the rest are held out.")] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the split.")] = 0,
    dialect: Annotated[
        str, typer.Option("--dialect", help="How replies are parsed, if the prompt does not show it.")
    ] = "",
    marker: Annotated[str | None, typer.Option("--marker", help="The text right before the verdict.")] = None,
    scale: Annotated[str, typer.Option("--scale", help="The scale in the prompt, such as 1-5.")] = "",
    word: Annotated[
        list[str] | None, typer.Option("--word", help="SLOT=WORD for pairs, such as first=A, second=B, tie=C.")
    ] = None,
    images_first: Annotated[
        bool, typer.Option("--images-first", help="Put images before the text, as in rows that start with `<image>`.")
    ] = False,
    also: Annotated[
        list[str] | None, typer.Option("--also", help="FILE#COLUMN: more prompts that the format must reproduce.")
    ] = None,
    max_misfits: Annotated[int, typer.Option("--max-misfits", min=0, help="How many prompts may differ.")] = 0,
    *,
    shown: JsonOptions,
) -> None:
    """Learn a format from rows of rendered prompts, and verify it on held-out rows.

    Example: dikast format learn feedback.json --prompt instruction --out judge.yaml
    """
    from dikast.prompts.learn.learn import Reading, learn_format, prove_on

    if by not in ("auto", "fields", "rows"):
        raise UserError(f"--by {by!r}: use auto, fields or rows")
    reading = Reading(
        tuple(prompt or ()), _pairs("--field", field), _pairs("--name", name), by, headings, count, seed, accept_names,
        _pairs("--edge", edge),
    )  # fmt: skip
    learnt = learn_format(
        rows, reading, name=out.stem if out else "", dialect=dialect, marker=marker, scale=scale,
        words=_pairs("--word", word), images_first=images_first, where=_pairs("--where", where),
    )  # fmt: skip
    for each in also or ():
        path, _, column = each.rpartition("#")
        learnt = prove_on(learnt, path or column, (column,) if path else ())
    good = len(learnt.report.misfits) <= max_misfits
    if shown.json:
        echo_json(learnt.report.to_dict())
    else:
        _tell(learnt)
    if good and out is not None:
        learnt.write(out)
        echo(f"written: {out} and {out.with_suffix('.report.json')}", err=True)
    if not good:
        echo("not written: prompts differ; see --max-misfits, --where and --field", err=True)
        raise typer.Exit(4)


def _tell(learnt: "Learnt") -> None:
    report = learnt.report
    echo(f"format {report.format_hash}, {learnt.format.kind}, dialect {learnt.format.dialect}")
    echo(f"skeleton sha256 {report.skeleton_sha256}")
    echo(f"slots, found by {report.way}: {', '.join(report.slots)}")
    for slot, column in report.columns.items():
        echo(f"  {slot}: column {column}" + " (without outer space)" * (slot in report.stripped))
    if report.edges:
        echo("text that all rows share next to a slot, and what it was assigned to (--edge or --field override it):")
    for edge in report.edges:
        echo(f"  {edge}")
    echo(f"learnt from {report.prompts_drawn} prompts of {len(report.rows_drawn)} rows, seed {report.seed}")
    echo(f"held out: {report.held_out} prompts, {len(report.misfits)} of them differ")
    for misfit in report.misfits[:10]:
        echo(f"  {misfit}")
    shared = report.shared
    if shared.n:
        echo(
            f"before the first slot {shared.task:.1%} of a prompt, before the response {shared.question:.1%}"
            f" (means of {shared.n})"
        )


def _pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    found = {}
    for each in given or ():
        left, equals, right = each.partition("=")
        if not (left and equals and right):
            raise UserError(f"{flag} {each!r}: write both parts with an equals sign between them")
        found[left] = right
    return found


def _list_released(*, as_json: bool) -> None:
    from dataclasses import asdict

    from dikast.prompts.released.catalog import catalog

    if as_json:
        echo_json([asdict(each) for each in catalog()])
        return
    for released in catalog():
        echo(f"{released.name}: {released.about}")
        echo(f"  {', '.join(released.models)}")
        for kind, prompted in released.prompts.items():
            how = "its own prompt" if prompted.origins else f"the built-in format, as {prompted.without}"
            before = f", {prompted.shared:.0%} of a prompt before the response" if prompted.shared is not None else ""
            echo(f"  {kind}: {how}, dialect {prompted.dialect}{before}")
