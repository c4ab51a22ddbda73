"""What can be said about a report: one definition for the flags of `dikast report`, its `--config` and Python."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from dikast.audit.plan import AuditOptions, AuditPlan, Column
from dikast.core.checking import option
from dikast.core.errors import UserError
from dikast.core.text import in_shell
from dikast.surface.commands.audit_command import completed
from dikast.surface.report.contents import MOST_PICTURES

SAMPLE = 50  # rows that a page shows beside its queue


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller wants in the report. `plan` is the audit, its `file` to be replaced by each run's folder."""

    plan: AuditPlan
    items: str = ""  # where the items are, when they are no longer where the run read them
    queue: int = 200  # verdicts in the queue of a run
    sample: int = SAMPLE  # of the others, drawn at random by the plan's seed
    rest: bool = False  # the rows that the page does not hold are written beside it
    pictures: int = MOST_PICTURES  # bytes of picture data of one run
    redact: bool = False  # no text and no pictures of items or replies


@dataclass(frozen=True, kw_only=True)
class ReportOptions(AuditOptions):
    """The runs of a report, the files to write, what the audit needs to know, and the gates to check.

    What is named of an audit means what it means to `dikast audit`; of runs, only what is in `OF_RUNS`.
    """

    runs: tuple[Path, ...] = option(
        argument=True,
        help="Run folders, others being compared with the first; files of verdicts; folders of align and bench run.",
    )
    out: tuple[Path, ...] = option(
        (Path("report.html"),),
        "--out",
        "-o",
        help="Files to write: .html, .md, .json, .xml (JUnit), .jsonl (the queue's items).",
    )
    title: str = option("", help="Title of the page.")
    items: str = option("", help="The items file, if it was moved.")
    scale: str = option("", help="The scale of a file's scores: 1-5, pass/fail, poor<fair<good; none for no scale.")
    parse: str = option("", metavar="DIALECT", help="The verdict columns of a file hold raw replies in this dialect.")
    queue: int = option(200, least=0, help="How many verdicts to show in full, largest gap from gold first.")
    sample: int = option(SAMPLE, least=0, help="How many of the other verdicts to show, drawn at random by --seed.")
    rest: bool = option(False, help="Write all other verdicts on pages in a folder beside each page (NAME-rest).")
    redact: bool = option(False, help="Leave out all texts and images: numbers only.")
    fail_under: tuple[str, ...] = option((), metavar="METRIC=VALUE", help="Exit with 4 if it is lower.")
    fail_over: tuple[str, ...] = option((), metavar="METRIC=VALUE", help="Exit with 4 if it is higher.")

    def asked(self, columns: Sequence[Column] = ()) -> Asked:
        """What is asked of each run; the plan's file stands for the folder of each. `columns` are derived ones.

        UserError for what a report cannot show.
        """
        given = {each.name: getattr(self, each.name) for each in fields(AuditOptions)}
        named = sorted(name for name in given if given[name] != _DEFAULTS[name]) + ["parse"] * bool(self.parse)
        if "ranked" in named:
            raise UserError("--ranked: a report is of scores or of pairs; `dikast audit` tells of rankings")
        beyond = [FLAGS.get(name, name).replace("_", "-") for name in named if name not in OF_RUNS]
        beyond += ["config (columns)"] * bool(columns)
        folders = [each for each in self.runs if each.is_dir()]
        if beyond and folders:
            told = ", ".join(f"--{name}" for name in beyond)
            see = f"`dikast audit {in_shell(folders[0])}`"
            raise UserError(f"{told}: only of a file of verdicts; for {folders[0]} see {see}")
        plan = completed(AuditPlan(self.runs[0], **given), columns, self.scale, self.parse)
        return Asked(plan, self.items, self.queue, self.sample, self.rest, redact=self.redact)


_DEFAULTS = {each.name: each.default for each in fields(AuditOptions)}
FLAGS = {"means": "mean", "covariates": "covariate", "key": "id"}  # fields whose flag has another name
OF_RUNS = {"score", "gold", "gold_file", "key", "by", "draws", "level", "seed", "width"}
