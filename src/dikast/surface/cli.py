"""The command line: `dikast VERB`. Each verb parses, calls one library function, prints.

Results go to stdout, messages to stderr. Exit codes: 0 ok, 1 run-time failure, 2 usage or bad input, 3 some items
failed, 4 a gate was not met, 130 interrupted with everything kept.
"""

import logging
import os
import re
import sys

import typer

from dikast.core.errors import DikastError, TooManyMissing, UserError, is_machine_error, machine_error
from dikast.core.secrets import without_keys
from dikast.core.text import near_miss
from dikast.surface.commands import (
    align_command,
    annotate_command,
    audit_command,
    bench_command,
    corpus_command,
    demo_command,
    doctor_command,
    export_command,
    format_commands,
    judge_commands,
    prefs_command,
    probe_command,
    prove_command,
    report_command,
    rubric_commands,
    serve_command,
    train_command,
    world_command,
)
from dikast.surface.laboratory import lab_command
from dikast.surface.terminal import PrintableLines, echo
from dikast.surface.verbs import CONFIG, Verbs, verb

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
_MEANT = {  # names of options in other programs
    **dict.fromkeys(("model", "m", "engine", "llm", "evaluator", "judge-model", "provider"), _JUDGE),
    **dict.fromkeys(("criterion", "criteria", "prompt", "instruction", "p"), _RUBRIC),
    **dict.fromkeys(("input", "data", "file", "dataset", "items", "input-file", "i", "f"), _ITEMS),
    **dict.fromkeys(("output", "output-dir", "save", "run"), "--out names the run folder"),
    **dict.fromkeys(("api-key", "key", "token"), "keys come from the environment (OPENAI_API_KEY=... and the like)"),
    **dict.fromkeys(("base-url", "url", "api-base"), "the address is part of --judge: http://HOST:PORT/v1#MODEL"),
    **dict.fromkeys(("num-samples", "repeat", "k"), "--samples N asks each question N times"),
    **dict.fromkeys(("columns", "column", "mapping"), "--map FIELD=COLUMN reads a field from a column"),
    **dict.fromkeys(("resume", "continue", "overwrite"), "running the same command again resumes; no option is needed"),
    **dict.fromkeys(("by", "slice", "group-by"), "`dikast audit RUN --by COLUMN` and `dikast report` slice a run"),
    **dict.fromkeys(("max-items", "max-examples", "head", "first-n", "n"), "--limit N uses the first N items"),
}
_VERBS = {  # names of what the verbs do elsewhere
    **dict.fromkeys(("score", "judge", "evaluate", "eval", "rate", "run", "test"), "grade"),
    **dict.fromkeys(("pairwise", "versus", "vs", "battle", "arena"), "compare"),
    **dict.fromkeys(("agreement", "metrics", "stats", "validate", "analyze", "analyse"), "audit"),
    **dict.fromkeys(("label", "review"), "annotate"),
}

app = Verbs(
    name="dikast",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Judge what language and vision-language models say, with any rubric, and say how far to trust the verdicts.",
)
app.command("grade")(verb(judge_commands.grade, config=CONFIG))
app.command("compare")(verb(judge_commands.compare, config=CONFIG))
app.command("rank")(verb(judge_commands.rank, config=CONFIG))
app.command("replay")(verb(judge_commands.replay, config=CONFIG))
app.command("merge-runs")(verb(judge_commands.merge_runs))
app.command("audit")(audit_command.audit)
app.command("demo")(demo_command.demo)
app.command("probe")(verb(probe_command.probe, config=CONFIG))
app.command("prove")(verb(prove_command.prove, config=CONFIG))
app.command("report")(report_command.report)
app.command("annotate")(verb(annotate_command.annotate))
app.command("view")(verb(report_command.view))
app.command("export")(verb(export_command.export))
app.command("prefs")(verb(prefs_command.prefs))
app.command("align")(verb(align_command.align, CONFIG))
app.command("make-judge")(verb(train_command.make_judge))
app.command("serve")(verb(serve_command.serve, config=CONFIG))
app.command("doctor")(verb(doctor_command.doctor))
app.add_typer(train_command.app, name="train")
app.add_typer(world_command.app, name="world")
app.add_typer(bench_command.app, name="bench")
app.add_typer(lab_command.app, name="lab")
app.add_typer(corpus_command.app, name="corpus")
app.add_typer(format_commands.app, name="format")
app.add_typer(rubric_commands.app, name="rubric")


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
    """The correct spelling for an unknown option, or the verb that is meant by another name; "" for other mistakes."""
    name, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    verb = re.match(r"No such command '([\w-]+)'", str(getattr(error, "message", "")))
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
    cure = f"did you mean {near}?" if near else meant or f"see {context.command_path} --help"
    return f"there is no option {name}: {meant or cure}"


def main() -> None:
    """Run the command line and exit with the code that the module's docstring names."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLines())
    if len(sys.argv) == 1 and "_DIKAST_COMPLETE" not in os.environ:  # a shell asks for completions without arguments
        echo(FIRST)
    try:
        code = app(standalone_mode=False)
        if code == 130:  # Typer's exception for a KeyboardInterrupt
            code = interrupted()
    except (KeyboardInterrupt, typer.Abort):
        code = interrupted()
    except DikastError as error:
        echo(f"dikast: {without_keys(str(error))}", err=True)
        code = 2 if isinstance(error, UserError) else 3 if isinstance(error, TooManyMissing) else 1
    except BrokenPipeError:  # the reader of our output closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        if not is_machine_error(error):
            raise
        echo(f"dikast: {without_keys(str(machine_error(error)))}", err=True)
        code = 1
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
