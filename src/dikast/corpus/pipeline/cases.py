"""Cases (a picture and a question about it) between stages: each stage adds a question, a reference or answers."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from dikast.core.item import Item
from dikast.core.part import Text, Turn
from dikast.core.records import read_items
from dikast.corpus.pipeline.build_run import BuildRun
from dikast.corpus.pipeline.journal import accepted
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.sources.picture_questions import pictures_of

Record = dict[str, Any]
PAIRS = "pairs.jsonl"


@dataclass(frozen=True, slots=True)
class Case:
    """One picture with its final question, the answers to judge, and the models that wrote them."""

    number: int
    item: Item
    models: tuple[str, ...]


class Following:
    """The records of a stage by case number; read in ascending order, so that nothing is held in memory."""

    def __init__(self, path: Path) -> None:
        self._groups = groupby(accepted(path), key=lambda each: each["pair"])
        self._next: tuple[int, list[Record]] | None = None

    def of(self, number: int) -> list[Record]:
        """The records of a case."""
        while self._next is None or self._next[0] < number:
            found = next(self._groups, None)
            if found is None:
                return []
            self._next = (found[0], list(found[1]))
        return self._next[1] if self._next[0] == number else []


@dataclass(slots=True)
class Cases:
    """The cases of a build and what stages added to them; `responses` answers are drawn for each, 0 for all."""

    run: BuildRun
    responses: int
    responders: tuple[str, ...]  # names of the engines that answer

    @property
    def recipe(self) -> Recipe:
        """The recipe."""
        return self.run.recipe

    def items(self) -> Iterator[tuple[int, Item]]:
        """Every case with its final question."""
        written = Following(self.run.path("1-questions"))
        for number, item in enumerate(read_items(self.run.folder / PAIRS)):
            if item.meta.get("sensitive"):
                found = written.of(number)
                if not found:
                    continue
                turn = Turn("user", (*pictures_of(item), Text(found[0]["question"])))
                item = replace(item, instruction=(turn,), responses=(), reference=None)
            yield number, item

    def drawn(self, number: int, item: Item) -> tuple[list[int], list[int]]:
        """The existing answers, and the responders, that the answers of a case are drawn from, as indices."""
        standing = len(item.responses)
        both = range(standing + len(self.responders))
        rng = random.Random(f"{self.recipe.seed} answers {number}")
        chosen = sorted(rng.sample(both, min(len(both), self.responses or len(both))))
        return [i for i in chosen if i < standing], [i - standing for i in chosen if i >= standing]

    def finished(self) -> Iterator[Case]:
        """The cases that have a reference and an answer; others are counted as dropped."""
        references = Following(self.run.path("2-references"))
        answers = [Following(self.run.path(answers_stage(i))) for i in range(len(self.responders))]
        for number, item in self.items():
            standing, responders = self.drawn(number, item)
            models = list(item.meta.get("models", ()))
            said = [(item.responses[i], models[i]) for i in standing]
            for i in responders:
                said += [((Text(each["response"]),), self.responders[i]) for each in answers[i].of(number)]
            reference = item.reference or next(
                ((Text(each["reference"]),) for each in references.of(number)), None
            )  # fmt: skip
            if reference is None or not said:
                self.run.built.dropped["pair without a reference" if said else "pair without an answer"] += 1
                continue
            whole = replace(item, reference=reference, responses=tuple(content for content, _ in said))
            yield Case(number, whole, tuple(model for _, model in said))


def answers_stage(responder: int) -> str:
    """The name of the stage in which a responder answers."""
    return f"3-responses-{responder + 1}"
