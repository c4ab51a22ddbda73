"""The grammar of rubrics: weights, thresholds, scales, checklists and many wordings.

A wording is four indices: the opening, the statement of costs, the description of levels, and the noun phrases of the
aspects. Training uses the first ones of each; the rest are held out.
"""

from collections.abc import Sequence
from functools import lru_cache

from dikast.core.rubric import Rubric
from dikast.worlds.domains.protocol import Rules
from dikast.worlds.sampling.rng import Stream, key_of
from dikast.worlds.scoring.aspects import ASPECTS, NEVER
from dikast.worlds.scoring.level_words import HELD_OUT, SEEN, TEMPLATES, levels
from dikast.worlds.scoring.penalty import Entry, Spec
from dikast.worlds.scoring.term_text import COSTS, OPENINGS, SEEN_COSTS, SEEN_OPENINGS, criterion

_OPENINGS = (
    "Judge the {list}.",
    "Grade the {list}.",
    "Are the {list} right?",
    "Score the answer on: {list}.",
    "Look only at the {list}.",
    "What counts: {list}.",
    "Check the {list} against what is given.",
    "How well does the answer do on the {list}?",
    "Mark the answer for {list}.",
    "Rate nothing but the {list}.",
)
_SEEN_OPENINGS = 7
_LIST_OPENINGS = (
    "Tick what is right:",
    "Checklist:",
    "Check each point:",
    "Go through this list:",
    "Points to verify:",
)
_SEEN_LIST_OPENINGS = 3
_EVEN = ("Each mistake costs {w}.", "Take off {w} for each mistake.", "{w} per mistake.", "Every mistake loses {w}.")
_UNEVEN = (
    "A mistake costs: {each}.",
    "Take off for each mistake: {each}.",
    "Cost per mistake: {each}.",
    "Every mistake loses: {each}.",
)
_DOUBLE = (
    "Far off costs double ({far}).",
    "Double if far off ({far}).",
    "Twice that when far off ({far}).",
    "Being far off counts twice ({far}).",
)
_SEEN_COSTS = 3
_BANDS = (  # nothing lost; from 0 to n; exactly n; from m to n; more than n
    ("nothing lost", "at most {n} lost", "{n} lost", "{m} to {n} lost", "more than {n} lost"),
    ("no points off", "up to {n} off", "{n} off", "{m}-{n} off", "over {n} off"),
    ("0 points lost", "0 to {n} points lost", "{n} points lost", "{m} to {n} points lost", "{m} or more points lost"),
    ("free of cost", "cost {n} or less", "cost {n}", "cost from {m} to {n}", "cost above {n}"),
)
_SEEN_BANDS = 3
_NAMES = 3
_SEEN_NAMES = 2
_OMITTED = "Each thing left out is a mistake, up to three."
_UNASKED = "Each thing changed without being asked for is a mistake, up to three."
_APART = {("addition", "edit"), ("change", "time")}
_COVERED = "A claim on a covered corner is a mistake."


def held_together(a: str, b: str) -> bool:
    """Whether this pair of aspects is held out of training: about one pair in six, fixed, and some by name."""
    first, second = sorted((a, b))
    return key_of(first, second) % 6 == 0 or (first, second) in _APART


def draw_aspects(rng: Stream, rules: Rules, aspects: Sequence[str]) -> list[str]:
    """One to four aspects that the split lets a rubric combine."""
    open_ = [a for a in aspects if a not in rules.held_aspects]
    wanted = (1, 2, 2, 3, 3, 4)[rng.below(6)]
    order = rng.shuffled(open_)
    if rules.held_together is None:
        return order[:wanted]
    if rules.held_together:
        pairs = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if held_together(a, b)]
        first = list(rng.pick(pairs))
        return first + [a for a in order if a not in first][: wanted - 2 if wanted > 2 else 0]
    chosen: list[str] = []
    for aspect in order:
        if len(chosen) < wanted and not any(held_together(aspect, other) for other in chosen):
            chosen.append(aspect)
    return chosen


def draw_weights(rng: Stream, aspects: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Weights from 1 to 3, all equal in half of the draws."""
    even = rng.chance(50)
    one = (1, 1, 1, 2)[rng.below(4)]
    return tuple((aspect, one if even else 1 + rng.below(3)) for aspect in sorted(aspects))


def draw_wording(rng: Stream, rules: Rules) -> tuple[int, int, int, int]:
    """A wording of the kind the split allows."""
    if rules.version >= 4:
        templates = {"seen": SEEN, "held_out": HELD_OUT}.get(rules.wordings, tuple(range(TEMPLATES)))

    def one(seen: int, count: int) -> int:
        if rules.wordings == "seen":
            return rng.below(seen)
        return seen + rng.below(count - seen) if rules.wordings == "held_out" else rng.below(count)

    if rules.version >= 4:
        return (one(SEEN_OPENINGS, len(OPENINGS)), one(SEEN_COSTS, COSTS), rng.pick(templates), 0)
    return (
        one(_SEEN_OPENINGS, len(_OPENINGS)),
        one(_SEEN_COSTS, len(_EVEN)),
        one(_SEEN_BANDS, len(_BANDS)),
        one(_SEEN_NAMES, _NAMES),
    )


def rubric_of(spec: Spec) -> Rubric:
    """The rubric as it is shown to a judge."""
    opening, _, bands, _ = spec.wording
    scale = spec.the_scale
    if spec.terms:
        return _terms_rubric(spec)
    name = "checklist" if spec.entries else "-".join(aspect for aspect, _ in spec.weights)
    text = _checklist(spec.entries, opening) if spec.entries else _criterion(spec.weights, spec.graded, spec.wording)
    described = _bands(spec.cuts, bands)
    order = described if spec.lower_is_better else described[::-1]
    return Rubric(name, text, scale, tuple(zip(scale.labels, order, strict=True)))


def _terms_rubric(spec: Spec) -> Rubric:
    opening, costs, template, _ = spec.wording
    form = [(aspect, weight, name) for (aspect, weight), name in zip(spec.weights, spec.names, strict=True)]
    described = levels(spec.cuts, template)
    order = described if spec.lower_is_better else described[::-1]
    name = "-".join(aspect or "any" for aspect in spec.aspects)
    text = criterion(spec.terms, form, (opening, costs), spec.domain)
    return Rubric(name, text, spec.the_scale, tuple(zip(spec.the_scale.labels, order, strict=True)))


@lru_cache(maxsize=4096)
def _criterion(weights: tuple[tuple[str, int], ...], graded: bool, wording: tuple[int, int, int, int]) -> str:
    opening, costs, _, names = wording
    phrases = {aspect: ASPECTS[aspect].names[names] for aspect, _ in weights}
    listed = " and ".join(phrases.values()) if len(phrases) < 3 else ", ".join(phrases.values())
    text = [_OPENINGS[opening].format(list=listed)]
    values = {weight for _, weight in weights}
    if len(values) == 1:
        text.append(_capital(_EVEN[costs].format(w=_points(values.pop()))))
    else:
        text.append(_UNEVEN[costs].format(each=", ".join(f"{phrases[a]} {w}" for a, w in weights)))
    far = [f"{a} by {ASPECTS[a].far} or more {ASPECTS[a].unit}" for a, _ in weights if ASPECTS[a].far < NEVER]
    if graded and far:
        text.append(_DOUBLE[costs].format(far=", ".join(far)))
    if "completeness" in phrases:
        text.append(_OMITTED)
    if "preservation" in phrases:
        text.append(_UNASKED)
    if "certainty" in phrases:
        text.append(_COVERED)
    return " ".join(text)


def _checklist(entries: Sequence[Entry], opening: int) -> str:
    seen = opening < _SEEN_OPENINGS
    n = (
        opening % _SEEN_LIST_OPENINGS
        if seen
        else _SEEN_LIST_OPENINGS + opening % (len(_LIST_OPENINGS) - _SEEN_LIST_OPENINGS)
    )
    return f"{_LIST_OPENINGS[n]} {'; '.join(entry.about for entry in entries)}. Each one that is wrong costs 1 point."


def _bands(cuts: Sequence[int], style: int) -> list[str]:
    """The descriptions of the levels, best first."""
    nothing, most, exact, between, above = _BANDS[style]
    found, low = [], 0
    for cut in cuts:
        if cut == 0:
            found.append(nothing)
        elif low == cut:
            found.append((exact.replace("points", "point") if cut == 1 else exact).format(n=cut))
        else:
            found.append((most if low == 0 else between).format(m=low, n=cut))
        low = cut + 1
    return [*found, above.format(n=low - 1, m=low)]


def _points(n: int) -> str:
    return "1 point" if n == 1 else f"{n} points"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
