"""Reading one label where a verdict is expected, as opposed to a list of labels, a range or a sentence."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from dikast.core.scale import Scale
from dikast.prompts.parsed import Target

Kind = Literal["label", "off_scale", "echo", "unreadable"]

# Every run below is possessive or bounded: no reply, however long or strange, makes reading slower than linear.
_OPEN = re.compile(r"[ \t\u00a0*_`~\"'“”‘’«(\[{<:=]{0,24}+")
_NEXT_LINE = re.compile(r"[ \t*_`~]{0,24}+(?>(?:\r?\n[ \t]{0,24}+){1,4})")
_NUMBER = re.compile(r"[-+−]?\d{1,40}+(?:\.\d{1,40}+)?(?![\w])|[-+−]?\d")
_CLOSE = r"[*_`~\"'“”‘’»)\]}>]{0,24}+"
_FRACTION = re.compile(
    rf"{_CLOSE}[ \t]{{0,4}}+(?:/|out\s{{1,3}}+of)[ \t*_`(]{{0,6}}+(\d{{1,12}}+(?:\.\d{{1,6}}+)?)", re.I
)
_PERCENT = re.compile(rf"{_CLOSE}[ \t]?%")
END_TOKEN = (
    r"(?:</?s>|<\|[^<>|\s]{1,40}\|>|<(?:eos|end_of_turn|end|EOT)>|\[/?(?:END|INST|EOS|EOT)\]|\[/RESULT\]|</answer>)"
)
_END = re.compile(
    rf"{_CLOSE}(?:[ \t]{{0,4}}+[.,;!?。]{{1,3}}+)?{_CLOSE}[ \t\r]{{0,24}}+(?:$|\n|{END_TOKEN})",
    re.I,
)
# A full stop before another sentence, a dash or bracket before words: the rest explains the label.
_STOP = re.compile(
    rf"{_CLOSE}[ \t]{{0,4}}+(?:[.;!?。]{{1,3}}+{_CLOSE}(?=\s)|[,:;](?=\s)|[-–—]{{1,2}}+(?=[ \t]{{0,4}}+[^\W\d])"
    r"|\((?=[^\W\d]))"
)
_MORE = re.compile(
    rf"{_CLOSE}[ \t]{{1,4}}+(?:because|since|as|for|due|given|based|wins|with|on|overall|points?|stars?|marks?"
    r"|is(?!\s{1,3}(?:\w{1,20}\s)?(?:not|no|worse|inferior|weaker|wrong|bad)\b))\b",
    re.I,
)
_SENTENCE = re.compile(rf"{_CLOSE}[ \t]{{1,4}}+(?=[A-Z][\w'’]{{0,20}}+[ \t,])")
_NEXT_OF_LIST = re.compile(
    rf"{_CLOSE}[ \t]{{0,4}}+(?:-|–|—|~|/|\||,|;|to\b|or\b|and\b|through\b|\.\.+)[ \t]{{0,4}}+(?:or\s{{1,4}}+)?"
    rf"{_OPEN.pattern}",
    re.I,
)

NOUN = r"(?:response|answer|assistant|output|model|option|candidate|solution|completion)"
_PAIR = re.compile(
    rf"(?:the\s{{1,3}}+)?(?:{NOUN}\s{{0,3}}+)?\(?"
    r"(?:(?P<tie>tied?|(?:a\s)?draw|equal(?:ly\sgood)?|neither|both(?:\s(?:are\s)?equal(?:ly\sgood)?)?)"
    r"|(?P<first>A|1|first|one)|(?P<second>B|2|second|two))(?!\w)\)?"
    rf"(?:\s{{1,3}}+{NOUN}(?!\w))?",
    re.I,
)
_ALIKE = re.compile(
    rf"(?:(?:{NOUN}\s)?A\s(?:and|&)\s(?:{NOUN}\s)?B|they|the\stwo|both\s{NOUN}s)\sare\s(?:\w{{1,12}}ly\s)?"
    r"(?:equal(?:ly\sgood)?|tied|the\ssame)(?!\w)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A finding at a place: its kind, the label (None unless kind is `label`), its text, and its end."""

    kind: Kind
    label: str | None
    said: str
    end: int


def read_label(text: str, at: int, target: Target, *, next_line: bool = True) -> Found:
    """The statement at `text[at:]`: a label, something off the scale, an echo of the choices, or nothing readable.

    A label may be on one of the next lines, if it is alone there.
    """
    below = _NEXT_LINE.match(text, at) if next_line else None
    begin = below.end() if below else at
    opened = _OPEN.match(text, begin)
    begin = opened.end() if opened else begin
    found = _label(text, begin, target)
    if found is None or (opened and _bound(text, opened[0], found)):
        return Found("unreadable", None, _excerpt(text, at), begin)
    if found.kind in ("label", "off_scale"):
        listed = _NEXT_OF_LIST.match(text, found.end)
        other = _label(text, listed.end(), target) if listed else None
        if other is not None:
            return _list_or_range(text, begin, found, other, target)
    tail = _tail(text, found, alone=below is not None)
    return found if tail is None else Found("unreadable", None, tail, found.end)


_SHUT_ANGLE = re.compile(r"[ \t*_`\"'”’)\]}]{0,8}+(?:>|</)")


def _bound(text: str, opened: str, found: Found) -> bool:
    """Whether a sign before the label makes it a bound or an estimate: `<4`, `<=4`, `~4`."""
    open_angle = "<" in opened and _SHUT_ANGLE.match(text, found.end) is None
    return open_angle or opened.count("~") == 1


def read_before(text: str, at: int, following: int, target: Target) -> Found:
    """As `read_one_of`, but also a label that is followed by the next marker on its line: "4, then Verdict: 2"."""
    found = read_one_of(text, at, target)
    gap = text[found.end : following]
    if found.kind != "unreadable" or not 0 < len(gap) < 80 or "\n" in gap or gap[0].isalnum():
        return found
    return replace(read_label(text[at : found.end], 0, target), end=found.end)


_JOINED = re.compile(rf"{_CLOSE}[ \t]{{0,4}}+(?:(?:or|and|vs\.?)(?!\w)|/|&|\|)", re.I)


def read_one_of(text: str, at: int, target: Target) -> Found:
    """As `read_label`, but also a label that "or", "and" and the like join to something other than a label."""
    found = read_label(text, at, target)
    if found.kind != "unreadable" or _JOINED.match(text, found.end) is None:
        return found
    read = read_label(text[at : found.end], 0, target)
    return Found(read.kind, read.label, read.said, found.end)


def read_whole(said: str, target: Target) -> Found:
    """As `read_label`, for a text that should hold a label and nothing else; anything more is off the scale."""
    found = read_label(said, 0, target, next_line=False)
    if found.kind in ("label", "off_scale") and rest_after(said, found.end).strip():
        return Found("off_scale", None, said[:60], len(said))
    return found


_TRAILING = re.compile(rf"(?:[\s*_`~\"'”’)\]}}>.,;!。]|{END_TOKEN}){{0,40}}", re.I)


def rest_after(text: str, at: int) -> str:
    """The text after a label without punctuation, markdown and end tokens."""
    match = _TRAILING.match(text, at)
    return text[match.end() :] if match else text[at:]


def ends_line(text: str, at: int) -> bool:
    """Whether the line holds nothing but punctuation, markdown and end tokens from `at` on."""
    return _END.match(text, at) is not None


def _label(text: str, at: int, target: Target) -> Found | None:
    """A number or a word; where labels are words that may begin with a number ("1 star"), the word comes first."""
    if target.scale is None or not all(_NUMBER.fullmatch(label) for label in target.scale.labels):
        return _word(text, at, target) or _number(text, at, target)
    return _number(text, at, target)


def _number(text: str, at: int, target: Target) -> Found | None:
    match = _NUMBER.match(text, at)
    if match is None or target.scale is None:
        return None
    longer = re.compile(r"[\d.,]{0,80}+").match(text, match.end())
    said, end = match[0], match.end()
    if longer and re.search(r"\d", longer[0]) and not longer[0].startswith(","):
        return Found("off_scale", None, _excerpt(text, at), longer.end())
    scale = target.scale
    label = scale.match(said)
    over = _FRACTION.match(text, end)
    if over is not None:
        whole = scale.match(over[1])
        label = label if whole is not None and whole == scale.labels[-1] else None
        said, end = text[at : over.end()], over.end()
    elif percent := _PERCENT.match(text, end):
        label = label if scale.high == 100 else None
        said, end = text[at : percent.end()], percent.end()
    return Found("label" if label is not None else "off_scale", label, said, end)


def _word(text: str, at: int, target: Target) -> Found | None:
    if target.scale is not None:
        match = _words_of(target.scale).match(text, at)
        label = target.scale.match(match[0]) if match else None
        return Found("label", label, match[0], match.end()) if match and label is not None else None
    alike = _ALIKE.match(text, at)
    if alike is not None:
        known = "tie" in target
        return Found("label" if known else "off_scale", "tie" if known else None, alike[0], alike.end())
    for slot, word in sorted(target.words, key=lambda pair: -len(pair[1])):
        end = at + len(word)
        if text[at:end].casefold() == word.casefold() and not text[end : end + 1].isalnum():
            return Found("label", slot, text[at:end], end)
    match = _PAIR.match(text, at)
    if match is None:
        return None
    slot = match.lastgroup or "tie"
    known = slot in target
    return Found("label" if known else "off_scale", slot if known else None, match[0], match.end())


@lru_cache(maxsize=64)
def _words_of(scale: Scale) -> re.Pattern[str]:
    longest = sorted((label.strip() for label in scale.labels), key=len, reverse=True)
    return re.compile("|".join(rf"{re.escape(label)}(?!\w)" for label in longest), re.I)


def _list_or_range(text: str, begin: int, found: Found, other: Found, target: Target) -> Found:
    """`1-5`, `A or B`, `1, 2, 3, 4, 5`: the choices repeated, if the run begins and ends where they do."""
    first, last = found, other
    for _ in range(1100):
        again = _NEXT_OF_LIST.match(text, last.end)
        more = _label(text, again.end(), target) if again else None
        if more is None:
            break
        last = more
    labels = target.scale.labels if target.scale is not None else tuple(slot for slot, _ in target.words)
    ends = {first.label, last.label}
    whole = ends == {labels[0], labels[-1]} or (target.scale is None and ends == {"first", "second"})
    said = text[begin : min(last.end, begin + 60)]
    return Found("echo" if whole else "off_scale", None, said, last.end)


def _tail(text: str, found: Found, *, alone: bool) -> str | None:
    """None if the text after the label is compatible with a verdict, else an excerpt that shows why not."""
    if _END.match(text, found.end):
        return None
    numeric = found.said[:1].isdigit() or found.said[:1] in "+-−"
    if not alone and (_STOP.match(text, found.end) or _MORE.match(text, found.end)):
        return None
    if not alone and numeric and _SENTENCE.match(text, found.end):
        return None
    return _excerpt(text, found.end - len(found.said))


def _excerpt(text: str, at: int) -> str:
    line = text[at : at + 60].strip()
    return line.splitlines()[0] if line else ""
