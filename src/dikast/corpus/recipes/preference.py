"""The recipe `preference`: pairs of graded responses to one instruction, with feedback that compares them."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any

from dikast.core.item import Item, item_from, item_to
from dikast.core.part import text_of
from dikast.core.records.files import folder_of
from dikast.corpus.observations import Observed, goodness, observations
from dikast.corpus.pipeline.build_run import BuildEstimate, BuildRun, Kind, size_of
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.stage import Rejected, Task, in_language, object_in, prompt, text_in
from dikast.corpus.teachers.picture_teacher import teacher_of
from dikast.engines.base import Engine
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.parsed import Target

Record = dict[str, Any]
_TEXT = {"type": "string"}
_SCHEMA = {
    "type": "object",
    "properties": {"commonalities": _TEXT, "differences": _TEXT, "better": {"enum": ["a", "b", "tie"]}},
    "required": ["commonalities", "differences", "better"],
}


@dataclass(frozen=True, slots=True)
class PreferenceOptions:
    """Options of the recipe `preference`: `source` is a file of feedback data; `ties` keeps pairs of equal scores."""

    source: str = ""
    ties: bool = True


def pairs(recipe: Recipe, dropped: Counter[str]) -> Iterator[Item]:
    """Every pair of graded responses to one instruction under one rubric, which are consecutive in the source.

    The order is shuffled by seed; the better response of an instruction is A as often as B, up to one. Pairs of equal
    scores are ties, which are left out and counted unless the recipe has `ties`.
    """
    source = recipe.path(recipe.options.source)
    number = 0
    for key, group in groupby(observations(source), key=lambda each: each.key):
        graded = [each for each in group if len(each.responses) == 1 and each.responses[0].score is not None]
        if len(graded) < 2:
            dropped["fewer than two graded responses"] += len(graded)
            continue
        rng = random.Random(f"{recipe.seed} pairs {number} {key}")
        found = list(combinations(graded, 2))
        rng.shuffle(found)
        clear = [pair for pair in found if _good(pair[0]) != _good(pair[1])]
        sides = [i % 2 == 0 for i in range(len(clear))]
        if len(clear) % 2 and rng.random() < 0.5:
            sides = [not side for side in sides]
        rng.shuffle(sides)
        turned = iter(sides)
        for i, (one, two) in enumerate(found):
            if _good(one) == _good(two):
                if not recipe.options.ties:
                    dropped["equal scores"] += 1
                    continue
                a, b = (one, two) if rng.random() < 0.5 else (two, one)
            else:
                better, worse = (one, two) if _good(one) > _good(two) else (two, one)
                a, b = (better, worse) if next(turned) else (worse, better)
            yield _pair(a, b, number, i, folder_of(str(source)))
        number += 1


def _good(observed: Observed) -> float:
    score = observed.responses[0].score
    assert score is not None
    return goodness(observed, score)


def _pair(a: Observed, b: Observed, group: int, at: int, root: str) -> Item:
    better = "tie" if _good(a) == _good(b) else "a" if _good(a) > _good(b) else "b"
    parts = [
        each.item.gold if isinstance(each.item.gold, dict) else {"score": each.responses[0].score} for each in (a, b)
    ]
    base = item_to(a.item)
    base |= {"id": f"g{group}-p{at}", "gold": {
        "preference": better, "scores": [each.responses[0].score for each in (a, b)], "responses": parts,
    }, "meta": {"from": [a.item.id, b.item.id]}}  # fmt: skip
    base["responses"] = [each.responses[0].response for each in (a, b)]
    del base["response"]
    return item_from(base, root=root)


def pair_tasks(recipe: Recipe, dropped: Counter[str]) -> Iterator[Task]:
    """For each pair a request for feedback: first what both responses have in common, then how they differ."""
    for item in pairs(recipe, dropped):
        _, number, at = item.id.replace("-p", " ").replace("g", " ").split(" ")
        parts = item.gold["responses"]
        rubric: Any = item.rubric
        messages = prompt("preference").ask(
            criterion=rubric.criterion if rubric else "How good the answer is.",
            pictures=item.images, instruction="\n".join(text_of(turn.content) for turn in item.instruction),
            first=text_of(item.responses[0]), second=text_of(item.responses[1]),
            about_first=str(parts[0].get("feedback") or "none"), about_second=str(parts[1].get("feedback") or "none"),
            tie=item.gold["preference"] == "tie", language=recipe.language,
        )  # fmt: skip
        about = {"stage": "preference", "item": item}
        yield Task((int(number), int(at)), messages, _reader(item, recipe.language), _SCHEMA, about)


def _reader(item: Item, language: str) -> Any:
    better = item.gold["preference"]

    def read(text: str) -> list[Record]:
        value = object_in(text)
        common, differs = text_in(value, "commonalities"), text_in(value, "differences")
        in_language(language, feedback=f"{common} {differs}")
        said = value.get("better")
        if said != better:
            raise Rejected("prefers the other", f"'better' must be {better!r}, as the feedback above says")
        stated = DIALECTS["prose"].read(differs, Target()).stated
        slot = {"first": "a", "second": "b", "tie": "tie"}.get(stated.label or "", better) if stated else better
        if slot != better:
            raise Rejected("the feedback contradicts the preference", f"it says that {slot} is better, not {better}")
        record = item_to(item)
        record["gold"] = {**record["gold"], "feedback": f"{common} {differs}"}
        return [record]

    return read


def _run(run: BuildRun, options: PreferenceOptions) -> None:
    """Ask for feedback on each pair, and write the pairs."""
    found = run.stage("1-pairs", pair_tasks(run.recipe, run.built.dropped))
    if not found.left["budget"]:
        root = folder_of(str(run.recipe.path(options.source)))
        run.write(item_from(made, root=root) for made in accepted(run.path("1-pairs")))


def _estimate(recipe: Recipe, options: PreferenceOptions) -> list[BuildEstimate]:
    """The cost of the stage, from the pairs themselves."""
    sizes = [size_of(task) for task in pair_tasks(recipe, Counter())]
    return [BuildEstimate("1-pairs", len(sizes), sum(sizes), len(sizes) * recipe.max_tokens)]


def _check(recipe: Recipe, options: PreferenceOptions) -> Iterator[tuple[str, str]]:
    if not options.source:
        yield "source", "the recipe 'preference' needs 'source': a file of feedback data"


def _world(recipe: Recipe, options: PreferenceOptions) -> Engine:
    return teacher_of(recipe.world, recipe.seed)


KIND = Kind("preference", PreferenceOptions, ("preference",), _run, _estimate, _check, _world, files=("source",))
