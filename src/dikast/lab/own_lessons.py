"""Verdicts of one judge as the lessons of another: which are kept, and the items that teach them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from dikast.core.errors import DataError, UserError
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.corpus.pipeline.verdict_filter import Ballot, Dropped, ballots, learnt, with_gold
from dikast.prompts.format import Format, load_format
from dikast.prompts.gold import gold_of


def own_lessons(items: Iterable[Item], run: Path, *, keep: str, draws: int, formats: Iterable[str]) -> Iterator[Item]:
    """The items with a verdict of `run` in place of their gold: label, feedback and claims are those of the judge.

    The run has `draws` verdicts on each item, of which the label that most gave is taught with its earliest reply.
    `keep`: `all`; `consistent`, where all draws gave one label; or `right`, where the label is that of the item's gold,
    which nothing else reads. Verdicts that one of the `formats` could not teach are left out, such as those without
    feedback. UserError where nothing is left.
    """
    asked = [load_format(name) for name in formats]
    said = ballots(sorted(current_verdicts(run), key=lambda verdict: verdict.question.sample))
    why: Counter[str] = Counter()
    for item in items:
        try:
            lesson = _lesson(item, said.get(item.id, Ballot()), keep, draws, asked)
        except (Dropped, DataError) as error:
            why["not taught in the format" if isinstance(error, DataError) else str(error)] += 1
            continue
        why["kept"] += 1
        yield lesson
    if not why["kept"]:
        told = ", ".join(f"{reason}: {n:,}" for reason, n in sorted(why.items()) if n)
        raise UserError(
            f"{run}: no verdict can be taught ({told or 'no items'}): teach the judge that gives them more, draw more"
            " items, or keep others ('keep: all')"
        )


def _lesson(item: Item, ballot: Ballot, keep: str, draws: int, formats: list[Format]) -> Item:
    if not isinstance(item.rubric, Rubric) or len(item.responses) != 1:
        raise Dropped("not one response under one rubric")
    known = item if keep == "right" else replace(item, gold=None)
    prose = any(form.feedback or form.explains for form in formats)
    gold = learnt(known, item.rubric, ballot, samples=draws, agree=float(keep == "consistent"), prose=prose)
    if keep == "right" and not gold["verified"]:
        raise Dropped("no gold")
    lesson = with_gold(item, item.rubric, gold, {})
    for form in formats:
        form.target(gold_of(lesson, item.rubric, (0,)), item.rubric)
    return lesson
