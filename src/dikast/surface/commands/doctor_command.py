"""The verb `doctor`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, verb

if TYPE_CHECKING:
    from dikast.core.runs.examine import Examined, Health, Part


@verb
def doctor(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="A folder to check, line by line and file by file: a run, a build, a training run, a model."
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Move damaged lines to a separate file; running again asks those questions again."
        ),
    ] = False,
    runner: Annotated[
        str | None,
        typer.Option(
            "--runner", metavar="ray[://HOST:PORT]", help="List the resources of a Ray cluster, and how many are free."
        ),
    ] = None,
    *,
    shown: JsonOptions,
) -> None:
    """Print the installed versions, what works, and how to fix what does not; or check an output folder.

    With a folder, exits with 1 if something in it needs repair.
    """
    from dikast.core.errors import UserError
    from dikast.surface.doctor import as_json, examine, render

    if runner is not None:
        if run is not None or repair:
            raise UserError("--runner lists a cluster: leave the folder out")
        _list_cluster(runner, json=shown.json)
    elif run is not None:
        _check_folder(run, repair=repair, json=shown.json)
    elif repair:
        raise UserError("--repair needs a folder: dikast doctor FOLDER --repair")
    else:
        findings = examine()
        if shown.json:
            echo_json(as_json(findings))
        else:
            echo(render(findings))


def _list_cluster(runner: str, *, json: bool) -> None:
    """The resources of a Ray cluster that workers can use, and how many are free."""
    from dikast.engines.cluster.ray_connection import connect

    ray = connect(runner)
    free = ray.available_resources()
    found = {
        name: {"there": n, "free": free.get(name, 0.0)}
        for name, n in sorted(ray.cluster_resources().items())
        if not name.startswith("node:") and name not in ("memory", "object_store_memory")
    }
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())
    if json:
        echo_json({"ray": ray.__version__, "nodes": nodes, "resources": found})
        return
    echo(f"Ray {ray.__version__}, {nodes} {'machine' if nodes == 1 else 'machines'}")
    for name, each in found.items():
        echo(f"{name}: {each['there']:g}, {each['free']:g} free")


def _check_folder(folder: Path, *, repair: bool, json: bool) -> None:
    """A single run, build or training run; of any other folder, all of them that lie in it, and its other files."""
    from dikast.core.runs.run_files import VERDICTS
    from dikast.corpus.pipeline.build_health import examine_build, is_build, repair_build
    from dikast.training.health import examine_training, is_training, repair_training

    if (folder / VERDICTS).is_file() or not folder.is_dir():
        _check_run(folder, repair=repair, json=json)
    elif is_build(folder):
        _tell_of(folder, examine_build, repair_build if repair else None, json=json)
    elif is_training(folder):
        _tell_of(folder, examine_training, repair_training if repair else None, json=json)
    elif _parts(folder):
        _tell_of(folder, _examine_inside, _repair_inside if repair else None, json=json)
    else:
        _check_run(folder, repair=repair, json=json)


def _parts(folder: Path) -> "list[tuple[Path, Callable[[Path], Health | Examined], Callable[[Path], int]]]":
    """The output folders in a folder, itself included, with what examines and what repairs each."""
    from dikast.core.runs.examine import Examined, examine_files, examine_run, record_anew, repair_run
    from dikast.core.runs.run_files import CHECKSUMS, VERDICTS
    from dikast.corpus.pipeline.build_health import examine_build, is_build, repair_build
    from dikast.training.health import examine_training, is_training, repair_training

    def examine_others(path: Path) -> "Examined":
        n, problems = examine_files(path)
        return Examined("folder", 0, n, tuple(problems))

    def repair_others(path: Path) -> int:
        record_anew(path)
        return 0

    kinds = (
        (lambda path: (path / VERDICTS).is_file(), examine_run, repair_run),
        (is_build, examine_build, repair_build),
        (is_training, examine_training, repair_training),
        (lambda path: (path / CHECKSUMS).is_file(), examine_others, repair_others),
    )
    found: list[tuple[Path, Callable[[Path], Health | Examined], Callable[[Path], int]]] = []
    trained = list[Path]()
    for path in sorted(each for each in (folder, *folder.rglob("*")) if each.is_dir()):
        if any(path.is_relative_to(each / part) for each in trained for part in ("checkpoints", "shards", "model")):
            continue  # examined with the training run
        for is_kind, examine, repair in kinds:
            if is_kind(path):
                found.append((path, examine, repair))
                trained += [path] if is_kind is is_training else []
                break
    return found


def _examine_inside(folder: Path) -> "Examined":
    from dataclasses import replace

    from dikast.core.runs.examine import Examined, Part

    parts, problems = list[Part](), []
    for path, examine, _ in _parts(folder):
        found, place = examine(path), "" if path == folder else f"{path.relative_to(folder)}/"
        kind = found.kind if isinstance(found, Examined) else "run"
        parts.append(Part(place or ".", kind, found.lines, found.files))
        problems += [replace(each, file=f"{place}{each.file}") for each in found.problems]
    lines, files = sum(each.lines for each in parts), sum(each.files for each in parts)
    return Examined("folder", lines, files, tuple(problems), tuple(parts))


def _repair_inside(folder: Path) -> int:
    return sum(repair(path) for path, _, repair in _parts(folder))


def _tell_of(
    folder: Path, examine: "Callable[[Path], Examined]", repair: "Callable[[Path], int] | None", *, json: bool
) -> None:
    from dataclasses import asdict

    from dikast.core.text import counted

    moved = repair(folder) if repair is not None else 0
    found = examine(folder)
    if json:
        echo_json({**asdict(found), "moved": moved})
    else:
        had = f"{counted(found.lines, 'line')} and {counted(found.files, 'file')} with a checksum"
        echo(f"{found.kind}: {had}{_kinds(found.parts)}")
        for part in found.parts:
            echo(f"  {part}")
        echo("\n".join([*map(str, found.problems)] or ["nothing to repair"]))
        if moved:
            echo(f"{counted(moved, 'damaged line')} moved to *.damaged.jsonl: run the command that made it again")
    if not found.sound:
        raise typer.Exit(1)


def _kinds(parts: "Sequence[Part]") -> str:
    """How many output folders of each kind were checked; "" where there are none."""
    from collections import Counter

    from dikast.core.text import counted

    counts = Counter(part.kind for part in parts)
    return ", in " + ", ".join(counted(n, kind) for kind, n in counts.items()) if counts else ""


def _check_run(run: Path, *, repair: bool, json: bool) -> None:
    from dataclasses import asdict

    from dikast.core.runs.examine import DAMAGED, examine_run, repair_run
    from dikast.core.text import counted

    moved = repair_run(run) if repair else 0
    health = examine_run(run)
    if json:
        echo_json({**asdict(health), "moved": moved})
    else:
        counts = f"{health.lines} verdicts: {health.verified} verified by their checksum"
        for n, what in (
            (health.rewritten, "written again by another program (checked by content)"),
            (health.unsealed, "without a checksum (checked by content)"),
            (health.stale, "of another configuration"),
            (health.repeated, "repeated"),
        ):
            counts += f", {n} {what}" if n else ""
        counts += f"; {counted(health.files, 'file')} with a checksum"
        echo("\n".join([counts, *map(str, health.problems)]))
        if moved:
            echo(
                f"{moved} damaged lines moved to {run / DAMAGED}: run the command that made it again to ask them again"
            )
        elif health.sound:
            echo("nothing to repair")
    if not health.sound:
        raise typer.Exit(1)
