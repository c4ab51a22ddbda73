"""The verbs `lab list`, `lab run` and `lab report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dikast.core.checking import option
from dikast.core.errors import UserError
from dikast.judging.run_options import MediaOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, ShowOptions, Verbs, verb

app = Verbs(no_args_is_help=True)
_KINDS = (".html", ".md", ".json")


@dataclass(frozen=True, kw_only=True)
class LabRunOptions:
    """Which experiments are run, and where."""

    names: tuple[str, ...] = option(argument=True, help="Names (`dikast lab list`), YAML files of your own, or all.")
    out: Path = option(Path("lab"), help="The folder of the lab; running again resumes.")
    seeds: int = option(0, least=0, help="Only the first N seeds (0: all); more can be added later.")
    jobs: int = option(1, least=1, help="How many arms are trained and graded at a time, each in a process.")
    runner: str | None = option(
        None, metavar="RAY", help="Train and grade on a Ray cluster: ray://HOST:PORT, or ray for this machine."
    )
    model: str | None = option(None, help="Train this model instead of the experiments' own: a folder or hf:ORG/NAME.")
    judge: str | None = option(None, help="Use this judge where an experiment trains none.", complete="judges")
    allow_key: tuple[str, ...] = option(
        (), help="NAME@HOST: let an experiment send the key in this environment variable to this server."
    )


@dataclass(frozen=True, kw_only=True)
class LabReportOptions:
    """Which lab, and in which form it is written."""

    lab: Path = option(Path("lab"), argument=True, help="The folder of `dikast lab run`.")
    out: tuple[Path, ...] = option((), "--out", "-o", help="Files to write: .html, .md, .json.")
    keep: bool = option(
        False, "--keep", help="Leave what a .md file tells of experiments that have no finished seed in this lab."
    )


@app.command("list")
@verb
def list_(*, shown: JsonOptions) -> None:
    """The experiments that come with Dikast, with the claims that they test."""
    from dikast.lab.experiment import load_experiment, names

    found = [load_experiment(name) for name in names()]
    if shown.json:
        echo_json([
            {"name": each.name, "claim": each.written.claim, "source": each.written.source, "arms": list(each.arms),
             "seeds": list(each.written.seeds), "trains": each.trains} for each in found
        ])  # fmt: skip
        return
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        does = "trains" if each.trains else "grades"
        echo(f"{each.name:<{width}}  {does}  {len(each.arms)} arms  {each.written.claim}")


@app.command("run")
@verb
def run(told: LabRunOptions, media: MediaOptions, *, shown: ShowOptions) -> None:
    """Run experiments: draw their items, train their judges, grade; finished parts are not repeated.

    Example: dikast lab run drift references --out lab --jobs 2
    """
    from dikast.lab.experiment import load_experiment, names
    from dikast.lab.findings import findings
    from dikast.lab.lab_report import to_dict, unasked_told
    from dikast.lab.running import run_experiments

    def changes(trains: bool) -> dict[str, Any]:
        if trains:
            return {"train": {"init": None, "model": told.model}} if told.model else {}
        return {"judge": told.judge} if told.judge else {}

    wanted = names() if told.names == ("all",) else list(told.names)
    trains = [load_experiment(name, allow_keys=told.allow_key).trains for name in wanted]
    chosen = [load_experiment(name, changes(each), told.allow_key) for name, each in zip(wanted, trains, strict=True)]

    def say(line: str) -> None:
        if not shown.quiet:
            echo(line, err=True)

    run_experiments(chosen, told.out, seeds=told.seeds, jobs=told.jobs, runner=told.runner, say=say)
    found = [each for each in findings(told.out) if each.experiment.name in {one.name for one in chosen}]
    if shown.json:
        echo_json([to_dict(each) for each in found])
        return
    for each in found:
        effects = ", ".join(f"{name} {each.effects[name]:.3f}" for name in each.experiment.written.holds)
        echo(f"{each.experiment.name}: {each.verdict} ({effects})")
        if unasked := unasked_told(each):
            echo(unasked, err=True)


@app.command("report")
@verb
def report(told: LabReportOptions, *, shown: JsonOptions) -> None:
    """Write what the experiments of a lab found, from its run folders alone.

    Example: dikast lab report lab --out docs/lab.md --out lab.html
    """
    from dikast.core.records import write_file
    from dikast.lab.findings import findings
    from dikast.lab.lab_report import to_dict, to_markdown
    from dikast.surface.laboratory.lab_page import lab_page

    for path in told.out:
        if path.suffix not in _KINDS:
            raise UserError(f"{path}: unknown suffix; known are {', '.join(_KINDS)}")
    found = findings(told.lab)
    for path in told.out:
        if path.suffix == ".md":
            before = path.read_text("utf-8") if told.keep and path.is_file() else ""
            write_file(path, to_markdown(found, before).encode())
        elif path.suffix == ".html":
            write_file(path, lab_page(found).encode())
        else:
            import orjson

            write_file(path, orjson.dumps([to_dict(each) for each in found], option=orjson.OPT_INDENT_2) + b"\n")
    if shown.json:
        echo_json([to_dict(each) for each in found])
    elif not told.out:
        echo(to_markdown(found))
