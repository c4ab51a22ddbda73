"""Lessons whose score does not follow from claims about what is shown: a response that says nothing, and one that is
compared with a reference answer and with nothing else.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from operator import and_, eq
from typing import Any

from dikast.core.item import Item
from dikast.core.part import Text
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.worlds.altered import EMPTY
from dikast.worlds.domains.paraphrases import NEUTRAL
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.matching import named_in, stated_rules
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.penalty import label_of
from dikast.worlds.truths import checked, corrected

_OPENINGS = (
    "How far does the answer agree with the reference? What is shown does not matter.",
    "Compare the answer with the reference answer and with nothing else.",
    "Is the answer the same as the reference? Look at nothing else.",
    "Only the agreement of the response with the reference is graded.",
    "Mark the answer by the reference alone.",
    "Does the response repeat the reference? All else is left out.",
    "Grade how much of the answer stands in the reference answer.",
    "What counts is whether the reference says what the response says.",
)
_LEVELS = (  # nothing agrees, half of it, all of it
    (
        "nothing of it stands in the reference",
        "half of it stands in the reference",
        "all of it stands in the reference",
    ),
    ("another answer than the reference", "half of the reference answer", "the reference answer"),
    ("not what the reference says", "in part what the reference says", "exactly what the reference says"),
    ("It says nothing of the reference.", "It says half of the reference.", "It says the same as the reference."),
)
_SCALES = ("1-5", "1-5", "1-5", "1-3", "0-10")


def silent(taught: Item, sample: Sample, rng: Stream, *, quote: bool) -> Item:
    """The lesson with a response that says nothing: gold is the worst label, whatever the rubric weighs."""
    worst = label_of(len(sample.spec.cuts), sample.spec)
    text = " ".join(rng.shuffled(list(NEUTRAL))[: 1 + rng.below(3)]) if rng.chance(30) else rng.pick(EMPTY)
    lines = [f"Claim: {text}", "Evidence: nothing is stated", "Finding: unclear", "Lost: all"]
    feedback = "\n".join([*(stated_rules(sample.spec) if quote else ()), *lines])
    claims = [{"text": text, "verdict": "unsupported", "cost": 0}]  # the points are lost by the response as a whole
    gold = {"score": sample.spec.the_scale.value(worst), "label": worst, "claims": claims, "feedback": feedback}
    meta = {key: value for key, value in taught.meta.items() if key != "response"}  # it has a response of its own
    return replace(taught, responses=((Text(text),),), gold=gold, meta=meta)


def agreement(sample: Sample, other: Sample, rng: Stream) -> Item | None:
    """A lesson whose rubric asks whether the response says what the reference says, and nothing else; None where
    nothing is true of what either sample mentions.

    The reference is what is true of what the sample mentions, or the other one. The response states as many things: all
    of the reference, nothing of it, or in two lessons of three each by chance, in three of ten in another voice. What
    it states instead is what the sample's own response claims wrongly, or what is true of the sample that the reference
    is not about. Gold is the share of the statements that the reference has, as the nearest label (of two, the better):
    the worst only if it has none, the best only if it has all. The feedback says in the words of findings what the
    reference states, and what of each claim: `number Bob age 26 against number Bob age 55`.
    """
    own, theirs = (_true(each) for each in (sample, other))
    if not own or not theirs:
        return None
    about, known, instead = rng.pick(
        ((sample, own, theirs), (sample, own, [*sample.responses[0].claims, *theirs]), (other, theirs, own))
    )
    names = set(map(named_in, known))  # a sum and a difference of the same letters have one name
    foreign = [
        claim
        for claim in rng.shuffled(list(dict.fromkeys(instead)))
        if corrected(claim, about.graph) != claim and named_in(claim) not in names
    ]
    agrees = rng.pick((0, 100, 50, 50, 50, 50)) if foreign else 100
    known = rng.shuffled(known)[: max(len(foreign), 1)] if agrees < 100 else known
    said = [true if rng.chance(agrees) else not_so for true, not_so in zip(known, [*foreign, *known], strict=False)]
    voice = rng.below(4)
    again = rng.below(4) if rng.chance(30) else voice
    stated = {named_in(claim): None for claim in known}
    lines, claims, lost = ["Rule: the reference", f"Reference: {', '.join(stated)}"], list[dict[str, Any]](), 0
    for claim in said if rng.chance(50) else rng.shuffled(said):
        text, named = sample.domain.say(claim, again), named_in(claim)
        found = named in stated
        lost += not found
        claims.append({"text": text, "verdict": "right" if found else "wrong", "cost": int(not found)})
        lines += [f"Claim: {text}", f"Evidence: {named} against {_stated_of(named, stated)}"]
        lines.append("Finding: right" if found else f"Finding: wrong, 1 lost, {lost} in all")
    lines.append(f"Lost: {lost} of {len(said)}")
    scale = Scale.parse(rng.pick(_SCALES))
    steps = len(scale.labels) - 1
    label = scale.labels[_step(len(said) - lost, len(said), steps)]
    levels = zip((scale.labels[i] for i in (0, steps // 2, steps)), rng.pick(_LEVELS), strict=True)
    item = sample.item()
    return replace(
        item,
        responses=((Text(" ".join(claim["text"] for claim in claims)),),),
        reference=(Text(" ".join(sample.domain.say(claim, voice) for claim in known)),),
        rubric=Rubric("agreement", rng.pick(_OPENINGS), scale, tuple(levels)),
        gold={"score": scale.value(label), "label": label, "claims": claims, "feedback": "\n".join(lines)},
        meta={key: item.meta[key] for key in ("version", "domain", "split", "seed", "index")} | {"needs": "reference"},
    )


def _stated_of(named: str, stated: Iterable[str]) -> str:
    """What a reference states of what a claim names: the statement with as many first words as possible in common, but
    two at least, the kind and what it is about; else these two and `nothing`.
    """
    words = named.split()
    alike = {each: sum(accumulate(map(eq, words, each.split()), and_)) for each in stated}
    best = max(alike, key=lambda each: alike[each])
    return best if alike[best] >= 2 else f"{' '.join(words[:2])} nothing"


def _true(sample: Sample) -> list[Claim]:
    """What is true of what the response mentions."""
    return list(checked(dict.fromkeys(corrected(claim, sample.graph) for claim in sample.responses[0].claims), sample))


def _step(agreeing: int, stated: int, steps: int) -> int:
    """The number of the label, 0 the worst, for so many statements that agree."""
    if agreeing in (0, stated):
        return steps * (agreeing == stated)
    return min(max((agreeing * 2 * steps + stated) // (2 * stated), 1), steps - 1)
