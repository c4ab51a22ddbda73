"""The verbs `bench list`, `bench show`, `bench run`, `bench report` and `bench new`."""

import dataclasses
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dikast.core.errors import UserError
from dikast.core.text import counted
from dikast.judging.run_options import DrawOptions, MediaOptions, ReplyOptions, SpendOptions
from dikast.surface.benching.bench_options import BenchDataOptions, BenchReportOptions, BenchRunOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import CONFIG, JsonOptions, ShowOptions, Verbs, verb

if TYPE_CHECKING:
    from dikast.benches.definition import Bench

app = Verbs(no_args_is_help=True)


@app.command("list")
@verb
def list_(
    state: Annotated[str, typer.Option("--state", help="Only those: verified, 'rows read' or 'schema only'.")] = "",
    *,
    shown: JsonOptions,
) -> None:
    """List the benches and how far each was verified."""
    from dikast.benches.bench_terms import NOT_LISTED, STATES
    from dikast.benches.definition import load_bench, names

    if state and state not in STATES:
        raise UserError(f"--state {state!r}: choose {', '.join(map(repr, STATES))}")
    found = [bench for bench in map(load_bench, names()) if state in ("", bench.state)]
    if shown.json:
        echo_json([_row(bench) for bench in found])
        return
    width = max((len(bench.name) for bench in found), default=0)
    for bench in found:
        echo(f"{bench.name:<{width}}  {bench.state:<11}  {bench.kind:<12}  {bench.media:<5}  {bench.about}")
    for name, told in STATES.items():
        if n := sum(bench.state == name for bench in found):
            echo(f"{n} {name}: {told}", err=True)
    for told in () if state else NOT_LISTED.values():
        echo(f"not listed: {told}", err=True)


def _row(bench: "Bench") -> dict[str, object]:
    return {
        "name": bench.name, "title": bench.title, "state": bench.state, "kind": bench.kind, "media": bench.media,
        "rows": bench.rows or None, "responses": bench.responses, "source": bench.source.name, "licence": bench.licence,
        "official": list(bench.official.metric), "about": bench.about,
    }  # fmt: skip


@app.command("show")
@verb
def show(
    name: Annotated[str, typer.Argument(help="A name, or a YAML file of your own.")],
    rows: BenchDataOptions,
    read: Annotated[bool, typer.Option("--read", help="Also read and count its rows.")] = False,
    *,
    shown: JsonOptions,
) -> None:
    """Describe one bench: source, licence, protocol, official figure, and what is not verified."""
    from dikast.benches.bench_rows import Pictures, read_rows
    from dikast.benches.bench_terms import FAILURES, KINDS, METRICS
    from dikast.benches.definition import load_bench
    from dikast.judging.pair_orders import EQUAL_RULES

    bench = load_bench(name)
    told = _row(bench) | {"proof": bench.proof, "from_memory": list(bench.from_memory), "checked": list(bench.checked)}
    told |= {
        "citation": bench.citation,
        "revision": bench.source.revision,
        "sha256": dict(bench.source.files),
        "pinned": bench.source.pinned,
        "files": list(bench.source.files),
        "standing": bench.standing,
        "protocol": dataclasses.asdict(bench.protocol) | {"missing": bench.official.failures},
        "rubric": bench.rubric,
    }
    if read or rows.data is not None:
        pictures: Pictures = "skip" if rows.skip_missing else "count"
        found = read_rows(bench, rows.data, unverified=rows.unverified_rows, pictures=pictures)
        told |= {"rows_read": len(found.items), "left_out": dict(found.left_out), "notes": list(found.notes)}
    if shown.json:
        echo_json(told)
        return
    echo(f"{bench.title} ({bench.name})", bold=True)
    echo(bench.about)
    metrics = "; ".join(f"{metric} ({METRICS[metric]})" for metric in bench.official.metric)
    rubric = (
        f"rubrics of each row, from {bench.rubrics.file}" if bench.rubrics is not None else f"rubric {bench.rubric}"
    )
    own = bench.protocol
    drawn = f" at temperature {own.temperature:g}, top-p {own.top_p:g}" if own.temperature else ""
    equal = f"; {EQUAL_RULES[own.equal]}" if own.equal != "tie" else ""
    protocol = f"the authors': {counted(own.samples, 'sample')}{drawn}{equal}; {FAILURES[bench.official.failures]}"
    lines = {
        "state": f"{bench.state}: {bench.standing}" + (f" ({bench.proof})" if bench.proof else ""),
        "not checked": "; ".join(bench.from_memory),
        "checked": "; ".join(bench.checked),
        "source": f"{bench.source.name}: {', '.join(bench.source.files)}",
        "pinned": bench.source.pinned,
        "licence": bench.licence_told,
        "asked": f"{bench.kind}: {KINDS[bench.kind]}; {rubric}",
        "prompts": _prompts_of(bench),
        "protocol": protocol,
        "media": bench.media,
        "groups": ", ".join(bench.groups),
        "official": metrics,
        "trap": bench.official.trap,
        "responses": bench.responses + _ids_of(bench),
        "cite": bench.citation,
    }
    for label, line in lines.items():
        if line:
            echo(f"  {label:<12}{line}")
    if "rows_read" in told:
        echo(f"{counted(int(str(told['rows_read'])), 'row')} read")
        for note in found.notes:
            echo(f"  ! {note}")
        for why, n in found.left_out.items():
            echo(f"  {counted(n, 'row')} left out: {why}")


def _ids_of(bench: "Bench") -> str:
    """What `id` of the responses that are brought must say; "" where the rows hold the responses."""
    if bench.responses == "in the rows":
        return ""
    column = bench.fields.get("id") or ("" if not bench.reader else "that of the rows")
    return f"; their id is {column or 'the number of the row, from 1'}"


def _prompts_of(bench: "Bench") -> str:
    """What `--prompt native` sends, and where it comes from."""
    if bench.rendered:
        return "--prompt native sends those that the authors rendered into the rows"
    if bench.native is None:
        return ""
    told = f"the authors' are published in {bench.native.published}, on the scale {bench.native.scale}; none ships"
    return f"{told} with Dikast: --prompt native sends those of a column 'prompt' of --responses"


@app.command("run")
@partial(verb, config=CONFIG)
def run(
    asked: BenchRunOptions,
    draws: DrawOptions,
    replies: ReplyOptions,
    media: MediaOptions,
    spend: SpendOptions,
    *,
    shown: ShowOptions,
) -> None:
    """Run a judge on benches: an ordinary run folder for each, with the bench's rubric and protocol.

    Example: dikast bench run llmbar judgebench --judge hf:ORG/MODEL --out runs/benches
    """
    from dikast.benches.new_bench import all_finished
    from dikast.surface.benching.bench_runs import open_judges, prepare, run_bench
    from dikast.surface.judge_runs import stop_if_given_up
    from dikast.surface.show import show_plans, show_summary

    benches = all_finished(asked.benches)
    made = [
        prepare(bench, name, asked, draws, replies, spend, media)
        for bench, name in zip(benches, asked.benches, strict=True)
    ]
    judges = open_judges(made)
    for each in made:
        if each.bench.forbids or not shown.quiet:
            _tell_licence(each.bench, each.folder)
    found = {}
    for each, opened in zip(made, judges, strict=True):
        if not shown.json and not spend.dry_run:
            echo(f"== {each.bench.name}: {counted(len(each.items), 'item')}", err=True)
        for note in () if shown.quiet or shown.json else each.left:
            echo(f"  ! {note}", err=True)
        done = run_bench(each, opened, quiet=shown.quiet)
        found[each.bench.name] = done
        if spend.dry_run:
            show_plans(dict(zip(asked.judge, done.each, strict=True)), as_json=shown.json)
        elif not shown.json:
            show_summary(done.summary, as_json=False)
        stop_if_given_up(done.each)
    if spend.dry_run:
        return
    if shown.json:
        echo_json({name: done.summary for name, done in found.items()})
    echo(f"scorecards: dikast bench report {shlex.join(str(each.folder) for each in made)}", err=True)
    every = [summary for done in found.values() for summary in done.each]
    if any(summary["verdicts"] > summary["status"].get("ok", 0) for summary in every):
        raise typer.Exit(3)


def _tell_licence(bench: "Bench", folder: Path) -> None:
    """The licence of the rows, the first time they are used in a folder."""
    from dikast.benches.scorecard import BENCH

    if not (folder / BENCH).exists():
        echo(f"{bench.name}: {bench.source.name}, licence: {bench.licence_told}", err=True)


@app.command("report")
@partial(verb, config=CONFIG)
def report(asked: BenchReportOptions, *, shown: JsonOptions) -> None:
    """Scorecards of runs of benches, or of any recorded verdicts: the official figure and Dikast's own.

    Example: dikast bench report runs/benches/* -o scorecards.html -o scorecards.csv
    """
    from dikast.surface.benching.bench_report import cards_of, write_cards
    from dikast.surface.commands.audit_command import show_table

    cards = cards_of(asked)
    write_cards(cards, asked.out)
    if shown.json:
        echo_json([card.to_dict() for card in cards])
        return
    for card in cards:
        for each in card.tables[: 1 + (len(card.tables) > 1 and card.tables[1].name == "official by group")]:
            show_table(each)
    for path in asked.out:
        echo(str(path), err=True)


@app.command("new")
@verb
def new(
    out: Annotated[Path, typer.Argument(help="The YAML file; an existing one is checked.")],
    data: Annotated[Path | None, typer.Option("--data", help="Folder with its files; alone, its source.")] = None,
    hub: Annotated[str, typer.Option("--hub", help="ORG/NAME of the data set on the Hub.")] = "",
    github: Annotated[str, typer.Option("--github", help="ORG/NAME of the repository.")] = "",
    revision: Annotated[str, typer.Option("--revision", help="Commit or tag.")] = "",
    file: Annotated[list[str] | None, typer.Option("--file", help="A file of the source; repeat for several.")] = None,
) -> None:
    """Draft the description of a bench from the columns of its rows, or check an existing one."""
    from dikast.benches.new_bench import check_with_rows, draft
    from dikast.core.records import write_file

    if not out.exists():
        found = draft(out.stem, hub=hub, github=github, revision=revision, files=file or [], data=data, home=out.parent)
        write_file(out, found.encode())
        echo(f"{out}: written; replace every TODO, then run the same command again to check it")
        return
    bench, n = check_with_rows(out, data)
    echo(f"{out}: a valid bench of {bench.kind}" + (f", {counted(n, 'row')} read" if n is not None else ""))
