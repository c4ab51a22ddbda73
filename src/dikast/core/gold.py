"""The gold (ground truth) of an item for one question, and whether it is on the scale of the question's rubric."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from dikast.core.errors import DataError
from dikast.core.item import GOLD_LIKE, Item, plain_name
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.text import number_in

_PREFERENCE = re.compile(r"a|b|tie|first|second|\[*\s*[ab]\s*(?:>>?|<<?|=)\s*[ab]\s*\]*", re.IGNORECASE)
_LIKE = re.compile(  # names of columns, besides GOLD_LIKE, that speak of what people said
    r"(?!.*_(id|ids|idx|index|count)$)((human|gold|annotators?|annotation|raters?|expert)(_.*|\d+)?|.*_(human|annotator)"
    r"|winner_(model_)?(a|b|tie))"
)
_NONE = frozenset(("n/a", "#n/a", "na", "n.a.", "nan", "null", "-", "--", "\u2013", "\u2014"))
_CHOICE = re.compile(r"(.*_)?(preferred|preference|better|best|choice|chosen|winner|judg(e?)ment)(_.*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_USUAL = ("0-1", "1-3", "1-4", "1-5", "1-7", "0-5", "1-10", "0-10", "0-100")
_WORDS_OF_A_LABEL = 3  # at most; longer gold is probably an answer known to be good
_SHOWN = 5  # spellings of gold in a message
_ALONE = (
    "one value for a pair says which response is better: a, b, tie, 0 (the first) or 1 (the second); scores are a "
    "list, one for each response"
)
LABEL_CHANCE = "label_chance"  # in a file of labels, the probability with which each row was chosen to be labelled


def says_none(value: Any) -> bool:
    """Whether a cell says in text that there is no gold."""
    return isinstance(value, str) and value.strip().casefold() in _NONE


def stated(gold: Any, criterion: str, *, pair: bool = False) -> Any:
    """The part of an item's gold for one criterion: an object holds it by criterion, or among other details."""
    if not isinstance(gold, dict):
        return gold
    keys = ("scores", "preference") if pair else ("scores", "score")
    return next((gold[key] for key in (criterion, *keys, "gold") if key in gold), None)


def gold_of_response(gold: Any, criterion: str, response: int) -> Any:
    """The gold of one response, as written; a list has one entry per response. None if there is none."""
    value = stated(gold, criterion)
    if isinstance(value, list | tuple):
        return value[response] if 0 <= response < len(value) else None
    return value


def gold_of_pair(gold: Any, criterion: str, responses: Sequence[int], scale: Scale | None = None) -> Any:
    """Which of two responses gold prefers, "a" for the smaller index, "b" or "tie"; other text as written.

    Gold is that text, the index of the better response, or a list of scores by response. Scores are compared by their
    goodness on `scale`; without one the larger number is the better.
    """
    value, low, high = stated(gold, criterion, pair=True), min(responses), max(responses)
    if isinstance(value, list | tuple):
        chosen = [value[i] if i < len(value) else None for i in (low, high)]
        if scale is not None:
            numbers = [gold_number(each, scale) for each in chosen]
            chosen = [None if each is None else scale.goodness(each) for each in numbers]
        first, second = chosen
        if first is None or second is None:
            return None
        return "tie" if first == second else "a" if first > second else "b"
    if isinstance(value, int):
        return {low: "a", high: "b"}.get(value)
    return value


def named_side(value: Any, systems: Sequence[Any]) -> Any:
    """Gold of a pair that is the name of one of its two `systems` as "a" or "b"; any other as it is."""
    first, second = systems
    return value if value is None or first == second else {first: "a", second: "b"}.get(value, value)


def gold_number(value: Any, scale: Scale) -> float | None:
    """Gold as a number in the values of `scale`: a number, a number as text, or a label. None for anything else.

    Booleans are read if a scale has two labels; true is the one with the larger value. The number may lie off the
    scale.
    """
    if isinstance(value, bool):
        return scale.values[value] if len(scale.values) == 2 else None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return None
    if (label := scale.match(value)) is not None:
        return scale.value(label)
    return float(value) if _NUMBER.fullmatch(value.strip()) else None


def lies_on(value: Any, scale: Scale) -> bool:
    """Whether gold is a label, or a number from the lowest value to the highest: means of raters lie between labels."""
    number = gold_number(value, scale)
    return number is not None and scale.low <= number <= scale.high


def own_scale(rubric: Rubric, equate: Scale | None) -> Scale:
    """The scale of gold: the rubric's, unless `equate` names another; its direction is the rubric's."""
    scale = rubric.scale
    return scale if equate is None else replace(equate, lower_is_better=scale.lower_is_better)


def moved(value: Any, source: Scale, target: Scale) -> float | None:
    """Gold on `source` as the number of equal goodness on `target`; None where it is no number on `source`."""
    number = gold_number(value, source)
    if number is None:
        return None
    share = source.goodness(number)
    return target.low + (1 - share if target.lower_is_better else share) * (target.high - target.low)


def gold_for(item: Item, rubric: Rubric, responses: Sequence[int], equate: Scale) -> Any:
    """The gold of a question moved from the scale `equate` to that of the rubric; preferences stay as they are."""
    source, pair = own_scale(rubric, equate), len(responses) == 2
    value = stated(item.gold, rubric.name, pair=pair)
    if isinstance(value, list | tuple):
        return [moved(each, source, rubric.scale) for each in value]
    if pair and is_preference(value, len(item.responses)):
        return value
    return moved(value, source, rubric.scale)


def goodness_of(item: Item, rubric: Rubric, equate: Scale | None) -> Any:
    """The goodness (0 worst, 1 best) of an item's gold under a rubric, on gold's own scale; by response for a list."""
    scale, value = own_scale(rubric, equate), stated(item.gold, rubric.name)
    several = isinstance(value, list | tuple)
    numbers = [gold_number(each, scale) for each in (value if several else [value])]
    found = [None if each is None else scale.goodness(each) for each in numbers]
    return found if several else found[0]


@dataclass
class GoldCheck:
    """Gathers gold that does not lie on its scale, over all questions of a run or of one item.

    `equate` is the scale that gold is said to lie on; without it, it is that of each rubric. `scores` allows
    preferences as well as scores if single responses are asked about (pairs that are compared by their scores). Where
    items were made by other means than flags, `cures` are told in their place, and `named` of a column like gold.
    `read` says that the judge reads gold, as a mock does: off its scale not even guessed gold can be metadata then.
    """

    equate: Scale | None = None
    pairs: bool = False
    cures: Sequence[str] = ()
    named: str = ""
    read: bool = False
    looked: int = 0
    wrong: int = 0
    none: int = 0  # values that say in text that there is no gold
    given: bool = False  # any item has gold
    like: dict[str, None] = field(default_factory=dict)  # columns that look like gold, although none was named
    guessed: str = ""  # the column that gold was guessed from, and how much of it does not lie on its scale
    guesses_off: int = 0
    _guess: str = ""
    _numbered: bool = False  # a column that looks like gold of pairs holds numbers
    _of_pairs: str = ""  # the file in which gold of a single response names the better of several
    _first: DataError | None = None
    _alone: bool = False  # a single number, or a word that is no preference, was given for a pair
    _scales: dict[str, str] = field(default_factory=dict)  # by the rubric's name
    _numbers: tuple[()] | tuple[float, float] = ()  # lowest and highest seen
    _words: Counter[str] = field(default_factory=Counter)

    def look(self, item: Item, rubric: Rubric, responses: Sequence[int]) -> None:
        """Look at the gold of one question; what does not lie on its scale is counted and kept for `error`."""
        if item.gold is None:
            like = {name: value for name, value in item.meta.items() if is_like_gold(name, value)}
            self.like.update(dict.fromkeys(like))
            self._numbered |= len(responses) == 2 and any(
                isinstance(number_in(str(each)), int | float) for each in like.values()
            )
            return
        self.given = True
        scale, pair = own_scale(rubric, self.equate), len(responses) == 2
        value = stated(item.gold, rubric.name, pair=pair or self.pairs)
        if (pair or self.pairs) and is_preference(value, len(item.responses)):
            return
        if isinstance(value, list | tuple):
            shown = [value[i] for i in responses if i < len(value)]
        elif value is None and isinstance(item.gold, dict):  # raters who disagree: gold holds the label of each
            several = item.gold.get("raters")
            shown = list(several) if isinstance(several, list | tuple) else []
            if pair or self.pairs:
                shown = [each for each in shown if not is_preference(each, len(item.responses))]
        else:
            shown = [value]
        for each in shown:
            if each is not None:
                self._take(
                    each, scale, item, rubric, alone=(pair or self.pairs) and not isinstance(value, list | tuple)
                )

    def _take(self, value: Any, scale: Scale, item: Item, rubric: Rubric, *, alone: bool) -> None:
        """Count one value; a single value (`alone`) for a pair says which response is better, and is not a score."""
        self.looked += 1
        choice = not isinstance(value, int) and is_preference(value, len(item.responses))
        if not alone and choice and len(item.responses) > 1 and not lies_on(value, scale):
            self._of_pairs = self._of_pairs or item.origin.rpartition(":")[0] or "FILE"
        if says_none(value) and scale.match(value) is None:
            self.none += 1
            return
        if item.gold_from and not self.read:
            self.guessed = item.gold_from
            if alone or not lies_on(value, scale):
                self.guesses_off += 1
                self._alone |= alone
                due = "does not say which response is better" if alone else f"is not on {scale_text(scale)}"
                place = item.origin.replace("\\", "/").rpartition("/")[2]
                at = f" ({place})" if place.rpartition(":")[2].isdigit() else ""
                self._guess = self._guess or f"{value!r}{at} {due}"
            return
        number = gold_number(value, scale)
        if number is None:
            if str(value) in self._words or len(self._words) <= _SHOWN:
                self._words[str(value)] += 1
        else:
            low, high = self._numbers or (number, number)
            self._numbers = (min(number, low), max(number, high))
        if lies_on(value, scale) and not alone:
            return
        self.wrong += 1
        self._alone |= alone
        self._scales[rubric.name] = scale_text(scale)
        if self._first is None:
            path, _, line = item.origin.rpartition(":")
            told = f"item {item.id!r} has the gold {value!r}"
            known = line.isdigit()
            place = path if known else item.origin
            self._first = DataError(told, path=place, line=int(line) if known else None, field="gold")

    @property
    def guess_is_off(self) -> bool:
        """Whether guessed gold does not lie on its scale, so that it is not gold."""
        return self.guesses_off > 0

    def error(self) -> DataError | None:
        """What is wrong in one message that names both scales and the remedies; None if all gold is on its scale."""
        if self._first is None:
            return None
        seen = self._seen()
        if self.equate is None:
            due = "; ".join(f"{scale} of the rubric {name!r}" for name, scale in list(self._scales.items())[:_SHOWN])
        else:
            due = f"{scale_text(self.equate)} named by --equate"
        likely = (None if self._words else likely_scale(self._numbers)) or "SCALE"
        cures = [f"--equate {likely} says that gold has a scale of its own"]
        if self.equate is None:
            cures.insert(0, f"--scale {likely} puts the rubric on it")
        if len(self._scales) > 1:
            cures.append("an object as gold has a value for each criterion")
        if self._alone:
            cures.insert(0, _ALONE)
            due += " or stand alone for a pair"
        if not self._numbers and any(len(word.split()) > _WORDS_OF_A_LABEL for word in self._words):
            cures.insert(0, "--map reference=gold reads these texts as reference answers")
        cures.append("--map gold=COLUMN takes another column (in Python: Judge(..., equate=...))")
        if self._of_pairs:
            cures.insert(0, self._to_compare)
        cures = list(self.cures) or cures
        message = (
            f"gold does not lie on its scale: {self.wrong:,} of {self.looked:,} values are off {due}, and gold {seen};"
            f" the first: {self._first}. Nothing was asked. {'; '.join(cures)}"
        )
        found = DataError(message)
        found.path, found.line, found.field = self._first.path, self._first.line, self._first.field
        return found

    def notes(self) -> tuple[str, ...]:
        """That a column looks like gold and is kept as metadata, where no item has gold."""
        if self.guess_is_off:
            name, flag = self.guessed, f"--map {shlex.quote(f'gold={self.guessed}')}"
            if self._alone:
                return (
                    f"{name!r} was guessed to be gold but {self._guess}, so it is metadata only: "
                    + (self.named or f"write a, b or tie; {flag} reads 0 as the first response and 1 as the second"),
                )
            if self._of_pairs:
                told = f"{name!r} says which response is better ({self._guess}), so it is metadata only here"
                return (f"{told}: {self.named or self._to_compare}",)
            return (
                f"{name!r} was guessed to be gold but does not lie on the scale ({self.guesses_off:,} of "
                f"{self.looked:,} values; {self._guess}), so it is metadata only: "
                + (self.named or f"{flag} makes it gold, with --scale or --equate"),
            )
        if self.none:
            return (f"{self.none:,} of {self.looked:,} gold values say that there is none (N/A or the like)",)
        if self.given or not self.like:
            return ()
        name = next(iter(self.like))
        one_hot = [each for each in self.like if plain_name(each).startswith("winner_")]
        if len(one_hot) > 1:
            listed = ", ".join(map(repr, one_hot))
            return (
                f"{listed} look like gold with a column for each outcome, kept as metadata: make one column `winner` "
                "of them that says a, b or tie",
            )
        listed = ", ".join(map(repr, self.like))
        verb = "look" if len(self.like) > 1 else "looks"
        meaning = ", in which 0 is the first response and 1 the second" * self._numbered
        flag = f"--map {shlex.quote(f'gold={name}')}"
        cure = self.named or f"{flag} names it as gold{meaning} (the same command with it asks nothing twice)"
        return (f"{listed} {verb} like gold, kept as metadata: {cure}",)

    @property
    def _to_compare(self) -> str:
        verb = f"`dikast compare {shlex.quote(self._of_pairs)} ...` (in Python dikast.compare)"
        return f"{verb} compares the responses and measures how often the judge agrees"

    def _seen(self) -> str:
        told = []
        if self._numbers:
            low, high = self._numbers
            told.append(f"goes from {low:g} to {high:g}")
        if words := [repr(word[:40]) for word, _ in self._words.most_common(_SHOWN)]:
            told.append(f"says {', '.join(words)}")
        return " and ".join(told)


def is_like_gold(name: str, value: Any) -> bool:
    """Whether a column of metadata may hold gold: by the table of names, numbers under a name that speaks of it, or
    words for the better response under one that speaks of a choice.
    """
    if plain_name(name) in GOLD_LIKE:
        return value not in (None, "")
    if isinstance(value, str) and _PREFERENCE.fullmatch(value.strip()):
        return _CHOICE.fullmatch(re.sub(r"\W+", "_", plain_name(name)).strip("_")) is not None
    number = isinstance(value, bool | int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value.strip()))
    return bool(number) and _speaks_of_gold(name)


@lru_cache(1024)
def _speaks_of_gold(name: str) -> bool:
    return _LIKE.fullmatch(re.sub(r"\W+", "_", plain_name(name)).strip("_")) is not None


def is_preference(value: Any, responses: int) -> bool:
    """Whether gold names the better of several responses: a, b, tie, first, second, a mark of arenas such as `A>B`, or
    the index of a response.
    """
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return 0 <= value < responses
    return isinstance(value, str) and _PREFERENCE.fullmatch(value.strip()) is not None


def scale_text(scale: Scale) -> str:
    """A scale for messages: as it is written, and its values where words or letters hide them."""
    spelt = str(scale)
    return spelt if spelt[-1].isdigit() else f"{spelt} ({scale.low:g} to {scale.high:g})"


def likely_scale(numbers: Sequence[float]) -> str | None:
    """The scale that numbers probably lie on: the shortest of the usual scales that holds them. None if none does."""
    if not len(numbers):
        return None
    low, high = min(numbers), max(numbers)
    scales = ((name, Scale.parse(name)) for name in _USUAL)
    return next((name for name, scale in scales if scale.low <= low and high <= scale.high), None)
