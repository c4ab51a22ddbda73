"""What can be said about a report: one definition for the flags of `dikast report`, its `--config` and Python."""

from dataclasses import dataclass
from pathlib import Path

from dikast.audit.plan import AuditPlan
from dikast.core.checking import like, option
from dikast.core.scale import Scale


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller wants in the report. `plan` is the audit, its `file` to be replaced by each run's folder."""

    plan: AuditPlan
    items: str = ""  # where the items are, when they are no longer where the run read them
    queue: int = 200  # verdicts in the queue of a run
    redact: bool = False  # no text and no pictures of items or replies


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The runs of a report, the files to write, what the audit needs to know, and the gates to check."""

    runs: tuple[Path, ...] = option(
        argument=True, help="Run folders, others being compared with the first; or files of verdicts (CSV, JSONL, ...)."
    )
    out: tuple[Path, ...] = option(
        (Path("report.html"),),
        "--out",
        "-o",
        help="Files to write: .html, .md, .json, .xml (JUnit), .jsonl (the queue's items).",
    )
    title: str = option("", help="Title of the page.")
    items: str = option("", help="The items file, if it was moved.")
    gold: tuple[str, ...] = like(AuditPlan, "gold", help="Columns of gold, as for `dikast audit`.")
    gold_file: Path | None = like(AuditPlan, "gold_file")
    key: tuple[str, ...] = like(AuditPlan, "key", help="The column of --gold-file that names the item.")
    by: tuple[str, ...] = like(AuditPlan, "by")
    score: str = like(
        AuditPlan, "score", help="Which score to audit: score or expected; of a file, the judge's column."
    )
    scale: str = option("", help="The scale of a file's scores: 1-5, pass/fail, poor<fair<good; none for no scale.")
    queue: int = option(200, least=0, help="How many verdicts to show in full, largest gap from gold first.")
    redact: bool = option(False, help="Leave out all texts and images: numbers only.")
    fail_under: tuple[str, ...] = option((), metavar="METRIC=VALUE", help="Exit with 4 if it is lower.")
    fail_over: tuple[str, ...] = option((), metavar="METRIC=VALUE", help="Exit with 4 if it is higher.")
    draws: int = like(AuditPlan, "draws")
    level: float = like(AuditPlan, "level")
    seed: int = like(AuditPlan, "seed")

    @property
    def asked(self) -> Asked:
        """What is asked of each run; the plan's file stands for the folder of each."""
        plan = AuditPlan(
            file=self.runs[0],
            score=self.score,
            gold=self.gold,
            gold_file=self.gold_file,
            key=self.key,
            by=self.by,
            draws=self.draws,
            level=self.level,
            seed=self.seed,
            scale=Scale.parse(self.scale) if self.scale not in ("", "none") else None,
            unscaled=self.scale == "none",
        )
        return Asked(plan, self.items, self.queue, self.redact)
