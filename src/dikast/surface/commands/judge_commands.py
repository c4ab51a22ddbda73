"""The verbs `grade`, `compare`, `rank`, `replay` and `merge-runs`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dikast.core.checking import Mistakes
from dikast.core.text import in_shell
from dikast.judging.run_options import EndOptions, FormatOptions, JudgingOptions, PairOptions, allowed_failures
from dikast.ranking.rank_options import RankOptions
from dikast.surface.show import show_plans, show_summary
from dikast.surface.terminal import echo
from dikast.surface.verbs import CONFIG, JsonOptions, ShowOptions, verb

_MOST_AUDITED = 100_000  # number of verdicts whose audit takes seconds


@partial(verb, config=CONFIG)
def grade(told: JudgingOptions, end: EndOptions, shown: ShowOptions, wrong: Mistakes) -> None:
    """Score every response of every item with a rubric.

    Example: dikast grade answers.jsonl --judge hf:ORG/MODEL --rubric helpfulness --out runs/first
    """
    _run(told, end, shown, wrong)


@partial(verb, config=CONFIG)
def compare(told: JudgingOptions, pairs: PairOptions, end: EndOptions, shown: ShowOptions, wrong: Mistakes) -> None:
    """Decide which of two responses is better, asking in both orders.

    Example: dikast compare pairs.jsonl --judge hf:ORG/MODEL --rubric helpfulness --out runs/pairs
    """
    _run(told, end, shown, wrong, pairs=pairs)


@partial(verb, config=CONFIG)
def rank(told: JudgingOptions, ranks: RankOptions, end: EndOptions, shown: ShowOptions, wrong: Mistakes) -> None:
    """Order the responses of each item from best to worst by comparing them.

    Example: dikast rank answers.jsonl --judge hf:ORG/MODEL --rubric helpfulness --out runs/order
    """
    _run(told, end, shown, wrong, ranks=ranks)


@partial(verb, config=CONFIG)
def replay(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    again: FormatOptions,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write to.")] = None,
    *,
    shown: JsonOptions,
) -> None:
    """Derive every verdict of a run again from its recorded replies, without a model, optionally with another parser.

    Example: dikast replay runs/first --format claims
    """
    from dikast.ranking.replayed import replay as replay_run

    show_summary(replay_run(run, format=again.format, out=out), as_json=shown.json)


@verb
def merge_runs(
    runs: Annotated[list[Path], typer.Argument(help="Run folders of the same judge, over different items.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to.")],
    *,
    shown: JsonOptions,
) -> None:
    """Make one run folder of several that judged different items in the same way; nothing is asked.

    Example: dikast merge-runs runs/part-1 runs/part-2 --out runs/all
    """
    from dikast.judging.recorded.merging import merge_runs as merge

    show_summary(merge(runs, out), as_json=shown.json)


def _run(
    asked: JudgingOptions,
    end: EndOptions,
    shown: ShowOptions,
    wrong: Mistakes,
    *,
    pairs: PairOptions | None = None,
    ranks: RankOptions | None = None,
) -> None:
    """Judge and print the summary; exit 3 if more verdicts are missing than allowed, or if no item could be ranked."""
    from dikast.surface.item_sources import leaving_nothing, source_of
    from dikast.surface.judge_runs import (
        JudgeRunOptions,
        columns_of,
        judge_limits,
        judges_of,
        run_judges,
        stop_if_given_up,
    )
    from dikast.surface.progress import ProgressLine

    told = JudgeRunOptions(**vars(asked), pairs=pairs, ranks=ranks)
    ask, spend = told.ask, told.spend
    if ask.out is None and not spend.dry_run:
        wrong.tell("name a folder for the verdicts: --out FOLDER (or use --dry-run)")
    if ask.out == Path():  # an empty shell variable
        wrong.tell("--out is empty, or the working folder itself: name a folder for the run")
    if ask.out is not None and ask.out.is_file():
        wrong.tell(f"--out {ask.out}: is a file: name a folder for the run")
    if (report := end.report) is not None:
        from dikast.surface.report.report_file import check_report

        wrong.of(lambda: check_report(report))
    if len(ask.judge) > 1 and "-" in ask.items:
        wrong.tell("a panel reads the items once for each judge: give it a file, not standard input")
    allowed, columns = wrong.of(lambda: allowed_failures(end.max_failures)), wrong.of(lambda: columns_of(ask.map))
    judges = judges_of(told, ask.judge, ask.rubric, ask.format, wrong, _silent if shown.quiet else _say_format)
    assert allowed is not None
    for limit in () if shown.quiet else (each for judge in judges for each in judge_limits(judge)):
        echo(limit, err=True)
    out = None if spend.dry_run else ask.out
    with (
        leaving_nothing(out),
        source_of(ask.items, ask, columns or {}, out, needed=told.needed(judges)) as source,
    ):
        done = run_judges(told, ask.judge, judges, source, ask.out, lambda: ProgressLine(quiet=shown.quiet))
    if spend.dry_run:
        show_plans(dict(zip(ask.judge, done.each, strict=True)), as_json=shown.json)
        plans = [each["plan"] for each in done.each]
        if sum(plan["unaskable"] for plan in plans) > allowed(sum(plan["questions"] for plan in plans)):
            raise typer.Exit(3)  # as the run would, were all others answered
        return
    show_summary(done.summary, as_json=shown.json)
    stop_if_given_up(done.each)
    assert ask.out is not None
    if ranks is None or end.report is not None:  # the headlines are about pairs
        _tell_headlines(ask.out, sum(each["verdicts"] for each in done.each), end.report, shown)
    if ranks is not None and not any(each["verdicts"] for each in done.each):
        echo("no item was ranked: give each at least two different responses that are not empty", err=True)
        raise typer.Exit(3)
    failed = sum(each["verdicts"] - each["status"].get("ok", 0) for each in done.each)
    if failed > allowed(sum(each["verdicts"] for each in done.each)):
        raise typer.Exit(3)


def _tell_headlines(out: Path, verdicts: int, report: Path | None, shown: ShowOptions) -> None:
    """Audit the finished run, print its main results, and write the report if one was requested."""
    from dikast.audit.plan import AuditPlan
    from dikast.surface.report.report_file import headlines, write_report
    from dikast.surface.report.report_options import Asked

    if shown.json and report is None:
        return
    if report is None and verdicts > _MOST_AUDITED:
        echo(f"audit       dikast audit {in_shell(out)} (not done here for more than {_MOST_AUDITED:,} verdicts)")
        return
    plan = AuditPlan(file=out, readouts=report is not None)
    asked = Asked(plan) if report is not None else Asked(plan, queue=0, sample=0)
    written = write_report([out], [report] if report is not None else [], asked)
    if not shown.json:
        for line in headlines(written.pages):
            echo(line)
    if report is not None:
        echo(f"report: {report}", err=True)


def _say_format(spec: str, kind: str) -> None:
    """Report that a released judge is asked in its own format."""
    from dikast.judging.defaults import default_format_note

    if told := default_format_note(spec, kind):
        echo(told, err=True)


def _silent(spec: str, kind: str) -> None:
    """Tell nothing."""
