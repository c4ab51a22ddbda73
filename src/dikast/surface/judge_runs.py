"""From options to judges and their runs: what the verbs that ask a judge share with the functions of Python."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dikast.core.checking import Mistakes
from dikast.core.errors import RunError, UserError
from dikast.core.output_folder import one_writer
from dikast.core.records import Arrangement
from dikast.core.rubric import Rubric, Sheet, load_rubric, with_scale
from dikast.core.runs.judge_lock import NAMES_OF, names_version
from dikast.core.scale import Scale
from dikast.engines.base import Engine, Sampling
from dikast.engines.spec import open_engine
from dikast.engines.wrapper import found_in
from dikast.judging.defaults import default_format
from dikast.judging.judge import Judge, samples_on_its_own
from dikast.judging.judge_file import check_readable_twice, compare_file, compare_file_by_scores, grade_file
from dikast.judging.pair_orders import EQUAL_RULES
from dikast.judging.panel import write_panel
from dikast.judging.run_options import (
    JudgingOptions,
    PairOptions,
    ProbedFormatOptions,
    ReplyOptions,
    RunnerOptions,
    RunOptions,
    SpendOptions,
)
from dikast.judging.run_plan import Source
from dikast.judging.watching import Watcher
from dikast.prompts.format import Format, load_format
from dikast.ranking.rank_file import check_values, rank_file
from dikast.ranking.rank_options import RankOptions

_log = logging.getLogger(__name__)
Rubrics = str | Path | Mapping[str, Any] | Rubric | Sheet


@dataclass(frozen=True, kw_only=True)
class JudgeRunOptions(JudgingOptions):
    """The options of `grade`, `compare` (with `pairs`) and `rank` (with `ranks`)."""

    pairs: PairOptions | None = None
    ranks: RankOptions | None = None

    def check(self, mistakes: Mistakes, engines: Sequence[Engine | None]) -> None:
        """Report mistakes that lie in several options together; None stands for an engine that cannot be opened."""
        pairs, samples = self.pairs, self.draws.samples
        if odd := [each for each in self.ask.without if each not in ("rubric", "reference", "media")]:
            mistakes.tell(f"--without {odd[0]!r}: what can be left out is rubric, reference or media")
        greedy = any(each is None or not samples_on_its_own(each) for each in engines)
        if samples > 1 and self.draws.temperature <= 0 and greedy:
            mistakes.tell("several samples at temperature 0 are all the same: set --temperature, such as 1.0")
        if pairs is None:
            return
        if pairs.equal not in EQUAL_RULES:
            rules = "; ".join(f"{name}: {what}" for name, what in EQUAL_RULES.items())
            mistakes.tell(f"--equal {pairs.equal!r} is not a rule; {rules}")
        elif pairs.equal != "tie" and not pairs.from_absolute:
            mistakes.tell("--equal is a rule for equal scores: use it with --from-absolute")
        if pairs.from_absolute and (pairs.one_order or samples > 1):
            mistakes.tell("--from-absolute grades each response alone: --one-order and --samples do not apply")

    @property
    def place(self) -> str:
        """The place in a judge of the format that is asked in."""
        if self.ranks is not None:
            return "compare_format"
        return "format" if self.pairs is None or self.pairs.from_absolute else "compare_format"

    def needed(self, judges: Sequence[Judge]) -> int:
        """The responses that an item must have; none where the prompts were rendered elsewhere."""
        if self.pairs is not None or self.ranks is not None:
            return 2
        return 0 if all(judge.format.verbatim for judge in judges) else 1

    def run(self, judge: Judge, source: Source, out: Path | None, watch: Watcher | None) -> dict[str, Any]:
        """Judge the items into the folder; the summary."""
        pairs, how = self.pairs, {"dry_run": self.spend.dry_run, "watch": watch}
        if self.ranks is not None:
            return rank_file(judge, source, out, self.ranks, **how)  # type: ignore[arg-type]
        if pairs is None:
            return grade_file(judge, source, out, **how)  # type: ignore[arg-type]
        if pairs.from_absolute:
            return compare_file_by_scores(judge, source, out, equal=pairs.equal, **how)  # type: ignore[arg-type]
        return compare_file(judge, source, out, both_orders=not pairs.one_order, **how)  # type: ignore[arg-type]


def judges_of(
    told: JudgeRunOptions,
    judges: Sequence[str | Engine],
    rubric: Rubrics | None,
    format: str | Path | Format | None,
    mistakes: Mistakes,
    say: Callable[[str, str], None] = lambda spec, kind: None,
    engines: dict[str, Engine] | None = None,
) -> list[Judge]:
    """The judges that the options make; raises all mistakes. `say` hears each spec whose own format is asked in.

    `engines` are those that are open, by spec; a spec that is not among them is opened and added.
    """
    draws, replies = told.draws, told.replies
    scored = mistakes.of(lambda: _rubric(rubric, told.ask.scale))
    if scored is not None and "rubric" in told.ask.without:
        scored = scored.bare
    named = mistakes.of(lambda: load_format(format) if format is not None else None)
    own = [mistakes.of(partial(_own_format, each, told.place, say)) if format is None else None for each in judges]
    opened = [mistakes.of(partial(_opened, each, told.ask, engines)) for each in judges]
    told.check(mistakes, opened)
    for spending in ("bounds", "charged"):
        mistakes.of(partial(getattr, told.spend, spending))
    equate = mistakes.of(lambda: Scale.parse(told.ask.equate) if told.ask.equate else None)
    mistakes.raise_all()
    settings: dict[str, Any] = {
        "sampling": Sampling(draws.temperature, draws.top_p, replies.max_tokens, replies.seed),
        "samples": draws.samples, "read": replies.read, "min_mass": replies.min_mass, "frames": draws.frames,
        "equate": equate,
    }  # fmt: skip
    made: list[Judge] = []
    for engine, found in zip(opened, own, strict=True):
        assert engine is not None
        asks_in = named or (None if is_taught(engine) else found)
        asked: dict[str, Any] = {told.place: asks_in} if asks_in is not None else {}
        made.append(Judge(told.spend.around(engine), scored, **settings, **asked))
        if told.ranks is not None:
            check_values(made[-1], told.ranks)
    return made


def probed_judge(
    judge: str | Engine,
    told: ProbedFormatOptions,
    replies: ReplyOptions,
    spend: SpendOptions,
    rubric: Rubrics | None = None,
) -> Judge:
    """The judge that `probe` and `prove` test: formats that are not named are its own."""
    engine = _opened(judge, told)
    spec = judge if isinstance(judge, str) and not is_taught(engine) else None
    return Judge(
        spend.around(engine),
        rubric,
        format=told.format or (spec and default_format(spec, "absolute")),
        compare_format=told.compare_format or (spec and default_format(spec, "pairwise")),
        sampling=Sampling(max_tokens=replies.max_tokens, seed=replies.seed),
        read=replies.read,
        min_mass=replies.min_mass,
    )


def stop_if_given_up(each: Sequence[Mapping[str, Any]]) -> None:
    """RunError, with the cure, where a judge's server was given up and the rest was not asked."""
    if told := [str(summary["gave_up"]) for summary in each if "gave_up" in summary]:
        raise RunError("\n".join(told))


def judge_limits(judge: Judge) -> list[str]:
    """What the judge's engine is known not to support, and the consequences for this judge."""
    settings = judge.settings
    matters = {
        "logprobs": settings.read != "never",
        "seed": settings.sampling.temperature > 0,
        "top_p": False,  # an error before the first call where it matters
    }
    cannot: Mapping[str, str] = found_in(judge.engine, "cannot", {})
    return [f"{judge.engine.name} {told}" for name, told in cannot.items() if matters.get(name, True)]


def is_taught(engine: object) -> bool:
    """Whether the engine brings the formats it was trained on, which Judge then takes."""
    return bool(getattr(engine, "formats", None))


def _opened(judge: str | Engine, ask: RunnerOptions, engines: dict[str, Engine] | None = None) -> Engine:
    """The engine of a judge, on the machines of a cluster where a runner is named; one of `engines` if it is open."""
    if engines is not None and isinstance(judge, str):
        if judge not in engines:
            engines[judge] = _opened(judge, ask)
        return engines[judge]
    if ask.runner is None:
        if ask.workers is not None:
            raise UserError("--workers is for --runner ray")
        return open_engine(judge)
    if not isinstance(judge, str):
        raise UserError("runner= takes the judge as a spec, which the workers open, not as an engine")
    from dikast.engines.cluster.ray_engine import RayEngine
    from dikast.judging.by_workers import judge_batch

    return RayEngine(judge, ask.runner, ask.workers or "1:8", work=judge_batch)


def _own_format(judge: str | Engine, place: str, say: Callable[[str, str], None]) -> Format | None:
    """The format of a judge that nobody named one for."""
    if not isinstance(judge, str):
        return None
    kind = "absolute" if place == "format" else "pairwise"
    found = default_format(judge, kind)
    say(judge, kind)
    return found


def _rubric(source: Rubrics | None, scale: str | None) -> Rubric | Sheet | None:
    rubric = load_rubric(source) if source is not None else None
    if scale is None:
        return rubric
    if rubric is None:
        raise UserError("--scale replaces the scale of --rubric; give a rubric")
    return with_scale(rubric, scale)


def columns_of(pairs: Sequence[str]) -> dict[str, str]:
    """From FIELD=COLUMN, the columns by their field."""
    columns: dict[str, str] = {}
    for each in pairs:
        field_, equals, column = each.partition("=")
        if not (field_ and equals):
            told = "write FIELD=COLUMN, such as response=answer (FIELD= reads the field from no column)"
            raise UserError(f"--map {each!r}: {told}")
        columns[field_] = column
    return columns


class Judged(NamedTuple):
    """The summary of what was run, of a panel with the summaries of its `runs` by name, and those of each judge."""

    summary: dict[str, Any]
    each: list[dict[str, Any]]


def run_judges(
    told: JudgeRunOptions,
    names: Sequence[str],
    judges: Sequence[Judge],
    source: Source,
    out: Path | None,
    watching: Callable[[], AbstractContextManager[Watcher | None]],
) -> Judged:
    """Run one judge into the folder, or each of a panel into a folder under it and join them there.

    `names` are those of the judges in the panel's folders and summary. A dry run joins nothing.
    """
    check_readable_twice(source)
    if source.origins is None:  # of several files the columns of each were told, and this is their copy
        tell_columns(source.path, source.columns_line(NAMES_OF if out is None else names_version(out)))
    panel = len(judges) > 1 and out is not None
    folders = [out / f"{i}-{_slug(name)}" if panel and out else out for i, name in enumerate(names, 1)]
    joined = out if panel and not told.spend.dry_run else None
    with nullcontext() if joined is None else one_writer(joined, "judging"):  # one judge is held by its verdicts' file
        each = [_run(told, judge, source, folder, watching) for judge, folder in zip(judges, folders, strict=True)]
        if joined is None:
            return Judged(each[0], each)
        panel_summary = write_panel(joined, list(names), [folder for folder in folders if folder])
    return Judged({**panel_summary, "runs": dict(zip(names, each, strict=True))}, each)


def with_choice(source: str, ask: RunOptions) -> str:
    """The source with the configuration and the split of a data set of the Hub that were chosen."""
    if not (ask.config_name or ask.split):
        return source
    from dikast.core.records.hub import with_choice as chosen

    return chosen(source, ask.config_name, ask.split)


def tell_columns(name: str, told: str) -> None:
    """Say what was recognised of the columns of a source, where anything had to be; as a warning of the logger."""
    if told:
        _log.warning("%s: %s", name, told)


def tell_equal(name: str, reading: Arrangement) -> None:
    """Say which items of a source are equal to earlier ones, if any, as a warning of the logger."""
    if told := reading.equal_items_note():
        _log.warning("%s: %s", name, told)


def _run(
    told: JudgeRunOptions,
    judge: Judge,
    source: Source,
    out: Path | None,
    watching: Callable[[], AbstractContextManager[Watcher | None]],
) -> dict[str, Any]:
    with watching() as watch:
        return told.run(judge, source, out, watch)


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name).strip("-")[-60:]
