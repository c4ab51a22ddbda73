"""Responses and their second grading: what is graded otherwise is written again, with that grading as a hint."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from dikast.core.item import Item
from dikast.core.message import Message, Span
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.pipeline.build_run import BuildRun
from dikast.corpus.pipeline.journal import accepted, finished
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.stage import OTHERWISE, Rejected, Task
from dikast.prompts.format import load_format

Record = dict[str, Any]
ItemOf = Callable[[Record, Recipe, str], Item]


def graded_responses(
    run: BuildRun, tasks: Callable[[Counter[str]], Iterable[Task]], item_of: ItemOf, root: str = ""
) -> list[Path] | None:
    """Ask for the responses and grade each again, as the recipe says; the journals whose records are kept.

    A response that is graded otherwise is written anew, up to `retries` times, by a teacher that sees its earlier one
    and that grading. None if the budget is spent.
    """
    recipe, found = run.recipe, []
    rounds = 1 + (recipe.options.retries if recipe.options.regrade else 0)
    before: tuple[Path, Path] | None = None
    for round_ in range(1, rounds + 1):
        tag = "" if round_ == 1 else f"-{round_}"
        asked, graded = f"3-responses{tag}", f"4-regrade{tag}"
        if before is None:
            due = tasks(run.built.dropped)
        elif next(missed(*before), None) is None:
            break
        else:
            due = second_tries(tasks(Counter()), missed(*before))
        if run.stage(asked, due).left["budget"]:
            return None
        if not recipe.options.regrade:
            return [run.path(asked)]
        if run.stage(graded, regrade_tasks(recipe, run.path(asked), item_of, root)).left["budget"]:
            return None
        found.append(run.path(graded))
        before = run.path(asked), run.path(graded)
    return found


def kept_records(journals: list[Path]) -> Iterator[Record]:
    """The accepted records of several journals together in the order of the recipe."""
    for line in heapq.merge(*map(finished, journals), key=lambda each: each["at"]):
        if line["status"] == "ok":
            yield from line["made"]


def distinct(records: Iterable[Record], recipe: Recipe, dropped: Counter[str]) -> Iterator[Record]:
    """The instructions that no earlier one nearly repeats, so that nothing is asked about the others.

    About another picture the same words ask something else. Worlds repeat their wordings, and are left alone.
    """
    index, image = Index(near=recipe.near), None
    for record in records:
        if record.get("image") != image:
            image, index = record.get("image"), Index(near=recipe.near)
        name = f"r{record['number']}-i{record['at']}"
        if not recipe.world and recipe.near and index.add(record["instruction"], name) is not None:
            dropped["near-duplicate instruction, not asked about"] += 1
        else:
            yield record


def missed(responses: Path, graded: Path) -> Iterator[tuple[tuple[int, ...], Record, str]]:
    """The responses that were graded otherwise, each with its place and that grading, in the order of the recipe."""
    written = accepted(responses)
    for line in finished(graded):
        if line["status"] != "rejected" or line["reason"] != OTHERWISE:
            continue
        at = tuple(line["at"])
        record = next(each for each in written if (each["number"], each["at"], each["score"]) == at)
        yield at, record, line["raw"]


def second_tries(tasks: Iterable[Task], misses: Iterator[tuple[tuple[int, ...], Record, str]]) -> Iterator[Task]:
    """The tasks whose responses missed their score, asked again with the response and how it was graded."""
    miss = next(misses, None)
    for task in tasks:
        if miss is None:
            return
        if task.at != miss[0]:
            continue
        _, record, grading = miss
        said = orjson.dumps({"response": record["response"], "feedback": record["feedback"]}).decode()
        told = (
            Span("A careful grader, who was not told which score is wanted, wrote of it:\n\n", trusted=True),
            Span(grading),
            Span(
                f"\n\nThe score {record['score']} is wanted. Write another response to the request that this"
                f" grader would give {record['score']}, and its feedback, in the form asked for above.",
                trusted=True,
            ),
        )
        messages = (*task.messages, Message("assistant", (Span(said),)), Message("user", told))
        yield replace(task, messages=messages, about={**task.about, "retry": True})
        miss = next(misses, None)


def regrade_tasks(recipe: Recipe, responses: Path, item_of: ItemOf, root: str = "") -> Iterator[Task]:
    """Asks the teacher to grade each response without knowing its intended score; image paths start at `root`."""
    form = load_format("absolute")
    for record in accepted(responses):
        item = item_of(record, recipe, root)
        rubric: Any = item.rubric
        messages = form.ask(item, rubric, (0,))
        about = {
            "stage": "regrade", "lineage": record["rubric"]["lineage"], "instruction": record["at"],
            "response": record["response"],
        }  # fmt: skip
        at = (record["number"], record["at"], record["score"])
        yield Task(at, messages, _reader(form, rubric, record), None, about, final=True)


def _reader(form: Any, rubric: Any, record: Record) -> Any:
    def read(text: str) -> list[Record]:
        parsed = form.parse(text, rubric)
        if parsed.label is None:
            raise Rejected("the second grading has no verdict")
        if int(parsed.label) != record["score"]:
            raise Rejected(OTHERWISE)
        return [record]

    return read


def expected_tries(recipe: Recipe) -> float:
    """The mean number of times that a response is written, if the share `agreement` of them is graded as wanted.

    Worlds grade as they write.
    """
    if recipe.world or not recipe.options.regrade:
        return 1
    agreement: float = recipe.options.agreement
    return sum((1 - agreement) ** i for i in range(recipe.options.retries + 1))
