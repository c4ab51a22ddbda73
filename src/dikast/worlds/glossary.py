"""Glossary: rows of talk that say what names in rubrics mean, apart from any rubric.

The split `aspects` weighs kinds of claims, and claims about words, that rubrics of training never name. A judge from
scratch has then never read most of the nouns for such kinds, and cannot know what "fillings" are. Others know it from
the texts that they were trained on before; a glossary says it, and nothing else.
"""

from typing import Any

from dikast.core.errors import UserError
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.term_names import name_of
from dikast.worlds.scoring.terms import draw_term, held_composition
from dikast.worlds.settings import Settings

ASK_NAMES = "Say what these mean:"


def check_rows(settings: Settings, rows: str, others: bool) -> None:
    """UserError for a world without terms. rows: `glossary` or `matching`; others: whether anything else is asked."""
    if settings.version < 4 or settings.responses > 1:
        raise UserError(
            f"{rows}: rubrics are composed from version 4 on, here of one response: use --version 4, not --pairs"
        )
    if others:
        told = "reference, padding, blank, talk, quote, rubrics and only"
        raise UserError(f"{rows}: it has no lessons and no pictures: leave {told} out")


def glossary(sample: Sample) -> dict[str, Any]:
    """A row of talk: of each claim of the response a name that a rubric may have for it, and the kind and word meant.

    Phrases, and compositions of a kind and a word, are those of the split. Kinds and words that the split `aspects`
    weighs occur even in the split `train`; and two names may stand here together that no rubric of training combines.
    """
    settings, domain = sample.settings, sample.domain.name
    rng = Stream("glossary", settings.seed, domain, sample.index)
    meant: dict[str, str] = {}
    for claim in rng.shuffled(list(sample.responses[0].claims)):
        term = draw_term(rng, claim, domain, once=False)
        if held_composition(term.kind, term.word):
            term = term._replace(word="")
        name = name_of(rng, term, domain, settings.rules().wordings)
        meant[name] = f"{term.kind or 'all'} {term.word or 'all'}"
    told = [f"Rule: {name}: {meaning}" for name, meaning in meant.items()]
    return {"id": f"{sample.id}-names", "instruction": f"{ASK_NAMES} {'; '.join(meant)}.", "target": "\n".join(told)}
