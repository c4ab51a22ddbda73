"""Matching: rows of talk in which findings are compared with rules, apart from any rubric, picture and response.

A small judge may learn by heart which kinds of claims a rule can count, and never to compare the kind in a rule with
that of a claim. Here kinds, and words that claims name, are exchanged at random, so that nothing but comparing helps.
A row is written as lessons are that quote the rubric.
"""

from collections.abc import Sequence
from typing import Any

from dikast.worlds.domains.protocol import Claim
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS, NEVER
from dikast.worlds.scoring.term_names import named_kinds
from dikast.worlds.scoring.terms import WORDS, Term, draw_term, held_composition, held_pair, terms_cost

ASK_MATCH = "Say what counts."
NOT_WEIGHED = "not weighed"
_MOST_RULES = 4
_MOST_WEIGHT = 3


def meant(term: Term) -> str:
    """A term in the words of aspects: kind, word, rule and weight, as in `colour star double 2`."""
    return f"{term.kind or 'all'} {term.word or 'all'} {term.rule} {term.weight}"


def about(claim: Claim) -> str:
    """The kind of a claim and what it names: `colour star red`."""
    return " ".join((claim.aspect, *map(str, claim.args)))


def checks(claims: Sequence[Claim], metrics: Sequence[int], terms: Sequence[Term]) -> list[str]:
    """Of each claim what each term says of it: `no` where it is not about the claim, or what the claim, which is
    `metric` units off, counts by it; `not weighed` at the end where no term is about the claim. "" without terms.
    """
    told: list[list[str]] = [[] for _ in claims]
    for term in terms:
        for said, claim, cost in zip(told, claims, terms_cost(claims, metrics, [term]), strict=True):
            said.append(f"{meant(term)} {f'counts {cost}' if term.covers(claim) else 'no'}")
    weighed = [any(term.covers(claim) for term in terms) for claim in claims]
    return [
        ", ".join(said if yes or not terms else [*said, NOT_WEIGHED]) for said, yes in zip(told, weighed, strict=True)
    ]


def matching(sample: Sample) -> dict[str, Any]:
    """A row of talk: up to four rules and as many findings as the response has claims; then the rules, and each finding
    checked by them.

    Which kind has which name, and which word stands for which, is drawn for each row from those of the domain, the ones
    that the split `aspects` weighs among them. Compositions and pairs that `combinations` weighs are no rules here.
    """
    settings, domain = sample.settings, sample.domain
    rng = Stream("matching", settings.seed, domain.name, sample.index)
    kinds = [kind for kind in named_kinds() if set(domain.kinds.get(kind, ())) - set(settings.rules().kinds_out)]
    kind_for = dict(zip(kinds, rng.shuffled(kinds), strict=True))
    words = WORDS.get(domain.name, ())
    word_for: dict[str | int, str | int] = dict(zip(words, rng.shuffled(words), strict=True))
    claims = [
        Claim(claim.kind, kind_for[claim.aspect], tuple(word_for.get(arg, arg) for arg in claim.args))
        for claim in sample.responses[0].claims
    ]
    terms: list[Term] = []
    for claim in rng.shuffled(claims)[: 1 + rng.below(_MOST_RULES)]:
        drawn = draw_term(rng, claim, domain.name, once=True)._replace(weight=1 + rng.below(_MOST_WEIGHT))
        if held_composition(drawn.kind, drawn.word):
            drawn = drawn._replace(word="")
        if not any(drawn[:2] == term[:2] or held_pair(drawn, term) for term in terms):
            terms.append(drawn)
    fars = [ASPECTS[claim.aspect].far for claim in claims]
    metrics = [rng.pick((0, 0, 1, far if far < NEVER else 1)) for far in fars]
    verdicts = [("wrong far" if m >= far else "wrong") if m else "right" for m, far in zip(metrics, fars, strict=True)]
    found = [f"Finding: {verdict}, {about(claim)}" for verdict, claim in zip(verdicts, claims, strict=True)]
    rules, total = [f"Rule: {meant(term)}" for term in terms], 0
    lines = list(rules)
    for finding, said, cost in zip(
        found, checks(claims, metrics, terms), terms_cost(claims, metrics, terms), strict=True
    ):
        total += cost
        lines.append(
            ", ".join([finding, *([said] if said else []), *([f"{cost} lost, {total} in all"] if cost else [])])
        )
    asked = f"{ASK_MATCH} {'; '.join((*rules, *found))}."
    return {"id": f"{sample.id}-match", "instruction": asked, "target": "\n".join((*lines, f"Lost: {total}"))}
