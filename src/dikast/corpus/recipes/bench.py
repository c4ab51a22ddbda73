"""The recipe `bench`: a held-out set made by the stages of `feedback` or `perception`, free of training data."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from typing import Any, Literal

import orjson

from dikast.core.errors import RunError
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.runs.run_files import write_checked
from dikast.corpus.dedup.contamination import Apart, leaks
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind
from dikast.corpus.pipeline.post_processing import ITEMS
from dikast.corpus.pipeline.recipe import Recipe, added, count, share
from dikast.corpus.recipes import feedback, perception
from dikast.corpus.schemas.public_schema import asked
from dikast.corpus.sources.seed_rubrics import SCALE
from dikast.corpus.teachers.picture_teacher import PictureTeacher
from dikast.corpus.teachers.world_teacher import text_teacher, wrong_world
from dikast.engines.base import Engine

TEXT, IMAGES = "text", "images"
REPORT = "apart.json"
_SCORES = len(SCALE.labels)


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """Options of the recipe `bench`: exactly `rubrics` rubrics, `instructions` for each, `responses` to each.

    `of` text uses the stages of `feedback`, with its keys `seeds`, `plan`, `rounds`, `a_call`, `words` and
    `regrade`. `of` images uses those of `perception`, with one rubric for each of `rubrics` images, and its keys
    `images`, `text_images`, `text_rich` and `fit`. With fewer than five `responses` their scores are drawn, each
    equally often.

    No rubric, instruction, response or image occurs in the files `apart_from`, not even as a near duplicate. To have
    enough left, the share `spare` more rubrics are made. Worlds take their wordings from their held-out `split`.
    `world_version`, of text alone, as in `feedback`.
    """

    of: str = TEXT
    apart_from: tuple[str, ...] = ()
    rubrics: int = count(50)
    instructions: int = count(4)
    responses: int = count(_SCORES)
    spare: float = share(1.0, most=10)
    split: str = "wordings"
    seeds: str = ""
    rounds: int = count(20)
    a_call: int = count(4)
    words: int = count(120)
    regrade: bool = True
    images: str = ""
    text_images: str = ""
    text_rich: float = share(0.0)
    fit: float = share(1.0)
    plan: str = added("")
    world_version: Literal[3, 4] = added(3)


@dataclass(slots=True)
class _Into(BuildRun):
    """The run of another recipe, whose items are filtered before they are written."""

    choose: Callable[[Iterable[Item]], Iterator[Item]] = iter

    def write(self, items: Iterable[Item]) -> None:
        BuildRun.write(self, self.choose(items))


def chosen(
    items: Iterable[Item], options: BenchOptions, apart: Apart, dropped: Counter[str], *, near: bool, seed: int
) -> Iterator[Item]:
    """The items without contamination, rubric by rubric, until there are enough rubrics.

    A rubric that loses too many instructions is left out completely, so that all rubrics have the same number.
    """
    seen, n, draw = Index(near=near), 0, _Scores(options.responses, seed)
    for _, rows in groupby(items, key=_rubric_name):
        if n == options.rubrics:
            dropped["rubrics beyond the number asked for"] += 1
            continue
        whole = list(rows)
        found = _apart(whole, options, apart, dropped)
        if not found:
            continue
        if options.of == TEXT and seen.add(_rubric(whole[0]).criterion, _rubric_name(whole[0])):
            dropped["near-duplicate rubric"] += 1
            continue
        n += 1
        for instruction in found:
            wanted = draw()
            yield from (item for item in instruction if item.gold["score"] in wanted)
    if n < options.rubrics:
        dropped["rubrics short of the number asked for"] += options.rubrics - n


def _apart(rows: list[Item], options: BenchOptions, apart: Apart, dropped: Counter[str]) -> list[list[Item]]:
    """The instructions of a rubric with their responses, or [] if too few are complete and free of contamination."""
    found = []
    for _, group in groupby(rows, key=asked):
        responses = list(group)
        leaked = next(filter(None, map(apart.leak, responses)), "")
        if leaked:
            dropped[f"{leaked} in the training data"] += len(responses)
            if leaked == "rubric":
                return []
        elif len(responses) == _SCORES:
            found.append(responses)
    if len(found) < options.instructions:
        dropped["rubric with too few instructions"] += 1
        return []
    return found[: options.instructions]


class _Scores:
    """Draws which scores of an instruction are kept: `wanted` of them, each score equally often overall."""

    def __init__(self, wanted: int, seed: int) -> None:
        self._wanted, self._rng, self._deck = wanted, random.Random(f"{seed} bench"), list[int]()

    def __call__(self) -> set[int]:
        drawn: set[int] = set()
        while len(drawn) < self._wanted:
            if not self._deck:
                self._deck = self._rng.sample(range(1, _SCORES + 1), _SCORES)
            at = next((i for i, score in enumerate(self._deck) if score not in drawn), None)
            if at is None:  # all scores left in this round were already drawn for this instruction
                drawn_anew = [score for score in range(1, _SCORES + 1) if score not in drawn]
                drawn |= set(self._rng.sample(drawn_anew, self._wanted - len(drawn)))
            else:
                drawn.add(self._deck.pop(at))
        return drawn


def _rubric(item: Item) -> Rubric:
    assert isinstance(item.rubric, Rubric)
    return item.rubric


def _rubric_name(item: Item) -> str:
    return _rubric(item).name


def _inner(recipe: Recipe, options: BenchOptions) -> tuple[Kind[Any], Recipe]:
    """The recipe whose stages are run, with more rubrics than are kept."""
    n = ceil(options.rubrics * (1 + options.spare))
    shared = {name: getattr(options, name) for name in ("seeds", "plan", "instructions", "rounds", "words", "regrade")}
    if options.of == TEXT:
        version = options.world_version
        told: Any = feedback.FeedbackOptions(rubrics=n, a_call=options.a_call, world_version=version, **shared)
        return feedback.KIND, replace(recipe, options=told)
    told = perception.PerceptionOptions(
        images=options.images, text_images=options.text_images, text_rich=options.text_rich, fit=options.fit,
        take=n, per_image=1, **shared,
    )  # fmt: skip
    return perception.KIND, replace(recipe, options=told)


def _run(run: BuildRun, options: BenchOptions) -> None:
    """Run the other recipe's stages, keep what is not contaminated, and check the written file for contamination."""
    recipe, built = run.recipe, run.built
    kind, inner = _inner(recipe, options)
    files = [recipe.path(name) for name in options.apart_from]
    rows: dict[str, int] = {}

    def choose(items: Iterable[Item]) -> Iterator[Item]:
        apart = Apart(files, near=recipe.near)
        rows.update(apart.rows)
        yield from chosen(items, options, apart, built.dropped, near=recipe.near, seed=recipe.seed)

    kind.run(_Into(inner, run.folder, run.asking, run.progress, built, run.wrote, choose), inner.options)
    if built.waits or not built.items:
        return
    found = leaks(run.folder / ITEMS, files, near=recipe.near) if files else Counter[str]()
    told = {"apart_from": rows, "items": built.items, "found": found}
    write_checked(run.folder / REPORT, orjson.dumps(told, option=orjson.OPT_INDENT_2))
    if found.total():
        raise RunError(f"{run.folder / ITEMS}: shares content with {', '.join(rows)} ({dict(found)}); see {REPORT}")


def _estimate(recipe: Recipe, options: BenchOptions) -> list[BuildEstimate]:
    kind, inner = _inner(recipe, options)
    return kind.estimate(inner, inner.options)


def _inputs(recipe: Recipe, options: BenchOptions) -> Mapping[str, Any]:
    kind, inner = _inner(recipe, options)
    return kind.inputs(inner, inner.options)


def _check(recipe: Recipe, options: BenchOptions) -> Iterator[tuple[str, str]]:
    if options.of not in (TEXT, IMAGES):
        yield "of", f"must be {TEXT} or {IMAGES}, got {options.of!r}"
        return
    if options.responses > _SCORES:
        yield "responses", f"must be at most {_SCORES}, one for each score, got {options.responses}"
    if options.of == IMAGES:
        yield from wrong_world(recipe.world, options.world_version)
    kind, inner = _inner(recipe, options)
    yield from kind.check(inner, inner.options)


def _world(recipe: Recipe, options: BenchOptions) -> Engine:
    if options.of == TEXT:
        return text_teacher(recipe, options.split)
    return PictureTeacher(
        recipe.world, seed=recipe.seed, per_rubric=options.instructions, text_rich=options.text_rich,
        split=options.split,
    )  # fmt: skip


KIND = Kind(
    "bench", BenchOptions, (*feedback.KIND.prompts, *perception.KIND.prompts), _run, _estimate, _check, _world,
    files=("seeds", "plan", "apart_from"), inputs=_inputs,
)  # fmt: skip
