"""The verb `dikast probe`."""

from functools import partial

import typer

from dikast.judging.run_options import MediaOptions, ProbedJudgeOptions, ReplyOptions, RubricOptions, SpendOptions
from dikast.probes.probe_options import ProbeOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import CONFIG, ShowOptions, verb


@partial(verb, config=CONFIG)
def probe(
    told: ProbedJudgeOptions,
    asked: ProbeOptions,
    rubrics: RubricOptions,
    replies: ReplyOptions,
    media: MediaOptions,
    spend: SpendOptions,
    shown: ShowOptions,
) -> None:
    """Change items in a known way, judge again, and say where the judge breaks.

    Example: dikast probe --judge hf:ORG/MODEL --out probes/mine
    """
    from dikast.core.errors import UserError
    from dikast.probes.run import load_items, prepare
    from dikast.probes.run import probe as run_probe
    from dikast.surface.commands.audit_command import show_table
    from dikast.surface.judge_runs import judge_limits, probed_judge
    from dikast.surface.progress import ProgressLine

    judge, out = probed_judge(told.judge, told, replies, spend, rubrics.rubric), told.out
    items, calls, chosen = asked.items, asked.calls, asked.only
    for limit in () if shown.quiet else judge_limits(judge):
        echo(limit, err=True)
    if items and (asked.domain or asked.split != ProbeOptions().split):
        raise UserError("--domain and --split choose generated items: leave them out, or leave out --items")
    if not items:
        from dikast.worlds.prove import write_probe_suite

        write_probe_suite(
            suite := out / "suite", calls=calls, seed=replies.seed, domains=asked.domain, split=asked.split
        )
        items = str(suite)
    found = load_items(items)
    if spend.dry_run:
        made = prepare(judge, found, out, calls=calls, seed=replies.seed, only=chosen)
        planned, probes = made.asked.calls, len(made.probes) - len(made.skipped)
        more = f", and up to {calls - planned:,} more to narrow undecided intervals" if calls > planned else ""
        echo(f"{planned:,} calls, {probes} probes{more}")
        for name, why in made.skipped.items():
            echo(f"not probed: {name}: {why}")
        return
    with ProgressLine(quiet=shown.quiet) as line:
        card = run_probe(judge, found, out, calls=calls, seed=replies.seed, only=chosen, watch=line, name=told.judge)
    if shown.json:
        echo_json(card.to_dict())
    else:
        show_table(card.table())
        echo(f"\n{out / 'card.json'}, {out / 'card.md'}")
    if (card.faulty and (asked.gate or asked.strict)) or (asked.strict and not card.sound):
        raise typer.Exit(4)
