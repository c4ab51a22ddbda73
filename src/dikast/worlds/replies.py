"""Gold for free text about a scene: its sentences are parsed as claims and measured, so that any model's reply has
gold.

Only sentences in the words of a world can be parsed. Any other counts as a wrong claim of the rubric's aspect with the
largest weight, so that claims that cannot be checked do not improve the score.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product
from typing import Any

from dikast.worlds.domains.paraphrases import VOICES, say
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import Scene, Thing
from dikast.worlds.domains.scenes import Scenes
from dikast.worlds.domains.vocabulary import COLOURS, DIRECTIONS, REGIONS, SHAPES, SIZES, TEXTURES
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.scoring.penalty import Spec, costs, extra_cost, label_of, level_of

_COUNTED = range(2, 10)
_ENDS = re.compile(r"(?<=[.!?])\s+")
_BULLET = re.compile(r"^\s*(?:[-*]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class ReplyGold:
    """A text's gold: the rubric's `score`, `goodness` from 0 (worst) to 1, and the kinds of its sentences.

    `wrong` counts distinct claims that do not hold, `missed` things that no claim mentions.
    """

    score: float
    goodness: float
    penalty: int
    sentences: int
    unreadable: int
    claims: int
    wrong: int
    missed: int


def reply_gold(text: str, meta: Mapping[str, Any]) -> ReplyGold | None:
    """The gold of a reply about the scene that `meta` of an item of `world make` holds.

    None for anything but a scene under a rubric of weighed aspects.
    """
    spec, scene = _spec(meta.get("spec")), scene_of(meta)
    if spec is None or scene is None:
        return None
    sentences, known = sentences_of(text), claims_of_sentences()
    read = [known.get(sentence.casefold()) for sentence in sentences]
    claims = list(dict.fromkeys(claim for claim in read if claim is not None))
    domain, unreadable = Scenes(), sum(claim is None for claim in read)
    metrics = [domain.measure(claim, scene).metric for claim in claims]
    missed = domain.missed(claims, scene)
    heaviest = max((weight for _, weight in spec.weights), default=1)
    penalty = sum(costs(claims, metrics, spec)) + extra_cost({"completeness": missed}, spec) + unreadable * heaviest
    score = spec.the_scale.value(label_of(level_of(penalty, spec.cuts), spec))
    wrong = sum(metric > 0 for metric in metrics)
    goodness = spec.the_scale.goodness(score)
    return ReplyGold(score, goodness, penalty, len(sentences), unreadable, len(claims), wrong, missed)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, without the marks of a list."""
    lines = [_BULLET.sub("", line) for line in text.splitlines()]
    return [each for line in lines for each in _ENDS.split(line.strip()) if each]


@cache
def claims_of_sentences() -> Mapping[str, Claim]:
    """Every sentence about a scene in every voice, in lower case, and the claim that it makes."""
    return {say(c.kind, c.args, voice).casefold(): c for c in _claims() for voice in range(len(VOICES))}


def _claims() -> Iterator[Claim]:
    two = list(permutations(SHAPES, 2))
    for kind, values in (("colour", COLOURS), ("size", SIZES), ("texture", TEXTURES), ("position", REGIONS)):
        yield from (Claim(kind, kind, args) for args in product(SHAPES, values))
    yield from (Claim("exists", "existence", args) for args in product(SHAPES, COLOURS))
    yield from (Claim("shape", "shape", args) for args in product(COLOURS, SHAPES))
    yield from (Claim("count", "count", args) for args in product(SHAPES, _COUNTED))
    yield from (Claim("relation", "relation", (a, b, way)) for (a, b), way in product(two, DIRECTIONS))
    yield from (Claim("binding", "binding", (a, b, c, d)) for (a, b), c, d in product(two, COLOURS, COLOURS))
    yield from (Claim(kind, "comparison", args) for kind, args in product(("more", "larger"), two))
    corners = (region for region in REGIONS if " " in region)
    yield from (Claim("sure", "certainty", args) for args in product(corners, SHAPES))


def _spec(told: Any) -> Spec | None:
    if not isinstance(told, Mapping) or told.get("entries") or told.get("terms") or not told.get("weights"):
        return None
    weights = tuple((name, int(weight)) for name, weight in told["weights"].items())
    own = {"completeness"}
    if any(name not in ASPECTS or (ASPECTS[name].countable and name not in own) for name, _ in weights):
        return None
    if any(not ASPECTS[name].sees for name, _ in weights):
        return None
    cuts, wording = tuple(told["cuts"]), tuple(told["wording"])
    return Spec(weights, told["graded"], cuts, told["scale"], told["lower_is_better"], wording)


def scene_of(meta: Mapping[str, Any]) -> Scene | None:
    """The scene that `meta` of an item of `world make` holds; None for anything else."""
    told = meta.get("scene")
    if meta.get("domain") != "scenes" or not isinstance(told, Mapping):
        return None
    things, covers = [Thing(**each) for each in told["things"]], [(cell[0], cell[1]) for cell in told["covers"]]
    return Scene(**{**told, "things": things, "covers": covers})
