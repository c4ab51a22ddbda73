"""Collects the runs once and writes every form of the report that was asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.audit.panel_audit import is_panel
from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.records import write_file, write_items
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import SUMMARY, VERDICTS
from dikast.surface.report import exports, gates
from dikast.surface.report.collect import collect, collect_panel
from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.contents import MOST_PICTURES
from dikast.surface.report.embedded.rest_pages import beside, write_rest
from dikast.surface.report.headline import leaders, sentence, winners
from dikast.surface.report.page import render
from dikast.surface.report.report_options import Asked
from dikast.surface.report.table_page import collect_table

KINDS = {
    ".html": "a page",
    ".md": "Markdown for a pull request",
    ".json": "every number",
    ".xml": "JUnit for CI",
    ".jsonl": "the items of the queue, for people to label",
}


@dataclass(frozen=True, slots=True)
class Written:
    """A report: its files, the pages as collected, the gates as checked, and every number as JSON values.

    The report of an alignment or of benches has neither pages nor gates; of benches, `numbers` are their scorecards.
    """

    files: tuple[Path, ...]
    pages: list[RunPage]
    gates: list[gates.Gate]
    numbers: Any

    def __repr__(self) -> str:
        files = ", ".join(map(str, self.files)) or "in memory"
        met = f"; {sum(each.met for each in self.gates)} of {len(self.gates)} gates met" if self.gates else ""
        pages = f": {', '.join(page.name for page in self.pages)}" if self.pages else ""
        return f"<Report {files}{pages}{met}>"


def write_report(
    runs: Sequence[Path],
    out: Sequence[Path],
    asked: Asked,
    *,
    title: str = "",
    fail_under: Sequence[str] = (),
    fail_over: Sequence[str] = (),
) -> Written:
    """Write the report of `runs` to each file of `out`, whose suffix (one of `KINDS`) says in which form.

    Runs after the first are compared with it, in pairs of the same items; a panel's folder stands for the runs of its
    judges, and a file of verdicts for itself. Gates are checked in every run. Raises UserError for a folder that is no
    run, and for a gate on a metric that does not exist.
    """
    for path in out:
        check_report(path)
    if asked.rest and not any(path.suffix == ".html" for path in out):
        raise UserError("--rest: the other verdicts stand on pages beside a page: name it with --out NAME.html")
    several = sum(len(judge_folders(folder)) for folder in runs)
    asked = replace(asked, pictures=MOST_PICTURES // max(1, several))
    pages = [collect_panel(folder, asked) for folder in runs if is_panel(folder)]
    runs = [each for folder in runs for each in judge_folders(folder)]
    pages += [
        collect_table(each, asked) if each.is_file() else collect(each, asked, runs[0] if number else None)
        for number, each in enumerate(runs)
    ]
    _tell_apart(pages)
    first = next((page.name for page in pages if page.folder == runs[0]), "")  # of a panel the first judge
    for page in pages:
        page.compared_with = first
    wanted: list[tuple[gates.Side, str]] = [("under", text) for text in fail_under]
    wanted += [("over", text) for text in fail_over]
    checked = [gates.check(page.audit, page.name, side, text) for page in pages for side, text in wanted]
    heading = title or "Report: " + ", ".join(page.folder.resolve().name if page.panel else page.name for page in pages)
    numbers = exports.to_json(pages, checked)
    for path in out:
        if path.suffix == ".jsonl":
            write_items(path, _queued(pages, path, redact=asked.redact))
            continue
        if path.suffix == ".html":
            rest = beside(path) if asked.rest else ""
            text, left = render(pages, heading, asked.plan.resampling, redacted=asked.redact, beside=rest)
            if asked.rest:
                write_rest(path, pages, left, heading, MOST_PICTURES)
        elif path.suffix == ".md":
            text = exports.to_markdown(pages, checked, heading)
        elif path.suffix == ".xml":
            text = exports.to_junit(pages, checked)
        else:
            text = orjson.dumps(numbers, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode() + "\n"
        write_file(path, text.encode())
    return Written(tuple(out), pages, checked, numbers)


def _queued(pages: Sequence[RunPage], path: Path, *, redact: bool) -> list[Item]:
    """The items of all queues, each once; UserError where texts are to be left out, or none is known."""
    if redact:
        raise UserError(
            f"{path}: the items of the queue are texts, and --redact leaves these out: leave out one of both"
        )
    found = list({item.id: item for page in reversed(pages) for item in reversed(page.queued)}.values())[::-1]
    if not found:
        why = "; ".join(each for page in pages for each in page.missing)
        raise UserError(f"{path}: no item of the queue is known; name the file of the run's items with --items ({why})")
    return found


def headlines(pages: Sequence[RunPage]) -> list[str]:
    """The first lines of each page: failures, agreement with gold, for pairs who won, and the leaderboard if there are
    several systems.
    """
    told: list[str] = []
    for page in pages:
        if page.audit is None:
            told += [f"{page.name}: {why}" for why in page.missing]
            continue
        before = f"{page.name}: " if len(pages) > 1 else ""
        told.append(before + sentence(page))
        told += [before + won] if (won := winners(page)) else []
        told += leaders(page)
    return told


def check_report(path: Path) -> None:
    """UserError where no report can be written to the path: its suffix, or its folder."""
    if path.suffix not in KINDS:
        known = ", ".join(f"{suffix} ({what})" for suffix, what in KINDS.items())
        raise UserError(f"{path}: unknown suffix; known are {known}")
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} does not exist")


def judge_folders(folder: Path) -> list[Path]:
    """The folder of each judge of a panel, of any other run its own."""
    if (folder / VERDICTS).exists() or not (folder / SUMMARY).is_file():
        return [folder]
    return [run.folder for run in Run(folder).runs]


def _tell_apart(pages: Sequence[RunPage]) -> None:
    """Runs whose folders have the same name also get the names of the folders above."""
    names = [page.name for page in pages]
    for page in pages:
        if names.count(page.name) > 1:
            page.name = "/".join(page.folder.resolve().parts[-2:])
