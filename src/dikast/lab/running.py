"""Running experiments: the plan is fixed before the first run, then stages run in several processes."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, as_completed
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import DataError, DikastError, RunError, UserError
from dikast.core.machine.worker_pool import worker_pool
from dikast.core.output_folder import one_writer
from dikast.core.records.items import read_items
from dikast.core.runs.run_files import changed_files, write_checked
from dikast.core.text import counted
from dikast.engines.cluster.ray_connection import connect
from dikast.engines.cluster.ray_tasks import ray_tasks
from dikast.lab.experiment import Experiment
from dikast.lab.judge_stages import JudgeStage, MergeStage, OwnLessonsStage, RunStage, Stage, runs_of
from dikast.lab.stages import AGAIN, COST, ITEMS, ItemsStage

PLAN = "experiment.json"
Say = Callable[[str], None]
Pool = Callable[[int], AbstractContextManager[Executor]]  # of so many workers at most


def run_experiments(
    experiments: Sequence[Experiment],
    out: str | Path,
    *,
    seeds: int = 0,
    jobs: int = 1,
    runner: str | None = None,
    say: Say = lambda line: None,
) -> None:
    """Run every arm with every seed (`seeds`: only the first so many) into the folder `out`; running again goes on.

    `out` gets `NAME/experiment.json` (the plan as fixed before the first run, and the paths of the runs), `items/`,
    `judges/` and `runs/`, ordinary run folders. `jobs` processes work at a time, each with one thread on a CPU; with
    `runner`, as many tasks of a Ray cluster (`ray_tasks`), on machines that share the folder.
    UserError where a file has changed since its first run, where two arms have the same runs, and where a set has no
    gold that a figure needs, before anything is trained; RunError for arms that failed, after the others are done.
    """
    folder = Path(out)

    def pool(most: int) -> AbstractContextManager[Executor]:
        return worker_pool(min(jobs, most)) if runner is None else ray_tasks(runner, min(jobs, most))

    if runner is not None:
        connect(runner)  # before anything is written
    with one_writer(folder, "running experiments"):
        groups: dict[str, list[Stage]] = {}
        judges: dict[str, JudgeStage | MergeStage] = {}
        for experiment in experiments:
            runs = runs_of(experiment, experiment.written.seeds[: seeds or None])
            _check_apart(experiment, runs)
            _fix(experiment, runs, folder)
            held = {stage.items.name: stage.items for stage in runs.values()}
            _each([[stage] for stage in held.values()], folder, pool, say)
            _check_gold(experiment, runs, folder)
            for stage in runs.values():
                judge = stage.judge
                if judge is not None:
                    judge.prepare(folder)
                    judges[judge.name] = judge
                key = judge.name if judge is not None else stage.name
                group = groups.setdefault(key, [] if judge is None else [judge])
                if stage not in group:
                    group.append(stage)
        _once([stage for judge in judges.values() for stage in judge.items()], folder, pool, say)
        depths = {key: judges[key].depth if key in judges else 0 for key in groups}
        for depth in sorted(set(depths.values())):  # judges that others are made of, or taught by, come first
            now = [key for key in groups if depths[key] == depth]
            lessons = [each for key in now if key in judges for each in judges[key].lessons()]
            _once([each.graded for each in lessons], folder, pool, say)
            _once(lessons, folder, pool, say)
            _each([groups[key] for key in now], folder, pool, say)


def _once(stages: Iterable[Stage], out: Path, pool: Pool, say: Say) -> None:
    """Do the stages, each for itself, those of one name once."""
    _each([[stage] for stage in {stage.name: stage for stage in stages}.values()], out, pool, say)


def _check_apart(experiment: Experiment, runs: dict[tuple[str, int, str], RunStage]) -> None:
    """UserError for an arm whose runs are those of another arm, so that their difference is 0 by definition."""
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for arm in experiment.arms:
        told = tuple((held, stage.name) for (name, _, held), stage in runs.items() if name == arm)
        if (before := seen.setdefault(told, arm)) != arm:
            raise UserError(
                f"{experiment.name}: arms.{arm}: changes nothing: its runs are those of {before!r} ('draw', 'data' and"
                " 'budget' matter only where the arm trains a judge)"
            )


def _fix(experiment: Experiment, runs: dict[tuple[str, int, str], RunStage], out: Path) -> None:
    """Write the plan before the first run; UserError if the folder holds another one."""
    path = out / experiment.name / PLAN
    places = [
        {"arm": arm, "seed": seed, "held": held, "run": str(stage.folder(out).relative_to(out)),
         "items": str(stage.items.folder(out).relative_to(out)),
         "judge": str(stage.judge.folder(out).relative_to(out)) if stage.judge else "", **_drawn(stage, out)}
        for (arm, seed, held), stage in runs.items()
    ]  # fmt: skip
    if path.is_file():
        known = read_plan(path)
        if known["hash"] != experiment.hash:
            raise UserError(
                f"{path.parent}: holds runs of another version of {experiment.name!r}, and a rule is not changed after"
                " it was first used: give the experiment another name, or another --out"
            )
        old = {(each["arm"], each["seed"], each["held"]): each for each in known["runs"]}
        new = {(each["arm"], each["seed"], each["held"]): each for each in places}
        places = list({**old, **new}.values())
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"name": experiment.name, "hash": experiment.hash, "told": experiment.told, "runs": places}
    write_checked(path, orjson.dumps(told, option=orjson.OPT_INDENT_2))


def _drawn(stage: RunStage, out: Path) -> dict[str, list[str]]:
    """The runs of the verdicts that the judge is taught, where it is taught any."""
    lessons = stage.judge.lessons() if stage.judge else []
    return {"drawn": [str(each.graded.folder(out).relative_to(out)) for each in lessons]} if lessons else {}


def read_plan(path: Path) -> dict[str, Any]:
    """The plan as fixed before the first run; DataError for a damaged file, and for one whose runs lie elsewhere."""
    for told in changed_files(path.parent, path.name).values():
        raise DataError(f"{told}: {AGAIN}", path=str(path))
    try:
        plan = orjson.loads(path.read_bytes())
        for each in plan["runs"]:
            for key, kind in (("arm", str), ("seed", int), ("held", str), ("run", str), ("items", str), ("judge", str)):
                if not isinstance(each[key], kind):
                    raise TypeError(f"{key!r} is {each[key]!r}")
            for key in ("run", "items", "judge"):
                _check_inside(each[key])
            for drawn in each.get("drawn", ()):
                _check_inside(drawn)
        if not (isinstance(plan["hash"], str) and isinstance(plan["name"], str) and isinstance(plan["told"], dict)):
            raise TypeError("'hash', 'name' and 'told' are not those of an experiment")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"not what an experiment fixed ({error!r}): {AGAIN}", path=str(path)) from None
    found: dict[str, Any] = plan
    return found


def _check_inside(path: str) -> None:
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise ValueError(f"{path} is not inside the lab")


def _check_gold(experiment: Experiment, runs: dict[tuple[str, int, str], RunStage], out: Path) -> None:
    """UserError where a figure that needs gold is wanted of a set that has none."""
    for name, effect in experiment.written.effects.items():
        stages = [stage for (arm, _, held), stage in runs.items() if held == effect.held and arm in effect.arms]
        for stage in stages:
            file = stage.items.folder(out) / ITEMS
            gold = effect.figure == "mean" or any(item.gold is not None for item in read_items(str(file)))
            if not gold:
                raise UserError(
                    f"effects.{name}: the set {effect.held!r} has no item with gold, which the figure"
                    f" {effect.figure!r} needs: name another set, or the figure 'mean'"
                )


def _each(groups: Sequence[Sequence[Stage]], out: Path, pool: Pool, say: Say) -> None:
    """Do the stages of each group in their order, several groups at a time; RunError for all that failed."""
    todo = [group for group in groups if not all(_done(stage, out) for stage in group)]
    if not todo:
        return
    failed, kinds = [], set()
    with pool(len(todo)) as workers:
        waiting = {workers.submit(_work, group, str(out)): group for group in todo}
        for number, each in enumerate(as_completed(waiting), 1):
            kind, wrong = each.result()
            say(f"{number} of {len(todo)}: {_last_stage(waiting[each])}{f': {wrong}' if wrong else ''}")
            if wrong:
                failed.append(wrong)
                kinds.add(kind)
    if failed:
        told = "\n".join([f"{counted(len(failed), 'arm')} failed; the others are done:", *failed])
        raise UserError(told) if kinds == {UserError} else RunError(told)


def _done(stage: Stage, out: Path) -> bool:
    if isinstance(stage, ItemsStage | RunStage | OwnLessonsStage):
        return stage.done(out)
    return (stage.folder(out) / COST).is_file()


def _last_stage(group: Iterable[Any]) -> str:
    last = list(group)[-1]
    return f"{type(last).__name__.removesuffix('Stage').lower()} {last.name}"


def _work(group: Sequence[Stage], out: str) -> tuple[type[DikastError], str]:
    """The error message, "" for none; not all exceptions can be passed between processes."""
    try:
        for stage in group:
            stage.run(Path(out))
    except DikastError as error:
        return UserError if isinstance(error, UserError) else RunError, str(error)
    return RunError, ""
