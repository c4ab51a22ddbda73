"""What rubrics weigh from version 4 on: claims of a kind, about something, under a rule of severity.

A term composes three atoms: an aspect (or claims of any kind), a word that the claim must name (or none), and a rule.
There are thousands of terms, so a judge cannot know them by heart. Which are held out is fixed by hash.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

from dikast.worlds.domains.charts import LETTERS as CHART_LETTERS
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.text_images import COLUMNS, ROWS
from dikast.worlds.domains.text_only import FIELDS, NAMES
from dikast.worlds.domains.vocabulary import COLOURS, SHAPES
from dikast.worlds.sampling.held_out import HELD_OUT_ASPECTS
from dikast.worlds.sampling.rng import Stream, key_of
from dikast.worlds.scoring.aspects import ASPECTS, NEVER

RULES = ("each", "double", "far", "once")
HELD_OUT_WORDS = ("heart", "ring", "teal", "pink", "Hana", "Gus", "drink")
NO_DEGREES = ("relation", "comparison")  # how far these are off has no short description
GROUPS: tuple[tuple[str, ...], ...] = (
    SHAPES,
    COLOURS,
    NAMES,
    tuple(FIELDS),
    tuple(ROWS),
    tuple(COLUMNS),
    tuple(CHART_LETTERS),
)  # of words that claims name
WORDS = {  # domain -> what a term may be about
    "scenes": (*SHAPES, *COLOURS),
    "pictures": (*SHAPES, *COLOURS),
    "retouch": SHAPES,
    "clips": SHAPES,
    "text": (*NAMES, *FIELDS),
    "plates": (*COLOURS, *ROWS, *COLUMNS),
    "charts": tuple(CHART_LETTERS),
}
_NAMED_IN_PHRASES = ("time", "moment")  # aspects of clips whose claims name things within longer arguments
_RULE_SHARES = ("each", "each", "each", "double", "double", "double", "far", "once")


class Term(NamedTuple):
    """Claims of `kind` (an aspect, "" for any) that name `word` ("" for whatever they name) cost `weight` if wrong.

    rule: `each` mistake costs; `double` if it is far off; only those that are `far` off cost; or all together `once`.
    `name` is the phrase that the rubric's text has for it.
    """

    kind: str
    word: str
    rule: str
    weight: int
    name: str = ""

    def covers(self, claim: Claim) -> bool:
        """Whether the term is about a claim, right or wrong."""
        return self.kind in ("", claim.aspect) and (not self.word or self.word in claim.args)

    def points(self, claim: Claim, metric: int) -> int:
        """What a claim that is `metric` units off counts, before weighting; 0 for claims the term does not cover."""
        if metric <= 0 or not self.covers(claim):
            return 0
        far = metric >= ASPECTS[claim.aspect].far
        if self.rule == "far":
            return int(far)
        return 2 if self.rule == "double" and far else 1


def terms_cost(claims: Sequence[Claim], metrics: Sequence[int], terms: Iterable[Term]) -> list[int]:
    """The points that each claim loses; under `once` the first mistake loses them for all."""
    found = [0] * len(claims)
    for term in terms:
        paid = False
        for i, (claim, metric) in enumerate(zip(claims, metrics, strict=True)):
            points = term.points(claim, metric)
            if points and not (paid and term.rule == "once"):
                found[i] += term.weight * points
                paid = True
    return found


def overlap(a: Term, b: Term) -> bool:
    """Whether one claim can fall under both."""
    return not (a.kind and b.kind and a.kind != b.kind)


# -- which terms are held out ------------------------------------------------------------------------------------------


@cache
def held_composition(kind: str, word: str) -> bool:
    """Whether this aspect with this word is held out of training: one composition in six."""
    return bool(kind and word) and key_of("composition", kind, word) % 6 == 0


def held_pair(a: Term, b: Term) -> bool:
    """Whether the headings of these two terms, each of which training has, never stand together there: one in six."""
    return _held_headings(*sorted((a[:2], b[:2])))


@cache
def _held_headings(first: tuple[str, str], second: tuple[str, str]) -> bool:
    return first != second and key_of("pair", *first, *second) % 6 == 0


def unseen(term: Term) -> bool:
    """Whether an atom of the term is never weighed in training."""
    return term.kind in HELD_OUT_ASPECTS or term.word in HELD_OUT_WORDS


def fits_split(terms: Sequence[Term], which: str) -> bool:
    """Whether a split may have a rubric of these terms. `which`: see `Rules.terms`."""
    fresh = [unseen(term) for term in terms]
    composition = [held_composition(term.kind, term.word) for term in terms]
    pairs = [held_pair(a, b) for i, a in enumerate(terms) for b in terms[i + 1 :]]
    if which == "all":
        return True
    if which == "unseen":
        return any(fresh)
    if any(fresh):
        return False
    held = any(composition) or any(pairs)
    return held if which == "held_out" else not held


def composition_of(terms: Sequence[Term], which: str) -> str:
    """What a rubric combines, by name: `colour of star`, `size with colour of star`, `any of red`.

    The composition or pair of terms that a split holds out (`which` as in `fits_split`), the term with an unseen atom,
    or else the first term.
    """
    if which == "held_out":
        for term in terms:
            if held_composition(term.kind, term.word):
                return _composed(term)
        for one, other in combinations(terms, 2):
            if held_pair(one, other):
                return " with ".join(sorted((_composed(one), _composed(other))))
    fresh = [term for term in terms if unseen(term)] if which == "unseen" else []
    return _composed((fresh or terms)[0])


def _composed(term: Term) -> str:
    return f"{term.kind or 'any'} of {term.word}" if term.word else term.kind


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw_term(rng: Stream, claim: Claim, domain: str, *, once: bool) -> Term:
    """A term that covers `claim`, without weight and name."""
    words = [arg for arg in claim.args if arg in WORDS.get(domain, ()) and claim.aspect not in _NAMED_IN_PHRASES]
    form = rng.below(10)
    word = str(rng.pick(words)) if words and form >= 4 else ""
    kind = "" if word and form >= 8 and domain != "clips" else claim.aspect
    rule = rng.pick(_RULE_SHARES)
    degrees = kind and ASPECTS[kind].far < NEVER and kind not in NO_DEGREES
    if (rule in ("double", "far") and not degrees) or (rule == "once" and not once):
        rule = "each"
    return Term(kind, word, rule, 0)
