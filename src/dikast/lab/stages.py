"""The stages of an experiment: items, judges, runs. Arms that need the same stage share it; each stage is resumable.

A stage is named by the fingerprint of everything that determines it, and its folder by that name, so a finished stage
is not repeated and an interrupted one is resumed. The work is that of the ordinary functions: `write_world`,
`write_lessons`, `sft`, `grade_file`.
"""

import dataclasses
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.checking import fit
from dikast.core.errors import DataError, RunError, UserError
from dikast.core.output_folder import one_writer
from dikast.core.records import write_items
from dikast.core.records.items import read_items
from dikast.core.records.writing import rebased
from dikast.core.runs.current_verdicts import load_keys
from dikast.core.runs.examine import examine_run
from dikast.core.runs.run_files import KEYS, SUMMARY, VERDICTS, changed_files, checksum, record, write_checked
from dikast.engines import scout
from dikast.lab.experiment import Arm, Experiment, Items, Taught
from dikast.lab.gold_feedback import GoldFeedback
from dikast.lab.item_changes import changed
from dikast.lab.nano import nano
from dikast.worlds.settings import Settings

AGAIN = "remove the file, and run the experiment again: what is done is not done again"
ITEMS = "items.jsonl"
COST = "cost.json"
TAUGHT_SEED, HELD_SEED = 1_000, 500_000  # first seeds of training items, and of held-out items
_SHOWN = 12  # digits of a name
_LATER = ("different_rubrics", "blank")  # settings of items and of their changes


@dataclass(frozen=True, slots=True)
class ItemsStage:
    """Items in a folder: drawn or read, changed."""

    told: Items
    seed: int
    root: str

    @property
    def name(self) -> str:
        """The name by everything that determines the items."""
        file = Path(self.root) / self.told.items
        told = {**_as_before(self.told), "formats": 0, "repeat": 0}
        return _name(told, self.seed, checksum(file) if self.told.items else "")

    def folder(self, out: Path) -> Path:
        """Their folder."""
        return out / "items" / self.name

    def done(self, out: Path) -> bool:
        """Whether the items are there; DataError where they are not those that were written."""
        folder = self.folder(out)
        if not (folder / COST).is_file() or not (folder / ITEMS).exists():
            return False
        for told in changed_files(folder, ITEMS).values():
            raise DataError(f"{told}: {AGAIN}", path=str(folder / ITEMS))
        return True

    def run(self, out: Path) -> None:
        """Write `items.jsonl`, unless it is there."""
        if self.done(out):
            return
        folder = self.folder(out)
        with _timed(folder, "making items") as cost:
            source = self._source(folder)
            items = [rebased(item, str(folder)) for item in read_items(str(source))]
            items = items[: self.told.n or None]
            cost["items"] = write_items(folder / ITEMS, changed(items, self.told.change, self.seed))
            record(folder, {ITEMS: checksum(folder / ITEMS)})  # which all that read items check

    def _source(self, folder: Path) -> Path:
        from dikast.worlds.teach import write_lessons
        from dikast.worlds.write import write_world

        told = self.told
        if told.items:
            return Path(self.root) / told.items
        settings: Settings = fit(Settings, {"seed": self.seed, **told.world}, _refuse)
        if told.lessons:
            made = partial(write_lessons, reference=told.reference, padding=told.padding, quote=told.quote)
            rubrics = told.different_rubrics
            return made(settings, told.n, folder / "world", rubrics=rubrics, shard=told.n).files[0]
        return write_world(settings, told.n, folder / "world", shard=told.n).files[0]


def _refuse(message: str, *at: object) -> None:
    raise UserError(f"{'.'.join(map(str, at))}: {message}")


@dataclass(frozen=True, slots=True)
class JudgeStage:
    """A judge that an arm trains with one seed."""

    arm: Arm
    seed: int
    root: str

    @property
    def name(self) -> str:
        """The name by everything that determines the judge."""
        parts = [{**_as_before(each), "of": stage.name} for each, stage in self._data()]
        return _name(parts, dict(self.arm.train), dataclasses.asdict(self.arm.budget), self.draw, self.root)

    @property
    def draw(self) -> int:
        """The seed of the training."""
        return self.seed + 1_000 * self.arm.draw

    def items(self) -> list[ItemsStage]:
        """The items that it is trained on."""
        return [stage for _, stage in self._data()]

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

    def _data(self) -> Iterator[tuple[Taught, ItemsStage]]:
        for number, each in enumerate(self.arm.data.values()):
            yield each, ItemsStage(each, TAUGHT_SEED * (1 + number) + self.seed, self.root)

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
        return _name([judge.name for judge in self.judges], self.method)

    def items(self) -> list[ItemsStage]:
        """None of its own."""
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
        with _timed(folder, "merging judges"):
            shutil.rmtree(self.model(out), ignore_errors=True)  # of a run that was killed
            merge(models, self.model(out), Recipe(self.method, (1.0,) * len(models)), base=base)


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
    """One set of items, graded by the judge of an arm with one seed."""

    arm: Arm
    held: str
    seed: int
    root: str
    merged: tuple[Arm, ...] = ()

    @property
    def judge(self) -> JudgeStage | MergeStage | None:
        """The judge, where it is trained or merged."""
        if self.arm.merge is not None:
            judges = tuple(JudgeStage(arm, self.seed, self.root) for arm in self.merged)
            return MergeStage(judges, self.arm.merge.method)
        return JudgeStage(self.arm, self.seed, self.root) if self.arm.train else None

    @property
    def items(self) -> ItemsStage:
        """The items to grade: the same for all seeds if judges are trained, else new ones for each seed."""
        return ItemsStage(self.arm.held[self.held], HELD_SEED + (0 if self.judge else self.seed), self.root)

    @property
    def name(self) -> str:
        """The name by everything that determines the verdicts."""
        judge = self.judge.name if self.judge else self.arm.judge
        return _name(judge, self.items.name, *map(repr, self._asked()))

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
        sampling = Sampling(max_tokens=self.arm.max_tokens)
        engine = GoldFeedback(open_engine(spec)) if self.arm.begin else spec
        judge = Judge(engine, format=self.arm.format or None, sampling=sampling, read=self.arm.read)
        with judge:
            done = grade_file(judge, Source(str(self.items.folder(out) / ITEMS), {}, None, self.arm.without), folder)
        usage = done.get("usage") or {}
        tokens = int(usage.get("tokens_in") or 0) + int(usage.get("tokens_out") or 0)
        spent = time.process_time() - began
        write_checked(folder / COST, orjson.dumps({"items": done["verdicts"], "tokens": tokens, "cpu_seconds": spent}))

    def _spec(self) -> str:
        here = Path(self.root) / self.arm.judge
        return str(here.resolve()) if here.exists() else self.arm.judge


Stage = ItemsStage | JudgeStage | MergeStage | RunStage


def runs_of(experiment: Experiment, seeds: tuple[int, ...]) -> dict[tuple[str, int, str], RunStage]:
    """Every run of an experiment: (arm, seed, held) -> stage."""
    root = str(experiment.folder.resolve()) if _relative(experiment) else ""
    return {
        (name, seed, held): RunStage(arm, held, seed, root, _merged(arm, experiment))
        for name, arm in experiment.arms.items()
        for seed in seeds
        for held in arm.held
    }


def _merged(arm: Arm, experiment: Experiment) -> tuple[Arm, ...]:
    return () if arm.merge is None else tuple(experiment.arms[name] for name in arm.merge.of)


def _relative(experiment: Experiment) -> bool:
    """Whether files beside the experiment's may be named; then its folder matters too. Experiments of the catalogue
    name none.
    """
    return str(experiment.folder) != "."


@contextmanager
def _timed(folder: Path, doing: str) -> Iterator[dict[str, Any]]:
    cost: dict[str, Any] = {}
    began = time.process_time()
    with one_writer(folder, doing):
        yield cost
        write_checked(folder / COST, orjson.dumps({**cost, "cpu_seconds": time.process_time() - began}))


def _as_before(told: Items) -> dict[str, Any]:
    """The settings of items, without those that came later where nothing is set, so that folders stay the same."""

    def kept(settings: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name not in _LATER or value}

    found = kept(dataclasses.asdict(told))
    return {**found, "change": kept(found["change"])}


def _name(*parts: Any) -> str:
    return fingerprint(parts)[:_SHOWN]
