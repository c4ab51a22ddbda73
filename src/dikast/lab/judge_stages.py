"""The stages of judges: trained by an arm, merged, or as they are; what they grade, and what they teach in turn."""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from dikast.core.errors import RunError
from dikast.core.records.items import read_items
from dikast.core.records.writing import rebased
from dikast.core.runs.current_verdicts import load_keys
from dikast.core.runs.examine import examine_run
from dikast.core.runs.run_files import KEYS, SUMMARY, VERDICTS, write_checked
from dikast.engines import scout
from dikast.engines.local.source import ModelSource
from dikast.lab.experiment import Arm, Experiment, Taught
from dikast.lab.gold_feedback import GoldFeedback
from dikast.lab.nano import nano
from dikast.lab.own_lessons import own_lessons
from dikast.lab.stages import COST, ITEMS, ItemsStage, as_before, items_are_in, keep_items, named, timed

TAUGHT_SEED, HELD_SEED = 1_000, 500_000  # first seeds of training items, and of held-out items
DRAWS = 2  # verdicts on an item that a judge teaches


@dataclass(frozen=True, slots=True)
class JudgeStage:
    """A judge that an arm trains with one seed. `teachers`: the judges of the arms that it names as `taught_by`."""

    arm: Arm
    seed: int
    root: str
    teachers: tuple[tuple[str, "JudgeStage"], ...] = ()

    @property
    def name(self) -> str:
        """The name by everything that determines the judge."""
        parts = [{**as_before(each), "of": stage.name} for each, stage in self._data()]
        train = {key: _with_weights(value) for key, value in self.arm.train.items()}
        return named(parts, train, dataclasses.asdict(self.arm.budget), self.draw, self.root)

    @property
    def draw(self) -> int:
        """The seed of the training."""
        return self.seed + 1_000 * self.arm.draw

    @property
    def depth(self) -> int:
        """How many judges have to be there before it, one taught by the other."""
        return max((1 + teacher.depth for _, teacher in self.teachers), default=0)

    def items(self) -> list[ItemsStage]:
        """The items that it is trained on, or of which others' verdicts on them are."""
        return [stage.graded.items if isinstance(stage, OwnLessonsStage) else stage for _, stage in self._data()]

    def lessons(self) -> list["OwnLessonsStage"]:
        """What it is taught by judges of other arms."""
        return [stage for _, stage in self._data() if isinstance(stage, OwnLessonsStage)]

    def folder(self, out: Path) -> Path:
        """The training run."""
        return out / "judges" / self.name

    def model(self, out: Path) -> Path:
        """The judge, once it is trained."""
        return self.folder(out) / "model"

    def prepare(self, out: Path) -> None:
        """Make the folder of the initial model, if it is one of the lab's own."""
        self._start(str(self.arm.train.get("init", "")), out)

    def run(self, out: Path) -> None:
        """Train it, or resume."""
        from dikast.training.config import load_config
        from dikast.training.sft import sft

        folder = self.folder(out)
        if (folder / COST).is_file():
            return
        began = time.process_time()
        train = dict(self.arm.train)
        for key in ("init", "model"):
            if key in train:
                train[key] = self._start(str(train[key]), out)
        data = [
            {"items": [str(stage.folder(out).resolve() / ITEMS)], "formats": list(each.formats), "repeat": each.repeat}
            for each, stage in self._data()
        ]
        told = {"save_every": 100, "keep": 1, **train, "data": data, "out": str(folder.resolve()), "seed": self.draw}
        config = load_config({**told, "steps": 1})
        length = _mean_length(config) if self.arm.budget.tokens else 0.0
        wanted = self.arm.budget.tokens / length if length else self.arm.budget.examples
        steps = max(1, round(wanted / config.batch_size))
        done = sft(dataclasses.replace(config, steps=steps))
        if not done["complete"]:
            raise RunError(f"{folder}: training stopped after {done['steps']} steps: run the same command to go on")
        spent = time.process_time() - began
        examples = steps * config.batch_size
        tokens = round(examples * (length or _mean_length(config)))
        write_checked(folder / COST, orjson.dumps({"examples": examples, "tokens": tokens, "cpu_seconds": spent}))

    def _data(self) -> Iterator[tuple[Taught, "ItemsStage | OwnLessonsStage"]]:
        for number, each in enumerate(self.arm.data.values()):
            items = ItemsStage(each, TAUGHT_SEED * (1 + number) + self.seed, self.root)
            if each.taught_by:
                teacher = dict(self.teachers)[each.taught_by]
                yield each, OwnLessonsStage(each, RunStage(teacher.arm, items, teacher, self.root, DRAWS))
            else:
                yield each, items

    def _start(self, name: str, out: Path) -> str:
        if made := nano(name, out / "init"):
            return str(made.resolve())
        if name == "scout":
            return str(scout.folder())
        here = Path(self.root) / name
        return str(here.resolve()) if here.exists() else name

    def base(self) -> Path:
        """The model that it is trained from."""
        return Path(self._start(str(self.arm.train["model"]), Path()))


@dataclass(frozen=True, slots=True)
class MergeStage:
    """A judge merged from those of other arms with one seed, which are there before it."""

    judges: tuple[JudgeStage, ...]
    method: Literal["linear", "ties"]

    @property
    def name(self) -> str:
        """The name by everything that determines the judge."""
        return named([judge.name for judge in self.judges], self.method)

    @property
    def depth(self) -> int:
        """As of a judge that is trained."""
        return 1 + max(judge.depth for judge in self.judges)

    def items(self) -> list[ItemsStage]:
        """None of its own."""
        return []

    def lessons(self) -> list["OwnLessonsStage"]:
        """None."""
        return []

    def folder(self, out: Path) -> Path:
        """The folder of the merged judge."""
        return out / "judges" / self.name

    def model(self, out: Path) -> Path:
        """The judge, once it is merged."""
        return self.folder(out) / "model"

    def prepare(self, out: Path) -> None:
        """Nothing: its judges are prepared as they are trained."""

    def run(self, out: Path) -> None:
        """Merge, unless it is done."""
        from dikast.training.models.merge import Recipe, merge

        folder, models = self.folder(out), [judge.model(out) for judge in self.judges]
        if (folder / COST).is_file():
            return
        base = self.judges[0].base() if self.method == "ties" else None
        with timed(folder, "merging judges"):
            shutil.rmtree(self.model(out), ignore_errors=True)  # of a run that was killed
            merge(models, self.model(out), Recipe(self.method, (1.0,) * len(models)), base=base)


def _with_weights(value: Any) -> Any:
    """`scout` with a fingerprint of its weights, which differ between versions of Dikast; anything else as it is."""
    return f"scout {ModelSource(scout.folder()).identity()['weights']}" if value == "scout" else value


def _mean_length(config: Any) -> float:
    """Tokens of an example, prompt and reply, the mean over what is taught; prepares the examples."""
    from dikast.training.data.prepare import data_hash, prepare_shards
    from dikast.training.models.model import about, open_model
    from dikast.training.training_folder import in_folder

    def prepared(team: Any) -> dict[str, Any]:
        loaded = open_model(config)
        return {"mean": float(prepare_shards(config, loaded, about(loaded), data_hash(config), team).lengths.mean())}

    return float(in_folder(config, prepared)["mean"])


@dataclass(frozen=True, slots=True)
class RunStage:
    """Items, graded as an arm says by its `judge`, where that is trained or merged; `draws`: with so many replies each,
    drawn at temperature 1 if there are several.
    """

    arm: Arm
    items: ItemsStage
    judge: JudgeStage | MergeStage | None
    root: str
    draws: int = 1

    @property
    def name(self) -> str:
        """The name by everything that determines the verdicts."""
        judge = self.judge.name if self.judge else _with_weights(self.arm.judge)
        drawn = () if self.draws == 1 else (self.draws,)
        return named(judge, self.items.name, *map(repr, self._asked()), *drawn)

    def _asked(self) -> tuple[Any, ...]:
        begun = (self.arm.begin,) if self.arm.begin else ()
        return self.arm.format, self.arm.without, self.arm.read, self.arm.max_tokens, *begun

    def folder(self, out: Path) -> Path:
        """The run folder."""
        return out / "runs" / self.name

    def done(self, out: Path) -> bool:
        """Whether every question has its verdict and every file is as it was written; grading again mends the rest."""
        folder = self.folder(out)
        if not all((folder / name).is_file() for name in (COST, SUMMARY, VERDICTS, KEYS)):
            return False
        keys, found = load_keys(folder), examine_run(folder)
        return not found.problems and found.lines - found.stale - found.repeated >= len(() if keys is None else keys)

    def run(self, out: Path) -> None:
        """Grade, or resume."""
        from dikast.engines.base import Sampling
        from dikast.engines.spec import open_engine
        from dikast.judging.judge import Judge
        from dikast.judging.judge_file import grade_file
        from dikast.judging.run_plan import Source

        folder = self.folder(out)
        if self.done(out):
            return
        began = time.process_time()
        spec = str(self.judge.model(out)) if self.judge else self._spec()
        sampling = Sampling(temperature=float(self.draws > 1), max_tokens=self.arm.max_tokens)
        engine = GoldFeedback(open_engine(spec)) if self.arm.begin else spec
        judge = Judge(engine, format=self.arm.format or None, sampling=sampling, read=self.arm.read, samples=self.draws)
        with judge:
            done = grade_file(judge, Source(str(self.items.folder(out) / ITEMS), {}, None, self.arm.without), folder)
        usage = done.get("usage") or {}
        tokens = int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0)
        spent = time.process_time() - began
        write_checked(folder / COST, orjson.dumps({"items": done["verdicts"], "tokens": tokens, "cpu_seconds": spent}))

    def _spec(self) -> str:
        here = Path(self.root) / self.arm.judge
        return str(here.resolve()) if here.exists() else self.arm.judge


@dataclass(frozen=True, slots=True)
class OwnLessonsStage:
    """Items with the verdicts of a judge in place of their gold, which another one is taught."""

    told: Taught
    graded: RunStage

    @property
    def name(self) -> str:
        """The name by everything that determines the lessons."""
        return named(self.graded.name, self.told.keep, self.told.formats)

    def folder(self, out: Path) -> Path:
        """Their folder."""
        return out / "items" / self.name

    def done(self, out: Path) -> bool:
        """Whether the lessons are there; DataError where they are not those that were written."""
        return items_are_in(self.folder(out))

    def run(self, out: Path) -> None:
        """Write `items.jsonl`, unless it is there; UserError where no verdict is one to learn from."""
        if self.done(out):
            return
        folder, run = self.folder(out), self.graded.folder(out)
        with timed(folder, "choosing lessons") as cost:
            items = read_items(str(self.graded.items.folder(out) / ITEMS))
            lessons = own_lessons(items, run, keep=self.told.keep, draws=self.graded.draws, formats=self.told.formats)
            cost["items"] = keep_items(folder, (rebased(lesson, str(folder)) for lesson in lessons))


Stage = ItemsStage | JudgeStage | MergeStage | RunStage | OwnLessonsStage


def runs_of(experiment: Experiment, seeds: tuple[int, ...]) -> dict[tuple[str, int, str], RunStage]:
    """Every run of an experiment: (arm, seed, held) -> stage.

    Items to grade are the same for all seeds if judges are trained, else new ones for each seed.
    """
    root = str(experiment.folder.resolve()) if _relative(experiment) else ""
    found = {}
    for name, arm in experiment.arms.items():
        for seed in seeds:
            judge = _judge(name, experiment, seed, root)
            for held, told in arm.held.items():
                items = ItemsStage(told, HELD_SEED + (0 if judge else seed), root)
                found[name, seed, held] = RunStage(arm, items, judge, root)
    return found


def _judge(name: str, experiment: Experiment, seed: int, root: str) -> JudgeStage | MergeStage | None:
    arm = experiment.arms[name]
    if arm.merge is not None:
        return MergeStage(tuple(_trained(other, experiment, seed, root) for other in arm.merge.of), arm.merge.method)
    return _trained(name, experiment, seed, root) if arm.train else None


def _trained(name: str, experiment: Experiment, seed: int, root: str) -> JudgeStage:
    arm = experiment.arms[name]
    teachers = {each.taught_by for each in arm.data.values() if each.taught_by}
    return JudgeStage(
        arm, seed, root, tuple((each, _trained(each, experiment, seed, root)) for each in sorted(teachers))
    )


def _relative(experiment: Experiment) -> bool:
    """Whether files beside the experiment's may be named; then its folder matters too. Experiments of the catalogue
    name none.
    """
    return str(experiment.folder) != "."
