"""The verb `dikast prove`."""

from typing import Annotated

import typer

from dikast.judging.run_options import ProbedJudgeOptions, ReplyOptions, SpendOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import ShowOptions


def prove(
    told: ProbedJudgeOptions,
    calls: Annotated[int, typer.Option("--calls", help="The most questions to ask.")] = 1000,
    split: Annotated[str, typer.Option("--split", help="Split of the generated items.")] = "all",
    size: Annotated[int, typer.Option("--size", help="Side of an image in pixels.")] = 96,
    *,
    replies: ReplyOptions,
    spend: SpendOptions,
    shown: ShowOptions,
) -> None:
    """Ask a judge generated items with exact gold, and say what it can do: one verdict a line, and a page.

    Example: dikast prove --judge hf:ORG/MODEL --out proofs/mine
    """
    import orjson

    from dikast.core.records import write_file
    from dikast.probes.judge_proof import prove as run_prove
    from dikast.surface.commands.audit_command import show_table
    from dikast.surface.judge_runs import probed_judge, told_limits
    from dikast.surface.progress import ProgressLine
    from dikast.surface.prove_page import render
    from dikast.worlds.ability_items import write_abilities

    judge, out = probed_judge(told, replies, spend), told.out
    for limit in () if shown.quiet else told_limits(judge):
        echo(limit, err=True)
    files = write_abilities(out / "suite", calls=calls, seed=replies.seed, split=split, size=size)
    if spend.dry_run:
        from dikast.core.records import read_items

        planned = sum(len(item.responses) for file in files for item in read_items(file))
        echo(f"{planned:,} calls")
        return
    with ProgressLine(quiet=shown.quiet) as line:
        proof = run_prove(judge, files, out, name=told.judge, watch=line)
    write_file(out / "prove.json", orjson.dumps(proof.to_dict(), option=orjson.OPT_INDENT_2) + b"\n")
    write_file(out / "prove.html", render(proof).encode())
    if shown.json:
        echo_json(proof.to_dict())
    else:
        show_table(proof.table())
        echo(f"\n{out / 'prove.html'}, {out / 'prove.json'}")
