"""Glossary: rows of talk that say what names in rubrics mean, apart from any rubric.

The split `aspects` weighs kinds of claims, and claims about words, that rubrics of training never name. A judge from
scratch has then never read most of the nouns for such kinds, and cannot know what "fillings" are. Others know it from
the texts that they were trained on before; a glossary says it, and nothing else.
"""

from typing import Any

from dikast.worlds.matching import MOST_WEIGHT, in_aspects
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.term_names import name_of
from dikast.worlds.scoring.terms import Term, draw_term, held_composition

ASK_NAMES = "Say what these mean:"


def glossary(sample: Sample) -> dict[str, Any]:
    """A row of talk: of each claim of the response a name that a rubric may have for it, with a rule and a weight, and
    the kind and word meant, as lessons say it that quote the rubric.

    Phrases are those of the split; compositions of a kind and a word that are held out do not occur. Kinds and words
    that the split `aspects` weighs do, and two names may stand here together that no rubric of training combines.
    """
    settings, domain = sample.settings, sample.domain.name
    rng = Stream("glossary", settings.seed, domain, sample.index)
    terms: dict[str, Term] = {}
    for claim in rng.shuffled(list(sample.responses[0].claims)):
        term = draw_term(rng, claim, domain, once=True)._replace(weight=1 + rng.below(MOST_WEIGHT))
        if held_composition(term.kind, term.word):
            term = term._replace(word="")
        name = name_of(rng, term, domain, settings.rules().wordings)
        terms[name] = term
    asked = "; ".join(f"{name}, {term.rule} {term.weight}" for name, term in terms.items())
    told = "\n".join(f"Rule: {name}: {in_aspects(term)}" for name, term in terms.items())
    return {"id": f"{sample.id}-names", "instruction": f"{ASK_NAMES} {asked}.", "target": told}
