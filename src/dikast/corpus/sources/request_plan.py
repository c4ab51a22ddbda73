"""The plan of a corpus: topic, persona, task, format, length and language of each request, drawn before it is asked."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from dikast.core.text import Located, hint, parse_located, read_located
from dikast.corpus.pipeline.recipe import Recipe

AXES = ("topic", "persona", "task", "format", "length", "language")
_ABOUT = "about"
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """Values for each axis; along an axis each value is drawn about equally often, in an order given by `seed`."""

    axes: Mapping[str, tuple[str, ...]]
    seed: int

    def of(self, number: int) -> dict[str, str]:
        """What request `number` is to be like, axis by axis."""
        return {axis: self._drawn(axis, values, number) for axis, values in self.axes.items()}

    def of_requests(self, first: int, count: int) -> list[dict[str, str]]:
        """As `of`, of `count` requests from `first` on."""
        return [self.of(number) for number in range(first, first + count)]

    def language(self, recipe: Recipe) -> str:
        """The one language of all requests: that of the recipe, "" where the plan draws one for each."""
        return "" if "language" in self.axes else recipe.language

    def _drawn(self, axis: str, values: tuple[str, ...], number: int) -> str:
        round_, at = divmod(number, len(values))
        return _shuffled(values, f"{self.seed} plan {axis} {round_}")[at]


@lru_cache(maxsize=64)
def _shuffled(values: tuple[str, ...], seed: str) -> tuple[str, ...]:
    return tuple(random.Random(seed).sample(values, len(values)))


def plan_of(recipe: Recipe, *, pictures: bool = False) -> RequestPlan:
    """The plan of a recipe: of its file `plan`, or the one that comes with Dikast; DataError for a file with mistakes.

    A picture settles the topic, so there is none about `pictures`. Worlds make their own requests: no axis.
    """
    if recipe.world:
        return RequestPlan({}, recipe.seed)
    if recipe.options.plan:
        document = read_located(str(recipe.path(recipe.options.plan)))
    else:
        text = resources.files("dikast.corpus").joinpath("prompts", "plan.yaml").read_text("utf-8")
        document = parse_located(text, "plan.yaml")
    axes = _axes(document)
    return RequestPlan({axis: each for axis, each in axes.items() if not (pictures and axis == "topic")}, recipe.seed)


def plan_lines(plan: list[dict[str, str]]) -> list[str]:
    """The plan of several requests for a prompt, a line each; none if there is no axis."""
    return ["; ".join(f"{axis}: {value}" for axis, value in each.items()) for each in plan if each]


def language_of(recipe: Recipe, record: Record) -> str:
    """The language of an instruction's responses: that of its plan, or else the recipe's."""
    return str(record.get("meta", {}).get("plan", {}).get("language", recipe.language))


def _axes(document: Located) -> dict[str, tuple[str, ...]]:
    value = document.value
    if not isinstance(value, dict):
        raise document.error(f"a plan is a mapping of {', '.join(AXES)} to lists of texts")
    for axis, values in value.items():
        if axis == _ABOUT:
            continue
        if axis not in AXES:
            raise document.error(f"{axis!r} is not part of a plan: {hint(str(axis), AXES)}", axis)
        texts = isinstance(values, list) and all(isinstance(each, str) and each.strip() for each in values)
        if not texts or not values:
            raise document.error(f"{axis!r} must be a list of at least one text, and no text may be empty", axis)
    return {axis: tuple(each.strip() for each in value[axis]) for axis in AXES if axis in value}
