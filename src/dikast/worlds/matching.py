"""Matching: rows of talk in which findings are compared with rules, apart from any rubric, picture and response.

A small judge may learn by heart which kinds of claims a rule can count, and never to compare the kind in a rule with
that of a claim. Here kinds, and words that claims name, are exchanged at random, so that nothing but comparing helps.
A row is written as lessons are that quote the rubric.
"""

from collections.abc import Sequence
from typing import Any

from dikast.core.errors import UserError
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.domains.scene_graph import legal
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS, NEVER
from dikast.worlds.scoring.penalty import Spec
from dikast.worlds.scoring.term_names import named_kinds
from dikast.worlds.scoring.terms import WORDS, Term, draw_term, held_composition, held_pair, terms_cost
from dikast.worlds.settings import Settings

ASK_MATCH = "Say what counts."
NOT_WEIGHED = "not weighed"
_MOST_RULES = 4
MOST_WEIGHT = 3


def check_rows(settings: Settings, rows: str, others: bool) -> None:
    """UserError for a world without terms. rows: `glossary` or `matching`; others: whether anything else is asked."""
    if settings.version < 4 or settings.responses > 1:
        raise UserError(f"{rows}: it needs rubrics of terms, and one response: use --version 4, not --pairs")
    if others:
        told = "reference, padding, blank, silent, agreement, quote, rubrics and only"
        raise UserError(f"{rows}: it has no lessons and no pictures: leave out {told}")


def in_aspects(term: Term) -> str:
    """A term in the words of aspects: kind, word, rule and weight, as in `colour star double 2`."""
    return f"{term.kind or 'all'} {term.word or 'all'} {term.rule} {term.weight}"


def stated_rules(spec: Spec) -> list[str]:
    """What each name in a rubric of terms means, and what a mistake costs by it; [] for other rubrics."""
    if not spec.terms:
        return []
    whole = zip(spec.names, spec.weights, strict=True)
    return [
        *(f"Rule: {term.name}: {in_aspects(term)}" for term in spec.terms),
        *(f"Rule: {called}: {name} {weight}" for called, (name, weight) in whole),
    ]


def named_in(claim: Claim) -> str:
    """The kind of a claim and what it names: `colour star blue`."""
    return " ".join((claim.aspect, *map(str, claim.args)))


def checks(claims: Sequence[Claim], metrics: Sequence[int], terms: Sequence[Term]) -> list[str]:
    """Of each claim what each term says of it: `no` if it is not about the claim, or else what the claim counts by it;
    `not weighed` at the end if no term is about the claim. "" without terms. metrics: how many units each claim is off.
    """
    told: list[list[str]] = [[] for _ in claims]
    for term in terms:
        for said, claim, cost in zip(told, claims, terms_cost(claims, metrics, [term]), strict=True):
            said.append(f"{in_aspects(term)} {f'counts {cost}' if term.covers(claim) else 'no'}")
    weighed = [any(term.covers(claim) for term in terms) for claim in claims]
    return [
        ", ".join(said if yes or not terms else [*said, NOT_WEIGHED]) for said, yes in zip(told, weighed, strict=True)
    ]


def matching(sample: Sample) -> dict[str, Any]:
    """A row of talk: up to four rules and as many findings as the response has claims; then the rules, and each finding
    checked by them. Every rule is about a finding at least.

    Which kind has which name, and which word stands for which, is drawn for each row from those of the domain, the ones
    that the split `aspects` weighs among them. Compositions and pairs that `combinations` weighs are no rules here, and
    colours and shapes that `attributes` holds out stand together in no finding, unless the split has them.
    """
    domain = sample.domain.name
    rng = Stream("matching", sample.settings.seed, domain, sample.index)
    claims = _exchanged(sample, rng)
    terms: list[Term] = []
    for claim in rng.shuffled(claims)[: 1 + rng.below(_MOST_RULES)]:
        drawn = draw_term(rng, claim, domain, once=True)._replace(weight=1 + rng.below(MOST_WEIGHT))
        if held_composition(drawn.kind, drawn.word):
            drawn = drawn._replace(word="")
        if not any(drawn[:2] == term[:2] or held_pair(drawn, term) for term in terms):
            terms.append(drawn)
    fars = [ASPECTS[claim.aspect].far for claim in claims]
    metrics = [rng.pick((0, 0, 1, far if far < NEVER else 1)) for far in fars]
    verdicts = [("wrong far" if m >= far else "wrong") if m else "right" for m, far in zip(metrics, fars, strict=True)]
    found = [f"Finding: {verdict}, {named_in(claim)}" for verdict, claim in zip(verdicts, claims, strict=True)]
    stated, total = [f"Rule: {in_aspects(term)}" for term in terms], 0
    lines = list(stated)
    for finding, said, cost in zip(
        found, checks(claims, metrics, terms), terms_cost(claims, metrics, terms), strict=True
    ):
        total += cost
        lines.append(", ".join([finding, said, *([f"{cost} lost, {total} in all"] if cost else [])]))
    asked = f"{ASK_MATCH} {'; '.join((*stated, *found))}."
    return {"id": f"{sample.id}-match", "instruction": asked, "target": "\n".join((*lines, f"Lost: {total}"))}


def _exchanged(sample: Sample, rng: Stream) -> list[Claim]:
    """The claims of the response with other kinds and words, drawn again where a held-out colour and shape meet."""
    domain, rules = sample.domain, sample.settings.rules()
    kinds = [kind for kind in named_kinds() if set(domain.kinds.get(kind, ())) - set(rules.kinds_out)]
    words = WORDS.get(domain.name, ())
    kind_for = dict(zip(kinds, rng.shuffled(kinds), strict=True))
    while True:
        word_for: dict[str | int, str | int] = dict(zip(words, rng.shuffled(words), strict=True))
        claims = [
            Claim(claim.kind, kind_for[claim.aspect], tuple(word_for.get(arg, arg) for arg in claim.args))
            for claim in sample.responses[0].claims
        ]
        if all(legal(str(a), str(b), rules.pairs) for claim in claims for a in claim.args for b in claim.args):
            return claims
