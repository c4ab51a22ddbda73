"""The verb `dikast probe`."""

from pathlib import Path
from typing import Annotated

import typer

from dikast.surface.judge_commands import BudgetText, Config, FormatName, MinMass, Quiet, ReadMode, RubricFile
from dikast.surface.media_options import MediaRoot, PrivateUrls

SUITE = 2000  # calls that the standing suite is made for; for more it is that many times as large


def probe(
    judge: Annotated[str, typer.Option("--judge", help="Who is probed, as for `dikast grade`.")],
    out: Annotated[Path, typer.Option("--out", help="The folder for the items, the runs and the card.")],
    items: Annotated[
        str, typer.Option("--items", help="Your items, in place of the standing suite of the worlds.")
    ] = "",
    rubric: RubricFile = None,
    only: Annotated[list[str], typer.Option("--only", help="Only this probe; repeat for several.")] = [],  # noqa: B006 - typer reads it, nobody changes it
    calls: Annotated[int, typer.Option("--calls", min=1, help="About how many questions to ask.")] = 2000,
    seed: Annotated[int, typer.Option("--seed", help="Of the choice of items.")] = 0,
    format: FormatName = None,
    compare_format: Annotated[
        str | None, typer.Option("--compare-format", help="The format that pairs are asked in.")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="The longest reply.")] = 1024,
    read: ReadMode = "auto",
    min_mass: MinMass = 0.5,
    budget: BudgetText = None,
    media_root: MediaRoot = None,
    allow_private_urls: PrivateUrls = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be asked; ask nothing.")] = False,
    gate: Annotated[bool, typer.Option("--gate", help="Exit with 4 when a probe finds a fault.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="As --gate, and also when a probe cannot tell or none is judged.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Change items in a known way, judge again, and say where the judge breaks.

    Example: dikast probe --judge hf:ORG/MODEL --out probes/mine
    """
    import math

    import orjson

    from dikast.engines.base import Sampling
    from dikast.engines.budget import Budget
    from dikast.engines.spec import open_engine
    from dikast.judging.defaults import default_format
    from dikast.judging.judge import Judge
    from dikast.probes.run import load_items, prepare
    from dikast.probes.run import probe as run_probe
    from dikast.surface.audit_command import show_table
    from dikast.surface.judge_commands import budget_of, is_taught
    from dikast.surface.progress import ProgressLine

    engine = open_engine(judge)
    taught = is_taught(engine)
    asked_with = format or (None if taught else default_format(judge, "absolute"))
    compared_with = compare_format or (None if taught else default_format(judge, "pairwise"))
    if limits := budget_of(budget):
        engine = Budget(engine, **limits)
    asked = Judge(
        engine,
        rubric,
        format=asked_with,
        compare_format=compared_with,
        sampling=Sampling(max_tokens=max_tokens, seed=seed),
        read=read,  # type: ignore[arg-type]  # checked by Judge
        min_mass=min_mass,
    )
    if not items:
        from dikast.worlds.prove import write_suite

        suite = out / "suite"
        if not suite.exists():
            write_suite("probe", suite, seed=seed, times=math.ceil(calls / SUITE))
        items = str(suite)
    found = load_items(items)
    chosen = tuple(only)
    if dry_run:
        made = prepare(asked, found, out, calls=calls, seed=seed, only=chosen)
        planned, probes = made.asked.calls, len(made.probes) - len(made.skipped)
        more = f", and up to {calls - planned:,} more where they narrow a verdict" if calls > planned else ""
        typer.echo(f"{planned:,} calls, {probes} probes{more}")
        for name, why in made.skipped.items():
            typer.echo(f"not probed: {name}: {why}")
        return
    with ProgressLine(quiet=quiet) as line:
        card = run_probe(asked, found, out, calls=calls, seed=seed, only=chosen, watch=line, name=judge)
    if json:
        typer.echo(orjson.dumps(card.to_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        show_table(card.table())
        typer.echo(f"\n{out / 'card.json'}, {out / 'card.md'}")
    if (card.faulty and (gate or strict)) or (strict and not card.sound):
        raise typer.Exit(4)
