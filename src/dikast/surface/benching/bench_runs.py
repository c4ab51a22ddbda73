"""Runs of benches: their rows as the items of an ordinary run of `grade` or `compare`, and `bench.json`."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.benches.bench_files import resolved
from dikast.benches.bench_rows import LENGTH, BenchRows, Pictures, read_rows
from dikast.benches.brought import Brought, from_file, from_policy, with_empty_shown
from dikast.benches.definition import Bench
from dikast.benches.native_prompts import learnt_format, native_format, native_items, with_scale
from dikast.benches.scorecard import BENCH, RATERS, read_about
from dikast.benches.subset import drawn_whole, sample
from dikast.core.checking import Mistakes
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.output_folder import one_writer
from dikast.core.part import text_of
from dikast.core.records import write_items, write_records
from dikast.core.rubric import Sheet, load_rubric
from dikast.core.runs.run_files import checksum, record, write_checked
from dikast.core.text import Located, counted
from dikast.engines.base import Engine, Sampling
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.judging.pair_orders import EQUAL_RULES
from dikast.judging.run_options import (
    DrawOptions,
    MediaOptions,
    PairOptions,
    ReplyOptions,
    RunOptions,
    SpendOptions,
)
from dikast.judging.run_plan import Source
from dikast.prompts.format import Format
from dikast.prompts.learn.learn import Reading, learn_format
from dikast.surface.benching.bench_options import BenchRunOptions
from dikast.surface.item_sources import ITEMS, leaving_nothing
from dikast.surface.judge_runs import Judged, JudgeRunOptions, judges_of, run_judges
from dikast.surface.progress import ProgressLine

_DECIDES = (
    "bench",
    "hash",
    "files",
    "limit",
    "seed",
    "prompt",
    "without",
)  # settings that must be the same in all runs of one folder
_GOLD_CURES = (
    "'values' under 'gold' in the bench's file say what its values mean on the rubric's scale",
    "--rubric, or 'rubric' in that file, names a rubric on gold's scale",
    "gold that was brought with --responses may have a rubric of its own in its record",
)
_GOLD_NAMED = (
    "`dikast bench report RUN --gold COLUMN` measures against it (with --equate where its scale is another); in "
    "--responses, a column `gold` is gold"
)


@dataclass(frozen=True, slots=True)
class BenchRun:
    """One bench prepared for a run: its items, what `bench.json` will say, the options and the format of the run.

    `raters` is what each of several raters said, by item, `left` what is to be told of the responses before the run.
    """

    bench: Bench
    folder: Path
    items: list[Item]
    about: dict[str, Any]
    told: JudgeRunOptions
    format: str | Format | None
    raters: dict[str, dict[str, Any]]
    left: tuple[str, ...] = ()


def prepare(
    bench: Bench,
    name: str,
    asked: BenchRunOptions,
    draws: DrawOptions,
    replies: ReplyOptions,
    spend: SpendOptions,
    media: MediaOptions,
) -> BenchRun:
    """Read and sample the rows of a bench, which was given as `name`.

    UserError for everything that cannot be used, before a judge is asked.
    """
    native = asked.prompt == "native"
    if native and asked.format is not None:
        raise UserError("--prompt native asks as the rows are rendered: leave out --format")
    if asked.from_absolute and not bench.pairs:
        raise UserError(f"--from-absolute: {bench.name} is no bench of pairs, but of {bench.kind}: leave it out")
    draws, folder = _draws(bench, asked, draws), asked.out / bench.name
    pictures: Pictures = "skip" if asked.skip_missing else "count" if "media" in asked.without else "needed"
    of_rows = bool(bench.rendered) or not _grades_brought(bench)
    rows = read_rows(bench, asked.data, unverified=asked.unverified_rows, native=native and of_rows, pictures=pictures)
    items = sample(bench, rows.items, asked.limit, replies.seed)
    brought = _with_responses(bench, rows, items, asked, replies, folder, dry=spend.dry_run)
    form = _format(bench, asked, rows, brought)
    if not of_rows and asked.prompt != "dikast" and asked.rubric is None:
        brought = replace(brought, items=with_scale(bench, brought.items))
    if not of_rows and native:
        brought = replace(brought, items=native_items(bench, brought))
    kept, blank = with_empty_shown([_measured(each) for each in brought.items])
    _refuse_idle(bench, asked.without, kept)
    told = (*brought.told, *blank, *_asked_notes(bench, asked, draws))
    about = _about(bench, name, asked, rows, len(items), replies.seed, told)
    _refuse_other_rows(folder, about, bench)
    pairs = None
    if bench.pairs:
        alone = asked.from_absolute or bench.kind == "graded pairs"
        equal = bench.protocol.equal if alone and asked.protocol == "authors" else "tie"
        one_order = bench.protocol.orders == "one" and not alone
        pairs = PairOptions(one_order=one_order, from_absolute=alone, equal=equal)
    rubric = asked.rubric or bench.rubric
    ask = RunOptions(
        items=(str(folder / ITEMS),), judge=asked.judge, out=folder, rubric=rubric, without=asked.without,
        equate=_equated(bench, asked), runner=asked.runner, workers=asked.workers,
    )  # fmt: skip
    judged = JudgeRunOptions(ask=ask, draws=draws, replies=replies, media=media, spend=spend, pairs=pairs)
    left = (*brought.told, *blank)
    return BenchRun(bench, folder, kept, about, judged, form, brought.raters(rows.raters), left)


def _refuse_idle(bench: Bench, without: Sequence[str], items: Sequence[Item]) -> None:
    """UserError for a part to leave out that no item has: the run would be one with everything, under another name."""
    has = {
        "media": any(item.images or item.videos for item in items),
        "reference": any(item.reference for item in items),
    }
    if idle := [each for each in without if not has.get(each, True)]:
        raise UserError(f"--without {idle[0]}: no item of {bench.name} has any, so nothing would change: leave it out")


def _equated(bench: Bench, asked: BenchRunOptions) -> str | None:
    """The scale of the rows' gold, where the rubric asks on another one; None where both are alike. UserError for a
    rubric in the other direction.
    """
    scale = bench.gold.scale if bench.gold is not None else None
    if scale is None:
        return None
    name = asked.rubric or bench.rubric
    rubric = load_rubric(name)
    scales = [each.scale for each in (rubric if isinstance(rubric, Sheet) else (rubric,))]
    if any(each.lower_is_better != scale.lower_is_better for each in scales):
        best = "lowest" if scale.lower_is_better else "highest"
        raise UserError(
            f"rubric {name}: gold of {bench.name} lies on {scale}, of which the {best} is the best, and this rubric's"
            " scale runs the other way: name one in the direction of gold with --rubric"
        )
    return None if all(each == scale for each in scales) else str(scale)


def _draws(bench: Bench, asked: BenchRunOptions, draws: DrawOptions) -> DrawOptions:
    """How often each question is asked; UserError if options contradict `--protocol authors`."""
    if asked.protocol == "dikast":
        return draws
    if draws != replace(DrawOptions(), frames=draws.frames):
        raise UserError("--protocol authors: leave out --samples, --temperature and --top-p, which the bench sets")
    own = bench.protocol
    return replace(draws, samples=own.samples, temperature=own.temperature, top_p=own.top_p)


def _asked_notes(bench: Bench, asked: BenchRunOptions, draws: DrawOptions) -> Iterator[str]:
    """How the questions differ from the authors' protocol, and what was left out of them."""
    own = bench.protocol
    if draws.samples != own.samples:
        theirs = f"{own.samples} at temperature {own.temperature:g} (--protocol authors)"
        yield f"samples of each question: {draws.samples}; the authors take {theirs}"
    elif own.samples > 1:
        yield f"samples of each question: {own.samples} at temperature {draws.temperature:g}, joined"
    if own.equal != "tie" and (asked.from_absolute or bench.kind == "graded pairs"):
        theirs = f"{EQUAL_RULES[own.equal].partition(' (')[0]} at temperature {own.temperature:g}"
        ours = "equal scores are a tie; by the authors' rule "
        yield f"{'' if asked.protocol == 'authors' else ours}{theirs}"
    if asked.without:
        yield f"asked without {', '.join(asked.without)}"


def _measured(item: Item) -> Item:
    """The item with the length of its response in its metadata, for the length-only baseline."""
    lengths = [len(text_of(each)) for each in item.responses]
    if len(lengths) not in (1, 2):
        return item
    return replace(item, meta={**item.meta, LENGTH: lengths[0] if len(lengths) == 1 else lengths[1] - lengths[0]})


def _with_responses(
    bench: Bench,
    rows: BenchRows,
    items: list[Item],
    asked: BenchRunOptions,
    replies: ReplyOptions,
    folder: Path,
    *,
    dry: bool,
) -> Brought:
    if bench.responses == "in the rows":
        if asked.responses is not None or asked.policy is not None:
            raise UserError(f"{bench.name}: its rows hold the responses: leave out --responses and --policy")
        return Brought(items, ())
    if asked.responses is not None and asked.policy is not None:
        raise UserError("--responses and --policy both give responses: use one of them")
    if asked.responses is not None:
        return from_file(items, asked.responses, tuple(bench.groups), rows={item.id for item in rows.items})
    if asked.policy is None:
        raise UserError(
            f"{bench.name}: measures responses, and its rows hold none: give --responses FILE (id and response), "
            "or sample them with --policy SPEC"
        )
    if dry:
        raise UserError("--policy: responses are sampled first, and --dry-run asks nothing: give --responses FILE")
    sampling = Sampling(max_tokens=replies.max_tokens, seed=replies.seed)
    with one_writer(folder, "sampling responses"):
        return from_policy(items, open_engine(asked.policy), sampling, folder)


def _about(
    bench: Bench, name: str, asked: BenchRunOptions, rows: BenchRows, taken: int, seed: int, told: Sequence[str]
) -> dict[str, Any]:
    return {
        "bench": bench.name,
        "file": str(Path(name).resolve()) if name.endswith((".yaml", ".yml")) else "",
        "hash": bench.hash,
        "source": bench.source.name,
        "revision": bench.source.revision or resolved(rows.files),
        "licence": bench.licence,
        "files": {each.path: each.sha256 for each in rows.files},
        "rows": len(rows.items),
        "taken": taken,
        "limit": asked.limit,
        "seed": seed,
        "whole": drawn_whole(bench),
        "without": list(asked.without),
        "prompt": asked.prompt if asked.format is None else f"format {asked.format}",
        "left_out": dict(rows.left_out),
        "notes": [*rows.notes, *told],
    }


def _refuse_other_rows(folder: Path, about: dict[str, Any], bench: Bench) -> None:
    """UserError if the folder holds a run of other rows, or of rows that were sampled differently."""
    if not (folder / BENCH).exists():
        return
    before = read_about(folder)
    before.setdefault("without", [])  # of versions that left out nothing
    if before.get("hash") in bench.hashes:
        before["hash"] = about["hash"]
    changed = [name for name in _DECIDES if name != "files" and before.get(name) != about[name]]
    names = {"hash": "the fingerprint of the bench's description"}
    told = [f"{names.get(each, each)} was {before.get(each)!r:.60}, is {about[each]!r:.60}" for each in changed]
    if told := [*told, *_changed_files(before.get("files"), about["files"])]:
        raise UserError(f"{folder}: holds a run of other rows ({', '.join(told)}): give another --out")


def _changed_files(before: Any, now: Mapping[str, str]) -> Iterator[str]:
    """Which files have other bytes than before, by their last names, as earlier versions wrote some of them."""
    held = {(Path(path).name, digest) for path, digest in before.items()} if isinstance(before, dict) else set()
    read = {(Path(path).name, digest) for path, digest in now.items()}
    for name in sorted({name for name, _ in held ^ read}):
        was, found = ([f"{digest:.16}..." for each, digest in files if each == name] for files in (held, read))
        yield f"the SHA-256 of {name} was {' or '.join(was) or 'not read'}, is {' or '.join(found) or 'not read'}"


def _grades_brought(bench: Bench) -> bool:
    """Whether the bench grades responses that are brought, so that rendered prompts can only come with them."""
    return bench.responses == "to be brought" and bench.kind == "scores"


def _format(bench: Bench, asked: BenchRunOptions, rows: BenchRows, brought: Brought) -> str | Format | None:
    if asked.prompt == "dikast":
        return asked.format
    if asked.prompt == "native":
        return "verbatim" if bench.rendered else native_format(bench)
    if not bench.rendered and not _grades_brought(bench):
        raise UserError(f"{bench.name}: its rows hold no rendered prompt to learn from: use --prompt dikast")
    if bench.rendered:
        reading = Reading(
            prompt=(bench.rendered,), names=bench.slots or None, edges=bench.edges or None, accept_names=not bench.slots
        )
        learnt = learn_format(rows.files[0].local, reading)
    else:
        learnt = learnt_format(bench, brought)
    if learnt.report.misfits:
        told = f"the learnt format does not reproduce {counted(len(learnt.report.misfits), 'prompt')} of the rows"
        raise UserError(f"{bench.name}: {told}: use --prompt native")
    return learnt.format


def open_judges(runs: Sequence[BenchRun]) -> list[list[Judge]]:
    """The judges of each run; UserError with all mistakes. They share the engine of a judge: a model is loaded once."""
    engines: dict[str, Engine] = {}
    return [
        judges_of(
            each.told, each.told.ask.judge, each.told.ask.rubric, each.format, Mistakes(Located({}, "options")),
            engines=engines,
        )
        for each in runs
    ]  # fmt: skip


def run_bench(run: BenchRun, judges: Sequence[Judge], *, quiet: bool) -> Judged:
    """Judge the items of a bench and write them to its run folder; a dry run writes nothing."""
    dry = run.told.spend.dry_run
    with leaving_nothing(None if dry else run.folder), _items_of(run) as source:
        return run_judges(
            run.told, run.told.ask.judge, judges, source, run.folder, lambda: ProgressLine(quiet=quiet or dry)
        )


@contextmanager
def _items_of(run: BenchRun) -> Iterator[Source]:
    """The items as a file in the run folder; for a dry run, a temporary file."""
    with tempfile.TemporaryDirectory(prefix="dikast-") as scratch:
        folder = Path(scratch) if run.told.spend.dry_run else run.folder
        with one_writer(folder, "writing the items"):
            write_items(folder / ITEMS, run.items)
            if said := [{"item": item.id, **run.raters[item.id]} for item in run.items if item.id in run.raters]:
                write_records(folder / RATERS, said)
            record(folder, {name: checksum(folder / name) for name in (ITEMS, RATERS) if (folder / name).exists()})
            write_checked(folder / BENCH, orjson.dumps(run.about, option=orjson.OPT_INDENT_2) + b"\n")
        yield Source(
            str(folder / ITEMS), without=run.told.ask.without, origins=lambda line: run.items[line - 1].origin,
            gold_cures=_GOLD_CURES, gold_named=_GOLD_NAMED,
        )  # fmt: skip
