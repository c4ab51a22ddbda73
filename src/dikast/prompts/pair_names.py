"""The names that a text gives the two responses of a pair, and the text with these names exchanged."""

import re
from functools import cache

_NOUN = (
    r"(?:responses?|answers?|assistants?|models?|candidates?|outputs?|options?|repl(?:y|ies)|captions?|descriptions?|"
    r"completions?|summar(?:y|ies)|translations?)"
)
_OTHER = {
    "a": "b", "b": "a", "1": "2", "2": "1", "one": "two", "two": "one", "first": "second", "second": "first",
    "former": "latter", "latter": "former",
}  # fmt: skip
_VERB = (
    r"(?:is|was|are|has|had|does|did|says?|gives?|names?|states?|misses|lacks|answers?|contains?|only|also|instead|"
    r"rather|leaves|loses|gains|describes?|claims?|reads?|gets?|fails?|keeps?|makes?|seems?|looks?|offers?|provides?|shows?|wins?|"
    r"uses?|adds?|omits?|covers?|follows?|explains?|addresses|repeats?|invents?|goes|takes?|and|or|than|while|but)\b"
)
_NAMES = (
    rf"\b(?P<noun>(?i:{_NOUN}))(?P<gap>[\s*_`\"'(\[]{{1,4}}|\s#)(?P<label>[AB]|[12]|[Oo]ne|[Tt]wo)(?![\w]|\.\d)"
    rf"(?:(?P<join>[\s*_`\"')\]]{{0,4}}\s(?:and|or|than|over|to)\s[\s*_`\"'(\[]{{0,4}})"
    rf"(?P<more>[AB]|[12]|[Oo]ne|[Tt]wo)(?!\w))?"
    rf"|\b(?P<order>[Ff]irst|[Ss]econd)(?=\s(?:{_NOUN}|one)\b)"
    rf"|(?<=\b[Tt]he\s)(?P<short>first|second)(?=[,.;:)]|'s\b|\s{_VERB}|$)"
    rf"|(?<![\w'.])(?P<bare>[AB])(?=[*_`\"'\])]{{0,4}}(?:[,;:.)]|$)|'s\b|\s{_VERB}|\s\d)"
    rf"|(?<![\w'.])(?P<lone>B)(?![\w-]|\.\w)"
    r"|(?<=\b(?:than|over)\s)(?P<than>[AB])(?=[\s*_])"
)
_BEFORE = re.compile(
    r"(?:^|[^\w\s]|\b(?:and|or|than|over|to|that|while|whereas|but|as|so|because|since|by|of|in|with|from|both|"
    r"prefers?|though|although|where|both|unlike|like|against|is|favou?rs?|only))[\s*_`\"'(\[]*\Z",
    re.I,
)


_SECTIONS = re.compile(  # as lessons have them
    r"\AFirst\n(?P<one>.*?\nGrade: [^\n]+)\nSecond\n(?P<other>.*\nGrade: [^\n]+)\Z", re.S
)


def exchanged(text: str) -> str:
    """`text` about a pair of responses as it reads once they change places: A for B, first for second, 1 for 2.

    Names are known by their nouns (`response A`, `Assistant 2`, `the second answer`), by verbs (`A names`, `the first
    is`), or as lone letters. A text that names neither response is returned as it is. Lessons have a section
    for each, from the lines `First` and `Second` to its `Grade:`: these change places, and a B there is a grade.
    """
    if parts := _SECTIONS.match(text):
        return f"First\n{parts['other']}\nSecond\n{parts['one']}"
    return _names().sub(_exchanged, text)


def exchangeable(text: str) -> bool:
    """Whether exchanging the names twice gives the text back, so that nothing was taken for a name one way only."""
    return exchanged(exchanged(text)) == text


@cache
def _names() -> re.Pattern[str]:
    return re.compile(_NAMES, re.M)


def _exchanged(match: re.Match[str]) -> str:
    if match["noun"]:
        said = match["noun"] + match["gap"] + _other(match["label"])
        return said + match["join"] + _other(match["more"]) if match["more"] else said
    if (match["bare"] or match["lone"]) and not _BEFORE.search(match.string, max(0, match.start() - 20), match.start()):
        return match[0]  # the letter of something else, such as "plan B"
    return _other(match["order"] or match["short"] or match["bare"] or match["lone"] or match["than"])


def _other(word: str) -> str:
    other = _OTHER[word.casefold()]
    return other.upper() if len(word) == 1 else other.capitalize() if word[0].isupper() else other
