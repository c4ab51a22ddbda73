"""The verbs `corpus convert`, `corpus check`, `corpus card` and `corpus build`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dikast.corpus.quality.check_options import CheckOptions, SchemaOptions
from dikast.judging.run_options import MediaOptions, SpendOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import CONFIG, JsonOptions, ShowOptions, Verbs, verb

BenchData = Annotated[
    Path | None, typer.Option("--bench-data", help="Folder with the files of benches, for --against bench:NAME.")
]
app = Verbs(no_args_is_help=True)


@app.command("convert")
@verb
def convert(
    source: Annotated[str, typer.Argument(help="The file to read.")],
    out: Annotated[str, typer.Argument(help="The file to write; `-` is JSONL on stdout.")],
    *,
    to: Annotated[str, typer.Option("--to", help="The schema to write; docs/corpus.md lists them.")] = "",
    schema: SchemaOptions,
    images: Annotated[
        list[str] | None, typer.Option("--images", help="OLD=NEW: replace a prefix of image paths.")
    ] = None,
    skip: Annotated[bool, typer.Option("--skip", help="Skip and count rows that the schema cannot hold.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="CSV and TSV: do not escape text that a spreadsheet would run as a formula.")
    ] = False,
    escaped: Annotated[
        bool, typer.Option("--escaped", help="The input CSV or TSV was written without --raw: undo its escapes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON on stderr.")] = False,
) -> None:
    """Convert feedback data between public schemas; fields that the new schema lacks are kept in `meta`.

    Example: dikast corpus convert pairs.jsonl trl.jsonl --to trl-preference
    """
    from dikast.core.errors import UserError
    from dikast.corpus.convert import convert_file
    from dikast.corpus.schemas import SCHEMAS

    if not to:
        raise UserError(f"--to is missing: name the schema to write: {', '.join(SCHEMAS)}")
    moves = {}
    for each in images or []:
        old, equals, new = each.partition("=")
        if not equals or not old:
            raise UserError(f"--images: write OLD=NEW, got {each!r}")
        moves[old] = new
    done = convert_file(source, out, to=to, from_=schema.from_, images=moves, skip=skip, raw=raw, escaped=escaped)
    if json:
        echo_json(done.to_dict(), err=True)
        return
    echo(f"{done.rows:,} rows from {done.source} to {done.target}", err=True)
    for reason, n in done.skipped.most_common():
        echo(f"  {n:,} left out: {reason}", err=True)
    if done.missing:
        shown = ", ".join(done.examples[:3])
        echo(f"  {done.missing:,} of {done.images:,} images are missing: {shown}; see --images", err=True)


@app.command("check")
@partial(verb, config=CONFIG)
def check(
    file: Annotated[str, typer.Argument(help="Feedback data in any known schema.")],
    asked: CheckOptions,
    media: MediaOptions,
    shown: JsonOptions,
    data: BenchData = None,
) -> None:
    """Check feedback data: scores, length bias, duplicates, leakage, rubrics, contradictions."""
    from dikast.corpus.quality.check import check_file
    from dikast.corpus.quality.data_card import card as markdown
    from dikast.surface.benching.against import with_benches

    with with_benches(asked, data) as told:
        found = check_file(file, told)
    if shown.json:
        echo_json(found.to_dict())
    else:
        echo(markdown(found))


@app.command("card")
@partial(verb, config=CONFIG)
def card(
    file: Annotated[str, typer.Argument(help="Feedback data in any known schema.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The Markdown file to write.")],
    title: Annotated[str, typer.Option("--title", help="The card's title.")] = "",
    *,
    asked: CheckOptions,
    media: MediaOptions,
    data: BenchData = None,
    plots: Annotated[
        bool, typer.Option("--plots/--no-plots", help="Write plots as SVG next to the card (needs matplotlib).")
    ] = True,
) -> None:
    """Write a data card in Markdown: the results of `corpus check`, with plots."""
    from dikast.core.errors import MissingExtra, UserError
    from dikast.core.records import write_file
    from dikast.corpus.quality.check import check_file
    from dikast.corpus.quality.data_card import card as markdown
    from dikast.corpus.quality.plots import plots as draw
    from dikast.surface.benching.against import with_benches

    if not out.parent.is_dir():
        raise UserError(f"{out}: the folder {out.parent} does not exist: make it first")
    with with_benches(asked, data) as told:
        found, drawn = check_file(file, told), None
    try:
        drawn = draw(found, out.with_suffix(".svg")) if plots else None
    except MissingExtra as error:
        echo(f"no plots: {error}", err=True)
    write_file(out, markdown(found, title=title, plots=drawn.name if drawn else "").encode())
    echo(str(out))


@app.command("build")
@verb
def build(
    recipe: Annotated[str, typer.Argument(help="The recipe, a YAML file described in docs/corpus.md.")],
    out: Annotated[Path, typer.Option("--out", help="The output folder; running again resumes.")],
    teacher: Annotated[str, typer.Option("--teacher", help="Use this teacher instead of the recipe's.")] = "",
    allow_key: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-key", help="NAME@HOST: let the recipe send the key in this environment variable to this server."
        ),
    ] = None,
    *,
    spend: SpendOptions,
    media: MediaOptions,
    train: Annotated[
        bool,
        typer.Option("--train/--no-train", help="Train the model of each round of self-improvement, then continue."),
    ] = True,
    shown: ShowOptions,
) -> None:
    """Build feedback data with a teacher: a model behind any engine, or `world:text` with exact gold.

    Exits with 3 if some questions are unanswered: run the same command again.
    """
    from dataclasses import asdict

    from dikast.corpus.pipeline.build import build as run
    from dikast.corpus.pipeline.build import estimate, known_price
    from dikast.corpus.pipeline.recipe_file import load_recipe
    from dikast.surface.progress import StageLine
    from dikast.surface.rounds import check_training, train_round

    told = load_recipe(recipe, teacher=teacher, allow_keys=allow_key or ())
    charged = spend.charged
    if spend.dry_run:
        charged = charged or known_price(told)
        stages = [asdict(each) | {"most_money": each.most_money(charged)} for each in estimate(told)]
        if shown.json:
            echo_json(stages)
            return
        for each in stages:
            asked = f"{each['calls']:,} calls, about {each['tokens_in']:,} tokens in"
            money = "" if each["most_money"] is None else f", at most {each['most_money']:.4g} money"
            echo(f"{each['stage']:<16} {asked}, at most {each['most_tokens_out']:,} out{money}")
        if charged is not None:
            echo(f"at most {sum(each['most_money'] for each in stages):.4g} money, if every reply is accepted")
        return
    improves = told.recipe == "self-improvement"
    if improves:
        check_training(told)
    with StageLine(quiet=shown.quiet) as line:
        built = run(told, out, budget=spend.bounds, price=charged, progress=line)
        while improves and train and train_round(out, quiet=shown.quiet):
            built = run(told, out, budget=spend.bounds, price=charged, progress=line)
    if shown.json:
        echo_json(built.to_dict())
    else:
        for stage in built.stages:
            _show(stage.to_dict())
        for reason, n in built.dropped.most_common():
            echo(f"dropped {n:,}: {reason}")
        for note in built.notes:
            echo(f"note: {note}")
        echo(f"{built.items:,} items in {out}" + (f"; {built.waits}" if built.waits else ""))
    if built.waits:
        raise typer.Exit(3)


def _show(stage: dict[str, Any]) -> None:
    share = "nothing answered" if stage["yield"] is None else f"{stage['yield']:.1%} of them accepted"
    money = "" if stage["money"] is None else f", {stage['money']:.4g} money"
    tokens = f"{stage['tokens_in']:,} tokens in, {stage['tokens_out']:,} out{money}"
    echo(f"{stage['stage']:<16} {stage['tasks']:,} tasks, {share}, {stage['records']:,} records, {tokens}")
    for reason, n in {**stage["rejected"], **stage["left"]}.items():
        echo(f"  {n:,}: {reason}")
