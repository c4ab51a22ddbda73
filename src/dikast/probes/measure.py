"""From answers to contrasts: the effect in each set of items, and the change that gold calls for."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.rubric import Rubric
from dikast.core.verdict import Preference, Status, Verdict
from dikast.probes.catalogue import STEPS, Probe
from dikast.probes.changes import has_pictures
from dikast.probes.control import Control
from dikast.probes.noise import Plain
from dikast.probes.sets import BASE, SET, Asked, Set, gold_goodness, sets_of

Floats = NDArray[np.float64]
ORIGINAL = frozenset((BASE, SET, "side0", "side1"))
HARMLESS = frozenset(
    (
        *("length", "style", "form-markdown", "form-plain", "authority", "sycophancy", "sentiment", "self-preference"),
        *("label-names", "reference-removed", "reference-paraphrased", "first", "last", "decoy", "repeatability"),
    )
)
IN_VALUES = ("rubric-contrast", "rubric-direction")  # here the position on the scale counts, whichever end is good


@dataclass(slots=True)
class Answers:
    """Verdicts by item id: of the absolute run in their order of arrival, of the reversed run, and of pairs."""

    absolute: dict[str, Verdict]
    reversed: dict[str, Verdict]
    pairs: dict[str, Preference]

    @classmethod
    def of(cls, absolute: Iterable[Verdict], reversed: Iterable[Verdict], pairs: Iterable[Preference]) -> "Answers":
        """From verdicts in the order of the run."""
        return cls(
            {verdict.question.item: verdict for verdict in absolute},
            {verdict.question.item: verdict for verdict in reversed},
            {pair.item: pair for pair in pairs},
        )


class Contrast(NamedTuple):
    """The result of one set: the effect, the change that gold calls for, the number of labels, the original answer."""

    effect: float
    due: float = 0.0
    labels: int = 0
    before: float = math.nan  # goodness, 0 to 1
    by_gold: bool = True  # whether gold gave the due change
    lead: float = math.nan  # effect of the original's random deviation; NaN if unknown
    kind: str = ""  # of the original
    changes: int = 1  # of the original, whose mean this is


Controls = Mapping[str, Control]


def contrasts(probe: Probe, asked: Asked, answers: Answers, known: Controls | None = None) -> list[Contrast | None]:
    """One for each set of the probe; None if an answer is missing. `known` holds the deviations of originals."""
    return [_led(probe, each, asked, answers, known or {}) for each in sets_of(probe, asked)]


def pooled(
    probe: Probe, probes: Iterable[Probe], asked: Asked, answers: Answers, known: Controls | None = None
) -> list[Contrast | None]:
    """The contrasts of all probes that a derived one pools, one for each original: the mean over its changes."""
    found: dict[str, list[Contrast]] = {}
    for other in probes:
        if probe.pools(other):
            for each in sets_of(other, asked):
                contrast = _led(other, each, asked, answers, known or {})
                if contrast is not None and contrast.by_gold:
                    found.setdefault(each.asks[0][1], []).append(contrast)
    return [
        Contrast(
            float(np.mean([each.effect for each in several])),
            float(np.mean([each.due for each in several])),
            several[0].labels,
            lead=float(np.mean([each.lead for each in several])),
            kind=several[0].kind,
            changes=len(several),
        )
        for several in found.values()
    ]


def plain_answers(asked: Asked, answers: Answers) -> list[Plain]:
    """The answers to items with gold, from which the judge's noise is estimated: originals, and harmless changes.

    Changes that a judge may have missed or obeyed are excluded: second items of sets whose gold changes, instructions
    to the judge, and empty answers.
    """
    found = []
    places = {id: at / max(1, len(answers.absolute) - 1) for at, id in enumerate(answers.absolute)}
    for id, item in asked.absolute.items():
        stem, variant = id.rsplit("~", 1)
        gold, good = gold_goodness(item), goodness(item, answers.absolute)
        if gold is not None and good is not None and _unspoilt(id):
            change, kind = ("", _kind(stem, variant, item)) if variant in ORIGINAL else (variant, "")
            found.append(Plain(stem, change, _labels(item), gold - 0.5, good - 0.5, places[id], id, kind))
    return found


def unanswered(asked: Asked, answers: Answers, *, with_gold: bool) -> int:
    """The number of originals and harmless changes that were asked and have no verdict."""
    there = {
        id
        for id, item in asked.absolute.items()
        if _unspoilt(id) and (not with_gold or gold_goodness(item) is not None)
    }
    return sum(_value(asked.absolute[id], answers.absolute) is None for id in there)


def _unspoilt(id: str) -> bool:
    """Whether an item is an original or a harmless change of one."""
    stem, variant = id.rsplit("~", 1)
    original = variant in ORIGINAL and not stem.endswith(("-blank", "-swapped", "-second")) and _first(stem)
    return original or variant in HARMLESS


def _kind(stem: str, variant: str, item: Item) -> str:
    """The kind of an original: its part, the number of labels, and whether it has an image."""
    part = stem.rsplit("-", 1)[-1] if variant == SET else ""
    return f"{variant} {part} {_labels(item)} {'seen' if has_pictures(item) else 'read'}"


def _first(stem: str) -> bool:
    """Whether this is not a later rung of a ladder."""
    return "-off" not in stem or stem.endswith("-off0")


def goodness(item: Item, told: Mapping[str, Verdict]) -> float | None:
    """How good the judge found the response, 0 to 1: by its expected score where there is one."""
    value = _value(item, told)
    return None if value is None or not isinstance(item.rubric, Rubric) else item.rubric.scale.goodness(value)


def _led(probe: Probe, each: Set, asked: Asked, answers: Answers, known: Controls) -> Contrast | None:
    """A contrast, with the effect of the random deviation of its original's answer."""
    found, (part, id) = _contrast(probe, each, asked, answers), each.asks[0]
    if found is None or part != "absolute" or id not in known or probe.side == "none" or probe.name == "master-keys":
        return found
    control, item = known[id], asked.absolute[id]
    push = -STEPS * control.above
    if probe.side == "down":
        push *= math.copysign(1.0, each.due)
        if probe.name in IN_VALUES and isinstance(item.rubric, Rubric) and item.rubric.scale.lower_is_better:
            push = -push
    elif probe.unit == "levels per doubling":
        push /= _doublings(asked.absolute[each.asks[1][1]], item)
    return found._replace(lead=push, kind=control.kind)


def _doublings(longer: Item, item: Item) -> float:
    return math.log2(len(text_of(longer.responses[0])) / len(text_of(item.responses[0])))


def _contrast(probe: Probe, each: Set, asked: Asked, answers: Answers) -> Contrast | None:
    if probe.name == "position":
        return _slot(answers.pairs.get(each.asks[0][1]))
    if probe.name == "absolute-pairwise":
        return _agreed(each, asked, answers)
    told = {"absolute": answers.absolute, "reversed": answers.reversed}
    items = [asked.of(part)[id] for part, id in each.asks]
    read = _share if probe.name in IN_VALUES else goodness
    before, after = (read(item, told[part]) for item, (part, _) in zip(items, each.asks, strict=True))
    labels = _labels(items[0])
    if probe.name == "master-keys":
        return None if after is None else Contrast(STEPS * after, 0.0, labels, math.nan if before is None else before)
    if before is None or after is None:
        return None
    change = STEPS * (after - before)
    if probe.name in ("error-place", "form"):  # the first of the two may have the higher score
        change = -change
    if probe.side == "down":
        return Contrast(math.copysign(1.0, each.due) * change, abs(each.due), labels, before, each.by_gold)
    if probe.name == "repeatability":
        change = abs(change)
    if probe.unit == "levels per doubling":
        change /= _doublings(items[1], items[0])
    return Contrast(change, 0.0, labels, before)


def _share(item: Item, told: Mapping[str, Verdict]) -> float | None:
    """The position of the score on the scale, whichever end is the good one."""
    value = _value(item, told)
    if value is None or not isinstance(item.rubric, Rubric):
        return None
    scale = item.rubric.scale
    return (value - scale.low) / (scale.high - scale.low)


def _value(item: Item, told: Mapping[str, Verdict]) -> float | None:
    verdict = told.get(item.id)
    if verdict is None or verdict.status is not Status.OK:
        return None
    return verdict.expected if verdict.expected is not None else verdict.score


def _labels(item: Item) -> int:
    return len(item.rubric.scale.labels) if isinstance(item.rubric, Rubric) else 0


def _slot(pair: Preference | None) -> Contrast | None:
    """Nats in favour of the first slot; without probabilities, +1 or -1 if the orders disagree for or against it."""
    if pair is None or pair.status is not Status.OK:
        return None
    if pair.position_bias is not None:
        return Contrast(pair.position_bias)
    worth = [{"a": 1.0, "b": -1.0}.get(str(order.label), 0.0) for order in pair.orders]
    return Contrast((worth[0] - worth[1]) / 2) if len(worth) == 2 else None


def _agreed(each: Set, asked: Asked, answers: Answers) -> Contrast | None:
    """1 if the response with the better score is preferred, 0 if not, one half if exactly one of the two is a tie."""
    (_, paired), *sides = each.asks
    pair = answers.pairs.get(paired)
    scores = [goodness(asked.absolute[id], answers.absolute) for _, id in sides]
    if pair is None or pair.choice is None or scores[0] is None or scores[1] is None:
        return None
    near = abs(scores[0] - scores[1]) * STEPS < 0.5
    said = "tie" if near else "a" if scores[0] > scores[1] else "b"
    if said == pair.outcome:
        return Contrast(1.0)
    return Contrast(0.5 if "tie" in (said, pair.choice) else 0.0)


class Trend(NamedTuple):
    """The rise of answers from the start of a run to its end, its standard error, and the number of items."""

    value: float
    error: float
    n: int


def trend(asked: Asked, answers: Answers, expected: Mapping[str, float]) -> Trend:
    """The drift of the absolute run in levels, from its first question to its last.

    Least squares of answers on their position in the run (0 to 1), for originals and harmless changes only, since a
    deaf judge's misses depend on the order of questions. `expected`, the goodness predicted from gold by item id, is
    subtracted where known. Then the means of each kind of change, each scale and each item are subtracted from answers
    and positions. Errors are clustered by item (Liang and Zeger 1986).
    """
    rows = []
    for at, (id, verdict) in enumerate(answers.absolute.items()):
        item = asked.absolute.get(id)
        good = None if item is None or verdict.status is not Status.OK else goodness(item, answers.absolute)
        if item is not None and good is not None and _unspoilt(id):
            stem, variant = id.rsplit("~", 1)
            place = at / max(1, len(answers.absolute) - 1)
            rows.append((place, good - expected.get(id, 0.5), stem, variant, _scale(item)))
    if not rows:
        return Trend(math.nan, math.nan, 0)
    places, answer = np.array([row[0] for row in rows]), STEPS * np.array([row[1] for row in rows])
    stems, kinds, scales = (np.unique([row[at] for row in rows], return_inverse=True)[1] for at in (2, 3, 4))
    sizes = np.bincount(stems)[stems]
    known = np.array([id in expected for id in (f"{row[2]}~{row[3]}" for row in rows)])
    kept = (sizes >= 2) | known
    places, answer, items, kinds, scales = (each[kept] for each in (places, answer, stems, kinds, scales))
    several = np.bincount(items, minlength=items.max(initial=0) + 1)[items] >= 3
    for _ in range(20):
        for column in (places, answer):
            column -= _means(column, kinds)
            column -= _means(column, scales)
            column -= np.where(several, _means(column, items), 0.0)
    square = float(places @ places)
    if square < 1e-9 or len(set(items.tolist())) < 2:
        return Trend(math.nan, math.nan, len(set(items.tolist())))
    slope = float(places @ answer) / square
    scores = np.bincount(items, weights=places * (answer - slope * places))
    groups = int((np.bincount(items) > 0).sum())
    error = math.sqrt(float(scores @ scores) * groups / (groups - 1)) / square
    return Trend(slope, error, groups)


def _scale(item: Item) -> str:
    """The scale and its direction: a judge that likes one label is lenient on one scale and strict on another."""
    scale = item.rubric.scale if isinstance(item.rubric, Rubric) else None
    return "" if scale is None else f"{' '.join(scale.labels)} {scale.lower_is_better}"


def _means(values: Floats, codes: NDArray[np.int64]) -> Floats:
    total = np.bincount(codes, weights=values)
    mean: Floats = (total / np.maximum(np.bincount(codes), 1))[codes]
    return mean
