"""The verbs `grade`, `compare` and `replay`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from dikast.core.errors import UserError
from dikast.surface.config import load_config
from dikast.surface.media_options import MediaRoot, PrivateUrls
from dikast.surface.show import show_plans, show_summary

if TYPE_CHECKING:
    from dikast.core.rubric import Rubric, Sheet
    from dikast.judging.judge import Judge
    from dikast.judging.plan import Source
    from dikast.judging.run import Watcher
    from dikast.prompts.format import Format

T = TypeVar("T")

Items = Annotated[str, typer.Argument(help="JSONL(.gz), CSV, TSV or Parquet; - reads JSONL from standard input.")]
JudgeSpecs = Annotated[
    list[str],
    typer.Option("--judge", help="Who judges: hf:ORG/NAME, a folder, mock:NAME, replay:FILE. Repeat for a panel."),
]
RubricFile = Annotated[
    str | None, typer.Option("--rubric", help="YAML or JSON file, or a built-in rubric; items may bring their own.")
]
Out = Annotated[Path | None, typer.Option("--out", help="The run folder; running again goes on where it stopped.")]
ScaleText = Annotated[str | None, typer.Option("--scale", help="Replaces the rubric's scale: 1-10, A-E, pass/fail.")]
EquateText = Annotated[
    str | None,
    typer.Option("--equate", metavar="SCALE", help="The scale gold lies on, if not the rubric's: kept for the audit."),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format", help="A built-in format (`dikast format list`) or a YAML file; a released judge has its own."
    ),
]
Map = Annotated[list[str] | None, typer.Option("--map", help="FIELD=COLUMN where the file names a field differently.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N items.")]
Samples = Annotated[
    int, typer.Option("-n", "--samples", min=1, help="Ask each question N times (needs a temperature).")
]
Temperature = Annotated[float, typer.Option("--temperature", min=0.0, help="0 is greedy.")]
TopP = Annotated[float, typer.Option("--top-p", min=0.0, max=1.0, help="Nucleus sampling.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="The longest reply.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all draws.")]
ReadMode = Annotated[
    str,
    typer.Option(
        "--read", help="auto reads label probabilities where it can; only generates no text; never parses it."
    ),
]
FramesCount = Annotated[
    int, typer.Option("--frames", min=1, max=1024, help="Frames sampled from a video whose item names no number.")
]
MinMass = Annotated[
    float, typer.Option("--min-mass", min=0.0, max=1.0, help="Probability that must fall on the labels.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would be asked; ask nothing.")]
BudgetText = Annotated[
    str | None,
    typer.Option("--budget", help="Stop asking when spent, each judge: calls=1000,tokens=2000000,money=5."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
MaxFailures = Annotated[
    str, typer.Option("--max-failures", help="How many verdicts may be missing (a count or a share, 5%) before exit 3.")
]
Config = Annotated[
    str | None,
    typer.Option("--config", is_eager=True, callback=load_config, help="Flags as YAML; the command line wins."),
]


@dataclass(frozen=True, slots=True)
class _Ask:
    """The flags that `grade` and `compare` share, as given."""

    items: str
    specs: list[str]
    out: Path | None
    rubric: str | None
    scale: str | None
    equate: str | None
    map: list[str] | None
    limit: int | None
    samples: int
    temperature: float
    top_p: float
    max_tokens: int
    seed: int
    read: str
    min_mass: float
    frames: int
    dry_run: bool
    budget: str | None
    max_failures: str
    json: bool
    quiet: bool


def grade(
    items: Items,
    judge: JudgeSpecs,
    out: Out = None,
    rubric: RubricFile = None,
    scale: ScaleText = None,
    equate: EquateText = None,
    format: FormatName = None,
    map: Map = None,
    limit: Limit = None,
    samples: Samples = 1,
    temperature: Temperature = 0.0,
    top_p: TopP = 1.0,
    max_tokens: MaxTokens = 1024,
    seed: Seed = 0,
    read: ReadMode = "auto",
    min_mass: MinMass = 0.5,
    frames: FramesCount = 8,
    media_root: MediaRoot = None,
    allow_private_urls: PrivateUrls = False,
    dry_run: DryRun = False,
    budget: BudgetText = None,
    max_failures: MaxFailures = "0",
    json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Score every response of every item with a rubric.

    Example: dikast grade answers.jsonl --judge hf:ORG/MODEL --rubric helpfulness --out runs/first
    """
    from dikast.judging.run import grade_file

    ask = _Ask(
        items, judge, out, rubric, scale, equate, map, limit, samples, temperature, top_p, max_tokens, seed, read,
        min_mass, frames, dry_run, budget, max_failures, json, quiet,
    )  # fmt: skip
    _run(ask, {"format": format}, grade_file, _Mistakes())


def compare(
    items: Items,
    judge: JudgeSpecs,
    out: Out = None,
    rubric: RubricFile = None,
    scale: ScaleText = None,
    equate: EquateText = None,
    format: FormatName = None,
    map: Map = None,
    limit: Limit = None,
    one_order: Annotated[
        bool, typer.Option("--one-order", help="Ask each pair once, as given: half the cost, position bias unseen.")
    ] = False,
    from_absolute: Annotated[
        bool, typer.Option("--from-absolute", help="Grade both responses and compare the scores.")
    ] = False,
    equal: Annotated[
        str, typer.Option("--equal", help="With --from-absolute, the rule for equal scores: tie, expected, resample.")
    ] = "tie",
    samples: Samples = 1,
    temperature: Temperature = 0.0,
    top_p: TopP = 1.0,
    max_tokens: MaxTokens = 1024,
    seed: Seed = 0,
    read: ReadMode = "auto",
    min_mass: MinMass = 0.5,
    frames: FramesCount = 8,
    media_root: MediaRoot = None,
    allow_private_urls: PrivateUrls = False,
    dry_run: DryRun = False,
    budget: BudgetText = None,
    max_failures: MaxFailures = "0",
    json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
) -> None:
    """Say which of two responses is better, asking in both orders.

    Example: dikast compare pairs.jsonl --judge hf:ORG/MODEL --rubric helpfulness --out runs/pairs
    """
    from dikast.judging.preference import EQUAL_RULES
    from dikast.judging.run import compare_file, compare_file_by_scores

    wrong = _Mistakes()
    if equal not in EQUAL_RULES:
        rules = "; ".join(f"{name}: {what}" for name, what in EQUAL_RULES.items())
        wrong.append(f"--equal {equal!r} is not a rule; {rules}")
    elif equal != "tie" and not from_absolute:
        wrong.append("--equal is a rule for equal scores: it goes with --from-absolute")
    if from_absolute and (one_order or samples > 1):
        wrong.append("--from-absolute grades each response alone: --one-order and --samples mean nothing with it")
    ask = _Ask(
        items, judge, out, rubric, scale, equate, map, limit, samples, temperature, top_p, max_tokens, seed, read,
        min_mass, frames, dry_run, budget, max_failures, json, quiet,
    )  # fmt: skip

    def one(judge: "Judge", source: "Source", out: Path, *, dry_run: bool, watch: "Watcher | None") -> dict[str, Any]:
        if from_absolute:
            return compare_file_by_scores(judge, source, out, equal=equal, dry_run=dry_run, watch=watch)  # type: ignore[arg-type]
        return compare_file(judge, source, out, both_orders=not one_order, dry_run=dry_run, watch=watch)

    formats = {"format": format} if from_absolute else {"compare_format": format}
    _run(ask, formats, one, wrong)


def replay(
    run: Annotated[Path, typer.Argument(help="The run folder.")],
    format: FormatName = None,
    out: Out = None,
    json: Json = False,
    config: Config = None,
) -> None:
    """Derive every verdict of a run again from its recorded replies, without a model, perhaps with another parser.

    Example: dikast replay runs/first --format claims
    """
    from dikast.judging.replay import replay as replay_run

    show_summary(replay_run(run, format=format, out=out), as_json=json)


class _Mistakes(list[str]):
    """Mistakes in flags, gathered so that all are told at once."""

    def of(self, step: Callable[[], T]) -> T | None:
        """What `step` gives, or None when its flags are wrong."""
        try:
            return step()
        except UserError as error:
            self.append(str(error))
            return None

    def raise_all(self) -> None:
        """One UserError for all of them, if there are any."""
        if self:
            raise UserError("\n  ".join([f"{len(self)} mistakes in the flags:", *self]) if len(self) > 1 else self[0])


@dataclass(frozen=True, slots=True)
class _Ready:
    """What the flags stand for."""

    judges: "list[Judge]"
    source: "Source"
    allowed: Callable[[int], float]


def _prepared(ask: _Ask, formats: dict[str, str | None], wrong: _Mistakes) -> _Ready:
    from dikast.core.scale import Scale
    from dikast.engines.base import Sampling
    from dikast.engines.budget import Budget
    from dikast.engines.spec import open_engine
    from dikast.judging.judge import Judge
    from dikast.prompts.format import load_format

    if ask.out is None and not ask.dry_run:
        wrong.append("say where to keep the verdicts: --out FOLDER (or --dry-run to ask nothing)")
    if ask.out == Path():  # what an empty variable becomes
        wrong.append("--out is empty, or the working folder itself: name a folder for the run")
    if len(ask.specs) > 1 and ask.items == "-":
        wrong.append("a panel reads the items once for each judge: give it a file, not standard input")
    if ask.read not in ("auto", "only", "never"):
        wrong.append(f"--read {ask.read!r}: say auto, only or never")
    if ask.samples > 1 and ask.temperature <= 0:
        wrong.append("several samples at temperature 0 are all the same: set --temperature, such as 1.0")
    allowed, source = wrong.of(lambda: _allowed(ask.max_failures)), wrong.of(lambda: _source(ask))
    rubric = wrong.of(lambda: _rubric(ask))
    loaded = {name: wrong.of(partial(load_format, format)) for name, format in formats.items() if format}
    own = [wrong.of(partial(_default_formats, spec, set(formats) - set(loaded), ask.quiet)) for spec in ask.specs]
    engines = [wrong.of(partial(open_engine, spec)) for spec in ask.specs]
    budget = wrong.of(lambda: budget_of(ask.budget))
    equate = wrong.of(lambda: Scale.parse(ask.equate) if ask.equate else None)
    wrong.raise_all()
    if budget:
        engines = [Budget(engine, **budget) for engine in engines if engine is not None]
    assert allowed is not None
    assert source is not None
    settings: dict[str, Any] = {
        "samples": ask.samples,
        "read": ask.read,
        "min_mass": ask.min_mass,
        "frames": ask.frames,
        "equate": equate,
    }
    settings.update(loaded)
    sampling = Sampling(ask.temperature, ask.top_p, ask.max_tokens, ask.seed)
    judges = [
        Judge(engine, rubric, sampling=sampling, **{**settings, **({} if is_taught(engine) else found or {})})
        for engine, found in zip(engines, own, strict=True)
        if engine is not None
    ]
    return _Ready(judges, source, allowed)


def is_taught(engine: object) -> bool:
    """Whether the engine brings the formats it was trained on, which Judge then takes."""
    return bool(getattr(engine, "formats", None))


def _default_formats(spec: str, wanted: set[str], quiet: bool) -> "dict[str, Format]":
    """The formats that nobody named, by their place in the judge; a released judge's own is said to be used."""
    from dikast.judging.defaults import default_format, told_default

    found = {}
    for place in wanted:
        kind = "absolute" if place == "format" else "pairwise"
        found[place] = default_format(spec, kind)
        told = told_default(spec, kind)
        if told and not quiet:
            typer.echo(told, err=True)
    return found


def _rubric(ask: _Ask) -> "Rubric | Sheet | None":
    from dikast.core.rubric import load_rubric, with_scale

    rubric = load_rubric(ask.rubric) if ask.rubric is not None else None
    if ask.scale is None:
        return rubric
    if rubric is None:
        raise UserError("--scale replaces the scale of --rubric; give a rubric")
    return with_scale(rubric, ask.scale)


def _source(ask: _Ask) -> "Source":
    from dikast.judging.plan import Source

    columns: dict[str, str] = {}
    for each in ask.map or []:
        field, equals, column = each.partition("=")
        if not (field and equals and column):
            raise UserError(f"--map {each!r}: write FIELD=COLUMN, such as response=answer")
        columns[field] = column
    return Source(ask.items, columns, ask.limit)


def _run(ask: _Ask, formats: dict[str, str | None], one: Callable[..., dict[str, Any]], wrong: _Mistakes) -> None:
    """Run one judge into the folder, or each of a panel into a folder under it; print; exit 3 above what is allowed."""
    from dikast.judging.panel import write_panel
    from dikast.surface.progress import ProgressLine

    ready, panel = _prepared(ask, formats, wrong), len(ask.specs) > 1
    folders = [ask.out / f"{i}-{_slug(spec)}" if panel and ask.out else ask.out for i, spec in enumerate(ask.specs, 1)]
    summaries: list[dict[str, Any]] = []
    for judge, folder in zip(ready.judges, folders, strict=True):
        with ProgressLine(quiet=ask.quiet) as progress:
            summaries.append(one(judge, ready.source, folder, dry_run=ask.dry_run, watch=progress))
    if ask.dry_run:
        show_plans(dict(zip(ask.specs, summaries, strict=True)), as_json=ask.json)
        return
    summary = summaries[0]
    if panel and ask.out:
        runs = dict(zip(ask.specs, summaries, strict=True))
        summary = {**write_panel(ask.out, ask.specs, [folder for folder in folders if folder]), "runs": runs}
    show_summary(summary, as_json=ask.json)
    failed = sum(each["verdicts"] - each["status"].get("ok", 0) for each in summaries)
    if failed > ready.allowed(sum(each["verdicts"] for each in summaries)):
        raise typer.Exit(3)


def _allowed(text: str) -> Callable[[int], float]:
    """From `--max-failures`: how many of n verdicts may be missing."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UserError(f"--max-failures {text!r}: write a count (10) or a share (5%)")
    return (lambda n: n * value / 100) if text.endswith("%") else (lambda n: value)


def budget_of(text: str | None) -> dict[str, Any]:
    """From `--budget`: the bounds of a `Budget`."""
    found: dict[str, Any] = {}
    for each in (text or "").split(",") if text else ():
        name, _, number = each.strip().partition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if name not in ("calls", "tokens", "money") or not 0 <= value < float("inf"):
            raise UserError(f"--budget {text!r}: write calls=N, tokens=N or money=N, with commas between")
        found[name] = value if name == "money" else int(value)
    return found


def _slug(spec: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in spec).strip("-")[-60:]
