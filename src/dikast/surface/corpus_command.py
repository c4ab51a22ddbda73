"""The verbs `corpus convert`, `corpus check`, `corpus card` and `corpus build`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dikast.surface.judge_commands import BudgetText

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
    raw: Annotated[
        bool, typer.Option("--raw", help="CSV and TSV: leave text that a spreadsheet would run as a formula.")
    ] = False,
    escaped: Annotated[
        bool, typer.Option("--escaped", help="The CSV or TSV that is read was written without --raw: undo its escapes.")
    ] = False,
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
    done = convert_file(source, out, to=to, from_=from_, images=moves, skip=skip, raw=raw, escaped=escaped)
    if json:
        typer.echo(orjson.dumps(done.to_dict()).decode(), err=True)
        return
    typer.echo(f"{done.rows:,} rows from {done.source} to {done.target}", err=True)
    for reason, n in done.skipped.most_common():
        typer.echo(f"  {n:,} left out: {reason}", err=True)
    if done.missing:
        shown = ", ".join(done.examples[:3])
        typer.echo(f"  {done.missing:,} of {done.images:,} images are not there: {shown}; see --images", err=True)


_Against = Annotated[list[str] | None, typer.Option("--against", help="A benchmark file to look for in the data.")]
_Near = Annotated[bool, typer.Option("--near/--exact", help="Look for near duplicates too (extra `dedup`).")]
_Seed = Annotated[int, typer.Option("--seed", help="Seed of the shuffles.")]
_Language = Annotated[str, typer.Option("--language", help="Count texts that are in another language than this.")]


@app.command("check")
def check(
    file: Annotated[str, typer.Argument(help="Feedback data in any known schema.")],
    from_: _From = "",
    against: _Against = None,
    near: _Near = True,
    draws: Annotated[int, typer.Option("--draws", min=20, help="Shuffles of the scores.")] = 200,
    seed: _Seed = 0,
    language: _Language = "",
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Check feedback data: what length tells of the score, scores, duplicates, leakage, rubrics, contradictions."""
    import orjson

    from dikast.corpus.card import card as markdown
    from dikast.corpus.check import check_file

    found = check_file(file, from_=from_, against=against, near=near, draws=draws, seed=seed, language=language)
    typer.echo(orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2).decode() if json else markdown(found))


@app.command("card")
def card(
    file: Annotated[str, typer.Argument(help="Feedback data in any known schema.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The Markdown file to write.")],
    title: Annotated[str, typer.Option("--title", help="The card's title.")] = "",
    from_: _From = "",
    against: _Against = None,
    near: _Near = True,
    seed: _Seed = 0,
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Plots as SVG beside it (matplotlib).")] = True,
) -> None:
    """Write a data card: the figures of `corpus check` as Markdown, with plots beside it."""
    from dikast.core.errors import MissingExtra, UserError
    from dikast.corpus.card import card as markdown
    from dikast.corpus.check import check_file
    from dikast.corpus.plots import plots as draw

    if not out.parent.is_dir():
        raise UserError(f"{out}: the folder {out.parent} does not exist: make it first")
    found, drawn = check_file(file, from_=from_, against=against, near=near, seed=seed), None
    try:
        drawn = draw(found, out.with_suffix(".svg")) if plots else None
    except MissingExtra as error:
        typer.echo(f"no plots: {error}", err=True)
    out.write_text(markdown(found, title=title, plots=drawn.name if drawn else ""), "utf-8")
    typer.echo(str(out))


@app.command("build")
def build(
    recipe: Annotated[str, typer.Argument(help="The recipe: a YAML file; docs/corpus.md says what it holds.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to build in; running again goes on where it stopped.")],
    teacher: Annotated[str, typer.Option("--teacher", help="Takes the place of the recipe's teacher.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked; ask nothing.")] = False,
    budget: BudgetText = None,
    price: Annotated[str, typer.Option("--price", help="IN,OUT: money per million tokens read and written.")] = "",
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Train what a round of self-improvement has prepared, and go on.")
    ] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Build feedback data with a teacher: a model behind any engine, or `world:text` with exact gold.

    Exit code 3 when something is left to be asked: run the same command again.
    """
    from dataclasses import asdict, replace

    import orjson

    from dikast.corpus.build import build as run
    from dikast.corpus.build import estimate, known_price
    from dikast.corpus.load import load_recipe
    from dikast.engines.priced import price_from
    from dikast.surface.judge_commands import budget_of
    from dikast.surface.progress import StageLine
    from dikast.surface.rounds import check_training, train_round

    told = load_recipe(recipe)
    if teacher:
        told = replace(told, teacher=teacher)
    charged = price_from(price) if price else None
    if dry_run:
        charged = charged or known_price(told)
        stages = [asdict(each) | {"most_money": each.most_money(charged)} for each in estimate(told)]
        if json:
            typer.echo(orjson.dumps(stages).decode())
            return
        for each in stages:
            asked = f"{each['calls']:,} calls, about {each['tokens_in']:,} tokens in"
            money = "" if each["most_money"] is None else f", at most {each['most_money']:.4g} money"
            typer.echo(f"{each['stage']:<16} {asked}, at most {each['most_tokens_out']:,} out{money}")
        if charged is not None:
            typer.echo(f"at most {sum(each['most_money'] for each in stages):.4g} money, if every reply is accepted")
        return
    improves = told.recipe == "self-improvement"
    if improves:
        check_training(told)
    with StageLine(quiet=quiet) as line:
        built = run(told, out, budget=budget_of(budget), price=charged, progress=line)
        while improves and train and train_round(out, quiet=quiet):
            built = run(told, out, budget=budget_of(budget), price=charged, progress=line)
    if json:
        typer.echo(orjson.dumps(built.to_dict()).decode())
    else:
        for stage in built.stages:
            _show(stage.to_dict())
        for reason, n in built.dropped.most_common():
            typer.echo(f"dropped {n:,}: {reason}")
        for note in built.notes:
            typer.echo(f"note: {note}")
        typer.echo(f"{built.items:,} items in {out}" + (f"; {built.waits}" if built.waits else ""))
    if built.waits:
        raise typer.Exit(3)


def _show(stage: dict[str, Any]) -> None:
    share = "nothing answered" if stage["yield"] is None else f"{stage['yield']:.1%} of them accepted"
    money = "" if stage["money"] is None else f", {stage['money']:.4g} money"
    tokens = f"{stage['tokens_in']:,} tokens in, {stage['tokens_out']:,} out{money}"
    typer.echo(f"{stage['stage']:<16} {stage['tasks']:,} tasks, {share}, {stage['records']:,} records, {tokens}")
    for reason, n in {**stage["rejected"], **stage["left"]}.items():
        typer.echo(f"  {n:,}: {reason}")
