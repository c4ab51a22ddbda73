"""`corpus build`: a recipe's stages one after the other, into a folder that remembers everything that was answered."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from dikast.core.errors import RunError, UserError
from dikast.core.records import write_items
from dikast.corpus import feedback_recipe, preference_recipe
from dikast.corpus.duplicates import Index
from dikast.corpus.journal import finished
from dikast.corpus.recipe import Recipe, checked_files
from dikast.corpus.seeds import load_seeds
from dikast.corpus.stage import Asking, StageReport, Task, check_sampling, prompt, run_stage
from dikast.corpus.world_teacher import WorldTeacher
from dikast.engines.base import Engine
from dikast.engines.budget import Budget
from dikast.engines.spec import open_engine

ITEMS, LOCK, REPORT = "items.jsonl", "build.json", "report.json"
_PROMPTS = {"feedback": ("rubrics", "instructions", "responses"), "preference": ("preference",)}
_CHARACTERS = 4
_PASSES = 2  # times that rubrics left without an answer are asked for before the build waits for another run

Progress = Callable[[StageReport], None]


@dataclass(slots=True)
class Built:
    """What a build came to. `waits` says why it is not finished, "" when it is; `dropped` counts what filters took."""

    folder: str
    items: int = 0
    waits: str = ""
    stages: list[StageReport] = field(default_factory=list)
    kept: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; `kept` counts items by score or preference."""
        return {
            "folder": self.folder, "items": self.items, "waits": self.waits, "kept": dict(sorted(self.kept.items())),
            "dropped": dict(self.dropped), "stages": [stage.to_dict() for stage in self.stages],
        }  # fmt: skip


def open_teacher(recipe: Recipe, engine: Engine | None = None) -> Engine:
    """The recipe's teacher; `engine` takes its place where one is given."""
    if engine is not None:
        return engine
    if recipe.world:
        return WorldTeacher(recipe.world, seed=recipe.seed, per_rubric=recipe.instructions)
    return open_engine(recipe.teacher)


def build(
    recipe: Recipe,
    out: str | Path,
    *,
    teacher: Engine | None = None,
    budget: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Built:
    """Run a recipe into the folder `out`; running again pays only for what is missing.

    Writes a journal a stage, `items.jsonl` when all stages are answered, and `report.json`. A `budget` (calls, tokens,
    money) that is spent leaves the build waiting. UserError for a folder that another recipe wrote; RunError when too
    many replies are rejected.
    """
    checked_files(recipe)
    seeds = load_seeds(recipe.path(recipe.seeds)) if recipe.seeds else []
    engine = open_teacher(recipe, teacher)
    folder = _locked(Path(out), recipe, engine)
    if budget:
        engine = Budget(engine, **budget)
    sampling = check_sampling(recipe.temperature, recipe.max_tokens, recipe.seed)
    asking = Asking(engine, sampling, recipe.tries, recipe.stop_after_rejects)
    run = _Run(recipe, folder, asking, progress, Built(str(folder)))
    try:
        if recipe.recipe == "feedback":
            run.feedback(seeds)
        else:
            run.preference()
    finally:
        (folder / REPORT).write_bytes(orjson.dumps(run.built.to_dict(), option=orjson.OPT_INDENT_2))
    return run.built


@dataclass(slots=True)
class _Run:
    """One build under way."""

    recipe: Recipe
    folder: Path
    asking: Asking
    progress: Progress | None
    built: Built

    def stage(self, name: str, tasks: Iterable[Task]) -> StageReport:
        path = self.folder / f"{name}.jsonl"
        report = StageReport(name)
        self.built.stages.append(report)  # so that the report names a stage that stopped
        found = run_stage(name, tasks, path, self.asking, self.progress)
        self.built.stages[-1] = found
        if found.left["budget"]:
            self.built.waits = f"the budget is spent in stage {name!r}; raise it and run again to go on"
        elif found.left:
            told = ", ".join(f"{n} {reason}" for reason, n in found.left.items())
            self.built.waits = f"stage {name!r} has tasks without an answer ({told}): run again to ask them"
        return found

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def feedback(self, seeds: list[dict[str, Any]]) -> None:
        pool = self._rubrics(seeds)
        if self.built.waits:
            return
        last = "2-instructions"
        stages: list[tuple[str, Iterable[Task]]] = [  # generators: each reads the stage before when its turn comes
            (last, feedback_recipe.instruction_tasks(self.recipe, pool)),
            ("3-responses", feedback_recipe.response_tasks(self.recipe, self.path(last))),
        ]
        if self.recipe.regrade:
            stages.append(("4-regrade", feedback_recipe.regrade_tasks(self.recipe, self.path("3-responses"))))
        for name, tasks in stages:
            self.stage(name, tasks)
            last = name
            if self.built.stages[-1].left["budget"]:
                return
        filters = feedback_recipe.Filters.of(self.recipe)
        self.built.items = write_items(self.folder / ITEMS, filters.groups(self.path(last)))
        self.built.kept = filters.kept
        self.built.dropped.update(filters.dropped)

    def _rubrics(self, seeds: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rounds until there are enough; each shows rubrics of the rounds before."""
        recipe = self.recipe
        index, pool = Index(near=recipe.near and not recipe.world), []
        for i, seed in enumerate(seeds):
            families = [f"seed {i}"]
            pool.append({**seed, "lineage": {"round": 0, "families": families, "world": None}, "families": families})
            index.add(seed["criterion"] + " " + " ".join(seed["levels"].values()), f"rubric {i}")
        if recipe.world:
            pool = []
        asked = 0
        for round_ in range(1, recipe.rounds + 1):
            missing = recipe.rubrics - len(pool)
            if missing <= 0:
                break
            most = missing if recipe.world else min(missing, max(recipe.a_call, len(pool) * recipe.a_call))
            name = f"1-rubrics-{round_}"
            for _ in range(_PASSES):
                self.built.waits = ""
                tasks = list(feedback_recipe.rubric_tasks(recipe, list(pool), round_, most, asked))
                found = self.stage(name, tasks)
                if not found.left or found.left["budget"]:
                    break
                self.built.stages.pop()
            if self.built.waits:
                return pool
            asked += most
            feedback_recipe.pooled(finished(self.path(name)), pool, index, self.built.dropped, recipe.rubrics)
        if len(pool) < recipe.rubrics:
            self.built.dropped["rubrics short of the number asked for"] = recipe.rubrics - len(pool)
        return pool[: recipe.rubrics]

    def preference(self) -> None:
        self.stage("1-pairs", preference_recipe.pair_tasks(self.recipe, self.built.dropped))
        if self.built.stages[-1].left["budget"]:
            return
        pairs = preference_recipe.finished_pairs(self.path("1-pairs"), self.built.kept)
        self.built.items = write_items(self.folder / ITEMS, pairs)


def _locked(folder: Path, recipe: Recipe, engine: Engine) -> Path:
    """The folder, with what is built in it written down; UserError when it is another's."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder")
    told = {
        "recipe": asdict(recipe) | {"folder": ""},
        "hash": recipe.hash,
        "prompts": {name: prompt(name).hash for name in _PROMPTS[recipe.recipe]},
        "teacher": dict(engine.identity()),
    }
    path = folder / LOCK
    if folder.exists() and any(folder.iterdir()):
        if not path.is_file():
            raise UserError(f"{folder}: holds something that is no build; name a new folder, or empty it")
        before = orjson.loads(path.read_bytes())
        now = orjson.loads(orjson.dumps(told))
        differs = [key for key in now if before.get(key) != now[key]]
        if differs:
            old, new = before.get("recipe", {}), now["recipe"]
            keys = [key for key in new if old.get(key) != new[key]] or differs
            raise UserError(f"{folder}: was built by another recipe ({', '.join(keys)} differ); name a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    except OSError as error:
        raise RunError(f"{folder}: cannot write here ({error.strerror}); choose another --out") from error
    return folder


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a stage would ask if every reply were accepted at once. Tokens are about characters / 4."""

    stage: str
    calls: int
    tokens_in: int
    most_tokens_out: int


def estimate(recipe: Recipe) -> list[Estimate]:
    """The calls of each stage, about how many tokens they read, and the most they write; asks nothing."""
    checked_files(recipe)
    if recipe.recipe == "preference":
        tasks = list(preference_recipe.pair_tasks(recipe, Counter()))
        n = sum(_size(task) for task in tasks)
        return [Estimate("1-pairs", len(tasks), n, len(tasks) * recipe.max_tokens)]
    seeds = load_seeds(recipe.path(recipe.seeds)) if recipe.seeds else []
    level = "One sentence of about the length that such a description has."
    rubric = {
        "criterion": "A question about one quality?",
        "levels": dict.fromkeys("12345", level),
        "families": ["x"],
        "lineage": {},
    }
    known = [{**each, "families": ["x"], "lineage": {}} for each in seeds] or [rubric]
    calls = -(-max(0, recipe.rubrics - len(seeds)) // recipe.a_call)
    first = next(feedback_recipe.rubric_tasks(recipe, known, 1, recipe.a_call))
    one = _size(next(feedback_recipe.instruction_tasks(recipe, known)))
    answers = recipe.rubrics * recipe.instructions * 5
    answer = one + 3 * recipe.words
    sizes = [
        ("1-rubrics", calls, _size(first)),
        ("2-instructions", recipe.rubrics, one),
        ("3-responses", answers, answer),
    ]
    if recipe.regrade:
        sizes.append(("4-regrade", answers, answer + 2 * recipe.words))
    return [Estimate(name, n, n * size, n * recipe.max_tokens) for name, n, size in sizes]


def _size(task: Task) -> int:
    return sum(len(message.text) for message in task.messages) // _CHARACTERS
