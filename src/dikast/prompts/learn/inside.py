"""Fixed text inside a slot: text that every value contains may be a part of the prompt."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from dikast.prompts.learn.levels import counted

_TOKEN = re.compile(r"\w+|\n|[^\w\s]|\t")
_WORD = re.compile(r"\w+")
_LABEL = re.compile(r"^[ \t]*([^\n:]{1,40}:)(?=\s|$)", re.M)
_SENTENCE = frozenset(".?!…'’。？！")  # any sentence has them
_RUN = 3  # consecutive words that are no coincidence in every value
_ENOUGH = 6  # minimum of different values for shared words to be significant


def fixed_inside(values: Sequence[str]) -> str:
    """A text inside every value, "" if there is none."""
    different = sorted(set(values), key=len)
    if len(different) < 2 or not different[0].strip():
        return ""
    if held := _in_all(different, _lines) or _in_all(different, _LABEL.findall):
        return held
    if all("\n" in value.strip() for value in different):
        return "\n"
    if found := counted(different):
        return found[0][0]
    if len(different) < _ENOUGH:
        return ""
    return _in_all(different, _runs) or _equally_often(different)


def _in_all(values: Sequence[str], parts: Callable[[str], Iterable[str]]) -> str:
    """The longest part that all values have, the alphabetically first of several."""
    common = set(parts(values[0]))
    for value in values[1:]:
        if not common:
            return ""
        common &= set(parts(value))
    return min(common, key=lambda each: (-len(each), each), default="")


def _lines(value: str) -> list[str]:
    return [line.strip() for line in value.split("\n") if line.strip()]


def _runs(value: str) -> list[str]:
    words = _WORD.findall(value)
    return [" ".join(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)]


def _equally_often(values: Sequence[str]) -> str:
    common = {token: count for token, count in Counter(_TOKEN.findall(values[0])).items() if token not in _SENTENCE}
    for value in values[1:]:
        if not common:
            return ""
        counts = Counter(_TOKEN.findall(value))
        common = {token: count for token, count in common.items() if counts[token] == count}
    return min(common, key=lambda each: (-len(each), each), default="")
