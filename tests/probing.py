"""Answers to probes, written down by item id, gold and score."""

from collections.abc import Sequence

from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.verdict import Question, Status, Verdict
from dikast.probes.catalogue import catalogue
from dikast.probes.measure import Answers
from dikast.probes.sets import Asked

RUBRIC = Rubric("care", "Is it careful?", Scale.parse("1-5"))
PROBES = {probe.name: probe for probe in catalogue("")}


def item(id: str, gold: float | None = None) -> Item:
    return Item.of("Hm?", "word " * (16 if id.endswith("~length") else 2), id=id, rubric=RUBRIC.to_dict(), gold=gold)


def verdict(id: str, score: float | None) -> Verdict:
    status = Status.OK if score is not None else Status.UNPARSED
    label = None if score is None else f"{score:g}"
    return Verdict("k" * 32, Question(id, "care"), status, label=label, score=score)


def asked(rows: Sequence[tuple[str, float | None, float | None]]) -> tuple[Asked, Answers]:
    """Items by id, gold and score."""
    found = Asked({id: item(id, gold) for id, gold, _ in rows})
    return found, Answers.of([verdict(id, score) for id, _, score in rows], (), ())
