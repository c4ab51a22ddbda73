"""Options of benches: the source of their rows, how they are run and reported."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dikast.audit.plan import AuditPlan
from dikast.core.checking import like, option
from dikast.core.scale import Scale
from dikast.judging.run_options import FormatOptions, RunnerOptions, RunOptions


@dataclass(frozen=True, kw_only=True)
class BenchDataOptions:
    """The source of the rows of benches."""

    data: Path | None = option(
        None, metavar="FOLDER", help="Folder with the published files (by path or name) instead of a download."
    )
    unverified_rows: bool = option(
        False, help="Accept files whose SHA-256 differs from the bench's; every figure says so."
    )
    skip_missing: bool = option(False, help="Leave out rows whose image is missing, and count them.")


@dataclass(frozen=True, kw_only=True)
class BenchRunOptions(BenchDataOptions, FormatOptions, RunnerOptions):
    """The benches to run, and how the judge is asked."""

    benches: tuple[str, ...] = option(argument=True, help="Names (`dikast bench list`), or YAML files of your own.")
    judge: tuple[str, ...] = option(help="The judge, as for `dikast grade`; repeat for a panel.", complete="judges")
    out: Path = option(help="The folder; each bench has a run folder in it, which running again resumes.")
    rubric: str | None = option(None, help="A rubric instead of the bench's own.", complete="rubrics")
    prompt: Literal["dikast", "native", "learnt"] = option(
        "dikast",
        help="dikast, native (the authors' own, in the bench's rows or a column 'prompt' of --responses) or learnt (a "
        "format learnt from those).",
    )
    protocol: Literal["dikast", "authors"] = option(
        "dikast",
        help="authors: the samples per question and the temperature of the authors; dikast: --samples, by default one.",
    )
    without: tuple[str, ...] = like(RunOptions, "without")
    from_absolute: bool = option(
        False, help="Benches of pairs: grade each response alone; the better score wins, equal scores are a tie."
    )
    limit: int | None = option(
        None,
        least=1,
        help="A seeded sample of N rows of each bench, stratified by group; of whole groups where its figure is.",
    )
    responses: Path | None = option(
        None,
        metavar="FILE",
        help="Responses to the prompts of a bench that has none: records of id and response, with model, gold, rubric, "
        "reference and the authors' judge's prompt where there are any.",
    )
    policy: str | None = option(None, help="Sample these responses from this model.", complete="judges")


@dataclass(frozen=True, kw_only=True)
class BenchReportOptions:
    """The runs, and the formats of their scorecards."""

    runs: tuple[Path, ...] = option(
        argument=True, help="Run folders of `dikast bench run` (or the folder they are in), or a file of verdicts."
    )
    out: tuple[Path, ...] = option((), "--out", "-o", help="Files to write: .html, .md, .json, .csv.")
    bench: str = option("", help="For a file of verdicts: the bench that they are on.")
    columns: Path | None = option(
        None, metavar="FILE", help="For a file of verdicts: YAML with flags of `dikast audit` that name its columns."
    )
    judge: str = option("", help="For a file of verdicts: the judge's name.")
    gold: tuple[str, ...] = option(
        (), metavar="COLUMN", help="For runs: gold from this column of the items' metadata; repeat for several raters."
    )
    equate: Scale | None = option(
        None, metavar="SCALE", help="For runs: the scale of the gold of --gold, on which scores are put by equal ranks."
    )
    draws: int = like(AuditPlan, "draws")
    level: float = like(AuditPlan, "level")
    seed: int = like(AuditPlan, "seed")
