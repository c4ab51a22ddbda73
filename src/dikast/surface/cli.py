"""The command line: `dikast VERB`. Each verb parses, calls one library function, prints.

Results go to stdout, messages to stderr. Exit codes: 0 ok, 1 run-time failure, 2 usage or bad input, 3 some items
failed, 4 a gate was not met, 130 interrupted with everything kept.
"""

import errno
import io
import logging
import os
import re
import sys

import typer

from dikast.core.errors import DikastError, RunError, TooManyMissing, UserError, is_machine_error, machine_error
from dikast.core.text import in_shell, near_miss
from dikast.surface.lazy_verbs import LazyVerb, LazyVerbs
from dikast.surface.terminal import PrintableLines, echo

FIRST = """First steps:
  dikast grade answers.csv --judge openai:MODEL --rubric "Is the answer correct?" --out runs/first --report page.html
  dikast grade model-1.jsonl model-2.jsonl --judge ... --rubric ... --out runs/models   (a leaderboard)
  dikast compare pairs.csv --judge ... --rubric ... --out runs/pairs                    (who wins)
  dikast report old.csv --out page.html                                                 (existing verdicts)
  dikast demo                                                                           (without a model or data)
"""
_JUDGE = "the judge is named with --judge (openai:MODEL, hf:ORG/NAME, http://HOST:PORT/v1#MODEL)"
_RUBRIC = '--rubric takes a criterion in words ("Is the answer polite?"), a file or a built-in name'
_ITEMS = "the file of items is a positional argument: dikast grade FILE"
_FIELDS = {
    "answer": "response", "question": "instruction", **{name: name for name in ("response", "reference", "gold", "id")},
}  # fmt: skip
_OF_A_JUDGE = (
    "concurrency", "max-concurrency", "max-connections", "parallel", "threads", "timeout", "retries",
    "max-retries", "batch-size", "top-logprobs",
)  # fmt: skip
_MEANT = {  # names of options in other programs
    **dict.fromkeys(("model", "m", "engine", "llm", "evaluator", "judge-model", "provider"), _JUDGE),
    **dict.fromkeys(("criterion", "criteria", "prompt", "instruction", "p"), _RUBRIC),
    **dict.fromkeys(("input", "data", "file", "dataset", "items", "input-file", "i", "f"), _ITEMS),
    **dict.fromkeys(("output", "output-dir", "save", "run"), "--out names the run folder"),
    **dict.fromkeys(("api-key", "key", "token"), "keys come from the environment (OPENAI_API_KEY=... and the like)"),
    **dict.fromkeys(("base-url", "url", "api-base"), "the address is part of --judge: http://HOST:PORT/v1#MODEL"),
    **dict.fromkeys(("num-samples", "repeat", "k"), "--samples N asks each question N times"),
    **dict.fromkeys(("columns", "column", "mapping"), "--map FIELD=COLUMN reads a field from a column"),
    "system": "a column `model` or `system` names the system of each response, and answers of several systems in files "
    "of their own are named after these; `dikast audit RUN --system COLUMN` takes another column",
    **dict.fromkeys(("resume", "continue", "overwrite"), "running the same command again resumes; no option is needed"),
    **dict.fromkeys(("by", "slice", "group-by"), "`dikast audit RUN --by COLUMN` and `dikast report` slice a run"),
    **dict.fromkeys(
        ("fail-if", "fail-below", "fail-above", "gate", "threshold", "min-score"),
        "`dikast report RUN --fail-under METRIC=VALUE` and --fail-over are the gates",
    ),
    **dict.fromkeys(("max-items", "max-examples", "head", "first-n", "n"), "--limit N uses the first N items"),
    **dict.fromkeys(
        _OF_A_JUDGE,
        "it belongs to the judge: --judge openai:MODEL,concurrency=8 (also timeout=SECONDS, retries=N; batch_size=N of"
        " a local model)",
    ),
    **{name: f"--map {field}=COLUMN reads it from a column" for name, field in _FIELDS.items()},
}
_VERBS = {  # names of what the verbs do elsewhere
    **dict.fromkeys(("score", "judge", "evaluate", "eval", "rate", "run", "test"), "grade"),
    **dict.fromkeys(("pairwise", "versus", "vs", "battle", "arena"), "compare"),
    **dict.fromkeys(("agreement", "metrics", "stats", "validate", "analyze", "analyse"), "audit"),
    **dict.fromkeys(("label", "review"), "annotate"),
    "convert": "corpus convert",
}


class _Dikast(LazyVerbs):
    verbs = {  # noqa: RUF012
        "grade": LazyVerb("commands.judge_commands:grade", "Score every response of every item with a rubric."),
        "compare": LazyVerb(
            "commands.judge_commands:compare", "Decide which of two responses is better, asking in both orders."
        ),
        "rank": LazyVerb(
            "commands.judge_commands:rank", "Order the responses of each item from best to worst by comparing them."
        ),
        "replay": LazyVerb(
            "commands.judge_commands:replay",
            "Derive every verdict of a run again from its recorded replies, without a model, optionally with another "
            "parser.",
        ),
        "merge-runs": LazyVerb(
            "commands.judge_commands:merge_runs",
            "Make one run folder of several that judged different items in the same way; nothing is asked.",
        ),
        "audit": LazyVerb(
            "commands.audit_command:audit",
            "Measure how far verdicts can be trusted: failures, agreement with gold and among raters, baselines, bias.",
        ),
        "demo": LazyVerb(
            "commands.demo_command:demo",
            "Grade new items with the bundled judge, compare pairs in both orders, and audit both against exact gold.",
        ),
        "probe": LazyVerb(
            "commands.probe_command:probe", "Change items in a known way, judge again, and say where the judge breaks."
        ),
        "prove": LazyVerb(
            "commands.prove_command:prove",
            "Test a judge on generated items with exact gold: one result per ability, and a page.",
        ),
        "report": LazyVerb(
            "commands.report_command:report",
            "Write the results of runs, or of any file of verdicts, as one self-contained page, with gates for CI.",
        ),
        "annotate": LazyVerb(
            "commands.annotate_command:annotate",
            "Have people label items blind, in a browser: grades, choices, claims, marks in texts and on pictures.",
        ),
        "view": LazyVerb(
            "commands.report_command:view",
            "Browse many runs in a browser: lists, live progress, items, two runs side by side, notes.",
        ),
        "export": LazyVerb(
            "commands.export_command:export",
            "Write a run for other programs: the items' columns, scores, status, distribution, feedback.",
        ),
        "prefs": LazyVerb(
            "commands.prefs_command:prefs",
            "Write pairs of responses, the better and the worse, for trainers of preferences.",
        ),
        "align": LazyVerb(
            "commands.align_command:align",
            "Improve a model with a judge as its only teacher: sample, judge, pair, train, measure, round by round.",
        ),
        "make-judge": LazyVerb(
            "commands.train_command:make_judge",
            "Make a judge from a recipe: build its data, train it, and audit it on held-out data.",
        ),
        "serve": LazyVerb(
            "commands.serve_command:serve", "Serve a judge over HTTP: scores, comparisons, rewards, typed decisions."
        ),
        "doctor": LazyVerb(
            "commands.doctor_command:doctor",
            "Print the installed versions, what works, and how to fix what does not; or check an output folder.",
        ),
        "train": LazyVerb("commands.train_command:app", "Teach a model to judge, and merge judges."),
        "world": LazyVerb("commands.world_command:app", "Procedural images, text and clips with exact gold scores."),
        "bench": LazyVerb(
            "commands.bench_command:app", "Benchmarks of judges: list, describe, run and report them, or add one."
        ),
        "lab": LazyVerb(
            "laboratory.lab_command:app", "Claims about judges, tested by written rules: list, run and report them."
        ),
        "corpus": LazyVerb(
            "commands.corpus_command:app", "Feedback data for judges: convert, check, describe and build it."
        ),
        "format": LazyVerb("commands.format_commands:app", "The formats that ask a judge and read its answer."),
        "rubric": LazyVerb("commands.rubric_commands:app", "Rubrics: built-in ones, and files of your own."),
    }


app = typer.Typer(
    name="dikast",
    cls=_Dikast,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Judge what language and vision-language models say, with any rubric, and say how far to trust the verdicts.",
)


def _version(show: bool) -> None:
    if show:
        from importlib.metadata import version  # slow to import, and needed for this option alone

        echo(f"dikast {version('dikast')}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def unknown_name(error: Exception) -> str:
    """The correct spelling for an unknown option, the verb that is meant by another name, or what to write for what is
    missing; "" for other mistakes.
    """
    name, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    missing = getattr(getattr(error, "param", None), "name", "") if type(error).__name__ == "MissingParameter" else ""
    if missing in ("judge", "items"):
        return f"--judge is missing: {_JUDGE}" if missing == "judge" else f"items is missing: {_ITEMS}"
    if missing and context is not None:
        example = re.search(r"Example: (dikast .+)", context.command.help or "")
        shown = example[1] if example else f"see {context.command_path} --help"
        return f"{missing} is missing: {shown}"
    verb = re.match(r"No such command '(.+?)'", str(getattr(error, "message", "")))
    if verb and context is not None and context.parent is None and os.path.exists(verb[1]):
        return f"there is no command {verb[1]}: for a file, write dikast grade {in_shell(verb[1])} (or compare, report)"
    if verb and verb[1].casefold() in _VERBS and context is not None and context.parent is None:
        meant = _VERBS[verb[1].casefold()]
        return f"there is no command {verb[1]}: that is dikast {meant}; see dikast {meant} --help"
    if type(error).__name__ != "NoSuchOption" or context is None:
        return ""
    known = [spelt for each in context.command.params for spelt in each.opts if spelt.startswith("--")]
    meant = _MEANT.get(name.lstrip("-").replace("_", "-"), "")
    if meant.startswith("--") and meant.partition(" ")[0] not in known:
        meant = ""
    near = near_miss(name, known)
    if context.parent is None and not near:
        meant = "options stand behind the verb: dikast grade FILE --judge ..."
    cure = f"did you mean {near}?" if near else meant or f"see {context.command_path} --help"
    return f"there is no option {name}: {meant or cure}"


def tell(error: Exception) -> None:
    """Print what went wrong, without keys."""
    from dikast.core.secrets import without_keys

    echo(f"dikast: {without_keys(str(error))}", err=True)


def _set_terminal() -> None:
    """Print what any terminal can show."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLines())
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # what its encoding lacks is escaped, as on stderr
    if os.environ.get("NO_COLOR"):
        os.environ["TERM"] = "dumb"  # for which help is printed plainly; NO_COLOR alone keeps bold


def _is_in_a_removed_folder(file: object) -> bool:
    """Whether a file that could not be opened lacks its folder too: what a verb was reading was removed or moved."""
    return isinstance(file, str | os.PathLike) and not os.path.isdir(os.path.dirname(os.fspath(file)) or ".")


def main() -> None:
    """Run the command line and exit with the code that the module's docstring names."""
    _set_terminal()
    if len(sys.argv) == 1 and "_DIKAST_COMPLETE" not in os.environ:  # a shell asks for completions without arguments
        echo(FIRST)
    try:
        code = app(standalone_mode=False)
        if code == 130:  # Typer's exception for a KeyboardInterrupt
            code = interrupted()
    except (KeyboardInterrupt, typer.Abort):
        code = interrupted()
    except DikastError as error:
        tell(error)
        code = 2 if isinstance(error, UserError) else 3 if isinstance(error, TooManyMissing) else 1
    except BrokenPipeError:  # the reader of our output closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            tell(UserError(f"{str(error.filename)[:80]}...: the name is too long for a file"))
            code = 2
        elif is_machine_error(error):
            tell(machine_error(error))
            code = 1
        elif isinstance(error, FileNotFoundError) and _is_in_a_removed_folder(error.filename):
            told = "its folder was removed or moved meanwhile: put it back and run the same command again"
            tell(RunError(f"{error.filename}: {told}"))
            code = 1
        else:
            raise
    except Exception as error:
        if not hasattr(error, "format_message"):  # a bug in Dikast, not a mistake of the user
            raise
        show = getattr(error, "show", None)
        if told := unknown_name(error):
            echo(f"dikast: {told}", err=True)
        elif show is not None:
            show()
        code = int(getattr(error, "exit_code", 2))
    if "torch.distributed" in sys.modules and os.environ.get("WORLD_SIZE", "1") not in ("", "0", "1"):
        # One process of several: all is on disk and the group closed, but threads that torch leaves behind can still
        # abort an interpreter that ends ("terminate called without an active exception").
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(code or 0))
    sys.exit(code or 0)


def interrupted() -> int:
    """Print that nothing is lost; returns the exit code of an interrupt."""
    print("\ndikast: interrupted; every answer so far is kept: run the same command again to resume", file=sys.stderr)  # noqa: T201
    return 130


if __name__ == "__main__":
    main()
