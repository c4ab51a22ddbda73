"""Pairwise verdicts: accuracy under named tie rules, both orders, and how consistent they are.

A choice is a code: 0 the first response, 1 the second, 2 a tie, -1 no verdict; always of responses, never of slots.
"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.columns import Words
from dikast.audit.plan import PairLabels, TwoGames, spelling
from dikast.core.errors import UserError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
FIRST, SECOND, TIE, NONE = 0, 1, 2, -1
NAMES = ("first", "second", "tie")

TieRule = Literal["all", "no_gold_ties", "half", "decided"]
TIE_RULES: Mapping[TieRule, str] = {
    "all": "every pair counts; a tie is right only where gold is a tie",
    "no_gold_ties": "pairs whose gold is a tie are left out; a judge's tie is wrong",
    "half": "pairs whose gold is a tie are left out; a judge's tie earns a half",
    "decided": "pairs where gold or the judge says tie are left out",
}

_KNOWN = {"a": FIRST, "b": SECOND, "first": FIRST, "second": SECOND, "tie": TIE}
_ARENA = re.compile(r"\[*\s*(?:A\s*(>>|>|=|<<|<)\s*B|B\s*(>>|>|=|<<|<)\s*A)\s*\]*")


class Choices(NamedTuple):
    """Codes (n,), whether each was a strong verdict (A>>B), and how often each word that is no choice stood there."""

    codes: Codes
    strong: Masks
    other: dict[str, int]


def read_choices(words: Words, labels: PairLabels | None, column: str) -> Choices:
    """Choices from text: by `labels`, else a, b, first, second, tie, or arena marks from A>>B to B>>A.

    Any other word is no verdict. UserError if no word at all is a choice, for then the labels are wrong.
    """
    spelt = None if labels is None else labels.codes()
    read = [_choice(name, spelt) for name in words.names] or [(NONE, False)]
    codes, strong = np.array([code for code, _ in read]), np.array([mark for _, mark in read])
    if len(words.names) and (codes == NONE).all():
        seen = ", ".join(map(repr, words.names[:10]))
        raise UserError(
            f"column {column!r} holds {seen}: say how choices are spelt with --pair-labels FIRST,SECOND,TIE"
        )
    present = words.codes >= 0
    sizes = np.bincount(words.codes[present], minlength=len(words.names))
    other = {name: int(sizes[i]) for i, name in enumerate(words.names) if codes[i] == NONE and sizes[i]}
    return Choices(np.where(present, codes[words.codes], NONE), present & strong[words.codes], other)


def _choice(text: str, spelt: Mapping[str, int] | None) -> tuple[int, bool]:
    if spelt is not None:
        return {"tie": TIE, **spelt}.get(spelling(text), NONE), False
    folded = text.strip().casefold()
    if folded in _KNOWN:
        return _KNOWN[folded], False
    match = _ARENA.fullmatch(text.strip())
    if match is None:
        return NONE, False
    mark, ahead = match[1] or match[2], FIRST if match[1] else SECOND
    if mark == "=":
        return TIE, False
    return (ahead if ">" in mark else 1 - ahead), len(mark) == 2


def swap(codes: ArrayLike) -> Codes:
    """The same choices with the two responses exchanged."""
    given = np.asarray(codes, np.int64)
    return np.where((given == FIRST) | (given == SECOND), 1 - given, given)


class Share(NamedTuple):
    """What each pair earns (n,), in [0, 1], and which pairs count at all (n,)."""

    worth: Floats
    counts: Masks

    @property
    def value(self) -> float:
        """The mean over the pairs that count; NaN of none."""
        return float(self.worth[self.counts].mean()) if self.counts.any() else float("nan")


def accuracy(choice: ArrayLike, gold: ArrayLike, rule: TieRule) -> Share:
    """Pairwise accuracy under a named tie rule (TIE_RULES). Pairs without a verdict or without gold never count.

    choice, gold: codes (n,).
    """
    said, right = np.asarray(choice, np.int64), np.asarray(gold, np.int64)
    counts = (said != NONE) & (right != NONE)
    worth = (said == right).astype(np.float64)
    if rule not in TIE_RULES:
        raise UserError(f"{rule!r} is no tie rule: choose {', '.join(TIE_RULES)}")
    if rule != "all":
        counts &= right != TIE
    if rule == "half":
        worth[said == TIE] = 0.5
    if rule == "decided":
        counts &= said != TIE
    return Share(worth, counts)


def both_orders(first_order: ArrayLike, second_order: ArrayLike, rule: TwoGames = "both") -> Codes:
    """What two orders say together; nothing where either is missing.

    Rule "both": their common choice, a tie where they differ. Rule "net": wins are counted, so that a win and a tie
    are a win, and a win of each is a tie.
    """
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    joint = np.where(one == two, one, TIE)
    if rule == "net":
        joint = np.where((one == TIE) & _decided(two), two, np.where((two == TIE) & _decided(one), one, joint))
    return np.where((one == NONE) | (two == NONE), NONE, joint)


def _decided(codes: Codes) -> Masks:
    return np.asarray((codes == FIRST) | (codes == SECOND))


def order_consistency(first_order: ArrayLike, second_order: ArrayLike) -> Share:
    """Pairs with a verdict in both orders that name the same response (or tie) in both. Chance level is not 0."""
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    return Share((one == two).astype(np.float64), (one != NONE) & (two != NONE))


def slot_preference(first_order: ArrayLike, second_order: ArrayLike) -> Share:
    """Of the pairs decided both times but for different responses, those where the slot shown first won both times.

    One half without position bias; 1 if the first slot always wins, 0 if the second does.
    """
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    decided = _decided(one) & _decided(two) & (one != two)
    return Share((one == FIRST).astype(np.float64), decided)


def scores_to_choices(first: ArrayLike, second: ArrayLike, band: float = 0.0) -> Codes:
    """Absolute scores of two responses as choices: a tie within `band`, no verdict where a score is NaN."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    unknown = np.isnan(a) | np.isnan(b)
    with np.errstate(invalid="ignore"):
        codes = np.where(np.abs(a - b) <= band, TIE, np.where(a > b, FIRST, SECOND))
    return np.where(unknown, NONE, codes).astype(np.int64)
