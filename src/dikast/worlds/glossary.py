"""Glossary: rows of talk that say what the names in rubrics mean, apart from any rubric.

Some kinds of claims, and some words, are weighed by no rubric of training, so that a split can test whether a judge
follows rubrics about them. A judge from scratch has never read their names either, and cannot know what "fillings"
are. Others know it from the texts they were trained on before; here a glossary says it, and nothing more.
"""

from typing import Any

from dikast.core.errors import UserError
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.term_names import name_of
from dikast.worlds.scoring.terms import draw_term, held_composition
from dikast.worlds.settings import Settings

ASK_NAMES = "Say what these mean:"


def check_glossary(settings: Settings, only_talk: bool) -> None:
    """UserError for a world whose rubrics have no such names, and beside talk about pictures."""
    if settings.version < 4 or settings.responses > 1:
        raise UserError("glossary: names are composed from version 4 on, of one response: use --version 4, not --pairs")
    if only_talk:
        raise UserError("glossary: a folder has rows of talk about pictures or about names: leave one of them out")


def glossary(sample: Sample) -> dict[str, Any]:
    """A row of talk: of each claim of the response a name that a rubric may have for it, and the kind and word meant.

    Compositions and phrases that are held out of training are left out, kinds and words that are never weighed are not.
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
