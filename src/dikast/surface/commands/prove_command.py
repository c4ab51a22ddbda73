"""The verb `dikast prove`."""

from pathlib import Path
from typing import Annotated

import typer

from dikast.judging.run_options import FormatOptions, ReplyOptions, SpendOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import ShowOptions


def prove(
    judge: Annotated[str, typer.Option("--judge", help="The judge to prove, as for `dikast grade`.")],
    out: Annotated[Path, typer.Option("--out", help="The folder for the items, the runs and the page.")],
    calls: Annotated[int, typer.Option("--calls", help="The most questions to ask.")] = 1000,
    split: Annotated[str, typer.Option("--split", help="Split of the generated items.")] = "all",
    size: Annotated[int, typer.Option("--size", help="Side of an image in pixels.")] = 96,
    *,
    formats: FormatOptions,
    compare_format: Annotated[str | None, typer.Option("--compare-format", help="The format for pairs.")] = None,
    replies: ReplyOptions,
    spend: SpendOptions,
    shown: ShowOptions,
) -> None:
    """Ask a judge generated items with exact gold, and say what it can do: one verdict a line, and a page.

    Example: dikast prove --judge hf:ORG/MODEL --out proofs/mine
    """
    import orjson

    from dikast.core.records import write_file
    from dikast.engines.base import Sampling
    from dikast.engines.spec import open_engine
    from dikast.judging.defaults import default_format
    from dikast.judging.judge import Judge
    from dikast.probes.judge_proof import prove as run_prove
    from dikast.surface.commands.audit_command import show_table
    from dikast.surface.judge_runs import is_taught, told_limits
    from dikast.surface.progress import ProgressLine
    from dikast.surface.prove_page import render
    from dikast.worlds.ability_items import write_abilities

    engine = open_engine(judge)
    taught = is_taught(engine)
    asked = Judge(
        spend.around(engine),
        None,
        format=formats.format or (None if taught else default_format(judge, "absolute")),
        compare_format=compare_format or (None if taught else default_format(judge, "pairwise")),
        sampling=Sampling(max_tokens=replies.max_tokens, seed=replies.seed),
        read=replies.read,
        min_mass=replies.min_mass,
    )
    for limit in () if shown.quiet else told_limits(asked):
        echo(limit, err=True)
    files = write_abilities(out / "suite", calls=calls, seed=replies.seed, split=split, size=size)
    if spend.dry_run:
        from dikast.core.records import read_items

        planned = sum(len(item.responses) for file in files for item in read_items(file))
        echo(f"{planned:,} calls")
        return
    with ProgressLine(quiet=shown.quiet) as line:
        proof = run_prove(asked, files, out, name=judge, watch=line)
    write_file(out / "prove.json", orjson.dumps(proof.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    write_file(out / "prove.html", render(proof).encode())
    if shown.json:
        echo_json(proof.to_dict())
    else:
        show_table(proof.table())
        echo(f"\n{out / 'prove.html'}, {out / 'prove.json'}")
