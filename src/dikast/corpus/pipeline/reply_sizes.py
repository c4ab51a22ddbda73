"""How many rubrics and instructions fit into one reply of at most `max_tokens` tokens; larger requests are cut."""

from collections.abc import Iterator

from dikast.corpus.pipeline.recipe import Recipe

_RUBRIC = 250  # tokens of a rubric with five levels
_WORD = 2  # tokens of a word, with room for languages that take more than English
_REQUEST = 160  # tokens of an instruction and of the JSON around it and its reference


def rubrics_a_reply(recipe: Recipe, wanted: int) -> int:
    """How many of `wanted` rubrics to ask for at once, at least 1; a world's replies have no limit."""
    return wanted if recipe.world else max(1, min(wanted, recipe.max_tokens // _RUBRIC))


def instruction_pieces(recipe: Recipe) -> list[tuple[int, int]]:
    """The requests for a rubric's instructions: the place of the first, and how many."""
    n = recipe.options.instructions
    fit = max(1, recipe.max_tokens // (_WORD * recipe.options.words + _REQUEST))
    each = n if recipe.world else min(n, fit)
    return [(first, min(each, n - first)) for first in range(0, n, each)]


def too_long(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """The mistake in a recipe whose responses, with their feedback, do not fit into a reply."""
    least = _WORD * recipe.options.words
    if not recipe.world and least > recipe.max_tokens:
        told = f"a response of {recipe.options.words:,} words and its feedback do not fit into max_tokens:"
        yield "words", f"{told} {recipe.max_tokens:,}; set max_tokens to at least {least:,}, or ask for fewer words"
