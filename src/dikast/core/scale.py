"""The scale of a score: ordered labels with numeric values."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

from dikast.core.errors import UserError

_RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*[-–]\s*(-?\d+(?:\.\d+)?)\s*(?:/\s*(\d+(?:\.\d+)?))?\s*")
_LETTERS = re.compile(r"\s*([A-Z])\s*-\s*([A-Z])\s*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_MOST_LABELS = 1001
_MOST_DIGITS = 100  # of the ends and the step of a numeric scale together
HOW_TO_WRITE = (
    "write a range (1-5, 0-100, 0-1/0.1), letters with the best first (A-E), two words with the better first "
    "(pass/fail), or any words from the worst to the best (poor<fair<good)"
)


@dataclass(frozen=True, slots=True)
class Scale:
    """Labels as a judge writes them, from the lowest value to the highest, and their numeric values.

    `labels` are distinct and non-empty, `values` strictly rising. `lower_is_better` reverses the meaning without
    changing the numbers (a 1-5 scale of harm). A number that is not one of `values` is not a score; nothing is clipped.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or len(self.labels) != len(self.values):
            raise UserError("a scale needs at least two labels and one value for each")
        if not all(label and label == label.strip() for label in self.labels):
            raise UserError(f"the labels of a scale must be words without space around them, got {list(self.labels)}")
        words, numbers = _spellings(self.labels)
        if len(words) < len(self.labels) or len(numbers) < sum(map(_is_number, self.labels)):
            raise UserError(f"the labels of a scale must be distinct, got {list(self.labels)}")
        rising = all(a < b for a, b in zip(self.values, self.values[1:], strict=False))
        if not rising or not all(map(math.isfinite, self.values)):
            raise UserError(f"the values of a scale must rise from label to label, got {list(self.values)}")

    @classmethod
    def parse(cls, text: str) -> "Scale":
        """Read `1-5`, `0-100`, `0-1/0.1` (steps of .1), `A-E` (A is best), `pass/fail` (the first word is better), or
        `poor<fair<good` (from the worst to the best).
        """
        if match := _RANGE.fullmatch(text):
            return _numeric(text, Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1))
        if match := _LETTERS.fullmatch(text):
            first, last = ord(match[1]), ord(match[2])
            if first >= last:
                raise UserError(f"scale {text!r} runs backwards: write {match[2]}-{match[1]}, best letter first")
            letters = tuple(map(chr, range(last, first - 1, -1)))
            return cls(letters, tuple(float(i) for i in range(1, len(letters) + 1)))
        if "<" in text and all(words := [word.strip() for word in text.split("<")]):
            if len(set(map(_is_number, words))) > 1:
                raise UserError(f"scale {text!r} mixes words and numbers: write all of them as words, or as numbers")
            return cls.of_labels(words)
        words = [word.strip() for word in text.split("/")]
        if len(words) == 2 and all(words) and not any(map(_is_number, words)):
            return cls((words[1], words[0]), (0.0, 1.0))
        raise UserError(f"{text!r} is not a scale: {HOW_TO_WRITE}")

    @classmethod
    def of_labels(cls, labels: Sequence[str]) -> "Scale":
        """Labels from the lowest to the highest: numbers mean themselves, words count from 1."""
        try:
            values = tuple(map(float, labels))
        except ValueError:
            values = tuple(map(float, range(1, len(labels) + 1)))
        return cls(tuple(labels), values)

    @property
    def low(self) -> float:
        """The smallest value."""
        return self.values[0]

    @property
    def high(self) -> float:
        """The largest value."""
        return self.values[-1]

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and self.match(label) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def match(self, text: str) -> str | None:
        """The label that `text` states, or None: exact but for case and surrounding space, or numerically equal."""
        text = text.strip()
        words, numbers = _spellings(self.labels)
        label = words.get(text.casefold())
        return numbers.get(Decimal(text)) if label is None and _is_number(text) else label

    def value(self, label: str) -> float:
        """The numeric value of one of `labels`."""
        return self.values[self.labels.index(label)]

    def label(self, value: float) -> str | None:
        """The label whose value is `value` exactly, or None."""
        return self.labels[self.values.index(value)] if value in self.values else None

    def goodness(self, value: float) -> float:
        """The position of `value` between worst (0) and best (1); equal shares of different scales are equal floats."""
        worst, best = (self.high, self.low) if self.lower_is_better else (self.low, self.high)
        return _share(value, worst, best) if value in self.values else (value - worst) / (best - worst)

    def __repr__(self) -> str:
        return f"<Scale {self}{', lower is better' * self.lower_is_better}>"

    def __str__(self) -> str:
        """The short spelling that `parse` reads back, where there is one."""
        for text in (f"{self.labels[0]}-{self.labels[-1]}", *_spelt(self)):
            try:
                if Scale.parse(text) == Scale(self.labels, self.values):
                    return text
            except (UserError, InvalidOperation):
                continue
        return ", ".join(self.labels)


@lru_cache(maxsize=256)  # a judge uses few scales repeatedly, some with 101 labels
def _spellings(labels: tuple[str, ...]) -> tuple[dict[str, str], dict[Decimal, str]]:
    """The label by its folded spelling, and by its number where it is one."""
    numbers = {Decimal(label): label for label in labels if _is_number(label)}
    return {label.casefold(): label for label in labels}, numbers


@lru_cache(maxsize=4096)
def _share(value: float, worst: float, best: float) -> float:
    """Exact in the decimals that the numbers are written in, rounded once."""
    at, start, end = (Fraction(repr(float(each))) for each in (value, worst, best))
    return float((at - start) / (end - start))


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _spelt(scale: Scale) -> Iterator[str]:
    yield f"{scale.labels[-1]}-{scale.labels[0]}"
    yield f"{scale.labels[-1]}/{scale.labels[0]}"
    if _is_number(scale.labels[0]) and _is_number(scale.labels[1]):
        yield f"{scale.labels[0]}-{scale.labels[-1]}/{Decimal(scale.labels[1]) - Decimal(scale.labels[0])}"
    yield "<".join(scale.labels)


def _numeric(text: str, low: Decimal, high: Decimal, step: Decimal) -> Scale:
    if len(text) > _MOST_DIGITS:
        raise UserError(f"scale {text[:20]!r}... has numbers of too many digits: {HOW_TO_WRITE}")
    if low >= high:
        raise UserError(
            f"scale {text!r} runs backwards: write {high}-{low} (and `lower_is_better: true` if low is good)"
        )
    if step > 0 and (high - low) / step >= _MOST_LABELS:
        raise UserError(f"scale {text!r} has too many labels; {_MOST_LABELS} is the most a judge can be asked to use")
    if step <= 0 or (high - low) % step:
        raise UserError(f"scale {text!r}: {high} cannot be reached from {low} in steps of {step}")
    count = int((high - low) / step) + 1
    steps = [low + step * i for i in range(count)]
    labels = tuple(f"{value:f}" if value != value.to_integral() else str(int(value)) for value in steps)
    return Scale(labels, tuple(map(float, steps)))
