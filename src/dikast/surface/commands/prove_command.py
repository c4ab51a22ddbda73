"""The verb `dikast prove`."""

from functools import partial

from dikast.judging.run_options import ProbedJudgeOptions, ReplyOptions, SpendOptions
from dikast.probes.probe_options import ProveOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import CONFIG, ShowOptions, verb


@partial(verb, config=CONFIG)
def prove(
    told: ProbedJudgeOptions, asked: ProveOptions, replies: ReplyOptions, spend: SpendOptions, shown: ShowOptions
) -> None:
    """Test a judge on generated items with exact gold: one result per ability, and a page.

    Example: dikast prove --judge hf:ORG/MODEL --out proofs/mine
    """
    from dikast.surface.commands.audit_command import show_table
    from dikast.surface.judge_runs import judge_limits, probed_judge
    from dikast.surface.progress import ProgressLine
    from dikast.surface.prove_page import proof_items, prove_judge

    judge, out = probed_judge(told.judge, told, replies, spend), told.out
    for limit in () if shown.quiet else judge_limits(judge):
        echo(limit, err=True)
    if spend.dry_run:
        from dikast.core.records import read_items

        files = proof_items(out, asked, replies.seed)
        planned = sum(len(item.responses) for file in files for item in read_items(file))
        echo(f"{planned:,} calls")
        return
    with ProgressLine(quiet=shown.quiet) as line:
        proof = prove_judge(judge, out, asked, replies.seed, name=told.judge, watch=line)
    if shown.json:
        echo_json(proof.to_dict())
    else:
        show_table(proof.table())
        echo(f"\n{out / 'prove.html'}, {out / 'prove.json'}")
