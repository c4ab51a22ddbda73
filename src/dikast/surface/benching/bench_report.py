"""Scorecards of runs and of recorded verdicts, in every form."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import orjson

from dikast.audit.plan import AuditPlan
from dikast.audit.rendering import shown
from dikast.audit.tables.column_file import read_columns
from dikast.benches.bench_rows import LENGTH, PROMPT
from dikast.benches.brought import MODEL
from dikast.benches.definition import Bench, load_bench
from dikast.benches.leaving_out import with_differences
from dikast.benches.scorecard import BENCH, Scorecard, bench_of, measured, scorecard
from dikast.core.checking import Mistakes, fit, keys_of
from dikast.core.errors import UserError
from dikast.core.records import write_file, write_records
from dikast.core.runs.run import Run
from dikast.core.text import hint, in_shell, markdown, read_located
from dikast.surface.benching.bench_options import BenchReportOptions
from dikast.surface.commands.audit_command import completed
from dikast.surface.report.report_file import judge_folders
from dikast.surface.report.report_options import FLAGS, ReportOptions

KINDS = (".html", ".md", ".json", ".csv")
_BROUGHT = "the responses that were brought"  # the player that no record names
_PROMPTS_UNKNOWN = (
    "which items share a prompt is not known (the run was made by an earlier version, or its rows hold no prompt): "
    "intervals take items as independent, and are too narrow where they are not; running the same command again asks "
    "nothing twice and notes the prompts of rows that hold them"
)
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")  # as a message names it
_OF_FILES, _OF_RUNS = ("bench", "columns", "judge"), ("gold", "equate")
_OF_REPORTS = {"runs", "out", "gold", "draws", "level", "seed"}  # what a report and scorecards are both asked
_OWN = ("scale", "parse", "columns", "judge")  # keys of a configuration of columns in addition to those of a plan


def holds_benches(folder: Path) -> bool:
    """Whether a folder is one of `dikast bench run`: runs of benches lie in it, and it is no run itself."""
    return folder.is_dir() and not (folder / BENCH).exists() and any(folder.glob(f"*/{BENCH}"))


def cards_for(told: ReportOptions) -> list[Scorecard]:
    """The scorecards of folders of `dikast bench run` that a report was asked for.

    UserError for other sources beside them, and for options that scorecards do not have.
    """
    others = [each for each in told.runs if not holds_benches(each)]
    if others:
        raise UserError(
            f"{others[0]}: is no folder of `dikast bench run`, as another of the sources is: write one report of the"
            " benches and another of the runs"
        )
    kept = {each.name for each in fields(BenchReportOptions)} & _OF_REPORTS
    given = {each.name: getattr(told, each.name) for each in fields(ReportOptions)}
    more = [each.name for each in fields(ReportOptions) if given[each.name] != each.default and each.name not in kept]
    if more := [FLAGS.get(name, name).replace("_", "-") for name in more if name != "runs"]:
        run = next(each.parent for each in sorted(told.runs[0].glob(f"*/{BENCH}")))
        raise UserError(
            f"--{', --'.join(more)}: not of the scorecards of benches, which {told.runs[0]} holds; of one run of a"
            f" bench it can be given: `dikast report {in_shell(run)}`"
        )
    return cards_of(BenchReportOptions(**{name: given[name] for name in kept}))


def cards_of(asked: BenchReportOptions) -> list[Scorecard]:
    """The scorecard of each run, or of each file of verdicts; UserError for other paths."""
    for path in asked.out:
        if path.suffix not in KINDS:
            raise UserError(f"{path}: unknown suffix; known are {', '.join(KINDS)}")
        if not path.parent.is_dir():
            raise UserError(f"{path}: the folder {path.parent} does not exist")
    found = []
    for each in asked.runs:
        if not each.exists():
            raise UserError(f"{each}: there is no such folder or file")
        _refuse_unread(asked, each)
        if each.is_file():
            with _advice("in the YAML file of --columns, without the dashes", _OF_FILES):
                found.append(_of_file(each, asked))
            continue
        folders = [each] if (each / BENCH).exists() else sorted(inside.parent for inside in each.glob(f"*/{BENCH}"))
        if not folders:
            raise UserError(f"{each}: holds no run of `dikast bench run`")
        for folder in folders:
            for judged in judge_folders(folder):
                plan = AuditPlan(
                    judged, gold=asked.gold, equate=asked.equate, draws=asked.draws, level=asked.level, seed=asked.seed
                )
                plan, told = _with_columns(plan, bench_of(folder))
                if asked.equate is not None:
                    told = (*told, f"scores were put on gold's scale {asked.equate} by equal ranks")
                with _advice(f"flags of `dikast audit {in_shell(judged)}`, which measures the same verdicts", _OF_RUNS):
                    found.append(scorecard(judged, plan, about=folder, told=told))
    return with_differences(found)


def _refuse_unread(asked: BenchReportOptions, path: Path) -> None:
    """UserError for an option of runs where the path is a file of verdicts, and the other way round."""
    wrong, of = (_OF_RUNS, "a run folder") if path.is_file() else (_OF_FILES, "a file of verdicts")
    if given := [f"--{name}" for name in wrong if getattr(asked, name)]:
        cure = "name its columns in the YAML file of --columns" if path.is_file() else "leave it out"
        raise UserError(f"{', '.join(given)}: only of {of}, and {path} is none: {cure}")


@contextmanager
def _advice(place: str, own: Collection[str]) -> Iterator[None]:
    """The mistakes that an audit tells, with the `place` of the flags that they name and that are not this verb's own.

    `own` are the names of its options for such a path.
    """
    known = {f"--{name}" for name in (*own, "draws", "level", "seed")}
    try:
        yield
    except UserError as error:
        others = dict.fromkeys(flag for flag in _FLAG.findall(str(error)) if flag not in known)
        if not others:
            raise
        raise UserError(f"{error} ({', '.join(others)}: {place})") from error


def _with_columns(plan: AuditPlan, bench: Bench) -> tuple[AuditPlan, tuple[str, ...]]:
    """The plan of a run with the columns of lengths and, of brought responses, of models, if its items have them.

    Where several items are responses to one prompt, prompts are the clusters: such items are not independent. An item
    whose row holds no prompt is a cluster of its own. Then what to tell where no item's prompt is known.
    """
    from dikast.audit.tables.run_rows import has_gold, kept_metadata

    known = [each.get("meta", {}) for each in kept_metadata(plan.file).values()]
    length = LENGTH if any(LENGTH in each for each in known) else ""
    models = {str(each[MODEL]) for each in known if MODEL in each} if bench.responses == "to be brought" else set()
    labelled, kind = bool(plan.gold) or has_gold(plan.file), Run(plan.file).kind
    system = MODEL if len(models) > 1 and labelled and kind == "absolute" else ""
    if bench.baseline and kind == "pairwise":
        plan = replace(plan, first=f"={bench.baseline}", second=MODEL if models else f"={_BROUGHT}")
    prompts = [each[PROMPT] for each in known if PROMPT in each]
    shared = 1 < len(set(prompts)) < len(prompts)
    told = () if prompts or not known else (_PROMPTS_UNKNOWN,)
    return replace(plan, length=length, system=system, cluster=PROMPT if shared else ""), told


def _of_file(file: Path, asked: BenchReportOptions) -> Scorecard:
    if not asked.bench:
        raise UserError(f"{file}: is a file of verdicts: say which bench they are on with --bench")
    plan = replace(
        plan_from(file, asked.columns) if asked.columns is not None else AuditPlan(file),
        draws=asked.draws, level=asked.level, seed=asked.seed,
    )  # fmt: skip
    return measured(load_bench(asked.bench), plan, asked.judge or file.name, ("recorded verdicts",))


def plan_from(file: Path, columns: Path) -> AuditPlan:
    """The audit of a file whose columns a YAML file names, with the flags of `dikast audit`; all mistakes at once."""
    document = read_located(columns)
    if not isinstance(document.value, dict):
        raise document.error("a mapping of flags of `dikast audit` to values, such as 'score: winner'")
    mistakes, known = Mistakes(document), keys_of(AuditPlan)
    spelt = {(key.option.names or ("",))[0].removeprefix("--") or name: name for name, key in known.items()}
    spelt |= {name.replace("_", "-"): name for name in known}
    given: dict[str, Any] = {}
    for key, value in document.value.items():
        name = spelt.get(str(key).replace("_", "-"))
        if name is not None and name != "file":
            value = (
                [part.strip() for part in value.split(",")]
                if known[name].option.commas and isinstance(value, str)
                else value
            )
            given[name] = fit(known[name].type, value, mistakes.add, key, option=known[name].option)
        elif key not in _OWN:
            mistakes.add(f"unknown key: {hint(str(key), sorted((*spelt, *_OWN)))}", key)
    derived, wrong = read_columns(document)
    for each in wrong:
        mistakes.tell(each)
    mistakes.raise_all()
    value = document.value
    return completed(AuditPlan(file, **given), derived, str(value.get("scale", "")), str(value.get("parse", "")))


def write_cards(cards: Sequence[Scorecard], out: Sequence[Path]) -> None:
    """Write the scorecards to each file, in the format of its suffix."""
    for path in out:
        if path.suffix == ".csv":
            write_records(path, (row for card in cards for row in card.rows()), escape_formulas=True)
        elif path.suffix == ".json":
            told = [card.to_dict() for card in cards]
            write_file(path, orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n")
        elif path.suffix == ".md":
            write_file(path, _to_markdown(cards).encode())
        else:
            from dikast.surface.benching.cards_page import cards_page

            write_file(path, cards_page(cards).encode())


def _to_markdown(cards: Sequence[Scorecard]) -> str:
    """The scorecards as Markdown: the figures and the official ones by group."""
    lines: list[str] = []
    for card in cards:
        lines += [f"## {markdown(card.bench.title)}: {markdown(card.judge)}", ""]
        for each in card.tables[: 2 if len(card.tables) > 1 and card.tables[1].name == "official by group" else 1]:
            lines += ["| " + " | ".join(map(markdown, each.columns)) + " |", "|" + "---|" * len(each.columns)]
            lines += ["| " + " | ".join(markdown(shown(cell)) for cell in row) + " |" for row in each.rows]
            lines += ["", *(f"- {markdown(note)}" for note in each.notes), ""]
    return "\n".join(lines)
