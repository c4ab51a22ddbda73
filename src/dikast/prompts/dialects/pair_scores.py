"""Scores that a reply gives to both responses of a pair: "Score A: 3, Score B: 9", "Scores: 3 7"."""

from collections.abc import Iterator
from itertools import pairwise

from dikast.prompts.dialects import phrases
from dikast.prompts.dialects.label import NOUN
from dikast.prompts.parsed import Slot

_OF = r"(?<!\w)(?:(?P<kind>\w{1,20})[ \t]{1,3}+)?(?:score|rating)s?(?!\w)"
_NAME = (
    rf"(?:(?:the\s)?{NOUN}\s{{0,3}}+{phrases.LEAD}(?P<letter>[AB12])|{phrases.LEAD}(?P<bare>(?-i:[AB])))"
    rf"(?!\w){phrases.SHUT}"
)
_TO = r"[ \t:=*_`(-]{0,8}+"
_NUMBER = r"(?P<number>\d{1,3}(?:\.\d{1,3})?)(?![\w%]|\.\d)"
_NAMED = (  # a score of one response
    phrases.compiled(_OF, r"[ \t*_`:(-]{0,8}+(?:(?:of|for)\s)?", _NAME, _TO, r"(?:is\s|gets\s)?", _NUMBER),
    phrases.compiled(
        r"(?<!\w)(?<!\w[ \t])", _NAME, r"(?:['’]s)?[ \t:*_`-]{0,6}+", _OF, _TO, r"(?:is\s|of\s)?", _NUMBER
    ),
)
_OUT_OF = phrases.compiled(  # "A: 7/10" in a line
    r"(?:\A|\n)[ \t*_#-]{0,8}+", _NAME, r"[ \t*_]{0,4}+:[ \t*_]{0,4}+", _NUMBER, r"\s?/\s?(?:5|10|100)(?!\w)"
)
_LISTED = phrases.compiled(  # "Scores: Assistant A 3, Assistant B 9", also in lines
    _OF, r"[\s:*_`-]{0,10}+", _NAME, _TO, _NUMBER, r"(?:\s?/\s?\d{1,3})?[\s.,;*_`-]{0,10}+(?:and\s)?",
    _NAME.replace("letter", "other").replace("bare", "rest"), _TO, _NUMBER.replace("number", "against"),
)  # fmt: skip
_BARE = phrases.compiled(
    _OF, r"[ \t:*_`]{1,8}+", _NUMBER, r"(?:[ \t]{1,4}+|[ \t]?,[ \t]{0,4}+|\sand\s|\svs\.?\s)",
    _NUMBER.replace("number", "against"),
)  # fmt: skip
_LOW_IS_GOOD = phrases.compiled(
    r"(?:lower|lowest|smaller|fewer)(?!\w)[^.\n]{0,40}(?<!\w)(?:better|best|wins|preferable)"
)
_OF_FAULTS = phrases.compiled(
    r"(?:\w{0,6}harm|toxic|error|penalt|risk|bias|halluc|severity|danger|fault|mistake|demerit|unsafe|violat)"
)


def scores_against(text: str, slot: Slot) -> str:
    """The scores that the reply gives the two responses, where all of them say that the other one won; "" otherwise.

    Scores of faults, and those of a reply that says that lower is better, say nothing.
    """
    if slot == "tie" or _LOW_IS_GOOD.search(text):
        return ""
    found = sorted(_pairs(text))
    ahead = {one > two if slot == "first" else one < two for _, _, one, two in found if one != two}
    if ahead != {False} or any(one == two for _, _, one, two in found):
        return ""
    start, end, *_ = found[-1]
    return text[start:end]


def _pairs(text: str) -> Iterator[tuple[int, int, float, float]]:
    """Where two scores stand, and those of the first and of the second response."""
    single: dict[int, tuple[int, Slot, float]] = {}  # by where the number ends, since both patterns may find it
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            if not _of_faults(match["kind"]):
                slot = _slot(match["letter"] or match["bare"])
                single[match.end("number")] = match.start(), slot, float(match["number"])
    for match in _OUT_OF.finditer(text):
        slot = _slot(match["letter"] or match["bare"])
        single.setdefault(match.end("number"), (match.start(), slot, float(match["number"])))
    for (_, (start, slot, one)), (end, (_, other, two)) in pairwise(sorted(single.items())):
        if slot != other:
            yield (start, end, *((one, two) if slot == "first" else (two, one)))
    for match in _LISTED.finditer(text):
        slots = _slot(match["letter"] or match["bare"]), _slot(match["other"] or match["rest"])
        if slots[0] != slots[1] and not _of_faults(match["kind"]):
            one, two = float(match["number"]), float(match["against"])
            yield (match.start(), match.end(), *((one, two) if slots[0] == "first" else (two, one)))
    for match in _BARE.finditer(text):
        if not _of_faults(match["kind"]):
            yield match.start(), match.end(), float(match["number"]), float(match["against"])


def _of_faults(kind: str | None) -> bool:
    return kind is not None and _OF_FAULTS.match(kind) is not None


def _slot(letter: str) -> Slot:
    return "first" if letter.casefold() in ("a", "1") else "second"
