"""The names of terms: a bank for each aspect, and phrases for what claims name.

A name is a noun in a pattern; both occur in training, a quarter of their compositions do not. So an unseen name still
consists of words that were seen.
"""

from functools import cache

from dikast.worlds.domains.text_images import COLUMNS, ROWS
from dikast.worlds.domains.text_only import FIELDS
from dikast.worlds.domains.vocabulary import PLURALS
from dikast.worlds.sampling.rng import Stream, key_of
from dikast.worlds.scoring.terms import Term

_NOUNS: dict[str, tuple[str, ...]] = {
    "colour": ("colours", "hues", "tints", "shades"),
    "size": ("sizes", "dimensions", "extents", "magnitudes"),
    "shape": ("shapes", "forms", "silhouettes", "contours"),
    "texture": ("textures", "patterns", "surfaces", "fillings"),
    "position": ("positions", "places", "locations", "spots"),
    "relation": ("relations", "arrangements", "spatial relations", "relative positions"),
    "count": ("counts", "numbers of things", "amounts", "quantities"),
    "existence": ("things", "objects", "items", "entities"),
    "binding": ("colour pairs", "pairs of colours", "colour pairings", "paired colours"),
    "comparison": ("comparisons", "rankings of things", "contrasts", "comparative claims"),
    "certainty": ("corners", "corner contents", "corner claims", "claims on corners"),
    "fact": ("facts", "details", "particulars", "personal facts"),
    "number": ("ages", "years of age", "ages of people", "ages in years"),
    "sum": ("sums", "calculations", "results", "sums and differences"),
    "list": ("list places", "list positions", "ranks in the list", "list entries"),
    "day": ("days", "weekdays", "days of events", "event days"),
    "reading": ("words", "written words", "readings of words", "spellings"),
    "cell": ("table cells", "table entries", "cell values", "table values"),
    "value": ("values", "chart values", "readings of the chart", "charted values"),
    "order": ("orders of values", "rankings", "value comparisons", "orderings"),
    "extreme": ("extremes", "highest and lowest values", "tops and bottoms", "end points"),
    "motion": ("moves", "movements", "directions", "motions"),
    "change": ("changes", "colour changes", "changes of colour", "recolourings"),
    "time": ("orders in time", "sequences", "orders of events", "successions"),
    "moment": ("moments", "frames", "times of events", "event frames"),
    "edit": ("edits", "requested edits", "changes asked for", "alterations"),
    "addition": ("additions", "added things", "things to add", "requested additions"),
    "removal": ("removals", "removed things", "things to remove", "requested removals"),
    "shift": ("shifts", "moved things", "things to move", "requested moves"),
}
_OTHER = (
    "plate numbers",
    "numbers on plates",
    "plate figures",
    "numbers read off plates",
)  # where numbers are read, not ages
_PLAIN = (
    "{n}", "{n} stated", "{n} given", "stated {n}", "{n} in the answer", "{n} claimed", "claimed {n}", "{n} named",
    "{n} as stated",
)  # fmt: skip
_ABOUT = (
    "{n} where {w} is named", "{n} with {w} named", "{n} in claims that name {w}", "{n} stated where {w} is named",
    "{n} given with {w} named", "{n} in claims naming {w}", "{n} wherever {w} is named",
    "{n} claimed where {w} is named", "{n} in statements that name {w}",
)  # fmt: skip
_ANY = (
    "{n} that name {w}", "{n} naming {w}", "{n} in which {w} is named", "{n} where {w} is named", "{n} with {w} named",
    "{n} wherever {w} is named", "{n} that mention {w}", "{n} mentioning {w}",
)  # fmt: skip
_IN_ANSWER = (
    "{n}", "{n} in the answer", "{n} in the response", "{n} in the reply", "{n} in what is said",
    "{n} in the whole answer", "{n} anywhere in the answer", "{n} anywhere in the reply",
)  # fmt: skip
_IN_PICTURE = (
    "{n}", "{n} in the picture", "{n} in the result", "{n} in the new picture", "{n} in the edited picture",
    "{n} in the whole picture", "{n} anywhere in the picture", "{n} anywhere in the result",
)  # fmt: skip
_ASKED = (
    "{n}", "{n} given", "{n} stated", "{n} set", "{n} laid down", "{n} to keep", "{n} to be kept",
    "{n} that the question sets",
)  # fmt: skip
_FORM: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # aspect of the whole response -> nouns, patterns
    "completeness": (("omissions", "things left out", "missing things", "things not named"), _IN_ANSWER),
    "preservation": (
        ("unasked changes", "changes not asked for", "other changes", "things changed unasked"),
        _IN_PICTURE,
    ),
    "relevance": (
        ("off-topic sentences", "sentences off the topic", "irrelevant sentences", "strayings from the topic"),
        _IN_ANSWER,
    ),
    "concision": (("repetitions", "repeated sentences", "sentences said twice", "sentences said again"), _IN_ANSWER),
    "consistency": (
        ("contradictions", "conflicting sentences", "sentences in conflict", "sentences that contradict"),
        _IN_ANSWER,
    ),
    "format": (("layout rules", "layout", "rules on layout", "rules of layout"), _ASKED),
    "length": (("word limits", "word limit", "limit on length", "length limit"), _ASKED),
}


def named_kinds() -> tuple[str, ...]:
    """The kinds of claims that terms can be about."""
    return tuple(_NOUNS)


def name_of(rng: Stream, term: Term, domain: str, wordings: str) -> str:
    """A name of the term: one of training, one held out, or any, as `wordings` says."""
    return rng.pick(names(term.kind, bool(term.word), domain, wordings)).replace("{w}", _said(term.word, domain))


def pattern_of(term: Term, domain: str) -> str:
    """The name of a term with `{w}` for what it is about: `hues where {w} is named`."""
    if not term.word:
        return term.name
    before, said, after = term.name.rpartition(_said(term.word, domain))  # the last: "paired" has "red" in it, too
    return f"{before}{{w}}{after}" if said else term.name


@cache
def names(kind: str, about: bool, domain: str, wordings: str) -> tuple[str, ...]:
    """The names of an aspect ("" for claims of any kind), `about` with a place for what is named."""
    if kind in _FORM:
        nouns, patterns = _FORM[kind]
    elif kind:
        nouns = _OTHER if (domain, kind) == ("plates", "number") else _NOUNS[kind]
        patterns = _ABOUT if about else _PLAIN
    else:
        nouns, patterns = ("claims", "statements", "sentences", "remarks"), _ANY
    found = tuple(pattern.replace("{n}", noun) for noun in nouns for pattern in patterns)
    held = tuple(name for name in found[1:] if key_of("name", name) % 4 == 0)
    if wordings == "all":
        return found
    return held if wordings == "held_out" else tuple(name for name in found if name not in held)


def _said(word: str, domain: str) -> str:
    if domain == "plates" and word in (*ROWS, *COLUMNS):
        return f"row {word}" if word in ROWS else f"column {word}"
    if domain == "charts":
        return f"letter {word}"
    return f"a {word}" if word in (*FIELDS, *PLURALS) else word
